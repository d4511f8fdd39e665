//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// The registries of a lab. All are Debian's docker-registry behind TLS.
const (
	Internal = "internal" // on the corporate network, open
	External = "external" // on the internet: only the proxies reach it
	Mirror   = "mirror"   // on the corporate network, pulls through from External
	Redirect = "redirect" // on the corporate network, its blobs are fetched elsewhere
	Token    = "token"    // on the corporate network, its tokens come from another host
	Private  = "private"  // on the corporate network, asks for user and password
)

// Registry is one registry of the lab.
type Registry struct {
	Name string
	// Host is what stands before the first slash of an image reference.
	Host string
	// Addr is where it listens.
	Addr netip.AddrPort
	// Second is the further host that a pull needs: that of the blobs, or of the
	// token realm; empty for the others.
	Second string
	// User and Password are empty where it asks for none.
	User, Password string

	lab *Lab
}

type registryRow struct {
	name, host string
	addr       netip.Addr
	port       int
	second     string
}

func (s *state) registryTable() []registryRow {
	return []registryRow{
		{Internal, "registry.corp.example", s.addr(3), 5000, ""},
		{Mirror, "mirror.corp.example", s.addr(4), 5000, ""},
		{Redirect, "redirect.corp.example", s.addr(5), 5000, blobsHost},
		{Token, "token.corp.example", s.addr(7), 5000, authHost},
		{Private, "private.corp.example", s.addr(9), 5000, ""},
		{External, externalHost, s.externalAddr(externalOctet), 443, ""},
	}
}

// hostPort is the authority of an https URL: port 443 is left out.
func (r registryRow) hostPort() string {
	if r.port == 443 {
		return r.host
	}
	return net.JoinHostPort(r.host, strconv.Itoa(r.port))
}

func (r registryRow) addrPort() netip.AddrPort {
	return netip.AddrPortFrom(r.addr, uint16(r.port))
}

// Registry returns the registry of that name, nil for an unknown one.
func (l *Lab) Registry(name string) *Registry {
	for _, row := range l.state.registryTable() {
		if row.name != name {
			continue
		}
		r := &Registry{Name: name, Host: row.hostPort(), Addr: row.addrPort(), Second: row.second, lab: l}
		if name == Private {
			r.User, r.Password = l.state.Credentials.RegistryUser, l.state.Credentials.RegistryPassword
		}
		return r
	}
	return nil
}

// Log is the registry's log so far: one line per request among others.
func (r *Registry) Log() (string, error) {
	raw, err := os.ReadFile(r.lab.logPath(registryUnit(r.Name)))
	if err != nil {
		return "", fmt.Errorf("reading the log of registry %q: %w", r.Name, err)
	}
	return string(raw), nil
}

// RegistryRequest is one request that a registry answered.
type RegistryRequest struct {
	// Client is the node's address for a direct request, and one of the
	// registry's own for a request that came by a proxy.
	Client    netip.Addr
	Method    string
	Path      string
	Status    int
	Bytes     int64 // of the body sent
	UserAgent string
}

// Requests are those that the registry answered so far.
func (r *Registry) Requests() ([]RegistryRequest, error) {
	text, err := r.Log()
	if err != nil {
		return nil, err
	}
	return parseRequests(text)
}

// combinedLine is the combined log format, in which docker-registry logs
// requests between lines of other forms.
var combinedLine = regexp.MustCompile(`^(\S+) \S+ \S+ \[[^]]*\] "(\S+) (\S+) \S+" (\d+) (\d+) "[^"]*" "([^"]*)"$`)

func parseRequests(log string) ([]RegistryRequest, error) {
	var list []RegistryRequest
	for line := range strings.Lines(log) {
		m := combinedLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		client, err1 := netip.ParseAddr(m[1])
		status, err2 := strconv.Atoi(m[4])
		size, err3 := strconv.ParseInt(m[5], 10, 64)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("parsing the registry's log line %q: %w", line, err)
		}
		list = append(list, RegistryRequest{Client: client, Method: m[2], Path: m[3], Status: status, Bytes: size, UserAgent: m[6]})
	}
	return list, nil
}

// Stop ends the registry, so that connections to it are refused.
func (r *Registry) Stop(ctx context.Context) error {
	return r.lab.stopService(ctx, registryUnit(r.Name))
}

// Start starts it again after [Registry.Stop]; its images are kept.
func (r *Registry) Start(ctx context.Context) error {
	for _, row := range r.lab.state.registryTable() {
		if row.name == r.Name {
			return r.lab.runRegistry(ctx, row)
		}
	}
	return fmt.Errorf("starting registry %q: unknown", r.Name)
}

func registryUnit(name string) string { return "registry-" + name }

func (l *Lab) registryDir(name string) string { return l.state.path("registries", name) }

func (l *Lab) startRegistries(ctx context.Context) error {
	first := []func(context.Context) error{l.startBlobHost, l.startTokenRealm}
	var second []func(context.Context) error
	for _, row := range l.state.registryTable() {
		task := func(ctx context.Context) error { return l.runRegistry(ctx, row) }
		if row.name == Mirror {
			second = append(second, task) // it wants its upstream when it starts
		} else {
			first = append(first, task)
		}
	}
	if err := together(ctx, first); err != nil {
		return err
	}
	if err := together(ctx, second); err != nil {
		return err
	}
	if err := l.pushPause(ctx); err != nil {
		return err
	}
	l.say("registries are up")
	return nil
}

