//go:build linux

// Package faultproxy is an HTTP proxy that fails in one chosen way: the ways in
// which corporate proxies are met broken.
package faultproxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Mode is what is wrong with the proxy.
type Mode string

// The modes.
const (
	Forbidden   Mode = "403"        // answers every request with 403
	AuthAlways  Mode = "407"        // answers every request with 407, also with credentials
	Unavailable Mode = "503"        // answers every request with 503
	Hang        Mode = "hang"       // accepts and never answers
	Drop        Mode = "drop"       // accepts and closes at once
	NotHTTP     Mode = "not-http"   // answers with the greeting of another protocol
	TLSOnly     Mode = "tls-only"   // is a working proxy that speaks TLS only
	Selective   Mode = "agent-only" // works, but refuses some of its clients
	Intercept   Mode = "intercept"  // opens TLS with certificates of its own authority
)

// Modes lists all modes.
func Modes() []Mode {
	return []Mode{Forbidden, AuthAlways, Unavailable, Hang, Drop, NotHTTP, TLSOnly, Selective, Intercept}
}

// Request is one request that the proxy read.
type Request struct {
	Time    time.Time `json:"time"`
	Client  string    `json:"client"`
	Process string    `json:"process,omitempty"` // of the client, where it was looked up
	Method  string    `json:"method"`
	Target  string    `json:"target"`
	Status  int       `json:"status"`
}

// Server is a proxy with one fault.
type Server struct {
	Mode Mode
	// Hosts maps the names that it can resolve to addresses.
	Hosts map[string]string
	// Certificate is what it shows in mode TLSOnly.
	Certificate tls.Certificate
	// Impersonate makes the certificate that mode Intercept shows for a host.
	Impersonate func(host string) (tls.Certificate, error)
	// Upstream is how mode Intercept reaches the real hosts; its DialContext is
	// replaced by one that knows Hosts.
	Upstream *http.Transport
	// Refuse says why a request of mode Selective is refused; empty serves it.
	// It may set the request's Process.
	Refuse func(r *Request, userAgent string, number int) string
	// Log is called once per request.
	Log func(Request)

	mu    sync.Mutex
	count int
}

// Serve handles connections until the listener closes.
func (s *Server) Serve(l net.Listener) error {
	if !slices.Contains(Modes(), s.Mode) {
		return fmt.Errorf("serving a faulty proxy: unknown mode %q: want one of %v", s.Mode, Modes())
	}
	if s.Mode == TLSOnly {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{s.Certificate}})
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return fmt.Errorf("accepting a connection: %w", err)
		}
		go s.handle(conn)
	}
}

func (s *Server) handle(conn net.Conn) {
	defer conn.Close()
	switch s.Mode {
	case Drop:
		return
	case NotHTTP:
		_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.9\r\n")
		_, _ = io.Copy(io.Discard, conn)
		return
	case Hang:
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if !s.answer(conn, in, req) {
			return
		}
	}
}

// answer handles one request and says whether the connection goes on.
func (s *Server) answer(conn net.Conn, in *bufio.Reader, req *http.Request) bool {
	s.mu.Lock()
	s.count++
	number := s.count
	s.mu.Unlock()
	r := Request{Time: time.Now(), Client: conn.RemoteAddr().String(), Method: req.Method, Target: req.Host, Status: s.fixedStatus()}
	if r.Status == 0 && s.Refuse != nil {
		if why := s.Refuse(&r, req.UserAgent(), number); why != "" {
			r.Status = http.StatusForbidden
		}
	}
	if r.Status != 0 {
		s.Log(r)
		return refuse(conn, req, r.Status)
	}
	if req.Method != http.MethodConnect {
		r.Status = http.StatusMethodNotAllowed
		s.Log(r)
		return refuse(conn, req, r.Status)
	}
	target, err := s.dial(req.Host)
	if err != nil {
		r.Status = http.StatusBadGateway
		s.Log(r)
		return refuse(conn, req, r.Status)
	}
	defer target.Close()
	r.Status = http.StatusOK
	s.Log(r)
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return false
	}
	if s.Mode == Intercept {
		s.intercept(conn, req.Host)
		return false
	}
	tunnel(conn, in, target)
	return false
}

func (s *Server) fixedStatus() int {
	switch s.Mode {
	case Forbidden:
		return http.StatusForbidden
	case AuthAlways:
		return http.StatusProxyAuthRequired
	case Unavailable:
		return http.StatusServiceUnavailable
	default:
		return 0
	}
}

func refuse(conn net.Conn, req *http.Request, status int) bool {
	res := http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: http.Header{}, Close: true}
	if status == http.StatusProxyAuthRequired {
		res.Header.Set("Proxy-Authenticate", `Basic realm="corp"`)
	}
	body := "refused by the lab's proxy\n"
	res.Body, res.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	_ = res.Write(conn) // a client that is gone needs no answer
	return false
}

func (s *Server) dial(target string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, fmt.Errorf("reading target %q: %w", target, err)
	}
	if addr, ok := s.Hosts[strings.ToLower(host)]; ok {
		host = addr
	} else if net.ParseIP(host) == nil {
		return nil, fmt.Errorf("resolving %q: unknown", host)
	}
	return net.DialTimeout("tcp", net.JoinHostPort(host, port), 10*time.Second)
}

// tunnel copies both ways until either side ends.
func tunnel(client net.Conn, in io.Reader, target net.Conn) {
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(target, in); done <- struct{}{} }()
	go func() { _, _ = io.Copy(client, target); done <- struct{}{} }()
	<-done
}
