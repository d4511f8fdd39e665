// Package runtimes knows the daemons that Proxyward configures: how each is found on a host, what
// its unit and socket are called, which mirrors it is configured with, what overrides its
// environment from above, and what a restart does to its containers. It also renders the files
// that put a unit on a proxy.
//
// It reads a host's tree and returns values. It never writes, and speaks to neither systemd nor
// Kubernetes nor a daemon.
package runtimes
