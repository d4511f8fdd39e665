//go:build linux

package cluster

import (
	"context"
	"os"
	"os/exec"
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

// labOf brings up a lab whose nodes can join.
func labOf(t *testing.T, nodes ...string) *lab.Lab {
	t.Helper()
	Require(t)
	cfg := lab.Config{}
	for _, name := range nodes {
		cfg.Nodes = append(cfg.Nodes, lab.NodeSpec{Name: name, Full: true})
	}
	return lab.Start(t, cfg)
}

// kubectl runs kubectl with in as its input and fails the test when it fails.
func kubectl(ctx context.Context, t *testing.T, c *Cluster, in string, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(ctx, strings.NewReader(in), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestClusterRunsADaemonSet(t *testing.T) {
	l := labOf(t, "w1", "cp1")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := Start(t, l, Config{Nodes: []NodeSpec{
		{Name: "w1", Labels: map[string]string{"pool": "workers"}},
		{Name: "cp1", ControlPlane: true},
	}})

	for selector, want := range map[string]string{"pool=workers": "w1", "node-role.kubernetes.io/control-plane": "cp1"} {
		if got := kubectl(ctx, t, c, "", "get", "nodes", "-l", selector, "-o", "jsonpath={.items[*].metadata.name}"); got != want {
			t.Errorf("nodes with %s: %q, want %q", selector, got, want)
		}
	}
	if got := kubectl(ctx, t, c, "", "get", "node", "cp1", "-o", "jsonpath={.spec.taints[*].key}"); got != "node-role.kubernetes.io/control-plane" {
		t.Errorf("node cp1 has taints %q", got)
	}

	kubectl(ctx, t, c, strings.ReplaceAll(daemonSet, "IMAGE", l.PauseRef()), "create", "-f", "-")
	kubectl(ctx, t, c, "", "rollout", "status", "daemonset/host", "--timeout=90s")
	for _, n := range l.Nodes() {
		if got := kubectl(ctx, t, c, "", "get", "pods", "-l", "app=host", "--field-selector=spec.nodeName="+n.Name, "-o", "jsonpath={.items[*].status.podIP}"); got != n.IP.String() {
			t.Errorf("the pod on %s has address %q, want the node's %s", n.Name, got, n.IP)
		}
	}
	checkRuntimeRestart(ctx, t, l, c)

	image, err := l.PushProgram(ctx, lab.Internal, "test/kubectl", "1", filepath.Join(c.binaries, "kubectl"), "get", "--raw", "/version")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(ctx, t, c, strings.ReplaceAll(asker, "IMAGE", image.Ref), "create", "-f", "-")
	kubectl(ctx, t, c, "", "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s", "pod/asker")
	if got := kubectl(ctx, t, c, "", "logs", "asker"); !strings.Contains(got, controlplane.KubernetesVersion) {
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
	if t.Failed() {
		return
	}
	checkSecondCluster(ctx, t, l)
}

// checkRuntimeRestart restarts the runtime as the product does: the pods run on
// and the node stays, or becomes, Ready.
func checkRuntimeRestart(ctx context.Context, t *testing.T, l *lab.Lab, c *Cluster) {
	t.Helper()
	if _, err := l.Node("w1").Run(ctx, "systemctl", "restart", "containerd"); err != nil {
		t.Fatal(err)
	}
	kubectl(ctx, t, c, "", "wait", "--for=condition=Ready", "--timeout=60s", "node/w1")
	// From the host's network, as a test's own client asks.
	host := exec.CommandContext(ctx, filepath.Join(c.binaries, "kubectl"), "--kubeconfig="+c.AdminKubeconfig(),
		"get", "pods", "-l", "app=host", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	host.Env = []string{"HOME=" + t.TempDir()}
	if out, err := host.CombinedOutput(); err != nil || string(out) != "0 0" {
		t.Errorf("restarts of the DaemonSet's containers: %q, %v; want that they ran on", out, err)
	}
}

// checkLeft checks that nothing of the cluster is left on the node.
func checkLeft(ctx context.Context, t *testing.T, n *lab.Node) {
	t.Helper()
	out, err := n.Run(ctx, "sh", "-c", `
pgrep -l 'kubelet|containerd-shim|pause|program' || true
grep -e /var/lib/kubelet -e lab-sysctl -e /proc/sys/net /proc/mounts || true
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

// checkSecondCluster joins a node that left to another cluster, in which it
// comes back after a reboot. The end of the lab is the end of that cluster.
func checkSecondCluster(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	c := Start(t, l, Config{Nodes: []NodeSpec{{Name: "w1"}}})
	n := l.Node("w1")
	if err := n.Reboot(ctx); err != nil {
		t.Fatal(err)
	}
	bootID, err := n.Run(ctx, "cat", "/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(ctx, t, c, "", "wait", "--for=jsonpath={.status.nodeInfo.bootID}="+strings.TrimSpace(bootID), "--timeout=60s", "node/w1")
	kubectl(ctx, t, c, "", "wait", "--for=condition=Ready", "--timeout=60s", "node/w1")

	if err := l.Down(ctx); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("pgrep", "-lf", c.dir).Output(); len(out) > 0 {
		t.Errorf("after the lab's Down there runs %s (%v)", out, err)
	}
}

func TestUpRefusesANodeThatCannotJoin(t *testing.T) {
	l := labOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := Up(ctx, l, Config{Nodes: []NodeSpec{{Name: "nobody"}}}); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("Up with a node that the lab lacks gave %v, want its name", err)
	}
	if _, err := os.Stat(filepath.Join(l.Dir(), "cluster")); !os.IsNotExist(err) {
		t.Errorf("after a failed Up the cluster's folder: %v, want that it is gone", err)
	}
}
