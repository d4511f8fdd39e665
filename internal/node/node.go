// Package node is one real host as the pipeline needs it: its tree, its systemd, its processes and
// its runtimes' sockets, given to what observes, changes and proves. It decides nothing.
package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/internal/systemd"
)

// bootIDFile belongs to the running kernel, so it is read where this process is, not in a tree.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// Node is one host, or a plain tree of files that looks like one.
type Node struct {
	Root *hostfs.Root
	// Systemd is nil where there is none to ask: a plain tree, or a boot that is not that far.
	Systemd *systemd.Manager
	// BootID of the running kernel.
	BootID string
}

// Open reaches the host whose tree is at a directory: "/" on the host itself. Close must be called.
func Open(ctx context.Context, hostRoot string) (*Node, error) {
	root, err := hostfs.Open(hostRoot)
	if err != nil {
		return nil, err
	}
	boot, err := os.ReadFile(bootIDFile)
	if err != nil {
		return nil, fmt.Errorf("reading the boot ID: %w", err)
	}
	n := &Node{Root: root, BootID: strings.TrimSpace(string(boot))}
	n.Systemd, err = systemd.Connect(ctx, hostRoot)
	if err != nil && !errors.Is(err, systemd.ErrAbsent) {
		return nil, err
	}
	return n, nil
}

// Close ends the connections.
func (n *Node) Close() {
	if n.Systemd != nil {
		n.Systemd.Close()
	}
}

// Observed gives the host to drift.Observe.
func (n *Node) Observed() drift.Host {
	host := drift.Host{Files: n.Root}
	if n.Systemd != nil {
		host.Systemd = n.Systemd
		host.Processes = drift.NewProc(filepath.Join(n.Root.Dir(), "proc"))
	}
	return host
}

// Applier makes changes to the host on behalf of a verb. Where there is systemd, the dead-man guards
// them; it runs a copy of this program, which must have the verb "deadman".
func (n *Node) Applier(verb string, observe apply.Observer) (*apply.Applier, error) {
	cfg := apply.Config{
		Files:   n.Root,
		Lock:    apply.HostLock{Root: n.Root, Verb: verb},
		BootID:  n.BootID,
		By:      verb,
		Observe: observe,
	}
	if n.Systemd != nil {
		cfg.Units = apply.Systemd{Manager: n.Systemd}
		cfg.Guard = &apply.Deadman{Files: n.Root, Units: n.Systemd, Installer: n.Systemd, Program: apply.OwnProgram}
	}
	return apply.New(cfg)
}

// Path returns where this process finds a path of the host. Symbolic links are those of the host:
// an absolute one, as /var/run often is, stays in its tree.
func (n *Node) Path(hostPath string) (string, error) { return n.Root.Resolve(hostPath) }
