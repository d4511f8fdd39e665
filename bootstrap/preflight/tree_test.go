package preflight

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/internal/node"
)

const dropIns = "etc/systemd/system/containerd.service.d/"

// install puts the profile's files into the tree, as bootstrap would.
func (s *site) install() {
	s.t.Helper()
	host, err := node.Open(s.t.Context(), s.tree)
	if err != nil {
		s.t.Fatal(err)
	}
	defer host.Close()
	report, err := bootstrap.Run(s.t.Context(), host, bootstrap.Request{Input: s.input, Stage: bootstrap.StageFiles})
	if err != nil || report.Verdict(bootstrap.StageFiles) != bootstrap.VerdictGood {
		s.t.Fatalf("installing: %v %+v", err, report)
	}
}

func TestInstalledFiles(t *testing.T) {
	s := newSite(t)
	s.install()
	report := s.run()
	only(t, report, "PW102", Pass, "as this profile gives them")
	only(t, report, "PW106", Pass, "/etc/proxyward/env/containerd.service.env")
	only(t, report, "PW502", Pass, "right mode")
	for _, v := range report.Environment[0].Variables {
		if v.NextStart == nil || v.Desired == nil || *v.NextStart != *v.Desired || !strings.HasPrefix(v.From, "/etc/proxyward/env/") {
			t.Errorf("%+v", v)
		}
	}
	if err := os.Chmod(filepath.Join(s.tree, "etc/proxyward/env/containerd.service.env"), 0o644); err != nil {
		t.Fatal(err)
	}
	only(t, s.run(), "PW502", Fail, "0644 instead of 0600")
}

func TestC09_LaterDropInWins(t *testing.T) {
	s := newSite(t)
	s.install()
	s.write(dropIns+"zzz-theirs.conf", "[Service]\nEnvironmentFile=/etc/theirs.env\n")
	s.write("etc/theirs.env", "NO_PROXY=everything.example\n")
	only(t, s.run(), "PW106", Fail, "/etc/theirs.env", "NO_PROXY")
}

func TestMissingEnvironmentFileBreaksTheNextStart(t *testing.T) {
	s := newSite(t)
	s.write(dropIns+"theirs.conf", "[Service]\nEnvironmentFile=/etc/gone.env\n")
	if c := only(t, s.run(), "PW106", Fail, "/etc/gone.env", "will not start"); c.Breaks != AtRestart {
		t.Errorf("breaks %s", c.Breaks)
	}
}

func TestC10_DockerSettingsWin(t *testing.T) {
	s := newSite(t)
	s.write("usr/lib/systemd/system/docker.service", "[Service]\nExecStart=/usr/bin/dockerd\nKillMode=process\n")
	s.write("etc/docker/daemon.json", `{"proxies": {"http-proxy": "http://u:hidden1@theirs:3128"}}`)
	for _, c := range of(s.run(), "PW105") {
		if c.Subject == "docker.service" {
			expect(t, c, Fail, "/etc/docker/daemon.json", "HTTP_PROXY")
			if strings.Contains(strings.Join(c.Seen, ""), "hidden1") {
				t.Error("it shows the password")
			}
		}
	}
}

func TestOthersFilesAreNamed(t *testing.T) {
	for _, test := range []struct {
		name, file, content string
		id                  string
		says                []string
	}{
		{"C11 one pair of quotes", dropIns + "p.conf", "[Service]\nEnvironment=\"HTTP_PROXY=http://a:1 NO_PROXY=b\"\n", "PW107", []string{dropIns + "p.conf"}},
		{"C11 curly quote", dropIns + "p.conf", "[Service]\nEnvironment=“HTTP_PROXY=http://a:1”\n", "PW107", []string{dropIns + "p.conf"}},
		{"C68 readable password", dropIns + "http-proxy.conf", "[Service]\nEnvironment=HTTP_PROXY=http://u:secret@a:1\n", "PW107", []string{"mode 0644", "password that others may read", "adopt"}},
		{"C75 folder without .d", "etc/systemd/system/containerd.service/p.conf", "[Service]\nEnvironment=HTTP_PROXY=http://a:1\n", "PW107", []string{"does not read", "containerd.service.d"}},
		{"C75 short folder", "etc/systemd/system/containerd.d/p.conf", "[Service]\nEnvironment=HTTP_PROXY=http://a:1\n", "PW107", []string{"does not read", "containerd.service.d"}},
		{"C75 no section", dropIns + "p.conf", "Environment=HTTP_PROXY=http://a:1\n", "PW107", []string{"p.conf"}},
		{"C75 Windows line ends", dropIns + "p.conf", "[Service]\r\nEnvironment=HTTP_PROXY=http://a:1\r\n", "PW107", []string{"p.conf", "Windows"}},
		{"C75 byte order mark", dropIns + "p.conf", "\ufeff[Service]\nEnvironment=HTTP_PROXY=http://a:1\n", "PW107", []string{"p.conf"}},
		{"C69 certificate file", dropIns + "p.conf", "[Service]\nEnvironment=SSL_CERT_FILE=/etc/corp.pem\n", "PW108", []string{"SSL_CERT_FILE", "kept"}},
		{"C71 no scheme", dropIns + "p.conf", "[Service]\nEnvironment=HTTP_PROXY=proxy:3128 http_proxy=proxy:3128\n", "PW110", []string{"HTTP_PROXY"}},
		{"C74 placeholder", dropIns + "p.conf", "[Service]\nEnvironment=NO_PROXY=<cidr>,${NODES},.corp\n", "PW110", []string{"<cidr>"}},
		{"C76 cases differ", dropIns + "p.conf", "[Service]\nEnvironment=HTTP_PROXY=http://a:1 http_proxy=http://b:1\n", "PW110", []string{"http_proxy"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t)
			s.write(test.file, test.content)
			only(t, s.run(), test.id, Warn, test.says...)
		})
	}
}

