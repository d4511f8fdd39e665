//go:build linux

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proxyward/proxyward/integration/controlplane"
	"github.com/proxyward/proxyward/integration/lab"
)

// apiServerPort is where the API server listens, at [lab.APIServerHost].
const apiServerPort = 6443

// Config says what cluster to make of a lab.
type Config struct {
	// Nodes that join. Nil means every node of the lab, as a worker.
	Nodes []NodeSpec
	// Detach leaves the control plane running when the calling process ends;
	// it then ends with the lab. Give it to a lab that is detached itself.
	Detach bool
	// Progress receives a line for each step; nil discards them.
	Progress io.Writer
}

// NodeSpec says how one node of the lab joins.
type NodeSpec struct {
	// Name of the node in the lab, which must be a full one: the base root
	// has no CNI plugins. It is the name of the Node object too.
	Name string
	// Labels are put on the Node object besides the kubelet's own.
	Labels map[string]string
	// ControlPlane gives the node the label and the NoSchedule taint of a
	// control-plane node, as kubeadm does. Nothing of the control plane runs
	// on it.
	ControlPlane bool
}

// Cluster is a cluster that is up.
type Cluster struct {
	*controlplane.ControlPlane

	lab      *lab.Lab
	binaries string
	dir      string
	progress io.Writer

	mu    sync.Mutex
	nodes []*lab.Node // that joined, or began to
}

