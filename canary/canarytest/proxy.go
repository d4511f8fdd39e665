package canarytest

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
)

// ProxyRule is how a proxy behaves. The zero value serves every CONNECT.
type ProxyRule struct {
	// User and Password that it wants by Basic authentication; it answers 407 otherwise.
	User, Password string
	// Status answers every CONNECT with that status.
	Status int
	// TLS has the proxy itself speak TLS, with that certificate.
	TLS *tls.Certificate
}

// Proxy is an HTTP proxy on loopback.
type Proxy struct {
	// Addr is where it listens.
	Addr netip.AddrPort

	names *Names
	rule  ProxyRule
	mu    sync.Mutex
	asked []string
}

// NewProxy serves a proxy under a name until the test ends.
func NewProxy(t testing.TB, names *Names, host string, rule ProxyRule) *Proxy {
	t.Helper()
	p := &Proxy{names: names, rule: rule}
	server := httptest.NewUnstartedServer(p)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if rule.TLS == nil {
		server.Start()
	} else {
		server.TLS = &tls.Config{Certificates: []tls.Certificate{*rule.TLS}}
		server.StartTLS()
	}
	t.Cleanup(server.Close)
	p.Addr = address(t, server.Listener)
	names.Add(host, p.Addr)
	return p
}

// Asked returns the targets of the CONNECTs that the proxy served.
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(p.rule.User+":"+p.rule.Password))
	switch {
	case req.Method != http.MethodConnect:
		http.Error(w, "only CONNECT is served", http.StatusBadRequest)
		return
	case p.rule.User != "" && req.Header.Get("Proxy-Authorization") != want:
		w.Header().Set("Proxy-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	case p.rule.Status != 0:
		w.WriteHeader(p.rule.Status)
		return
	}
	upstream, err := p.names.Dial(req.Context(), "tcp", req.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer upstream.Close()
	p.mu.Lock()
	p.asked = append(p.asked, req.Host)
	p.mu.Unlock()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer client.Close()
	if _, err := fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer client.Close()
		_, _ = io.Copy(client, upstream) // either side may hang up first
	}()
	_, _ = io.Copy(upstream, buffered)
	upstream.Close()
	<-done
}
