//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proxyward/proxyward/integration/internal/pki"
)

// DefaultStateDir holds one folder per lab when [Config.StateDir] is empty.
const DefaultStateDir = "/var/lib/proxyward-lab"

// Generation is the Debian release whose systemd and container runtimes a node
// runs.
type Generation string

// The generations a node can be of, with what they brought when they were tried.
const (
	Bookworm Generation = "bookworm" // systemd 252, containerd 1.6
	Trixie   Generation = "trixie"   // systemd 257, containerd 1.7
	Sid      Generation = "sid"      // systemd 262, containerd 2
)

func generations() []Generation { return []Generation{Bookworm, Trixie, Sid} }

// Config says what lab to bring up.
type Config struct {
	// Name tells this lab from others on the machine: lower-case letters,
	// digits and hyphens, at most 32 characters.
	Name string
	// Nodes to boot; none is allowed and leaves only the services.
	Nodes []NodeSpec
	// Generation of nodes that do not name one; Trixie when empty.
	Generation Generation
	// Progress receives one line per step; nil discards them.
	Progress io.Writer
	// StateDir is the parent of the lab's own folder; [DefaultStateDir] when
	// empty. Squid's user must be able to enter it, and overlayfs to write there.
	StateDir string
	// Credentials of the authenticating proxy and of the registries that ask
	// for a login; [DefaultCredentials] where a field is empty.
	Credentials Credentials
	// Detach leaves the lab running when the calling process ends. Without it
	// the next Up on this machine removes the lab once its owner is gone.
	Detach bool
}

// NodeSpec describes one node.
type NodeSpec struct {
	// Name is the host name: lower-case letters, digits, hyphens, at most 12.
	Name string
	// Generation overrides that of the lab.
	Generation Generation
	// Full takes the root that also holds Docker, the CNI plugins, nftables
	// and iptables. Docker's daemon does not start at boot unless Docker is set.
	Full bool
	// Docker starts dockerd at boot; it implies Full.
	Docker bool
	// Prepare, if set, is called with the host path of the node's root before
	// its first boot.
	Prepare func(root string) error `json:"-"`
}

// Credentials of the lab's services. They are made up and protect nothing.
type Credentials struct {
	ProxyUser, ProxyPassword       string
	RegistryUser, RegistryPassword string
}

// DefaultCredentials hold the characters that proxy settings tend to break on.
func DefaultCredentials() Credentials {
	return Credentials{
		ProxyUser: "svc", ProxyPassword: "p@ss:w/rd%40#",
		RegistryUser: "puller", RegistryPassword: "pu11-s3cret",
	}
}

// Lab is a lab that is up.
type Lab struct {
	state    *state
	claim    *claim
	pki      *pki.Authority
	progress io.Writer

	mu    sync.Mutex
	nodes map[string]*Node
}

// Up builds what is missing on the machine, brings the lab up and waits until
// its services answer and its nodes have booted. Leftovers of interrupted runs
// are removed first. On an error everything made so far is removed again.
func Up(ctx context.Context, cfg Config) (_ *Lab, err error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := checkHost(); err != nil {
		return nil, err
	}
	if err := checkStateDir(cfg.StateDir); err != nil {
		return nil, err
	}
	helpers, err := setup(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := sweep(ctx, cfg.Progress); err != nil {
		return nil, err
	}
	l, err := create(ctx, cfg, helpers)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			// The caller's context may be what ended the start.
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			err = errors.Join(err, l.Down(cleanup))
		}
	}()
	return l, l.start(ctx, cfg)
}

func (l *Lab) start(ctx context.Context, cfg Config) error {
	began := time.Now()
	if err := l.makeNetwork(ctx); err != nil {
		return err
	}
	l.say("network %s and services namespace %s are up", l.state.subnet(), l.state.servicesNS())
	if err := l.makePKI(); err != nil {
		return err
	}
	tasks := []func(context.Context) error{l.startProxies, l.startRegistries}
	for _, spec := range cfg.Nodes {
		// Recorded one by one, so that addresses follow the order given.
		r, err := l.state.addNode(spec)
		if err != nil {
			return err
		}
		tasks = append(tasks, func(ctx context.Context) error {
			_, err := l.startNode(ctx, spec, r)
			return err
		})
	}
	if err := together(ctx, tasks); err != nil {
		return err
	}
	l.say("lab %q is up after %.1f s", l.state.Name, time.Since(began).Seconds())
	return nil
}

// together runs the tasks side by side and returns the first error, which also
// cancels the others.
func together(ctx context.Context, tasks []func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, task := range tasks {
		group.Go(func() error { return task(ctx) })
	}
	return group.Wait()
}

// create claims an index and records the lab; nothing else exists after it.
func create(ctx context.Context, cfg Config, helpers string) (*Lab, error) {
	dir := filepath.Join(cfg.StateDir, cfg.Name)
	old, err := loadState(dir)
	if err != nil {
		return nil, err
	}
	if old != nil && old.claimed() {
		return nil, fmt.Errorf("creating lab %q: it is up already (%s): run `lab down --name %s` first", cfg.Name, dir, cfg.Name)
	}
	// Claims do not outlive a reboot of the host, folders do.
	if err := remove(ctx, dir); err != nil {
		return nil, err
	}
	c, err := claimIndex(ctx, cfg.Progress, dir)
	if err != nil {
		return nil, err
	}
	s, err := newState(cfg, dir, helpers, c.index)
	if err != nil {
		return nil, errors.Join(err, c.release())
	}
	return &Lab{state: s, claim: c, progress: cfg.Progress, nodes: map[string]*Node{}}, nil
}

// Name is the lab's name.
func (l *Lab) Name() string { return l.state.Name }

// Dir is the folder that holds all of the lab's files.
func (l *Lab) Dir() string { return l.state.Dir }

// Credentials are those that the lab's services ask for.
func (l *Lab) Credentials() Credentials { return l.state.Credentials }

// Node returns the node of that name, or nil.
func (l *Lab) Node(name string) *Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes[name]
}

// Nodes returns the nodes in the order in which they were added.
func (l *Lab) Nodes() []*Node {
	var nodes []*Node
	for _, r := range l.state.nodeRecords() {
		if n := l.Node(r.Name); n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (l *Lab) say(format string, args ...any) { say(l.progress, format, args...) }

func say(w io.Writer, format string, args ...any) {
	if w == nil {
		return
	}
	// Progress is for people to read; a closed terminal must not fail the lab.
	_, _ = fmt.Fprintf(w, "lab: "+format+"\n", args...)
}
