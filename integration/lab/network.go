//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

func nsPath(ns string) string { return "/run/netns/" + ns }

// makeNetwork makes the services namespace with the lab's bridge in it, gives it
// the services' addresses and connects the host, so that tests and people on the
// host reach every service by its address.
func (l *Lab) makeNetwork(ctx context.Context) error {
	s := l.state
	ns, host := s.servicesNS(), s.hostLink()
	steps := [][]string{
		{"netns", "add", ns},
		{"-n", ns, "link", "set", "lo", "up"},
		// A bridge without an address of its own takes the lowest of its
		// ports', so it would change, and be unreachable to those who know the
		// old one, as nodes are plugged in.
		{"-n", ns, "link", "add", "lab0", "address", s.bridgeMAC(), "type", "bridge"},
		{"-n", ns, "link", "set", "lab0", "up"},
		// The internet is one address, behind the services namespace.
		{"-n", ns, "addr", "add", s.externalAddr(externalOctet).String() + "/32", "dev", "lo"},
		{"link", "add", host, "type", "veth", "peer", "name", "host0", "netns", ns},
		{"-n", ns, "link", "set", "host0", "master", "lab0", "up"},
		{"addr", "add", s.addr(hostOctet).String() + "/24", "dev", host},
		{"link", "set", host, "up"},
		{"route", "add", s.externalSubnet().String(), "via", s.addr(1).String(), "dev", host},
	}
	for _, a := range s.serviceAddrs() {
		steps = append(steps, []string{"-n", ns, "addr", "add", a.String() + "/24", "dev", "lab0"})
	}
	return ip(ctx, steps...)
}

// makeNodeNetwork makes a node's namespace and plugs it into the bridge. It
// gets no default route: the corporate network is all it can reach.
func (l *Lab) makeNodeNetwork(ctx context.Context, r nodeRecord) error {
	ns, port := l.state.nodeNS(r), fmt.Sprintf("node%d", r.Number)
	return ip(ctx,
		[]string{"netns", "add", ns},
		[]string{"-n", ns, "link", "set", "lo", "up"},
		[]string{"-n", ns, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", l.state.servicesNS()},
		[]string{"-n", l.state.servicesNS(), "link", "set", port, "master", "lab0", "up"},
		[]string{"-n", ns, "addr", "add", l.state.nodeAddr(r).String() + "/24", "dev", "eth0"},
		[]string{"-n", ns, "link", "set", "eth0", "up"},
	)
}

// ip runs iproute2 once per step.
func ip(ctx context.Context, steps ...[]string) error {
	for _, args := range steps {
		if err := run(ctx, "ip", args...); err != nil {
			return err
		}
	}
	return nil
}

func removeNetns(ctx context.Context, ns string) error {
	if _, err := os.Stat(nsPath(ns)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return ip(ctx, []string{"netns", "del", ns})
}

func removeLink(ctx context.Context, name string) error {
	if _, err := os.Stat("/sys/class/net/" + name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return ip(ctx, []string{"link", "del", name})
}

// hostsFile maps the lab's names to their addresses in the form of hosts(5).
func hostsFile(self string, hosts []namedAddr) string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n")
	if self != "" {
		fmt.Fprintf(&b, "127.0.1.1 %s\n", self)
	}
	for _, h := range hosts {
		fmt.Fprintf(&b, "%s %s\n", h.addr, h.name)
	}
	return b.String()
}
