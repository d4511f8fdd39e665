package v1alpha1

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func good(edit func(*ProxyProfileSpec)) *ProxyProfile {
	p := &ProxyProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "corp"},
		Spec:       ProxyProfileSpec{NodeSelector: &metav1.LabelSelector{}, Proxy: Proxy{HTTPS: "http://proxy:3128"}},
	}
	SetDefaults(p)
	edit(&p.Spec)
	return p
}

// The corpus in internal/crdgen holds Validate to the API server; here its words are looked at.
func TestC03_C18_C41_C57_ValidateSaysWhatToWrite(t *testing.T) {
	zero := intstr.FromInt32(0)
	for want, edit := range map[string]func(*ProxyProfileSpec){
		"": func(*ProxyProfileSpec) {},
		`spec.proxy.https: found "http://***@proxy:3128": it holds credentials; create the Secret`: func(s *ProxyProfileSpec) { s.Proxy.HTTPS = "http://svc:planted@proxy:3128" },
		`spec.noProxy.entries[0].value: found "*": a wildcard sends everything past the proxy`:     func(s *ProxyProfileSpec) { s.NoProxy.Entries = []NoProxyRequest{{Value: "*"}} },
		`spec.noProxy.entries[0].reason: found "a\rb": it holds a control character`:               func(s *ProxyProfileSpec) { s.NoProxy.Entries = []NoProxyRequest{{Value: "x", Reason: "a\rb"}} },
		`spec.rollout.maxUnavailable: found "0": it lets no node be changed`:                       func(s *ProxyProfileSpec) { s.Rollout.MaxUnavailable = &zero },
		`spec.nodeSelector.matchLabels["a\n"]: found "a\n": it holds a control character`:          func(s *ProxyProfileSpec) { s.NodeSelector.MatchLabels = map[string]string{"a\n": "b"} },
		`spec.nodeSelector: it is required; write the labels of the nodes`:                         func(s *ProxyProfileSpec) { s.NodeSelector = nil },
	} {
		errs := Validate(good(edit))
		if want == "" && errs.Err() != nil || want != "" && (errs.Err() == nil || !strings.Contains(errs.Error(), want)) {
			t.Errorf("got %v, want %s", errs.Err(), want)
		}
		if strings.Contains(errs.Error(), "planted") {
			t.Errorf("the password is shown: %v", errs)
		}
	}
}

func TestMaskURL(t *testing.T) {
	for raw, want := range map[string]string{
		"http://proxy:3128":               "http://proxy:3128",
		"http://u:p@proxy:3128/":          "http://***@proxy:3128/",
		"http://user@dom:Pa@1@proxy:8080": "http://***@proxy:8080",
		"http://u:p#w@host":               "http://***@host",
		"http://u:secret":                 "http://u:***",
		"u:p://x@host:1":                  "***@host:1",
		"socks5://[fd00::1]:1080":         "socks5://[fd00::1]:1080",
		"fd00::1":                         "fd00::1",
		"https://r/v2/app@sha256:0123":    "https://r/v2/app@sha256:0123",
		"http://u:p@r/v2/app@sha256:0123": "http://***@r/v2/app@sha256:0123",
		"":                                "",
	} {
		if got := MaskURL(raw); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}
