// Package canarytest holds what canaries are tested against: registries and proxies on loopback
// under names of their own, a CRI runtime that pulls for real, and the conformance suite that runs
// on that runtime and on a real one.
package canarytest
