//go:build linux

// Package lab builds a corporate network on one machine: nodes with a real
// systemd and a real containerd, each in a network namespace of its own, a
// services namespace with squid (open and with basic auth), and registries with
// TLS from a CA of the lab.
//
// The external registry has an address on a second network to which the nodes
// have no route and whose name they cannot resolve; only the proxies can reach
// it. A pull from it that works therefore proves the proxy.
//
// The lab needs root. Every resource is recorded before it is made, so that
// [Down] removes what an interrupted run left behind. Labs of different names
// run side by side: each takes an index of its own, and with it its addresses
// and the names of its namespaces.
package lab
