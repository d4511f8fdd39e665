//go:build linux

package lab_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proxyward/proxyward/integration/lab"
)

func TestDirectRoute(t *testing.T) {
	l := lab.Start(t, lab.Config{Nodes: []lab.NodeSpec{{Name: "n1"}}})
	n := l.Node("n1")
	if err := l.OpenDirectRoute(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if err := pull(t, n, push(t, l, lab.External).Ref, l.Registry(lab.External)); err != nil {
		t.Errorf("with a route: %v", err)
	}
	if err := l.CloseDirectRoute(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if err := pull(t, n, push(t, l, lab.External).Ref, l.Registry(lab.External)); err == nil {
		t.Error("the pull worked without a route")
	}
	entries, err := l.Proxy(lab.Open).AccessLog()
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		t.Errorf("the proxy was asked: %v", entries)
	}
}

func TestMirrorPullsThrough(t *testing.T) {
	l := lab.Start(t, lab.Config{Nodes: []lab.NodeSpec{{Name: "n1"}}})
	n := l.Node("n1")
	external := l.Registry(lab.External).Host
	hosts := "server = \"https://" + external + "\"\n[host.\"https://" + l.Registry(lab.Mirror).Host + "\"]\n  capabilities = [\"pull\", \"resolve\"]\n"
	if err := n.WriteFile(t.Context(), "/etc/containerd/certs.d/"+external+"/hosts.toml", []byte(hosts), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := pull(t, n, push(t, l, lab.External).Ref, l.Registry(lab.External)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.PushCanary(t.Context(), lab.Mirror, "a", "1"); err == nil {
		t.Error("a push to the mirror succeeded")
	}
}

func TestImagesShareALayer(t *testing.T) {
	l := lab.Start(t, lab.Config{})
	shared, err := lab.RandomLayer(lab.CanarySize)
	if err != nil {
		t.Fatal(err)
	}
	var images []lab.Image
	for _, repository := range []string{"team/a", "team/b"} {
		own, err := lab.RandomLayer(1024)
		if err != nil {
			t.Fatal(err)
		}
		img, err := l.PushImage(t.Context(), lab.Internal, repository, "1", []v1.Layer{shared, own}...)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, img)
	}
	a, b := images[0], images[1]
	if a.Layers[0] != b.Layers[0] || a.Layers[1] == b.Layers[1] || a.Layers[0].Size < lab.CanarySize {
		t.Errorf("layers %v and %v", a.Layers, b.Layers)
	}
}

func TestRegistriesStopAndStart(t *testing.T) {
	l := lab.Start(t, lab.Config{})
	r, p := l.Registry(lab.Internal), l.Proxy(lab.Auth)
	img := push(t, l, lab.Internal)
	client := &http.Client{Transport: l.Transport()}
	defer client.CloseIdleConnections()
	ask := func() error {
		res, err := client.Get("https://" + r.Host + "/v2/proxyward/canary/manifests/" + img.Digest.String())
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			err = errors.New(res.Status)
		}
		return errors.Join(err, res.Body.Close())
	}
	for _, service := range []interface {
		Stop(context.Context) error
		Start(context.Context) error
	}{r, p} {
		if err := service.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if service == r {
			if err := ask(); err == nil {
				t.Error("the stopped registry answers")
			}
		}
		if err := service.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	if log, err := r.Log(); err != nil || !strings.Contains(log, img.Digest.String()) {
		t.Errorf("the registry's log does not know the request: %v", err)
	}
}

func TestFaultProxies(t *testing.T) {
	l := lab.Start(t, lab.Config{Nodes: []lab.NodeSpec{{Name: "n1"}}})
	for _, c := range []struct {
		mode lab.FaultMode
		want string // start of what a CONNECT is answered with, or of the error
	}{
		{lab.Fault403, "HTTP/1.1 403"},
		{lab.Fault407, "HTTP/1.1 407"},
		{lab.Fault503, "HTTP/1.1 503"},
		{lab.FaultNotHTTP, "SSH-2.0"},
		{lab.FaultDrop, "closed"},
		{lab.FaultHang, "timeout"},
		{lab.FaultTLSOnly, "closed"},
		{lab.FaultAgentOnly, "HTTP/1.1 200"},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			p, err := l.FaultProxy(t.Context(), c.mode, lab.FaultOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := connect(t, p); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if err := p.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if conn, err := net.Dial("tcp", p.Addr.String()); err == nil {
				t.Error("it listens after Stop", conn.Close())
			}
		})
	}
	t.Run("tls-only works with https", func(t *testing.T) { overTLS(t, l) })
	t.Run("agent-only refuses the runtime", func(t *testing.T) { refusesRuntime(t, l) })
	t.Run("agent-only by number and user agent", func(t *testing.T) {
		p, err := l.FaultProxy(t.Context(), lab.FaultAgentOnly, lab.FaultOptions{AllowFirst: 2, AllowUserAgent: "lab-test"})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 403"} {
			if got := connect(t, p); !strings.HasPrefix(got, want) {
				t.Errorf("request %d: got %q, want %q", i+1, got, want)
			}
		}
	})
}

