//go:build linux

package faultproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// intercept plays the TLS server that the client asked to be connected to, and
// passes the requests inside on to the real one.
func (s *Server) intercept(conn net.Conn, target string) {
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return
	}
	certificate, err := s.Impersonate(host)
	if err != nil {
		return
	}
	upstream := s.Upstream.Clone()
	defer upstream.CloseIdleConnections()
	upstream.DialContext = func(_ context.Context, _, addr string) (net.Conn, error) { return s.dial(addr) }
	real := &url.URL{Scheme: "https", Host: target}
	proxy := &httputil.ReverseProxy{
		Transport: upstream,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(real); r.Out.Host = r.In.Host },
	}
	l := &singleListener{conn: tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}}), done: make(chan struct{})}
	server := &http.Server{Handler: proxy, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			l.end()
		}
	}}
	// It ends with the connection, whose errors are the client's.
	_ = server.Serve(l)
}

// singleListener hands out one connection and then waits for its end.
type singleListener struct {
	conn  net.Conn
	given bool
	once  sync.Once
	done  chan struct{}
}

var errOnlyOne = errors.New("the only connection has ended")

func (l *singleListener) end() { l.once.Do(func() { close(l.done) }) }

// Accept returns the connection, and on the second call blocks until it ended.
func (l *singleListener) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.conn, nil
	}
	<-l.done
	return nil, errOnlyOne
}

// Close does nothing: the connection is closed by its server.
func (l *singleListener) Close() error { return nil }

// Addr is the local end of the connection.
func (l *singleListener) Addr() net.Addr { return l.conn.LocalAddr() }
