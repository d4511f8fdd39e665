package canarytest

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Registry is a container registry on loopback, with TLS, under a name.
type Registry struct {
	// Host is name:port as images name it.
	Host string
	// Addr is where it listens.
	Addr netip.AddrPort

	store http.Handler
	mu    sync.Mutex
	rule  Rule
	paths []string
}

// Rule is how a registry misbehaves, or what it asks for. The zero value is an open registry.
type Rule struct {
	// Status answers every request below /v2/ with that status.
	Status int
	// Realm is the URL that tokens must be asked for at; requests without one are refused.
	Realm string
	// BlobsAt is the host:port that blob requests are redirected to.
	BlobsAt string
	// Garble sends other bytes of the same length for blobs.
	Garble bool
}

// token is what a Realm gives and the registry takes.
const token = "let-me-in"

// NewRegistry serves a registry under a name until the test ends.
func NewRegistry(t testing.TB, names *Names, ca *CA, host string) *Registry {
	t.Helper()
	r := &Registry{store: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	server := httptest.NewUnstartedServer(r)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{ca.Issue(t, host)}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	r.Addr = address(t, server.Listener)
	r.Host = fmt.Sprintf("%s:%d", host, r.Addr.Port())
	names.Add(host, r.Addr)
	return r
}

func address(t testing.TB, listener net.Listener) netip.AddrPort {
	t.Helper()
	addr, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		t.Fatalf("parsing a listener's address: %v", err)
	}
	return addr
}

// Store is the registry without its rule, to push to.
func (r *Registry) Store() http.Handler { return r.store }

// Rule sets how the registry behaves from now on.
func (r *Registry) Rule(rule Rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rule = rule
}

// Requests returns method and path of each request so far.
func (r *Registry) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.paths...)
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.paths = append(r.paths, req.Method+" "+req.URL.RequestURI())
	rule := r.rule
	r.mu.Unlock()
	blob := strings.Contains(req.URL.Path, "/blobs/")
	switch {
	case req.URL.Path == "/token":
		if err := json.NewEncoder(w).Encode(map[string]string{"token": token}); err != nil {
			panic(http.ErrAbortHandler)
		}
	case rule.Status != 0:
		w.WriteHeader(rule.Status)
	case rule.Realm != "" && req.Header.Get("Authorization") != "Bearer "+token:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=%q", rule.Realm, "test"))
		w.WriteHeader(http.StatusUnauthorized)
	case blob && rule.BlobsAt != "":
		http.Redirect(w, req, "https://"+rule.BlobsAt+req.URL.Path+"?signature=sealed", http.StatusTemporaryRedirect)
	case blob && rule.Garble:
		r.garble(w, req)
	default:
		r.store.ServeHTTP(w, req)
	}
}

func (r *Registry) garble(w http.ResponseWriter, req *http.Request) {
	recorded := httptest.NewRecorder()
	r.store.ServeHTTP(recorded, req)
	body := recorded.Body.Bytes()
	for i := range body {
		body[i] ^= 0xff
	}
	if _, err := w.Write(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}
