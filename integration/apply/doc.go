// Package apply holds the transaction's tests on real nodes: killed at every step, undone by a
// dead-man that nobody but systemd runs.
package apply
