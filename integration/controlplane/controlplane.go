package controlplane

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed audit-policy.yaml
var auditPolicy []byte

// readyIn is how long a part may take until it answers; the API server needs
// about 3 s on an idle machine with two cores.
const readyIn = 90 * time.Second

// ControlPlane is a running control plane. Its programs end with
// [ControlPlane.Stop] and, unless detached, with the program that started them.
type ControlPlane struct {
	cfg   Config
	ports ports
	ca    *authority
	procs []*process // in the order of their start
}

// Start starts the parts one after the other, each once the one before it
// answers. When it fails or ctx ends before all answer, nothing is left
// running.
func Start(ctx context.Context, cfg Config) (*ControlPlane, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{cfg: cfg}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	var err error
	if c.ports, err = c.cfg.choosePorts(); err != nil {
		return err
	}
	if err := c.prepare(); err != nil {
		return err
	}
	steps := []struct {
		name  string
		args  []string
		ready func(context.Context) error
	}{
		{"etcd", c.etcdArgs(), nil}, // the API server is not ready before it is
		{"kube-apiserver", c.apiServerArgs(), c.apiServerReady},
	}
	if c.cfg.Controllers {
		steps = append(steps, []struct {
			name  string
			args  []string
			ready func(context.Context) error
		}{
			{"kube-controller-manager", c.controllerManagerArgs(), c.controllersReady},
			{"kube-scheduler", c.schedulerArgs(), c.schedulerReady},
		}...)
	}
	begin := time.Now()
	for _, s := range steps {
		p, err := startProcess(s.name, c.cfg.Dir, c.cfg.Detach, command(c.cfg.NetNS, filepath.Join(c.cfg.Binaries, s.name), s.args...))
		if err != nil {
			return err
		}
		c.procs = append(c.procs, p)
		if s.ready == nil {
			continue
		}
		if err := c.await(ctx, s.name, s.ready); err != nil {
			return err
		}
		fmt.Fprintf(c.cfg.Progress, "control plane %s: %s is ready\n", elapsed(begin), s.name)
	}
	return nil
}

// Stop ends the parts in the reverse order of their start and waits until
// they are gone. Everything that failed to end is in the error; stopping what
// is stopped is no error.
func (c *ControlPlane) Stop() error {
	var errs []error
	for i := len(c.procs) - 1; i >= 0; i-- {
		errs = append(errs, c.procs[i].stop())
	}
	c.procs = nil
	return errors.Join(errs...)
}

// Server is the API server's URL.
func (c *ControlPlane) Server() string {
	return "https://" + net.JoinHostPort(c.cfg.Address.String(), strconv.Itoa(int(c.ports.api)))
}

// CA is the certificate that signed the API server's, PEM.
func (c *ControlPlane) CA() []byte { return bytes.Clone(c.ca.pem) }

// AdminKubeconfig is the path of a kubeconfig that may do everything.
func (c *ControlPlane) AdminKubeconfig() string { return filepath.Join(c.cfg.Dir, "admin.kubeconfig") }

// AuditLog is the path of the API server's audit log, one JSON object a line.
func (c *ControlPlane) AuditLog() string { return filepath.Join(c.cfg.Dir, "audit.log") }

// Kubeconfig makes a kubeconfig for user in groups, valid for a week.
func (c *ControlPlane) Kubeconfig(user string, groups ...string) ([]byte, error) {
	p, err := c.ca.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return newKubeconfig(c.Server(), user, c.ca.pem, p)
}

// Kubectl runs kubectl as administrator, in the control plane's network
// namespace, with in as its standard input (nil for none), and returns what it
// printed. An error holds what kubectl said.
func (c *ControlPlane) Kubectl(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	all := append([]string{"--kubeconfig=" + c.AdminKubeconfig(), "--cache-dir=" + filepath.Join(c.cfg.Dir, "kubectl-cache")}, args...)
	cmd := command(c.cfg.NetNS, filepath.Join(c.cfg.Binaries, "kubectl"), all...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting kubectl: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // it may have ended already
	defer stop()
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("running kubectl %s: %w: %s", strings.Join(args, " "), errors.Join(err, ctx.Err()), tail(stderr.String(), 2000))
	}
	return stdout.Bytes(), nil
}

// prepare writes the keys, certificates, kubeconfigs and the audit policy.
func (c *ControlPlane) prepare() error {
	if err := os.MkdirAll(c.cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("creating the control plane's folder: %w", err)
	}
	var err error
	if c.ca, err = newAuthority("lab-kubernetes"); err != nil {
		return err
	}
	if err := os.WriteFile(c.path("ca.crt"), c.ca.pem, 0o644); err != nil {
		return fmt.Errorf("writing the control plane's CA: %w", err)
	}
	if err := os.WriteFile(c.path("audit-policy.yaml"), auditPolicy, 0o644); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	names := append([]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}, c.cfg.Names...)
	serving, err := c.ca.server("kubernetes", names, []netip.Addr{loopback, c.cfg.Address, c.ServiceAddress()})
	if err != nil {
		return err
	}
	// ServiceAccount tokens are checked by the public key in the certificate.
	tokens, err := c.ca.client("service-accounts")
	if err != nil {
		return err
	}
	toKubelet, err := c.ca.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	for name, p := range map[string]pair{"serving": serving, "tokens": tokens, "kubelet-client": toKubelet} {
		if err := writePair(c.cfg.Dir, name, p); err != nil {
			return err
		}
	}
	for file, who := range map[string][]string{
		"admin.kubeconfig":              {"lab-admin", "system:masters"},
		"controller-manager.kubeconfig": {"system:kube-controller-manager"},
		"scheduler.kubeconfig":          {"system:kube-scheduler"},
	} {
		data, err := c.Kubeconfig(who[0], who[1:]...)
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.path(file), data, 0o600); err != nil {
			return fmt.Errorf("writing a kubeconfig: %w", err)
		}
	}
	return nil
}

// ServiceAddress is the address of the Service kubernetes.default: the first
// of the service range.
func (c *ControlPlane) ServiceAddress() netip.Addr { return c.cfg.ServiceCIDR.Masked().Addr().Next() }

func (c *ControlPlane) path(name string) string { return filepath.Join(c.cfg.Dir, name) }

// await asks ready until it says yes, and gives up when a process has ended,
// ctx is over or too much time has passed.
func (c *ControlPlane) await(ctx context.Context, name string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyIn)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		for _, p := range c.procs {
			if ended := p.ended(); ended != nil {
				return ended
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be ready: %w; it last said: %w; see %q", name, ctx.Err(), err, c.path(name+".log"))
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (c *ControlPlane) apiServerReady(ctx context.Context) error {
	_, err := c.Kubectl(ctx, nil, "get", "--raw", "/readyz")
	return err
}

// controllersReady holds once a controller has done its work: the default
// namespace has its ServiceAccount, so a pod can be created there.
func (c *ControlPlane) controllersReady(ctx context.Context) error {
	_, err := c.Kubectl(ctx, nil, "-n", "default", "get", "serviceaccount", "default")
	return err
}

func (c *ControlPlane) schedulerReady(ctx context.Context) error {
	_, err := c.Kubectl(ctx, nil, "--server", "https://127.0.0.1:"+strconv.Itoa(int(c.ports.scheduler)), "get", "--raw", "/healthz")
	return err
}
