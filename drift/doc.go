// Package drift observes what a host's daemons run with, in four layers (files, what systemd
// loaded, the running process, what wins above its environment), compares it with what is desired
// and says what would have to be done. It also watches a host for changes.
//
// It reads; it never writes a file nor restarts a unit. Diff is pure.
package drift
