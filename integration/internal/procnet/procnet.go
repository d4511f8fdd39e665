// Package procnet reads the kernel's tables of TCP sockets, as in
// /proc/PID/net/tcp and tcp6: see proc_pid_net(5).
package procnet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Listen is the [Socket.State] of a listening socket, in the kernel's numbers.
const Listen = "0A"

// Socket is one line of a table.
type Socket struct {
	Local netip.AddrPort
	State string // two hexadecimal digits
	Inode string // decimal, as in the link "socket:[INODE]" of a descriptor
}

// Find returns the first socket of a table with that local end.
func Find(table string, local netip.AddrPort) (Socket, bool) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 {
			continue
		}
		if a, err := parseAddr(f[1]); err == nil && a == local {
			return Socket{Local: a, State: f[3], Inode: f[9]}, true
		}
	}
	return Socket{}, false
}

// parseAddr reads ADDRESS:PORT in hexadecimal, the address in 32-bit words of
// the machine's byte order.
func parseAddr(text string) (netip.AddrPort, error) {
	hexAddr, hexPort, ok := strings.Cut(text, ":")
	if !ok || len(hexAddr)%8 != 0 {
		return netip.AddrPort{}, fmt.Errorf("reading socket address %q: want ADDRESS:PORT", text)
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
