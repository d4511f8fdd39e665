//go:build linux

package lab_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/integration/lab"
)

// useProxy puts a node's containerd on a proxy the way an administrator would.
func useProxy(t *testing.T, n *lab.Node, url, noProxy string) {
	t.Helper()
	dropIn := "[Service]\nEnvironment=\"HTTPS_PROXY=" + strings.ReplaceAll(url, "%", "%%") + "\" NO_PROXY=" + noProxy + "\n"
	if err := n.WriteFile(t.Context(), "/etc/systemd/system/containerd.service.d/proxy.conf", []byte(dropIn), 0o644); err != nil {
		t.Fatal(err)
	}
	restart(t, n)
}

func restart(t *testing.T, n *lab.Node) {
	t.Helper()
	for _, args := range [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "restart", "containerd"}} {
		if _, err := n.Run(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
}

func pull(t *testing.T, n *lab.Node, ref string, registry *lab.Registry) error {
	t.Helper()
	cri, err := n.CRI(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer cri.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err = cri.Pull(ctx, ref, registry.Login())
	return err
}

func push(t *testing.T, l *lab.Lab, registry string) lab.Image {
	t.Helper()
	img, err := l.PushCanary(t.Context(), registry, "proxyward/canary", "1")
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestLab(t *testing.T) {
	l := lab.Start(t, lab.Config{Nodes: []lab.NodeSpec{{Name: "n1"}}})
	n := l.Node("n1")

	t.Run("corporate registries need no proxy", func(t *testing.T) {
		for _, name := range []string{lab.Internal, lab.Redirect, lab.Token, lab.Private} {
			if err := pull(t, n, push(t, l, name).Ref, l.Registry(name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("the registry saw the node itself", func(t *testing.T) {
		requests, err := l.Registry(lab.Internal).Requests()
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(requests, func(r lab.RegistryRequest) bool {
			return r.Client == n.IP && r.Method == "GET" && strings.Contains(r.Path, "/blobs/") &&
				r.Status == 200 && r.Bytes >= lab.CanarySize && strings.HasPrefix(r.UserAgent, "containerd/")
		})
		if !found {
			t.Errorf("no such request among %+v", requests)
		}
	})
	external := push(t, l, lab.External)
	t.Run("the external registry is out of reach", func(t *testing.T) {
		if err := pull(t, n, external.Ref, l.Registry(lab.External)); err == nil {
			t.Fatal("the pull worked without a proxy")
		}
	})
	for _, name := range []string{lab.Open, lab.Auth} {
		t.Run("the external registry is reached through proxy "+name, func(t *testing.T) {
			img := push(t, l, lab.External)
			p := l.Proxy(name)
			useProxy(t, n, p.URLWithCredentials(), "corp.example")
			if err := pull(t, n, img.Ref, l.Registry(lab.External)); err != nil {
				t.Fatal(err)
			}
			e, err := p.WaitAccess(t.Context(), 15*time.Second, func(e lab.AccessEntry) bool {
				return e.Method == "CONNECT" && e.Client == n.IP && e.Status == 200 && e.Bytes >= lab.CanarySize
			})
			if err != nil {
				t.Fatal(err)
			}
			if e.Target != "registry.external.example:443" {
				t.Errorf("target %q", e.Target)
			}
			requests, err := l.Registry(lab.External).Requests()
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range requests {
				if r.Client == n.IP {
					t.Errorf("the node reached the external registry directly: %+v", r)
				}
			}
		})
	}
	t.Run("the proxies reach the corporate registries too", func(t *testing.T) {
		img := push(t, l, lab.Internal)
		p := l.Proxy(lab.Open)
		useProxy(t, n, p.URL(), "")
		if err := pull(t, n, img.Ref, l.Registry(lab.Internal)); err != nil {
			t.Fatal(err)
		}
		if _, err := p.WaitAccess(t.Context(), 15*time.Second, func(e lab.AccessEntry) bool {
			return e.Target == l.Registry(lab.Internal).Host && e.Bytes >= lab.CanarySize
		}); err != nil {
			t.Error(err)
		}
	})
}
