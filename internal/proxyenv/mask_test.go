package proxyenv

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestC73_MaskText(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "",
		"nothing to do":                        "nothing to do",
		"http://user@dom:Pa@1@proxy:8080":      "http://***@proxy:8080",
		"http://svc:p@ss:w/rd%40#@proxy:3128/": "http://***@proxy:3128/",
		"http://u:p#w@host":                    "http://***@host",
		`HTTPS_PROXY="http://u:p w@host:1" x`:  `HTTPS_PROXY="http://***@host:1" x`,
		`parse "http://u:p w\"q@host:1": invalid character " " in host name`: `parse "http://***@host:1": invalid character " " in host name`,
		"Environment=HTTP_PROXY=http://u:p w x@host:1 done":                  "Environment=HTTP_PROXY=http://***@host:1 done",
		"dial tcp: proxyconnect http://u:secret@h:1: refused":                "dial tcp: proxyconnect http://***@h:1: refused",
		"http://user: secret@h:1":                                            "http://***@h:1",
		"http://user:secret":                                                 "http://user:***",
		"HTTP_PROXY=svc:secret@proxy:3128":                                   "HTTP_PROXY=***@proxy:3128",
		"see http://proxy.corp:3128 and mail admin@corp.example":             "see http://proxy.corp:3128 and mail admin@corp.example",
		"https://registry/v2/app/manifests/latest":                           "https://registry/v2/app/manifests/latest",
		"pulling registry.corp:5000/app:1@sha256:abc from https://r.example": "pulling registry.corp:5000/app:1@sha256:abc from https://r.example",
		`{"http":"http://a:secret@h:1","https":"http://b:secret@h:2"}`:       `{"http":"http://***@h:1","https":"http://***@h:2"}`,
		"http://a:secret@h:1\nhttp://b:secret@h:2\n":                         "http://***@h:1\nhttp://***@h:2\n",
		"http://a.example,http://b.example":                                  "http://a.example,http://b.example",
		"http://a.example,http://u:secret@b.example":                         "http://***@b.example",
		"socks5://u:secret@[fd00::1]:1080":                                   "socks5://***@[fd00::1]:1080",
		"https://[fd00::1]:6443/healthz and fd00::1":                         "https://[fd00::1]:6443/healthz and fd00::1",
		"NO_PROXY=localhost,127.0.0.0/8,::1":                                 "NO_PROXY=localhost,127.0.0.0/8,::1",
	} {
		if got := MaskText(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func FuzzMaskText(f *testing.F) {
	for _, s := range []string{"Pa@1-secret", `p"a\s$sword`, "with space in it", "a/b?c#d:e@f", "http://nested@x", "naïve-pässword", "1234567/x", "'quo,ted'"} {
		f.Add("svc", s)
	}
	f.Fuzz(func(t *testing.T, user, password string) {
		if len(password) < 6 || strings.ContainsAny(user+password, "\n\r") || strings.Contains(user+" dial http://***@proxy.example:3128: refused HTTP_PROXY=***", password) {
			t.Skip("a password that is too short to find, that ends lines, or that stands in the text anyway")
		}
		raw := "http://" + user + ":" + password + "@proxy.example:3128"
		texts := []string{fmt.Sprintf("dial %q: refused", raw)}
		if !strings.ContainsAny(user+password, " \t") {
			texts = append(texts, raw, "HTTP_PROXY="+raw+" x", user+":"+password+"@proxy.example:3128")
		}
		for _, text := range texts {
			got := MaskText(text)
			quoted := strings.Trim(fmt.Sprintf("%q", password), `"`)
			if strings.Contains(got, password) || strings.Contains(got, quoted) {
				t.Errorf("%q masked as %q", text, got)
			}
			if again := MaskText(got); again != got {
				t.Errorf("masking twice: %q then %q", got, again)
			}
		}
	})
}

func TestC54_KnownCredentialsAreMaskedInEveryForm(t *testing.T) {
	const user, password = "svc", `p@ss "w/rd%é`
	c := NewCredentials(user, password)
	m := NewMasker(c, nil)
	basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	for _, text := range []string{
		"raw " + password, "encoded " + encodeUserinfo(password), "Proxy-Authorization: Basic " + basic,
		"base64 " + base64.RawURLEncoding.EncodeToString([]byte(password)),
	} {
		got := m.Mask(text)
		if !strings.HasSuffix(got, " "+Mask) {
			t.Errorf("%s: got %s", text, got)
		}
	}
	if got := NewMasker(NewCredentials("a", "abc")).Mask("abc"); got != "abc" {
		t.Errorf("a short password: %s", got)
	}
}

func TestC54_SecretsPrintMasked(t *testing.T) {
	c := NewCredentials("svc", "planted-password")
	s, err := withCredentials("http://proxy:3128", c)
	if err != nil {
		t.Fatal(err)
	}
	v := struct {
		C      *Credentials
		S      Secret
		M      map[string]Secret
		hidden Secret
	}{c, s, map[string]Secret{"x": s}, s}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "c", c, "s", s, "v", v)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "c", c, "s", s, "v", v)
	for _, text := range []string{string(raw), log.String(), fmt.Sprintf("%v %+v %#v %s %q %x %d", v, v, v, s, s, s, s), fmt.Sprint(*c), fmt.Errorf("x %v", s).Error()} {
		for _, form := range c.Forms() {
			if strings.Contains(text, form) {
				t.Errorf("%s is in %s", form, text)
			}
		}
		if strings.Contains(text, fmt.Sprintf("%x", "planted-password")) {
			t.Errorf("the password in hexadecimal is in %s", text)
		}
	}
}
