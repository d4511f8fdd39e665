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
	parts []*part // in the order of their start
}

// part is one program of the control plane.
type part struct {
	name  string
	args  []string
	ready func(context.Context) error // nil where the next part waits for it
	proc  *process                    // nil while it does not run
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
	if c.ports, err = cfg.choosePorts(); err != nil {
		return nil, err
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	c.parts = []*part{
		{name: "etcd", args: c.etcdArgs()},
		{name: APIServer, args: c.apiServerArgs(), ready: c.apiServerReady},
	}
	if cfg.Controllers {
		c.parts = append(c.parts,
			&part{name: "kube-controller-manager", args: c.controllerManagerArgs(), ready: c.controllersReady},
			&part{name: "kube-scheduler", args: c.schedulerArgs(), ready: c.schedulerReady})
	}
	begin := time.Now()
	for _, p := range c.parts {
		if err := c.run(ctx, p); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
		fmt.Fprintf(cfg.Progress, "control plane %s: %s runs\n", elapsed(begin), p.name)
	}
	return c, nil
}

// APIServer names the API server to [ControlPlane.Halt] and
// [ControlPlane.Resume].
const APIServer = "kube-apiserver"

// Halt ends one part and leaves the others running, as an outage would.
func (c *ControlPlane) Halt(name string) error {
	p, err := c.part(name)
	if err != nil || p.proc == nil {
		return err
	}
	err = p.proc.stop()
	p.proc = nil
	return err
}

// Resume starts a part that was halted, on the data it had, and waits until it
// answers. It does nothing where the part runs.
func (c *ControlPlane) Resume(ctx context.Context, name string) error {
	p, err := c.part(name)
	if err != nil || p.proc != nil {
		return err
	}
	return c.run(ctx, p)
}

func (c *ControlPlane) part(name string) (*part, error) {
	for _, p := range c.parts {
		if p.name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("looking for part %q of the control plane: there is none of that name", name)
}

func (c *ControlPlane) run(ctx context.Context, p *part) error {
	proc, err := startProcess(p.name, c.cfg.Dir, c.cfg.Detach, command(c.cfg.NetNS, filepath.Join(c.cfg.Binaries, p.name), p.args...))
	if err != nil {
		return err
	}
	p.proc = proc
	if p.ready == nil {
		return nil
	}
	return c.await(ctx, p)
}

// Stop ends the parts in the reverse order of their start and waits until
// they are gone. Everything that failed to end is in the error; stopping what
// is stopped is no error.
func (c *ControlPlane) Stop() error {
	var errs []error
	for i := len(c.parts) - 1; i >= 0; i-- {
		if p := c.parts[i]; p.proc != nil {
			errs = append(errs, p.proc.stop())
			p.proc = nil
		}
	}
	return errors.Join(errs...)
}

// Server is the API server's URL, by address.
func (c *ControlPlane) Server() string {
	return "https://" + net.JoinHostPort(c.cfg.Address.String(), strconv.Itoa(int(c.ports.api)))
}

// CA is the certificate that signed the API server's, PEM.
func (c *ControlPlane) CA() []byte { return bytes.Clone(c.ca.pem) }

// AdminKubeconfig is the path of a kubeconfig that may do everything.
func (c *ControlPlane) AdminKubeconfig() string { return filepath.Join(c.cfg.Dir, "admin.kubeconfig") }

// AuditLog is the path of the API server's audit log, one JSON object a line.
func (c *ControlPlane) AuditLog() string { return filepath.Join(c.cfg.Dir, "audit.log") }

// Kubeconfig makes a kubeconfig, valid for a week, for user in groups. The
// server is [ControlPlane.Server], or the same by one of [Config.Names].
func (c *ControlPlane) Kubeconfig(server, user string, groups ...string) ([]byte, error) {
	p, err := c.ca.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return newKubeconfig(server, user, c.ca.pem, p)
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
		data, err := c.Kubeconfig(c.Server(), who[0], who[1:]...)
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

// await asks the part until it says that it is ready, and gives up when a process has ended,
// ctx is over or too much time has passed.
func (c *ControlPlane) await(ctx context.Context, p *part) error {
	ctx, cancel := context.WithTimeout(ctx, readyIn)
	defer cancel()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		for _, other := range c.parts {
			if other.proc == nil {
				continue
			}
			if ended := other.proc.ended(); ended != nil {
				return ended
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be ready: %w; it last said: %w; see %q", p.name, ctx.Err(), err, p.proc.log)
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
