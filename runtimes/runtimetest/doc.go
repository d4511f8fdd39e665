// Package runtimetest holds the rules that every adapter of package runtimes keeps, as one suite
// that runs on sample trees of hosts.
//
// A tree is a folder that holds a host's etc, usr and so on, and beside it <tree>.want.json with
// what Inspect makes of it. A new adapter needs its file, its line in runtimes.All and such trees.
package runtimetest
