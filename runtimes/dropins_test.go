package runtimes_test

import (
	"slices"
	"testing"

	"github.com/proxyward/proxyward/runtimes"
)

func TestDropInDirsAreInTheOrderInWhichOneMasksAnother(t *testing.T) {
	dirs := runtimes.DropInDirs("foo-bar-baz.service", "alias.service")
	order := []string{
		"/etc/systemd/system.control/foo-bar-baz.service.d",
		"/etc/systemd/system/foo-bar-baz.service.d",
		"/etc/systemd/system/foo-bar-.service.d",
		"/etc/systemd/system/foo-.service.d",
		"/usr/lib/systemd/system/foo-bar-baz.service.d",
		"/etc/systemd/system/alias.service.d",
		"/etc/systemd/system/service.d",
		"/usr/lib/systemd/system/service.d",
	}
	last := -1
	for _, dir := range order {
		at := slices.Index(dirs, dir)
		if at <= last {
			t.Errorf("%q stands at %d of %q, want it after %d", dir, at, dirs, last)
		}
		last = at
	}
}
