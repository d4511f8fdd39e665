package runtimes_test

import (
	"testing"

	"github.com/proxyward/proxyward/runtimes"
	"github.com/proxyward/proxyward/runtimes/runtimetest"
)

func TestConformance(t *testing.T) {
	for _, a := range runtimes.All() {
		t.Run(string(a.Target()), func(t *testing.T) {
			runtimetest.Run(t, a, runtimetest.Folder("testdata/hosts", a.Target()), runtimetest.Options{Update: *update})
		})
	}
}
