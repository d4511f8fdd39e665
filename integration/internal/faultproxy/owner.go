//go:build linux

package faultproxy

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/proxyward/proxyward/integration/internal/procnet"
)

// Owner returns the command name (as in proc_pid_comm(5)) of the process, among
// those with one of the names given, that holds the local end of a TCP
// connection at addr; empty if none does. It looks into the network namespace
// of each candidate, so it works across nodes.
func Owner(addr netip.AddrPort, names []string) (string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return "", fmt.Errorf("listing processes: %w", err)
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		dir := filepath.Join("/proc", e.Name())
		comm, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			continue // it ended
		}
		name := strings.TrimSpace(string(comm))
		if slices.Contains(names, name) && holds(dir, addr) {
			return name, nil
		}
	}
	return "", nil
}

// holds says whether the process of a /proc folder has the socket open.
func holds(dir string, addr netip.AddrPort) bool {
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		raw, err := os.ReadFile(filepath.Join(dir, table))
		if err != nil {
			continue
		}
		if s, ok := procnet.Find(string(raw), addr); ok && hasFD(dir, "socket:["+s.Inode+"]") {
			return true
		}
	}
	return false
}

func hasFD(dir, link string) bool {
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if target, err := os.Readlink(filepath.Join(dir, "fd", fd.Name())); err == nil && target == link {
			return true
		}
	}
	return false
}
