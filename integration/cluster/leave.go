//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/proxyward/proxyward/integration/lab"
)

// leave takes from a node what joining gave it: the kubelet, the pods and the
// files. A node that only began to join is cleaned as well; one that went with
// its lab needs nothing.
func leave(ctx context.Context, n *lab.Node) error {
	if _, err := os.Stat(n.Root()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	stop := units()
	slices.Reverse(stop)
	for _, unit := range append(stop, "lab-kubernetes-service.service") {
		// A unit that was not installed yet cannot be stopped, and need not.
		if r, err := n.Exec(ctx, "systemctl", "disable", "--now", "--", unit); err != nil {
			return fmt.Errorf("taking node %q out: %w", n.Name, err)
		} else if state, err := n.Show(ctx, unit, "ActiveState"); err != nil {
			return fmt.Errorf("taking node %q out: %w", n.Name, err)
		} else if state == "active" {
			return fmt.Errorf("taking node %q out: %q is still active: %s", n.Name, unit, r.Stderr)
		}
	}
	if err := removePods(ctx, n); err != nil {
		return fmt.Errorf("taking node %q out: %w", n.Name, err)
	}
	return removeFiles(ctx, n)
}

// removePods removes every pod of the runtime, as nothing but the kubelet of
// this cluster made any.
func removePods(ctx context.Context, n *lab.Node) error {
	cri, err := n.CRI(ctx, "")
	if err != nil {
		return err
	}
	defer cri.Close()
	list, err := cri.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("listing its pods: %w", err)
	}
	for _, pod := range list.GetItems() {
		name := pod.GetMetadata().GetName()
		if _, err := cri.Runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod.GetId()}); err != nil {
			return fmt.Errorf("stopping pod %q: %w", name, err)
		}
		if _, err := cri.Runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod.GetId()}); err != nil {
			return fmt.Errorf("removing pod %q: %w", name, err)
		}
	}
	return nil
}

// removeFiles removes what was installed, what the kubelet and the CNI plugins
// kept, and the pods' bridge.
func removeFiles(ctx context.Context, n *lab.Node) error {
	// Pods leave token volumes mounted when their kubelet is stopped first.
	const script = `set -e
awk '$2 ~ "^/var/lib/kubelet/" { print $2 }' /proc/mounts | sort -r | xargs -r umount
! ip link show cni0 >/dev/null 2>&1 || ip link delete cni0
rm -rf -- "$@"
systemctl daemon-reload`
	paths := []string{kubeletPath, kubeconfigPath, caPath, "/etc/kubernetes/manifests",
		"/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers"}
	for _, path := range templates() {
		paths = append(paths, path)
	}
	if _, err := n.Run(ctx, append([]string{"sh", "-c", script, "sh"}, paths...)...); err != nil {
		return fmt.Errorf("removing the kubelet's files: %w", err)
	}
	return nil
}