func TestC72_LosingLineIsNamed(t *testing.T) {
	s := newSite(t)
	s.write(dropIns+"10-a.conf", "[Service]\nEnvironment=HTTP_PROXY=http://a:1\n")
	s.write(dropIns+"20-b.conf", "[Service]\nEnvironment=HTTP_PROXY=http://b:1\n")
	for _, v := range s.run().Environment[0].Variables {
		if v.Name == "HTTP_PROXY" && (v.From != "/"+dropIns+"20-b.conf:2" || strings.Join(v.Loses, " ") != "/"+dropIns+"10-a.conf:2") {
			t.Errorf("%+v", v)
		}
	}
}

func TestC69_LooseCertificatesAreKept(t *testing.T) {
	s := newSite(t)
	s.write("etc/ssl/certs/ca-certificates.crt", "bundle")
	s.write("etc/ssl/certs/corp.pem", "loose")
	only(t, s.run(), "PW108", Pass, "/etc/ssl/certs/corp.pem", "kept")
}

func TestC16_MirrorsAreInTheTable(t *testing.T) {
	s := newSite(t)
	s.write("etc/containerd/config.toml", "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"/etc/containerd/certs.d\"\n")
	s.write("etc/containerd/certs.d/docker.io/hosts.toml", "[host.\"https://10.99.0.7:5000\"]\ncapabilities = [\"pull\", \"resolve\"]\n")
	if d := decision(t, s.run(), "https://10.99.0.7:5000"); d.Route != v1alpha1.RouteDirect || d.What != "mirror" {
		t.Errorf("%+v", d)
	}
}

func TestC55_StaticPodsWithProxies(t *testing.T) {
	s := newSite(t)
	s.write("etc/kubernetes/manifests/etcd.yaml", "spec:\n  containers:\n  - name: etcd\n")
	only(t, s.run(), "PW701", Pass, "1 manifest")
	s.write("etc/kubernetes/manifests/kube-apiserver.yaml",
		"spec:\n  containers:\n  - env:\n    - {name: HTTPS_PROXY, value: \"http://u:hidden1@p:1\"}\n    - {name: no_proxy, value: x}\n")
	c := only(t, s.run(), "PW701", Warn, "/etc/kubernetes/manifests/kube-apiserver.yaml sets HTTPS_PROXY, no_proxy", "kubeadm")
	if strings.Contains(strings.Join(c.Seen, ""), "hidden1") {
		t.Error("it shows the value")
	}
	s.write("var/lib/kubelet/config.yaml", "staticPodPath: /etc/pods\n")
	s.write("etc/pods/broken.yaml", "spec: [")
	only(t, s.run(), "PW701", Untested, "/etc/pods/broken.yaml")
}

func TestDeadAndDoubtfulEntries(t *testing.T) {
	s := newSite(t)
	only(t, s.run(), "PW202", Pass)
	s.profile.Spec.NoProxy.Entries = []v1alpha1.NoProxyRequest{{Value: "10.*", Reason: "all of it"}}
	host, err := node.Open(t.Context(), s.tree)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	var input *bootstrap.InputError
	if _, err := Run(t.Context(), host, Request{Input: s.input}); !errors.As(err, &input) || !strings.Contains(err.Error(), "10.*") {
		t.Errorf("C19: an entry that is dead everywhere: %v", err)
	}
}

func TestSomebodyElsesFileInOurPlace(t *testing.T) {
	s := newSite(t)
	s.write(dropIns+"zz-proxyward.conf", "[Service]\nEnvironment=HTTP_PROXY=http://a:1\n")
	if c := only(t, s.run(), "PW102", Fail, "header", "move away"); c.Breaks != Now {
		t.Errorf("breaks %s", c.Breaks)
	}
}

func TestRestartsThatHurt(t *testing.T) {
	s := newSite(t)
	s.write("usr/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n")
	only(t, s.run(), "PW601", Warn, "kills every container", "drain")
}

func TestBootOrder(t *testing.T) {
	s := newSite(t)
	const starter = "etc/systemd/system/corp-proxy.service"
	s.write(starter, "[Unit]\nBefore=network.target\n[Service]\nExecStart=/usr/local/bin/proxyward-agent bootstrap --files --profile /etc/p.yaml\n")
	if c := only(t, s.run(), "PW604", Fail, "corp-proxy.service", "Before=containerd.service"); c.Breaks != AtRestart {
		t.Errorf("breaks %s", c.Breaks)
	}
	s.write(starter, "[Unit]\nBefore=containerd.service kubelet.service\n[Service]\nExecStart=/usr/local/bin/proxyward-agent bootstrap --files --profile /etc/p.yaml\n")
	only(t, s.run(), "PW604", Pass, "writes the files before it")
}

func TestPathThatCannotBeWritten(t *testing.T) {
	s := newSite(t)
	s.write("etc/proxyward", "a file where a directory belongs")
	only(t, s.run(), "PW501", Fail, "/etc/proxyward", "not a directory")
}
