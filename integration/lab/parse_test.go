//go:build linux

package lab

import (
	"bytes"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMirrorInAptSources(t *testing.T) {
	const stanzas = `# A comment: with a colon
Types: deb
URIs: http://security.example/debian-security
Suites: stable-security
Components: main

Types: deb deb-src
URIs: http://mirror.example/debian http://other.example/debian
Suites: stable stable-updates
Components: main contrib
Signed-By: /usr/share/keyrings/archive.gpg
`
	const lines = `# deb http://commented.example/debian stable main
deb-src http://sources.example/debian stable main
deb [arch=amd64 signed-by=/k.gpg] http://vendor.example/apt stable vendor
deb [arch=amd64] http://mirror.example/debian stable main contrib
`
	for _, c := range []struct {
		name, text, codename, want string
		find                       func(string, string) string
	}{
		{"stanza", stanzas, "stable", "http://mirror.example/debian", mirrorInStanzas},
		{"stanza of another release", stanzas, "old", "", mirrorInStanzas},
		{"line", lines, "stable", "http://mirror.example/debian", mirrorInList},
		{"line of another release", lines, "old", "", mirrorInList},
	} {
		if got := c.find(c.text, c.codename); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestParseAccessLog(t *testing.T) {
	const text = "1764540000.250 10.66.1.20 CONNECT registry.external.example:443 200 1052345\n" +
		"1764540001.000 10.66.1.20 GET http://plain.example/ 407 512\n" +
		"1764540002.000 10.66.1.20 CONN"
	got, err := parseAccessLog(text)
	if err != nil {
		t.Fatal(err)
	}
	client := netip.MustParseAddr("10.66.1.20")
	want := []AccessEntry{
		{time.UnixMilli(1764540000250), client, "CONNECT", "registry.external.example:443", 200, 1052345},
		{time.UnixMilli(1764540001000), client, "GET", "http://plain.example/", 407, 512},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, bad := range []string{"1 2 3\n", "x 10.0.0.1 GET / 200 1\n", "1 x GET / 200 1\n", "1 10.0.0.1 GET / x 1\n", "1 10.0.0.1 GET / 200 x\n"} {
		if _, err := parseAccessLog(bad); err == nil {
			t.Errorf("%q was parsed", bad)
		}
	}
}

func TestProgressLinesSelectAndKeepTheEnd(t *testing.T) {
	var progress, tail bytes.Buffer
	w := progressLines(&progress, &tail)
	for _, chunk := range []string{"noise\nI: fir", "st\nSetting up x\n", strings.Repeat("z", 3000), "\nthe end\n"} {
		if n, err := w.Write([]byte(chunk)); err != nil || n != len(chunk) {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	if got, want := progress.String(), "lab:   I: first\nlab:   Setting up x\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := tail.String(); len(got) != 2000 || !strings.HasSuffix(got, "z\nthe end\n") {
		t.Errorf("kept %d bytes, ending in %q", len(got), got[max(0, len(got)-20):])
	}
}

func TestProcessIdentity(t *testing.T) {
	id, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !id.alive() {
		t.Error("this process is said to be dead")
	}
	reused := processID{PID: id.PID, Start: id.Start + 1}
	if reused.alive() {
		t.Error("a process with the same number and another start time is taken for this one")
	}
	if err := stopProcess(t.Context(), reused); err != nil {
		t.Error(err) // and this process is still here to say so
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]Config{
		"no name":          {},
		"bad name":         {Name: "a/b"},
		"bad node name":    {Name: "a", Nodes: []NodeSpec{{Name: "N_1"}}},
		"two of one name":  {Name: "a", Nodes: []NodeSpec{{Name: "n"}, {Name: "n"}}},
		"bad generation":   {Name: "a", Nodes: []NodeSpec{{Name: "n", Generation: "potato"}}},
		"relative folder":  {Name: "a", StateDir: "x"},
		"node name length": {Name: "a", Nodes: []NodeSpec{{Name: "a-very-long-name"}}},
	} {
		if err := c.complete(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	c := Config{Name: "a", Nodes: []NodeSpec{{Name: "n", Docker: true}}, Credentials: Credentials{ProxyUser: `CORP\svc`}}
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	if n := c.Nodes[0]; !n.Full || n.Generation != Trixie {
		t.Errorf("node %+v", n)
	}
	if c.Credentials.ProxyUser != `CORP\svc` || c.Credentials.ProxyPassword == "" {
		t.Errorf("credentials %+v", c.Credentials)
	}
}
