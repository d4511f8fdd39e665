package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.lab.example}
spec:
  group: lab.example
  scope: Cluster
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, maximum: 9}
            x-kubernetes-validations:
            - {rule: "self.size != 4", message: "four is not to be had"}
`

const widget = `
apiVersion: lab.example/v1
kind: Widget
metadata: {name: first}
spec: {size: 3}
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: idle, namespace: default}
spec:
  selector: {matchLabels: {app: idle}}
  template:
    metadata: {labels: {app: idle}}
    spec: {containers: [{name: idle, image: registry.example/idle}]}
`

// realBinaries returns the folder of the compiled programs.
func realBinaries(t *testing.T) string {
	t.Helper()
	dir, err := Find()
	var missing *MissingError
	if errors.As(err, &missing) && os.Getenv("CI") != "true" {
		t.Skipf("the control plane is not built: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestControlPlaneServesAndStops(t *testing.T) {
	binaries := realBinaries(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	c, err := Start(ctx, Config{Binaries: binaries, Dir: t.TempDir(), Controllers: true, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubectl := func(in string, args ...string) string {
		t.Helper()
		out, err := c.Kubectl(ctx, strings.NewReader(in), args...)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}

	var version struct {
		ClientVersion struct{ GitVersion string }
		ServerVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal([]byte(kubectl("", "version", "-o", "json")), &version); err != nil {
		t.Fatal(err)
	}
	if version.ClientVersion.GitVersion != KubernetesVersion || version.ServerVersion.GitVersion != KubernetesVersion {
		t.Errorf("kubectl says version %q, the server %q; want %q for both",
			version.ClientVersion.GitVersion, version.ServerVersion.GitVersion, KubernetesVersion)
	}

	kubectl(widgetCRD, "create", "-f", "-")
	kubectl("", "wait", "--for=condition=Established", "--timeout=30s", "crd/widgets.lab.example")
	kubectl(widget, "create", "-f", "-")
	if got := kubectl("", "get", "widget", "first", "-o", "jsonpath={.spec.size}"); got != "3" {
		t.Errorf("the stored widget has size %q, want 3", got)
	}
	refused := strings.ReplaceAll(widget, "size: 3", "size: 4")
	if _, err := c.Kubectl(ctx, strings.NewReader(refused), "apply", "-f", "-"); err == nil || !strings.Contains(err.Error(), "four is not to be had") {
		t.Errorf("a widget that the CRD's rule refuses gave %v, want the rule's message", err)
	}

	// The controllers make the pod, the scheduler finds no node for it.
	kubectl(deployment, "create", "-f", "-")
	eventually(t, "the scheduler's verdict on the pod", func() (string, bool) {
		got := kubectl("", "get", "pods", "-l", "app=idle", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="PodScheduled")].reason}`)
		return got, got == "Unschedulable"
	})

	audit, err := os.ReadFile(c.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(audit), `"requestURI":"/apis/lab.example/v1/widgets`) {
		t.Errorf("the audit log has no line on the widget; it has %d bytes", len(audit))
	}

	// An outage: what was stored is there again after it.
	if err := c.Halt(APIServer); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubectl(ctx, nil, "get", "widgets"); err == nil {
		t.Error("kubectl works while the API server is halted")
	}
	if err := c.Resume(ctx, APIServer); err != nil {
		t.Fatal(err)
	}
	kubectl("", "get", "widget", "first")

	pids := make(map[string]int)
	for _, p := range c.parts {
		pids[p.name] = p.proc.proc.Pid
	}
	if len(pids) != 4 {
		t.Fatalf("%d programs run, want 4: %v", len(pids), pids)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("after Stop the pid of %s gives %v, want that it is gone", name, err)
		}
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(c.Server(), "https://")); err == nil {
		conn.Close()
		t.Errorf("after Stop %s still accepts connections", c.Server())
	}
}