// connect sends one CONNECT for the external registry and says what came back.
func connect(t *testing.T, p *lab.FaultProxy) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", p.Addr.String(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	const target = "registry.external.example:443"
	if _, err := io.WriteString(conn, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\nUser-Agent: lab-test/1\r\n\r\n"); err != nil {
		return "closed: " + err.Error()
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "timeout"
	}
	if err != nil {
		return "closed: " + err.Error()
	}
	return line
}

// overTLS asks the external registry through the proxy that speaks TLS only.
func overTLS(t *testing.T, l *lab.Lab) {
	t.Helper()
	p, err := l.FaultProxy(t.Context(), lab.FaultTLSOnly, lab.FaultOptions{})
	if err != nil {
		t.Fatal(err)
	}
	transport := l.Transport()
	transport.Proxy = http.ProxyURL(&url.URL{Scheme: "https", Host: strings.TrimPrefix(p.URL(), "http://")})
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	res, err := client.Get("https://" + l.Registry(lab.External).Host + "/v2/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.TLS.Version < tls.VersionTLS12 {
		t.Errorf("got %s", res.Status)
	}
}

// refusesRuntime pulls through a proxy that serves everyone but the runtimes.
func refusesRuntime(t *testing.T, l *lab.Lab) {
	t.Helper()
	p, err := l.FaultProxy(t.Context(), lab.FaultAgentOnly, lab.FaultOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := l.Node("n1")
	useProxy(t, n, p.URL(), "corp.example")
	if err := pull(t, n, push(t, l, lab.External).Ref, l.Registry(lab.External)); err == nil {
		t.Error("containerd's pull was served")
	}
	requests, err := p.Requests()
	if err != nil {
		t.Fatal(err)
	}
	if len(requests) == 0 {
		t.Fatal("containerd never asked")
	}
	for _, r := range requests {
		if r.Process != "containerd" || r.Status != http.StatusForbidden {
			t.Errorf("request %+v", r)
		}
	}
}

func TestInterceptingProxy(t *testing.T) {
	l := lab.Start(t, lab.Config{Nodes: []lab.NodeSpec{{Name: "n1"}}})
	n := l.Node("n1")
	p, err := l.FaultProxy(t.Context(), lab.FaultIntercept, lab.FaultOptions{})
	if err != nil {
		t.Fatal(err)
	}
	useProxy(t, n, p.URL(), "corp.example")
	img := push(t, l, lab.External)
	if err := pull(t, n, img.Ref, l.Registry(lab.External)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without its CA: %v", err)
	}
	if err := n.WriteFile(t.Context(), "/etc/ssl/certs/interception.pem", p.CA, 0o644); err != nil {
		t.Fatal(err)
	}
	restart(t, n)
	if err := pull(t, n, img.Ref, l.Registry(lab.External)); err != nil {
		t.Errorf("with its CA: %v", err)
	}
}
