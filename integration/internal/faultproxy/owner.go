//go:build linux

package faultproxy

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
		if ino := socketInode(string(raw), addr); ino != "" && hasFD(dir, "socket:["+ino+"]") {
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

// socketInode finds the inode of the socket with that local end in a table of
// the form of proc_pid_net(5).
func socketInode(table string, local netip.AddrPort) string {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 {
			continue
		}
		if a, err := parseLocal(f[1]); err == nil && a == local {
			return f[9]
		}
	}
	return ""
}

// parseLocal reads ADDRESS:PORT in hexadecimal, the address in 32-bit words of
// the machine's byte order.
func parseLocal(text string) (netip.AddrPort, error) {
	hexAddr, hexPort, ok := strings.Cut(text, ":")
	if !ok || len(hexAddr)%8 != 0 {
		return netip.AddrPort{}, fmt.Errorf("reading socket address %q: no address and port", text)
	}
	var raw []byte
	for i := 0; i < len(hexAddr); i += 8 {
		word, err := strconv.ParseUint(hexAddr[i:i+8], 16, 32)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("reading socket address %q: %w", text, err)
		}
		raw = binary.NativeEndian.AppendUint32(raw, uint32(word))
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("reading socket address %q: %d bytes", text, len(raw))
	}
	port, err := strconv.ParseUint(hexPort, 16, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("reading socket address %q: %w", text, err)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), nil
}
