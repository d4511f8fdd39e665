//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/proxyward/proxyward/integration/internal/faultproxy"
	"github.com/proxyward/proxyward/integration/internal/pki"
)

// FaultMode is what is wrong with a proxy of [Lab.FaultProxy].
type FaultMode = faultproxy.Mode

// The modes of [Lab.FaultProxy].
const (
	Fault403       = faultproxy.Forbidden   // answers every request with 403
	Fault407       = faultproxy.AuthAlways  // answers every request with 407, also with credentials
	Fault503       = faultproxy.Unavailable // answers every request with 503
	FaultHang      = faultproxy.Hang        // accepts and never answers
	FaultDrop      = faultproxy.Drop        // accepts and closes at once
	FaultNotHTTP   = faultproxy.NotHTTP     // greets as an SSH server
	FaultTLSOnly   = faultproxy.TLSOnly     // works, but speaks TLS only
	FaultAgentOnly = faultproxy.Selective   // works, but not for all: see FaultOptions
	FaultIntercept = faultproxy.Intercept   // works, but opens TLS: see FaultProxy.CA
)

// FaultOptions say whom a proxy of mode [FaultAgentOnly] refuses; all rules that
// are set apply.
type FaultOptions struct {
	// DenyProcesses are the command names of clients to refuse: the proxy looks
	// up which process on the node holds the other end of the connection.
	// Without any rule the container runtimes are refused.
	DenyProcesses []string
	// AllowUserAgent is how the User-Agent of a request must begin.
	AllowUserAgent string
	// AllowFirst is how many requests are served before all are refused.
	AllowFirst int
}

// FaultProxy is a running proxy with a fault.
type FaultProxy struct {
	Addr netip.AddrPort
	// CA is the PEM of the authority whose certificates a proxy of mode
	// [FaultIntercept] shows; no node trusts it. Nil in the other modes.
	CA []byte

	unit string
	lab  *Lab
}

// FaultRequest is one request that a faulty proxy read.
type FaultRequest = faultproxy.Request

// FaultProxy starts a proxy with a fault at the address of the other proxies
// and a port of its own.
func (l *Lab) FaultProxy(ctx context.Context, mode FaultMode, opts FaultOptions) (*FaultProxy, error) {
	addr := l.state.addr(proxyOctet)
	cert, key, err := l.issue(proxyHost, addr)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(l.state.Dir, "fault-"+string(mode)+"-")
	if err != nil {
		return nil, fmt.Errorf("creating the folder of a proxy: %w", err)
	}
	hosts, ready := filepath.Join(dir, "hosts"), filepath.Join(dir, "ready")
	if err := os.WriteFile(hosts, []byte(hostsFile("", l.state.allHosts())), 0o644); err != nil {
		return nil, fmt.Errorf("writing the hosts file of a proxy: %w", err)
	}
	argv := []string{
		l.state.helper("labd"), "fault", "--mode", string(mode), "--listen", netip.AddrPortFrom(addr, 0).String(),
		"--cert", cert, "--key", key, "--hosts", hosts, "--ready", ready,
	}
	if mode == FaultAgentOnly {
		argv = append(argv, opts.args()...)
	}
	p := &FaultProxy{unit: filepath.Base(dir), lab: l}
	if mode == FaultIntercept {
		authority, err := pki.New(filepath.Join(dir, "ca"), "Corporate interception CA")
		if err != nil {
			return nil, err
		}
		p.CA = authority.PEM
		argv = append(argv, "--intercept-ca", filepath.Join(dir, "ca"), "--upstream-ca", l.pki.CertFile)
	}
	id, err := l.startService(serviceSpec{name: p.unit, ns: l.state.servicesNS(), argv: argv})
	if err != nil {
		return nil, err
	}
	err = eventually(ctx, 10*time.Second, "waiting for the proxy to listen", func() error {
		raw, err := os.ReadFile(ready)
		if err != nil {
			if !id.alive() {
				return errors.New("it ended")
			}
			return err
		}
		p.Addr, err = netip.ParseAddrPort(string(raw))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, l.logTail(p.unit))
	}
	return p, nil
}

func (o FaultOptions) args() []string {
	if len(o.DenyProcesses) == 0 && o.AllowUserAgent == "" && o.AllowFirst == 0 {
		o.DenyProcesses = []string{"containerd", "dockerd", "crio", "kubelet"}
	}
	var args []string
	for _, p := range o.DenyProcesses {
		args = append(args, "--deny-process", p)
	}
	if o.AllowUserAgent != "" {
		args = append(args, "--allow-user-agent", o.AllowUserAgent)
	}
	if o.AllowFirst > 0 {
		args = append(args, "--allow-first", strconv.Itoa(o.AllowFirst))
	}
	return args
}

// URL is the proxy's URL by host name, with the scheme http also in mode
// [FaultTLSOnly]: that is the mistake to be found.
func (p *FaultProxy) URL() string {
	return "http://" + proxyHost + ":" + strconv.Itoa(int(p.Addr.Port()))
}

// Requests are those that the proxy read so far, refused ones too.
func (p *FaultProxy) Requests() ([]FaultRequest, error) {
	raw, err := os.ReadFile(p.lab.logPath(p.unit))
	if err != nil {
		return nil, fmt.Errorf("reading the log of %s: %w", p.unit, err)
	}
	var list []FaultRequest
	for line := range bytes.Lines(raw) {
		var r FaultRequest
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("reading the log of %s: line %q: %w", p.unit, line, err)
		}
		list = append(list, r)
	}
	return list, nil
}

// Stop ends the proxy.
func (p *FaultProxy) Stop(ctx context.Context) error { return p.lab.stopService(ctx, p.unit) }
