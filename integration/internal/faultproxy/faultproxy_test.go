//go:build linux

package faultproxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// serve starts a proxy and returns its address and the requests it logs.
func serve(t *testing.T, s *Server) (string, <-chan Request) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // a second close is no failure
	requests := make(chan Request, 10)
	s.Log = func(r Request) { requests <- r }
	go func() { _ = s.Serve(l) }() // ends with the listener
	return l.Addr().String(), requests
}

// connect opens a tunnel and returns the answer's status and the connection.
func connect(t *testing.T, proxy, target string) (int, net.Conn) {
	t.Helper()
	conn, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, conn
}

func TestTunnelByName(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	defer target.Close()
	_, port, err := net.SplitHostPort(target.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	proxy, requests := serve(t, &Server{Mode: Selective, Hosts: map[string]string{"name.example": "127.0.0.1"}})
	status, conn := connect(t, proxy, "name.example:"+port)
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(answer), "hello") {
		t.Errorf("got %q, %v", answer, err)
	}
	if r := <-requests; r.Target != "name.example:"+port || r.Status != http.StatusOK {
		t.Errorf("logged %+v", r)
	}
	if status, _ := connect(t, proxy, "unknown.example:443"); status != http.StatusBadGateway {
		t.Errorf("an unknown name: status %d", status)
	}
}

func TestRefusedRequestsAreLogged(t *testing.T) {
	for mode, want := range map[Mode]int{Forbidden: 403, AuthAlways: 407, Unavailable: 503, Selective: 403} {
		server := &Server{Mode: mode, Refuse: func(r *Request, _ string, _ int) string {
			r.Process = "someone"
			return "refused"
		}}
		proxy, requests := serve(t, server)
		if status, _ := connect(t, proxy, "192.0.2.1:443"); status != want {
			t.Errorf("%s: status %d", mode, status)
		}
		r := <-requests
		if r.Status != want || (r.Process == "someone") != (mode == Selective) {
			t.Errorf("%s: logged %+v", mode, r)
		}
	}
}

func TestUnknownModeIsRefused(t *testing.T) {
	if err := (&Server{Mode: "kind"}).Serve(nil); err == nil || !strings.Contains(err.Error(), `"kind"`) {
		t.Errorf("got %v", err)
	}
}

func TestOwnerFindsThisProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	self := strings.TrimSpace(string(raw))
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	for _, c := range []struct {
		addr  netip.AddrPort
		names []string
		want  string
	}{
		{addr, []string{"other", self}, self},
		{addr, []string{"other"}, ""},
		{netip.AddrPortFrom(addr.Addr(), 1), []string{self}, ""},
	} {
		if got, err := Owner(c.addr, c.names); err != nil || got != c.want {
			t.Errorf("%s among %q: got %q, %v", c.addr, c.names, got, err)
		}
	}
}
