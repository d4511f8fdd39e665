//go:build linux

package lab_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/proxyward/proxyward/integration/lab"
)

func TestNode(t *testing.T) {
	marker := []byte("made before the first boot\n")
	l := lab.Start(t, lab.Config{Nodes: []lab.NodeSpec{{
		Name: "n1",
		Prepare: func(root string) error {
			return os.WriteFile(filepath.Join(root, "etc/prepared"), marker, 0o600)
		},
	}}})
	n := l.Node("n1")

	t.Run("exec", func(t *testing.T) {
		r, err := n.Exec(t.Context(), "sh", "-c", "echo out; echo err >&2; exit 7")
		if err != nil {
			t.Fatal(err)
		}
		if string(r.Stdout) != "out\n" || string(r.Stderr) != "err\n" || r.ExitCode != 7 {
			t.Errorf("got %q, %q, %d", r.Stdout, r.Stderr, r.ExitCode)
		}
		if _, err := n.Run(t.Context(), "false"); err == nil {
			t.Error("Run took a failing command for a success")
		}
		if out, err := n.Run(t.Context(), "hostname"); err != nil || out != "n1\n" {
			t.Errorf("hostname %q, %v", out, err)
		}
	})
	t.Run("files", func(t *testing.T) {
		if raw, err := n.ReadFile(t.Context(), "/etc/prepared"); err != nil || !bytes.Equal(raw, marker) {
			t.Errorf("prepared file: %q, %v", raw, err)
		}
		content := []byte("a\x00b\xff'\"\n")
		if err := n.WriteFile(t.Context(), "/etc/new/folder/file", content, 0o640); err != nil {
			t.Fatal(err)
		}
		// The root on the host shows what the node wrote.
		raw, err := os.ReadFile(filepath.Join(n.Root(), "etc/new/folder/file"))
		if err != nil || !bytes.Equal(raw, content) {
			t.Errorf("got %q, %v", raw, err)
		}
		if out, err := n.Run(t.Context(), "stat", "-c", "%a", "/etc/new/folder/file"); err != nil || out != "640\n" {
			t.Errorf("mode %q, %v", out, err)
		}
		if _, err := n.ReadFile(t.Context(), "/etc/absent"); err == nil {
			t.Error("reading an absent file succeeded")
		}
	})
	t.Run("environment of a unit", func(t *testing.T) {
		dropIn := "[Service]\nEnvironment=LAB_VALUE='a \"b\" \\\\ ä'\n"
		if err := n.WriteFile(t.Context(), "/etc/systemd/system/containerd.service.d/lab.conf", []byte(dropIn), 0o644); err != nil {
			t.Fatal(err)
		}
		restart(t, n)
		env, err := n.Environ(t.Context(), "containerd.service")
		if err != nil {
			t.Fatal(err)
		}
		if got := env["LAB_VALUE"]; got != `a "b" \ ä` {
			t.Errorf("LAB_VALUE=%q", got)
		}
		if _, err := n.Environ(t.Context(), "absent.service"); err == nil {
			t.Error("a unit that does not run has an environment")
		}
	})
	t.Run("a pod's sandbox runs", func(t *testing.T) { runSandbox(t, n) })
	t.Run("reboot", func(t *testing.T) {
		before, err := n.ReadFile(t.Context(), "/proc/sys/kernel/random/boot_id")
		if err != nil {
			t.Fatal(err)
		}
		if err := n.WriteFile(t.Context(), "/run/gone", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := n.Reboot(t.Context()); err != nil {
			t.Fatal(err)
		}
		after, err := n.ReadFile(t.Context(), "/proc/sys/kernel/random/boot_id")
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(before, after) {
			t.Error("the boot ID is the old one")
		}
		if _, err := n.ReadFile(t.Context(), "/run/gone"); err == nil {
			t.Error("/run is the old one")
		}
		if _, err := n.ReadFile(t.Context(), "/etc/new/folder/file"); err != nil {
			t.Error(err)
		}
		if err := n.WaitUnit(t.Context(), "containerd.service", "active", 30*time.Second); err != nil {
			t.Error(err)
		}
		if err := pull(t, n, push(t, l, lab.Internal).Ref, l.Registry(lab.Internal)); err != nil {
			t.Error(err)
		}
	})
}

// runSandbox runs a pod without containers in the node's network.
func runSandbox(t *testing.T, n *lab.Node) {
	t.Helper()
	cri, err := n.CRI(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer cri.Close()
	r, err := cri.Runtime.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "default", Uid: "1"},
		LogDirectory: "/var/log/pods",
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := cri.Runtime.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].State != runtimeapi.PodSandboxState_SANDBOX_READY {
		t.Errorf("sandboxes: %v", list.Items)
	}
	if _, err := cri.Runtime.RemovePodSandbox(t.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: r.PodSandboxId}); err != nil {
		t.Fatal(err)
	}
}

// TestGenerations boots a node of every Debian release named in NODES (words,
// or "all"; trixie when empty) and pulls on it.
func TestGenerations(t *testing.T) {
	for _, g := range lab.GenerationsUnderTest(t) {
		t.Run(string(g), func(t *testing.T) {
			l := lab.Start(t, lab.Config{Generation: g, Nodes: []lab.NodeSpec{{Name: "n1"}}})
			n := l.Node("n1")
			for _, program := range []string{"systemctl", "containerd"} {
				out, err := n.Run(t.Context(), program, "--version")
				if err != nil {
					t.Fatal(err)
				}
				first, _, _ := strings.Cut(out, "\n")
				t.Log(first)
			}
			if err := pull(t, n, push(t, l, lab.Internal).Ref, l.Registry(lab.Internal)); err != nil {
				t.Error(err)
			}
			img := push(t, l, lab.External)
			useProxy(t, n, l.Proxy(lab.Auth).URLWithCredentials(), "corp.example")
			if err := pull(t, n, img.Ref, l.Registry(lab.External)); err != nil {
				t.Error(err)
			}
			if err := n.Reboot(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDocker(t *testing.T) {
	l := lab.Start(t, lab.Config{Nodes: []lab.NodeSpec{{Name: "d1", Docker: true}}})
	n := l.Node("d1")
	if err := dockerPull(n, push(t, l, lab.Internal)); err != nil {
		t.Error(err)
	}
	if err := dockerPull(n, push(t, l, lab.External)); err == nil {
		t.Error("docker pulled from the external registry without a proxy")
	}
}

// dockerPull asks the daemon for an image and looks whether it then has it.
func dockerPull(n *lab.Node, img lab.Image) error {
	client := n.UnixClient(lab.DockerSocket)
	res, err := client.Post("http://docker/images/create?fromImage="+url.QueryEscape(img.Ref), "", nil)
	if err != nil {
		return err
	}
	progress, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	res, err = client.Get("http://docker/images/" + img.Ref + "/json")
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		err = fmt.Errorf("docker has no image %s after the pull: %s", img.Ref, progress)
	}
	return errors.Join(err, res.Body.Close())
}
