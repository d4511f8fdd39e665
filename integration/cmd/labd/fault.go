//go:build linux

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/integration/internal/faultproxy"
	"github.com/proxyward/proxyward/integration/internal/pki"
)

type faultFlags struct {
	tlsServer
	mode, hosts, userAgent, ready string
	interceptCA, upstreamCA       string
	first                         int
	denyProcesses                 []string
}

func faultCommand() *cobra.Command {
	var f faultFlags
	cmd := &cobra.Command{
		Use: "fault", Short: "serve a proxy with a fault; one JSON line per request", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.run() },
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&f.mode, "mode", "", fmt.Sprintf("what is wrong with it: one of %v", faultproxy.Modes()))
	cmd.Flags().StringVar(&f.hosts, "hosts", "", "hosts file with the names that it can resolve")
	cmd.Flags().StringVar(&f.userAgent, "allow-user-agent", "", "agent-only: serve User-Agents that begin so")
	cmd.Flags().IntVar(&f.first, "allow-first", 0, "agent-only: serve so many requests and no more")
	cmd.Flags().StringSliceVar(&f.denyProcesses, "deny-process", nil, "agent-only: refuse clients of these command names")
	cmd.Flags().StringVar(&f.interceptCA, "intercept-ca", "", "intercept: folder of the authority that signs what clients see")
	cmd.Flags().StringVar(&f.upstreamCA, "upstream-ca", "", "intercept: file of the authority that signed the real hosts' certificates")
	cmd.Flags().StringVar(&f.ready, "ready", "", "file to write the address to once it listens")
	return cmd
}

func (f *faultFlags) run() error {
	hosts, err := readHosts(f.hosts)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	server := &faultproxy.Server{
		Mode: faultproxy.Mode(f.mode), Hosts: hosts, Refuse: f.refuse,
		Log: func(r faultproxy.Request) {
			if err := out.Encode(r); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		},
	}
	if server.Certificate, err = tls.LoadX509KeyPair(f.cert, f.key); err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	if server.Mode == faultproxy.Intercept {
		if err := f.setUpIntercept(server); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	if err := os.WriteFile(f.ready+".tmp", []byte(l.Addr().String()), 0o644); err != nil {
		return fmt.Errorf("telling the address: %w", err)
	}
	if err := os.Rename(f.ready+".tmp", f.ready); err != nil {
		return fmt.Errorf("telling the address: %w", err)
	}
	return server.Serve(l)
}

// refuse applies the rules of mode agent-only.
func (f *faultFlags) refuse(r *faultproxy.Request, userAgent string, number int) string {
	if f.first > 0 && number > f.first {
		return "the allowed number of requests is used up"
	}
	if f.userAgent != "" && !strings.HasPrefix(userAgent, f.userAgent) {
		return "another user agent"
	}
	if len(f.denyProcesses) == 0 {
		return ""
	}
	addr, err := netip.ParseAddrPort(r.Client)
	if err != nil {
		return err.Error()
	}
	if r.Process, err = faultproxy.Owner(addr, f.denyProcesses); err != nil {
		return err.Error()
	}
	if r.Process != "" {
		return "a denied process"
	}
	return ""
}

func readHosts(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the hosts file: %w", err)
	}
	hosts := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 2 {
			hosts[f[1]] = f[0]
		}
	}
	return hosts, nil
}

func (f *faultFlags) setUpIntercept(server *faultproxy.Server) error {
	authority, err := pki.Load(f.interceptCA)
	if err != nil {
		return err
	}
	upstream, err := os.ReadFile(f.upstreamCA)
	if err != nil {
		return fmt.Errorf("reading the authority of the real hosts: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(upstream)
	server.Upstream = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	server.Impersonate = func(host string) (tls.Certificate, error) {
		if ip := net.ParseIP(host); ip != nil {
			return authority.Issue(host, ip)
		}
		return authority.Issue(host)
	}
	return nil
}
