//go:build linux

package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/proxyward/proxyward/integration/controlplane"
	"github.com/proxyward/proxyward/integration/lab"
)

const daemonSet = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: host, namespace: default}
spec:
  selector: {matchLabels: {app: host}}
  template:
    metadata: {labels: {app: host}}
    spec:
      hostNetwork: true
      tolerations: [{operator: Exists}]
      containers:
      - name: host
        image: IMAGE
        securityContext: {privileged: true}
        volumeMounts: [{name: systemd, mountPath: /run/systemd}]
      volumes: [{name: systemd, hostPath: {path: /run/systemd, type: Directory}}]
`

// asker asks the API server as a program in a cluster does: from a pod of its
// own network, by the Service and the ServiceAccount.
const asker = `
apiVersion: v1
kind: Pod
metadata: {name: asker, namespace: default}
spec:
  restartPolicy: Never
  containers: [{name: asker, image: IMAGE}]
`

// start brings up a lab with nodes that can join, or says why it cannot.
func start(t *testing.T, nodes ...string) *lab.Lab {
	t.Helper()
	_, err := controlplane.Find()
	var missing *controlplane.MissingError
	if errors.As(err, &missing) && os.Getenv("CI") != "true" {
		t.Skipf("the control plane is not built: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := lab.Config{}
	for _, name := range nodes {
		cfg.Nodes = append(cfg.Nodes, lab.NodeSpec{Name: name, Full: true})
	}
	return lab.Start(t, cfg)
}

func TestClusterRunsADaemonSet(t *testing.T) {
	l := start(t, "w1", "cp1")
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	c, err := Up(ctx, l, Config{Progress: t.Output(), Nodes: []NodeSpec{
		{Name: "w1", Labels: map[string]string{"pool": "workers"}},
		{Name: "cp1", ControlPlane: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Down(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if !t.Failed() {
			return
		}
		for _, args := range [][]string{{"describe", "pods"}, {"logs", "asker"}} {
			out, err := c.Kubectl(ctx, nil, args...)
			t.Logf("kubectl %q: %v\n%s", args, err, out)
		}
	})
	kubectl := func(in string, args ...string) string {
		t.Helper()
		out, err := c.Kubectl(ctx, strings.NewReader(in), args...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}

	for selector, want := range map[string]string{"pool=workers": "w1", "node-role.kubernetes.io/control-plane": "cp1"} {
		if got := kubectl("", "get", "nodes", "-l", selector, "-o", "jsonpath={.items[*].metadata.name}"); got != want {
			t.Errorf("nodes with %s: %q, want %q", selector, got, want)
		}
	}
	if got := kubectl("", "get", "node", "cp1", "-o", "jsonpath={.spec.taints[*].key}"); got != "node-role.kubernetes.io/control-plane" {
		t.Errorf("node cp1 has taints %q", got)
	}

	kubectl(strings.ReplaceAll(daemonSet, "IMAGE", l.PauseRef()), "create", "-f", "-")
	kubectl("", "rollout", "status", "daemonset/host", "--timeout=90s")
	for _, n := range l.Nodes() {
		if got := kubectl("", "get", "pods", "-l", "app=host", "--field-selector=spec.nodeName="+n.Name, "-o", "jsonpath={.items[*].status.podIP}"); got != n.IP.String() {
			t.Errorf("the pod on %s has address %q, want the node's %s", n.Name, got, n.IP)
		}
	}

	image, err := l.PushProgram(ctx, lab.Internal, "test/kubectl", "1", filepath.Join(c.binaries, "kubectl"), "get", "--raw", "/version")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(strings.ReplaceAll(asker, "IMAGE", image.Ref), "create", "-f", "-")
	kubectl("", "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=40s", "pod/asker")
	if got := kubectl("", "logs", "asker"); !strings.Contains(got, controlplane.KubernetesVersion) {
		t.Errorf("the pod that asked the API server got %q", got)
	}

	if err := c.Down(ctx); err != nil {
		t.Fatal(err)
	}
	for _, n := range l.Nodes() {
		checkLeft(ctx, t, n)
	}
	if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
		t.Errorf("after Down the cluster's folder: %v, want that it is gone", err)
	}

	// A node that was left is as good as new.
	again, err := Up(ctx, l, Config{Progress: t.Output(), Nodes: []NodeSpec{{Name: "w1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Down(ctx); err != nil {
		t.Fatal(err)
	}
}

// checkLeft checks that nothing of the cluster is left on the node.
func checkLeft(ctx context.Context, t *testing.T, n *lab.Node) {
	t.Helper()
	out, err := n.Run(ctx, "sh", "-c", `
pgrep -l 'kubelet|containerd-shim|pause|program' || true
grep -e /var/lib/kubelet -e lab-sysctl /proc/mounts || true
ls -d /var/lib/kubelet /etc/kubernetes/* /usr/local/bin/kubelet /etc/cni/net.d/* /etc/systemd/system/*kube* /run/lab-sysctl /dev/kmsg 2>/dev/null || true
ip -o address show to 10.96.0.0/12
ip -o link show cni0 2>/dev/null || true`)
	if err != nil {
		t.Fatal(err)
	}
	if out != "" {
		t.Errorf("the cluster left on node %s:\n%s", n.Name, out)
	}
	cri, err := n.CRI(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	defer cri.Close()
	pods, err := cri.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil || len(pods.GetItems()) > 0 {
		t.Errorf("pods left on node %s: %v, %v", n.Name, pods.GetItems(), err)
	}
}

func TestUpRefusesANodeThatCannotJoin(t *testing.T) {
	l := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := Up(ctx, l, Config{Nodes: []NodeSpec{{Name: "nobody"}}}); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("Up with a node that the lab lacks gave %v, want its name", err)
	}
	if _, err := os.Stat(filepath.Join(l.Dir(), "cluster")); !os.IsNotExist(err) {
		t.Errorf("after a failed Up the cluster's folder: %v, want that it is gone", err)
	}
}
