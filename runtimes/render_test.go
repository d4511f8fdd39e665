package runtimes_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/internal/unitfile"
	"github.com/proxyward/proxyward/runtimes"
)

var update = flag.Bool("update", false, "write the golden files anew")

const planted = "p%40ss%3Aw%2Frd%2540%23"

// environment is one that holds everything that a drop-in can show.
func environment() proxyenv.Environment {
	proxy := proxyenv.NewSecret("http://svc:"+planted+"@proxy.corp.example:3128", "http://***@proxy.corp.example:3128")
	noProxy := proxyenv.PlainSecret("10.20.0.0/16,corp.example,localhost,registry.corp.example:5000")
	return proxyenv.Environment{
		Vars: []proxyenv.Var{
			{Name: "HTTPS_PROXY", Value: proxy}, {Name: "NO_PROXY", Value: noProxy},
			{Name: "https_proxy", Value: proxy}, {Name: "no_proxy", Value: noProxy},
		},
		Unset: []string{"HTTP_PROXY", "http_proxy"},
		Entries: []v1alpha1.NoProxyEntry{
			{Value: "10.20.0.0/16", Source: v1alpha1.SourceProfile, Reason: "data centre LAN"},
			{Value: "corp.example", Source: v1alpha1.SourceProfile, Reason: `names of CORP\`},
			{Value: "localhost", Source: v1alpha1.SourceLoopback},
			{Value: "registry.corp.example:5000", Source: v1alpha1.SourceRegistry, Reason: "internal registry"},
		},
	}
}

func input() runtimes.RenderInput {
	return runtimes.RenderInput{
		Profile: "corp", Revision: "corp-4f1c9a2b7d3e", Target: v1alpha1.TargetContainerd,
		Unit: "containerd.service", Environment: environment(),
	}
}

func withCA(in runtimes.RenderInput, text []byte) runtimes.RenderInput {
	sum := sha256.Sum256(text)
	in.CA = text
	in.Environment.Vars = append([]proxyenv.Var{in.Environment.Vars[0], in.Environment.Vars[1],
		{Name: "SSL_CERT_DIR", Value: proxyenv.PlainSecret(proxyenv.CertDirs(hex.EncodeToString(sum[:])))}}, in.Environment.Vars[2:]...)
	return in
}

func TestRenderGolden(t *testing.T) {
	prefixed := input()
	prefixed.Target, prefixed.Unit, prefixed.Prefix = v1alpha1.TargetK3s, "k3s.service", "CONTAINERD_"
	prefixed.Environment.NodeDigest = "9d1f"
	ca, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]runtimes.RenderInput{
		"containerd": input(),
		"k3s":        prefixed,
		"ca":         withCA(input(), ca),
		"unset":      {Profile: "corp", Revision: "corp-0", Unit: "docker.service", Environment: proxyenv.Environment{Unset: proxyenv.OwnedVariables()}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runtimes.Render(in)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, f := range out.Files {
				if !runtimes.Owned(f.Content) {
					t.Errorf("%s does not bear the header", f.Path)
				}
				fmt.Fprintf(&b, "=== %s %04o\n%s--- masked\n%s", f.Path, f.Mode, f.Content, f.Masked)
			}
			golden(t, filepath.Join("testdata", "golden", name+".txt"), b.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew); got:\n%s", path, got)
	}
}

func TestC06_SameInputSameBytes(t *testing.T) {
	first, err := runtimes.Render(input())
	if err != nil {
		t.Fatal(err)
	}
	second, err := runtimes.Render(input())
	if err != nil {
		t.Fatal(err)
	}
	for i := range first.Files {
		if !bytes.Equal(first.Files[i].Content, second.Files[i].Content) {
			t.Errorf("%s differs", first.Files[i].Path)
		}
	}
}

// TestC01_C02_C04_RenderedBytesReachTheUnit reads what is rendered back as systemd does.
func TestC01_C02_C04_C07_RenderedBytesReachTheUnit(t *testing.T) {
	for _, value := range []string{
		"http://svc:" + planted + "@proxy:3128", `http://a"b\c$d'e:x"@proxy:1`, "http://gr\u00f6\u00dfe:x@proxy:1", `CORP\svc`, `trailing"`,
	} {
		in := input()
		in.Environment.Vars = []proxyenv.Var{{Name: "HTTPS_PROXY", Value: proxyenv.NewSecret(value, "")}}
		env := effective(t, in, unitfile.Source{Path: "/etc/systemd/system/containerd.service.d/http-proxy.conf",
			Content: []byte("[Service]\nEnvironment=HTTP_PROXY=http://old:1 https_proxy=http://old:2 HTTPS_PROXY=http://old:3\n")})
		if got, _ := env.Lookup("HTTPS_PROXY"); got.Value != value {
			t.Errorf("got %q, want %q", got.Value, value)
		}
		for _, name := range in.Environment.Unset {
			if got, found := env.Lookup(name); found {
				t.Errorf("%s is left with %q", name, got.Value)
			}
		}
	}
}

// effective says what a unit gets from its rendered files beside others.
func effective(t *testing.T, in runtimes.RenderInput, others ...unitfile.Source) unitfile.Environment {
	t.Helper()
	out, err := runtimes.Render(in)
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string][]byte{}
	for _, f := range out.Files {
		byPath[f.Path] = f.Content
	}
	dropIn := runtimes.DropInPath(in.Unit)
	env := unitfile.Effective(unitfile.Input{
		Unit:  in.Unit,
		Files: append(others, unitfile.Source{Path: dropIn, Content: byPath[dropIn]}),
		Read:  func(path string) ([]byte, error) { return byPath[path], nil },
	})
	if len(env.Notes) != 0 {
		t.Errorf("systemd would say %v", env.Notes)
	}
	return env
}

func TestC08_OursHoldBesideOthers(t *testing.T) {
	env := effective(t, input(), unitfile.Source{Path: "/run/systemd/system/containerd.service.d/50-proxy.conf",
		Content: []byte("[Service]\nEnvironment=NO_PROXY=x\n")})
	got, _ := env.Lookup("NO_PROXY")
	if got.Path != runtimes.EnvPath("containerd.service") || len(got.Loses) != 1 || got.Loses[0].Line != 2 {
		t.Errorf("got %+v, want ours, and the other one named as losing", got)
	}
}

func TestC56_PrefixedVariablesHideWhatTheUnitHas(t *testing.T) {
	in := input()
	in.Prefix, in.Unit = "CONTAINERD_", "k3s.service"
	env := effective(t, in)
	if got, found := env.Lookup("CONTAINERD_HTTP_PROXY"); !found || got.Value != "" {
		t.Errorf("CONTAINERD_HTTP_PROXY is %q (%v), want it set and empty", got.Value, found)
	}
	if got, _ := env.Lookup("CONTAINERD_HTTPS_PROXY"); !strings.Contains(got.Value, planted) {
		t.Errorf("CONTAINERD_HTTPS_PROXY is %q", got.Value)
	}
	if _, found := env.Lookup("HTTPS_PROXY"); found {
		t.Error("HTTPS_PROXY reaches the kubelet as well")
	}
}

func TestC54_SecretsStandInTheEnvironmentFileAlone(t *testing.T) {
	out, err := runtimes.Render(input())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range out.Files {
		if bytes.Contains(f.Masked, []byte(planted)) {
			t.Errorf("the masked %s holds the password", f.Path)
		}
		if secret := bytes.Contains(f.Content, []byte(planted)); secret != (f.Mode == 0o600) {
			t.Errorf("%s has mode %04o and holds the password: %v", f.Path, f.Mode, secret)
		}
	}
}

func TestC57_RenderRefusesControlCharacters(t *testing.T) {
	for _, bad := range []string{"a\rExecStartPre=/bin/true", "a\nb", "\x1b[2J", "a\x00", "\u0085", "\u2028", "\xff"} {
		for name, change := range map[string]func(*runtimes.RenderInput){
			"reason":   func(in *runtimes.RenderInput) { in.Environment.Entries[0].Reason = bad },
			"entry":    func(in *runtimes.RenderInput) { in.Environment.Entries[0].Value = bad },
			"profile":  func(in *runtimes.RenderInput) { in.Profile = bad },
			"revision": func(in *runtimes.RenderInput) { in.Revision = bad },
			"unit":     func(in *runtimes.RenderInput) { in.Unit = bad + ".service" },
			"node":     func(in *runtimes.RenderInput) { in.Environment.NodeDigest = bad },
			"value":    func(in *runtimes.RenderInput) { in.Environment.Vars[0].Value = proxyenv.PlainSecret(bad) },
			"masked":   func(in *runtimes.RenderInput) { in.Environment.Vars[0].Value = proxyenv.NewSecret("x", bad) },
			"unset":    func(in *runtimes.RenderInput) { in.Environment.Unset[0] = bad },
		} {
			in := input()
			change(&in)
			out, err := runtimes.Render(in)
			if err == nil || len(out.Files) != 0 {
				t.Errorf("%s %q is rendered", name, bad)
			} else if strings.ContainsAny(err.Error(), "\r\n\x1b\x00\u0085\u2028") {
				t.Errorf("%s %q: the error %q holds it raw", name, bad, err)
			}
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		change     func(*runtimes.RenderInput)
	}{
		{"a comment that ends in a backslash", "ends in a backslash", func(in *runtimes.RenderInput) { in.Profile = `corp\` }},
		{"a path as unit", "not the name of a service", func(in *runtimes.RenderInput) { in.Unit = "../x.service" }},
		{"a unit without suffix", "not the name of a service", func(in *runtimes.RenderInput) { in.Unit = "containerd" }},
		{"a template", "not the name of a service", func(in *runtimes.RenderInput) { in.Unit = "x@.service" }},
		{"an entry with a comma", "holds a space or a comma", func(in *runtimes.RenderInput) { in.Environment.Entries[0].Value = "a,b" }},
		{"a value beyond the kernel's limit", "131073 bytes", func(in *runtimes.RenderInput) {
			in.Environment.Vars[0] = proxyenv.Var{Name: "A", Value: proxyenv.PlainSecret(strings.Repeat("x", 131071))}
		}},
	} {
		in := input()
		tc.change(&in)
		if _, err := runtimes.Render(in); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestTrustedCAIsCertificatesAlone(t *testing.T) {
	cert, key := newCA(t)
	broken := bytes.Replace(cert, []byte("M"), []byte("!"), 1)
	for _, tc := range []struct {
		name string
		text []byte
		want string
	}{
		{"two with text between", join(cert, []byte("# Corp root\nCorp\n====\n"), cert), ""},
		{"Windows line ends", bytes.ReplaceAll(cert, []byte("\n"), []byte("\r\n")), ""},
		{"private key", join(cert, key), "its block 2 is a private key"},
		{"other block", join(cert, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: []byte("x")})), `of type "X509 CRL"`},
		{"no certificate in the block", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), "as a certificate"},
		{"broken block", join(cert, broken), "2 beginnings and 2 ends"},
		{"cut short", cert[:len(cert)-30], "1 beginnings and 0 ends"},
		{"DER", []byte{0x30, 0x82, 0xff, 0xfe}, "it is not text"},
		{"nothing", []byte{}, "no certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := runtimes.Render(withCA(input(), tc.text))
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("got %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			pool := x509.NewCertPool()
			if f := out.Files[0]; !pool.AppendCertsFromPEM(f.Content) || f.Mode != 0o644 || !strings.HasPrefix(f.Path, runtimes.CADir+"/") {
				t.Errorf("got %s %04o:\n%s", f.Path, f.Mode, f.Content)
			}
		})
	}
}

func TestTrustedCAMustBeTheOneNamed(t *testing.T) {
	cert, _ := newCA(t)
	other := withCA(input(), cert)
	other.CA = join(cert, cert)
	if _, err := runtimes.Render(other); err == nil || !strings.Contains(err.Error(), "does not name it") {
		t.Errorf("another CA: %v", err)
	}
	other.CA = nil
	if _, err := runtimes.Render(other); err == nil || !strings.Contains(err.Error(), "none was given") {
		t.Errorf("no CA: %v", err)
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func newCA(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Corp root"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func BenchmarkRender2000Entries(b *testing.B) {
	in := input()
	in.Environment.Entries = nil
	var values []string
	for i := range 2000 {
		value := fmt.Sprintf("host-%04d.corp.example", i)
		values = append(values, value)
		in.Environment.Entries = append(in.Environment.Entries, v1alpha1.NoProxyEntry{Value: value, Source: v1alpha1.SourceProfile, Reason: "a reason of some length"})
	}
	in.Environment.Vars[1].Value = proxyenv.PlainSecret(strings.Join(values, ","))
	in.Environment.Vars[3].Value = in.Environment.Vars[1].Value
	b.ReportAllocs()
	for b.Loop() {
		if _, err := runtimes.Render(in); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResolveAndRender2000Entries is the whole way from a profile to the bytes of one unit.
// Budget: 5 ms.
func BenchmarkResolveAndRender2000Entries(b *testing.B) {
	profile := &v1alpha1.ProxyProfile{Spec: v1alpha1.ProxyProfileSpec{
		Proxy:      v1alpha1.Proxy{HTTP: "http://proxy.corp.example:3128", HTTPS: "http://proxy.corp.example:3128"},
		Cluster:    v1alpha1.ClusterFacts{ServiceCIDRs: []string{"10.96.0.0/16"}},
		Registries: v1alpha1.Registries{Internal: []string{"registry.corp.example:5000"}},
	}}
	profile.Name = "corp"
	for i := range 2000 {
		profile.Spec.NoProxy.Entries = append(profile.Spec.NoProxy.Entries, v1alpha1.NoProxyRequest{
			Value: fmt.Sprintf("host-%04d.corp.example", i), Reason: "a reason of some length",
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		revision, _, err := proxyenv.Resolve(proxyenv.Input{Profile: profile})
		if err != nil {
			b.Fatal(err)
		}
		env, err := proxyenv.ForNode(proxyenv.NodeInput{Revision: revision})
		if err != nil {
			b.Fatal(err)
		}
		in := runtimes.RenderInput{Profile: "corp", Revision: "corp-1", Target: v1alpha1.TargetContainerd, Unit: "containerd.service", Environment: env}
		if _, err := runtimes.Render(in); err != nil {
			b.Fatal(err)
		}
	}
}