// TestStartOfBrokenProgram has an API server that ends at once: the caller
// sees what it said, and the etcd that was started before it is gone.
func TestStartOfBrokenProgram(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	scripts := map[string]string{
		"etcd":           "echo $$ > etcd.pid; exec sleep 60",
		"kube-apiserver": "echo cannot bind the port >&2; exit 3",
		"kubectl":        "echo refused >&2; exit 1",
	}
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := Start(ctx, Config{Binaries: bin, Dir: dir})
	if err == nil {
		t.Fatal("Start succeeded with an API server that ends at once")
	}
	for _, want := range []string{"kube-apiserver", "exit status 3", "cannot bind the port"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	pid, err := os.ReadFile(filepath.Join(dir, "etcd.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); !os.IsNotExist(err) {
		t.Errorf("etcd (pid %s) still runs after a failed Start: %v", strings.TrimSpace(string(pid)), err)
	}
}

// TestStartGivesUpWhenAsked has an API server that never answers.
func TestStartGivesUpWhenAsked(t *testing.T) {
	bin := t.TempDir()
	for name, script := range map[string]string{
		"etcd": "exec sleep 60", "kube-apiserver": "exec sleep 60", "kubectl": "echo connection refused >&2; exit 1",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Config{Binaries: bin, Dir: t.TempDir()})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("Start gave %v, want the deadline and what the last try said", err)
	}
}

func TestConfigRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"nothing given", Config{}, "Binaries and Dir"},
		{"relative folder", Config{Binaries: "/b", Dir: "state"}, `"state" must be absolute`},
		{"namespace without port", Config{Binaries: "/b", Dir: "/d", NetNS: "/run/netns/x"}, "Port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.cfg.withDefaults(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("withDefaults gave %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestPortsAreDistinct(t *testing.T) {
	p, err := Config{}.choosePorts()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[uint16]bool)
	for _, port := range []uint16{p.api, p.etcdClient, p.etcdPeer, p.controllerManager, p.scheduler} {
		if port == 0 || seen[port] {
			t.Fatalf("port %d is zero or chosen twice: %+v", port, p)
		}
		seen[port] = true
	}
}

// eventually asks until the answer is the wanted one, for at most a minute.
func eventually(t *testing.T, what string, ask func() (string, bool)) {
	t.Helper()
	var got string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(250 * time.Millisecond) {
		var ok bool
		if got, ok = ask(); ok {
			return
		}
	}
	t.Fatalf("%s did not come within a minute; it is %q", what, got)
}

// TestProcessesDieWithTheirStarter starts one process of each kind from a
// program that then kills itself: the detached one alone lives on.
func TestProcessesDieWithTheirStarter(t *testing.T) {
	const variable = "CONTROLPLANE_TEST_STARTER_DIR"
	if dir := os.Getenv(variable); dir != "" {
		for _, detach := range []bool{false, true} {
			p, err := startProcess(strconv.FormatBool(detach), dir, detach, command("", "sleep", "60"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, p.name), []byte(strconv.Itoa(p.proc.Pid)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {} // the signal is on its way
	}
	dir := t.TempDir()
	starter := exec.Command(os.Args[0], "-test.run=^TestProcessesDieWithTheirStarter$")
	starter.Env = append(os.Environ(), variable+"="+dir)
	if out, err := starter.CombinedOutput(); starter.ProcessState.Exited() {
		t.Fatalf("the starter ended by itself: %v: %s", err, out)
	}
	pid := func(name string) int {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(string(data))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	tied, detached := pid("false"), pid("true")
	eventually(t, "the end of the process that was not detached", func() (string, bool) {
		err := syscall.Kill(tied, 0)
		return fmt.Sprint(err), errors.Is(err, syscall.ESRCH)
	})
	if err := syscall.Kill(detached, syscall.SIGKILL); err != nil {
		t.Errorf("ending the detached process: %v; want that it outlived its starter", err)
	}
}
