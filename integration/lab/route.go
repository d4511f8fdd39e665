//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
)

// OpenDirectRoute lets a node reach the external registry without a proxy: it
// gets a route to the internet and can resolve the registry's name.
func (l *Lab) OpenDirectRoute(ctx context.Context, n *Node) error {
	hosts := hostsFile(n.Name, l.state.allHosts())
	if err := n.rewriteHosts(hosts); err != nil {
		return err
	}
	return ip(ctx, []string{"-n", l.state.nodeNS(n.record), "route", "replace", l.state.externalSubnet().String(), "via", l.state.addr(1).String()})
}

// CloseDirectRoute takes back what [Lab.OpenDirectRoute] gave.
func (l *Lab) CloseDirectRoute(ctx context.Context, n *Node) error {
	if err := n.rewriteHosts(hostsFile(n.Name, l.state.corporateHosts())); err != nil {
		return err
	}
	return ip(ctx, []string{"-n", l.state.nodeNS(n.record), "route", "flush", l.state.externalSubnet().String()})
}

// rewriteHosts keeps the file's inode, which pods have mounted.
func (n *Node) rewriteHosts(content string) error {
	if err := os.WriteFile(n.Live()+"/etc/hosts", []byte(content), 0o644); err != nil {
		return fmt.Errorf("writing the hosts file of node %q: %w", n.Name, err)
	}
	return nil
}
