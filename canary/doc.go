// Package canary proves that a daemon's pulls go the right way: it pulls a canary image fresh
// through the daemon, witnesses the sockets the bytes come in by, and compares the route with the
// expected one. It also walks a registry itself, hop by hop, to find out beforehand what a pull
// would meet.
//
// It returns evidence and decides nothing about the host.
package canary