func (l *Lab) runRegistry(ctx context.Context, row registryRow) error {
	dir := l.registryDir(row.name)
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		return fmt.Errorf("creating the folder of registry %q: %w", row.name, err)
	}
	cfg, err := l.registryConfig(row)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(cfg, "", "  ") // JSON is YAML
	if err != nil {
		return fmt.Errorf("encoding the configuration of registry %q: %w", row.name, err)
	}
	file := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return fmt.Errorf("writing the configuration of registry %q: %w", row.name, err)
	}
	id, err := l.startService(serviceSpec{
		name: registryUnit(row.name), ns: l.state.servicesNS(),
		env:  []string{"SSL_CERT_FILE=" + l.pki.CertFile, "OTEL_TRACES_EXPORTER=none"},
		argv: []string{"docker-registry", "serve", file},
	})
	if err != nil {
		return err
	}
	return l.awaitListening(ctx, registryUnit(row.name), id, row.addrPort())
}

type yaml map[string]any

func (l *Lab) registryConfig(row registryRow) (yaml, error) {
	cert, key, err := l.issue(row.host, row.addr)
	if err != nil {
		return nil, err
	}
	dir := l.registryDir(row.name)
	cfg := yaml{
		"version": "0.1",
		"log":     yaml{"level": "info", "accesslog": yaml{"disabled": false}},
		"storage": yaml{
			"filesystem": yaml{"rootdirectory": filepath.Join(dir, "data")},
			"delete":     yaml{"enabled": true},
		},
		"http": yaml{
			"addr": row.addrPort().String(), "secret": l.state.Token,
			"tls": yaml{"certificate": cert, "key": key},
		},
	}
	switch row.name {
	case Mirror:
		// By address: the services have no resolver for the lab's names.
		cfg["proxy"] = yaml{"remoteurl": "https://" + l.state.externalAddr(externalOctet).String()}
	case Redirect:
		cfg["middleware"] = yaml{"storage": []yaml{{
			"name": "redirect", "options": yaml{"baseurl": "https://" + blobsHost + "/"},
		}}}
	case Token:
		cfg["auth"] = yaml{"token": yaml{
			"realm": "https://" + authHost + "/token", "service": tokenService,
			"issuer": tokenIssuer, "rootcertbundle": l.pki.CertFile,
		}}
	case Private:
		file := filepath.Join(dir, "htpasswd")
		if err := writeHtpasswd(file, l.state.Credentials.RegistryUser, l.state.Credentials.RegistryPassword, 0o600); err != nil {
			return nil, err
		}
		cfg["auth"] = yaml{"htpasswd": yaml{"realm": "lab", "path": file}}
	}
	return cfg, nil
}

const (
	tokenService = "token.corp.example"
	tokenIssuer  = "auth.corp.example"
)

// startBlobHost serves the blobs of the redirecting registry at a second host.
func (l *Lab) startBlobHost(ctx context.Context) error {
	addr := netip.AddrPortFrom(l.state.addr(blobsOctet), 443)
	return l.startHelper(ctx, "blobs", blobsHost, addr, "files", "--dir", filepath.Join(l.registryDir(Redirect), "data"))
}

// startTokenRealm serves the tokens of the token registry.
func (l *Lab) startTokenRealm(ctx context.Context) error {
	signCert, signKey, err := l.issue("signer."+authHost, l.state.addr(authOctet))
	if err != nil {
		return err
	}
	addr := netip.AddrPortFrom(l.state.addr(authOctet), 443)
	return l.startHelper(ctx, "auth", authHost, addr, "token", "--issuer", tokenIssuer, "--sign-cert", signCert, "--sign-key", signKey)
}

// startHelper starts one server of labd behind TLS under a host name.
func (l *Lab) startHelper(ctx context.Context, unit, host string, addr netip.AddrPort, args ...string) error {
	cert, key, err := l.issue(host, addr.Addr())
	if err != nil {
		return err
	}
	argv := append([]string{l.state.helper("labd")}, args...)
	argv = append(argv, "--listen", addr.String(), "--cert", cert, "--key", key)
	id, err := l.startService(serviceSpec{name: unit, ns: l.state.servicesNS(), argv: argv})
	if err != nil {
		return err
	}
	return l.awaitListening(ctx, unit, id, addr)
}

// writeHtpasswd writes one user with a bcrypt hash, which docker-registry and
// squid's basic_ncsa_auth (through crypt(3)) both take.
func writeHtpasswd(path, user, password string, mode os.FileMode) error {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		return fmt.Errorf("hashing the password of %q: %w", user, err)
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, "%s:%s\n", user, hash), mode); err != nil {
		return fmt.Errorf("writing the password file: %w", err)
	}
	return nil
}

// helper is the path of a helper program.
func (s *state) helper(name string) string { return filepath.Join(s.Helpers, name) }

// Registries lists the names of all registries.
func Registries() []string {
	return []string{Internal, External, Mirror, Redirect, Token, Private}
}
