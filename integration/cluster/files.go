//go:build linux

package cluster

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net/netip"
	"text/template"

	"github.com/proxyward/proxyward/integration/lab"
)

//go:embed node
var nodeFiles embed.FS

// nodeFacts are what the files of one node say about it.
type nodeFacts struct {
	Name           string
	IP             netip.Addr
	APIServer      netip.AddrPort
	ServiceAddress netip.Addr // of kubernetes.default
	PodCIDR        netip.Prefix
	ControlPlane   bool
}

const (
	kubeletPath    = "/usr/local/bin/kubelet"
	kubeconfigPath = "/etc/kubernetes/kubelet.kubeconfig"
	caPath         = "/etc/kubernetes/ca.crt"
	cniConfig      = "10-lab.conflist"
	unitDir        = "/etc/systemd/system/"
)

// units are those that a node gets, in the order in which they start.
func units() []string {
	return []string{"lab-kubernetes-service.socket", "lab-kubelet-host.service", "kubelet.service"}
}

// templates maps the templates to where a node has them. All but the network's
// are written before the kubelet starts.
func templates() map[string]string {
	return map[string]string{
		"kubelet.service":                unitDir + "kubelet.service",
		"lab-kubelet-host.service":       unitDir + "lab-kubelet-host.service",
		"lab-kubernetes-service.socket":  unitDir + "lab-kubernetes-service.socket",
		"lab-kubernetes-service.service": unitDir + "lab-kubernetes-service.service",
		"lab-kubelet-host.sh":            "/etc/kubernetes/lab-kubelet-host.sh",
		"kubelet.yaml":                   "/etc/kubernetes/kubelet.yaml",
		cniConfig:                        "/etc/cni/net.d/" + cniConfig,
	}
}

// writeTemplate writes one of the templates, filled in, into the node.
func writeTemplate(ctx context.Context, n *lab.Node, source string, facts nodeFacts) error {
	content, err := fill(source, facts)
	if err != nil {
		return err
	}
	return n.WriteFile(ctx, templates()[source], content, 0o644)
}

// fill fills a template in.
func fill(source string, facts nodeFacts) ([]byte, error) {
	t, err := template.ParseFS(nodeFiles, "node/"+source)
	if err != nil {
		return nil, fmt.Errorf("parsing the template of %q: %w", source, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, facts); err != nil {
		return nil, fmt.Errorf("filling in the template of %q: %w", source, err)
	}
	return out.Bytes(), nil
}
