//go:build linux

package cluster

import (
	"bytes"
	"io/fs"
	"net/netip"
	"strings"
	"testing"
)

func TestTemplatesAreTheEmbeddedFiles(t *testing.T) {
	entries, err := fs.ReadDir(nodeFiles, "node")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(templates()) {
		t.Errorf("%d files are embedded, %d are written", len(entries), len(templates()))
	}
	for _, e := range entries {
		if templates()[e.Name()] == "" {
			t.Errorf("%q is embedded and never written", e.Name())
		}
	}
}

func TestTemplatesSayTheNodesFacts(t *testing.T) {
	facts := nodeFacts{
		Name: "w1", IP: netip.MustParseAddr("10.66.7.20"), APIServer: netip.MustParseAddrPort("10.66.7.10:6443"),
		ServiceAddress: netip.MustParseAddr("10.96.0.1"), PodCIDR: netip.MustParsePrefix("10.244.3.0/24"),
	}
	const taint = "node-role.kubernetes.io/control-plane"
	for source, want := range map[string]string{
		"kubelet.service":                "--hostname-override=w1 --node-ip=10.66.7.20\n",
		"kubelet.yaml":                   "address: 10.66.7.20\n",
		cniConfig:                        `"subnet": "10.244.3.0/24"`,
		"lab-kubernetes-service.socket":  "ListenStream=10.96.0.1:443\n",
		"lab-kubernetes-service.service": "systemd-socket-proxyd 10.66.7.10:6443\n",
	} {
		got, err := fill(source, facts)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(got, []byte(want)) || bytes.Contains(got, []byte(taint)) {
			t.Errorf("%s lacks %q, or has a taint that a worker has not:\n%s", source, want, got)
		}
	}
	facts.ControlPlane = true
	got, err := fill("kubelet.yaml", facts)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(got), "registerWithTaints:\n- {key: "+taint+", effect: NoSchedule}\n") {
		t.Errorf("a control-plane node's kubelet.yaml does not end with the taint:\n%s", got)
	}
}