// Up starts a control plane and joins the nodes, and returns when all of them
// are Ready. The control plane's programs must be built already
// ([controlplane.Build]); the error says so where they are not. On an error
// everything made so far is removed again.
func Up(ctx context.Context, l *lab.Lab, cfg Config) (_ *Cluster, err error) {
	binaries, err := controlplane.Find()
	if err != nil {
		return nil, err
	}
	if cfg.Progress == nil {
		cfg.Progress = io.Discard
	}
	if cfg.Nodes == nil {
		for _, n := range l.Nodes() {
			cfg.Nodes = append(cfg.Nodes, NodeSpec{Name: n.Name})
		}
	}
	c := &Cluster{lab: l, binaries: binaries, dir: filepath.Join(l.Dir(), "cluster"), progress: cfg.Progress}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the cluster's folder: %w; a lab holds one cluster", err)
	}
	defer func() {
		if err != nil {
			// The caller's context may be what ended the start.
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			err = errors.Join(err, c.Down(cleanup))
		}
	}()
	c.ControlPlane, err = controlplane.Start(ctx, controlplane.Config{
		Binaries: binaries, Dir: c.dir, NetNS: l.ServicesNetNS(),
		Address: l.APIServerAddr(), Names: []string{lab.APIServerHost}, Port: apiServerPort,
		Controllers: true, Detach: cfg.Detach, Progress: cfg.Progress,
	})
	if err != nil {
		return nil, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, spec := range cfg.Nodes {
		group.Go(func() error { return c.Join(groupCtx, spec) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return c, nil
}

// Down takes the nodes out of the cluster, with their pods and every file that
// joining gave them, and ends the control plane. The lab stays up. Calling it
// again, or after the lab's Down, which ends the cluster too, does nothing.
func (c *Cluster) Down(ctx context.Context) error {
	c.mu.Lock()
	nodes := c.nodes
	c.nodes = nil
	c.mu.Unlock()
	var errs []error
	for _, n := range nodes {
		errs = append(errs, leave(ctx, n))
	}
	if c.ControlPlane != nil {
		errs = append(errs, c.Stop())
	}
	if err := os.RemoveAll(c.dir); err != nil {
		errs = append(errs, fmt.Errorf("removing the cluster's folder: %w", err))
	}
	return errors.Join(errs...)
}

// Join joins a node of the lab and returns when it is Ready.
func (c *Cluster) Join(ctx context.Context, spec NodeSpec) error {
	n := c.lab.Node(spec.Name)
	if n == nil {
		return fmt.Errorf("joining node %q: the lab has none of that name", spec.Name)
	}
	if !n.Spec.Full {
		return fmt.Errorf("joining node %q: it has no CNI plugins: set Full in its lab.NodeSpec", spec.Name)
	}
	c.mu.Lock()
	c.nodes = append(c.nodes, n)
	c.mu.Unlock()
	began := time.Now()
	if err := c.join(ctx, n, spec); err != nil {
		return fmt.Errorf("joining node %q: %w%s", spec.Name, err, kubeletLog(ctx, n))
	}
	fmt.Fprintf(c.progress, "cluster: node %s is Ready after %.1f s\n", spec.Name, time.Since(began).Seconds())
	return nil
}

func (c *Cluster) join(ctx context.Context, n *lab.Node, spec NodeSpec) error {
	facts := nodeFacts{
		Name: n.Name, IP: n.IP, ControlPlane: spec.ControlPlane,
		APIServer:      netip.AddrPortFrom(c.lab.APIServerAddr(), apiServerPort),
		ServiceAddress: c.ServiceAddress(),
	}
	if err := c.install(ctx, n, facts); err != nil {
		return err
	}
	if _, err := n.Run(ctx, "systemctl", "daemon-reload"); err != nil {
		return err
	}
	if _, err := n.Run(ctx, append([]string{"systemctl", "enable", "--now", "--"}, units()...)...); err != nil {
		return err
	}
	var err error
	if facts.PodCIDR, err = c.registered(ctx, n.Name); err != nil {
		return err
	}
	if err := writeTemplate(ctx, n, cniConfig, facts); err != nil {
		return err
	}
	for _, label := range labels(spec) {
		if _, err := c.Kubectl(ctx, nil, "label", "node", n.Name, label); err != nil {
			return err
		}
	}
	_, err = c.Kubectl(ctx, nil, "wait", "--for=condition=Ready", "--timeout=90s", "node/"+n.Name)
	return err
}

// install puts everything on the node that its kubelet starts from.
func (c *Cluster) install(ctx context.Context, n *lab.Node, facts nodeFacts) error {
	if err := n.CopyIn(ctx, filepath.Join(c.binaries, "kubelet"), kubeletPath, 0o755); err != nil {
		return err
	}
	server := "https://" + net.JoinHostPort(lab.APIServerHost, strconv.Itoa(apiServerPort))
	kubeconfig, err := c.Kubeconfig(server, "system:node:"+n.Name, "system:nodes")
	if err != nil {
		return err
	}
	if err := n.WriteFile(ctx, kubeconfigPath, kubeconfig, 0o600); err != nil {
		return err
	}
	if err := n.WriteFile(ctx, caPath, c.CA(), 0o644); err != nil {
		return err
	}
	for source := range templates() {
		if source == cniConfig {
			continue // its content is known once the node has registered
		}
		if err := writeTemplate(ctx, n, source, facts); err != nil {
			return err
		}
	}
	return nil
}

// registered waits for the Node object and the pod range that the control
// plane gives to it.
func (c *Cluster) registered(ctx context.Context, name string) (netip.Prefix, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		out, err := c.Kubectl(ctx, nil, "get", "node", name, "-o", "jsonpath={.spec.podCIDR}")
		if err == nil && len(out) > 0 {
			return netip.ParsePrefix(string(out))
		}
		select {
		case <-ctx.Done():
			return netip.Prefix{}, fmt.Errorf("waiting for the node to register and get a pod range: %w: %w",
				ctx.Err(), cmp.Or(err, errors.New("it has registered and has no range")))
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// labels are the label arguments for kubectl.
func labels(spec NodeSpec) []string {
	var list []string
	if spec.ControlPlane {
		// The kubelet may not give this one to itself.
		list = append(list, "node-role.kubernetes.io/control-plane=")
	}
	for key, value := range spec.Labels {
		list = append(list, key+"="+value)
	}
	return list
}

// kubeletLog is the end of the kubelet's log as a suffix for an error.
func kubeletLog(ctx context.Context, n *lab.Node) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	text, err := n.Run(ctx, "journalctl", "--no-pager", "--lines=15", "--output=cat", "--unit=kubelet.service")
	if err != nil {
		return "; its kubelet's log cannot be read: " + err.Error()
	}
	return "; its kubelet's log ends with:\n" + text
}
