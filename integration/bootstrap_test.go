//go:build linux

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/integration/program"
)

const (
	dropIn  = "/etc/systemd/system/containerd.service.d/zz-proxyward.conf"
	envFile = "/etc/proxyward/env/containerd.service.env"
)

func TestBootstrapProvesANodeAndRemoveCleansIt(t *testing.T) {
	s := startSite(t)
	before := s.environ(t)

	out := s.bootstrap(t, s.profile, 0)
	if out.Outcome != apply.Done || !slices.Equal(out.Restarted, []string{containerd}) {
		t.Errorf("outcome %s, restarted %q", out.Outcome, out.Restarted)
	}
	if e := evidence(t, out, v1alpha1.CanaryInternal); e.Verdict != v1alpha1.VerdictVerified || e.Route != v1alpha1.RouteDirect {
		t.Errorf("internal: %+v", e)
	}
	if e := evidence(t, out, v1alpha1.CanaryExternal); e.Verdict != v1alpha1.VerdictVerified || e.Route != v1alpha1.RouteProxy || e.Bytes < lab.CanarySize {
		t.Errorf("external: %+v", e)
	}
	if got := s.environ(t)["HTTPS_PROXY"]; got != s.profile.Proxy {
		t.Errorf("HTTPS_PROXY=%q", got)
	}

	t.Run("C27 unchanged restarts nothing and proves again", func(t *testing.T) {
		invocation := s.invocation(t)
		out := s.bootstrap(t, s.profile, 0)
		if out.Outcome != apply.Unchanged || len(out.Actions) > 0 || s.invocation(t) != invocation {
			t.Errorf("outcome %s, actions %v", out.Outcome, out.Actions)
		}
		if e := evidence(t, out, v1alpha1.CanaryExternal); e.Verdict != v1alpha1.VerdictVerified {
			t.Errorf("external: %+v", e)
		}
		s.run(t, 0, append([]string{program.Agent, "diff"}, s.profile.Flags()...)...)
	})
	t.Run("remove", func(t *testing.T) {
		out, err := program.Report(t.Context(), s.node, "remove")
		checked(t, out, err, 0)
		if got := s.files(t); got != "" {
			t.Errorf("left on the node:\n%s", got)
		}
		if got := s.environ(t); len(got) != len(before) || got["HTTPS_PROXY"] != "" {
			t.Errorf("the daemon's environment is %v, was %v", got, before)
		}
		again, err := program.Report(t.Context(), s.node, "remove")
		if checked(t, again, err, 0); again.Outcome != apply.Unchanged {
			t.Errorf("a second remove: %s", again.Outcome)
		}
	})
}

// The real daemon gets each credential encoded once, byte for byte; no output shows it.
func TestC01_C02_C04_C54_CredentialsReachTheDaemonAndNothingElse(t *testing.T) {
	s := startSite(t)
	tests := []struct{ name, username, password, encoded string }{
		{"C1", "svc", "p@ss:w/rd%40#", "svc:p%40ss%3Aw%2Frd%2540%23"},
		{"C2", "svc", `a"b\c$d é'` + "`" + `"`, "svc:a%22b%5Cc%24d%20%C3%A9%27%60%22"},
		{"C4", `CORP\svc`, "plain-Secret", `CORP%5Csvc:plain-Secret`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := s.profile
			p.Username, p.Password = tt.username, tt.password
			// The open proxy takes any credentials, so that these reach the daemon.
			out := s.bootstrap(t, p, 0)
			want := strings.Replace(p.Proxy, "://", "://"+tt.encoded+"@", 1)
			env := s.environ(t)
			for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
				if env[name] != want {
					t.Errorf("%s=%q, want %q", name, env[name], want)
				}
			}
			shown := out.Stderr + fmt.Sprintf("%+v", out.Report)
			for _, args := range [][]string{
				append([]string{program.CLI, "render"}, p.Flags()...),
				append([]string{program.CLI, "diff"}, p.Flags()...),
				append([]string{program.CLI, "-o", "json", "bootstrap"}, p.Flags()...),
				{"systemctl", "show", containerd},
				{"systemctl", "cat", containerd},
				{"cat", "/var/lib/proxyward/journal", "/var/lib/proxyward/history", dropIn},
			} {
				shown += string(s.run(t, 0, args...).Stdout)
			}
			_, encoded, _ := strings.Cut(tt.encoded, ":")
			for _, secret := range []string{tt.password, encoded} {
				if strings.Contains(shown, secret) {
					t.Errorf("a password is shown: %s", shown)
				}
			}
		})
	}
}

func TestC01_BasicAuthOpensARealProxy(t *testing.T) {
	s := startSite(t)
	p := s.profile
	proxy := s.Proxy(lab.Auth)
	p.Proxy, p.Username, p.Password = proxy.URL(), proxy.User, proxy.Password
	if e := evidence(t, s.bootstrap(t, p, 0), v1alpha1.CanaryExternal); e.Verdict != v1alpha1.VerdictVerified || e.Route != v1alpha1.RouteProxy {
		t.Errorf("external: %+v", e)
	}

	invocation, files := s.invocation(t), s.files(t)
	p.Password = "wrong"
	out := s.bootstrap(t, p, 1)
	if out.Outcome != apply.ProbeFailed || !strings.Contains(out.Error, "407") {
		t.Errorf("outcome %s: %s", out.Outcome, out.Error)
	}
	if s.invocation(t) != invocation || s.files(t) != files {
		t.Error("a refused change touched the node")
	}
}

func TestC05_ManyEntriesAreLoadedWhole(t *testing.T) {
	s := startSite(t)
	p := s.profile
	p.Entries = nil
	for i := range 1999 {
		p.Entries = append(p.Entries, fmt.Sprintf("host-%04d.a-rather-long-department.corp.example", i))
	}
	p.Entries = append(p.Entries, "corp.example")
	s.bootstrap(t, p, 0)
	list := strings.Split(s.environ(t)["NO_PROXY"], ",")
	for _, e := range p.Entries {
		if !slices.Contains(list, e) {
			t.Fatalf("%q is not among the %d entries of the process", e, len(list))
		}
	}

	files := s.files(t)
	for i := range p.Entries[:1999] {
		p.Entries[i] = fmt.Sprintf("host-%04d.%s.corp.example", i, strings.Repeat("x", 60))
	}
	out := s.bootstrap(t, p, 2)
	if !strings.Contains(out.Stderr, "131071") || s.files(t) != files {
		t.Errorf("a list that no process can be started with: %s", out.Stderr)
	}
}

func TestC08_OtherSettingsLoseAndAreReported(t *testing.T) {
	s := startSite(t)
	s.write(t, "/etc/systemd/system.conf.d/proxy.conf", "[Manager]\nDefaultEnvironment=HTTPS_PROXY=http://manager.example:1 ALL_PROXY=socks5://kept.example:1\n")
	hand := "/etc/systemd/system/containerd.service.d/http-proxy.conf"
	s.write(t, hand, "[Service]\nEnvironment=\"HTTPS_PROXY=http://hand.example:1\" \"NO_PROXY=nothing.example\"\n")
	s.run(t, 0, "systemctl", "daemon-reload")
	s.run(t, 0, "systemctl", "restart", containerd)

	out := s.bootstrap(t, s.profile, 0)
	env := s.environ(t)
	if env["HTTPS_PROXY"] != s.profile.Proxy || strings.Contains(env["NO_PROXY"], "nothing.example") {
		t.Errorf("HTTPS_PROXY=%q NO_PROXY=%q", env["HTTPS_PROXY"], env["NO_PROXY"])
	}
	if got := findings(out)[v1alpha1.ReasonShadowed]; !slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, hand) }) {
		t.Errorf("findings: %v", findings(out))
	}
}

func TestC12_WhatStandsInTheWayIsRefused(t *testing.T) {
	s := startSite(t)
	unitDir := "/etc/systemd/system/containerd.service.d"
	tests := []struct{ name, prepare, undo string }{
		{"a file where the directory belongs", "echo mine > " + unitDir, "rm -f " + unitDir},
		{"a symbolic link in place of our file", "mkdir -p " + unitDir + " && ln -s /etc/hostname " + dropIn, "rm -f " + dropIn},
		{"somebody else's file of that name", "mkdir -p " + unitDir + " && echo '[Service]' > " + dropIn, "rm -f " + dropIn},
		{"a read-only directory", "mkdir -p " + unitDir + " && mount --bind " + unitDir + " " + unitDir + " && mount -o remount,bind,ro " + unitDir, "umount " + unitDir},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.run(t, 0, "sh", "-c", tt.prepare)
			invocation, hostname := s.invocation(t), s.run(t, 0, "cat", "/etc/hostname").Stdout
			out := s.bootstrap(t, s.profile, 1)
			if said := out.Error + out.Stderr; !strings.Contains(said, unitDir) {
				t.Errorf("the path is not named: %s", said)
			}
			if s.invocation(t) != invocation || string(s.run(t, 0, "cat", "/etc/hostname").Stdout) != string(hostname) {
				t.Error("something was followed or restarted")
			}
			s.run(t, 0, "sh", "-c", "! test -e "+envFile)
			s.run(t, 0, "sh", "-c", tt.undo)
		})
	}
	t.Run("a missing directory is made", func(t *testing.T) {
		s.run(t, 0, "rm", "-rf", unitDir)
		s.bootstrap(t, s.profile, 0)
		if mode := strings.TrimSpace(string(s.run(t, 0, "stat", "-c", "%a", unitDir).Stdout)); mode != "755" {
			t.Errorf("mode %s", mode)
		}
	})
}

func TestC13_C28_DriftIsFoundAndMended(t *testing.T) {
	s := startSite(t)
	s.bootstrap(t, s.profile, 0)

	t.Run("C13 mode", func(t *testing.T) {
		invocation := s.invocation(t)
		s.run(t, 0, "chmod", "0644", envFile)
		said := string(s.run(t, 3, append([]string{program.Agent, "diff"}, s.profile.Flags()...)...).Stdout)
		if !strings.Contains(said, envFile) || !strings.Contains(said, "0644 instead of 0600") {
			t.Errorf("diff: %s", said)
		}
		s.bootstrap(t, s.profile, 0)
		if mode := strings.TrimSpace(string(s.run(t, 0, "stat", "-c", "%a", envFile).Stdout)); mode != "600" || s.invocation(t) != invocation {
			t.Errorf("mode %s; a repair of a file must restart nothing", mode)
		}
	})
	t.Run("C28 a daemon from before the file", func(t *testing.T) {
		p := s.profile
		p.Entries = append(slices.Clone(p.Entries), "later.example")
		invocation := s.invocation(t)
		out := s.bootstrap(t, p, 0, "--files")
		if s.invocation(t) != invocation {
			t.Error("--files restarted the daemon")
		}
		if len(findings(out)[v1alpha1.ReasonRestartNeeded]) == 0 {
			t.Errorf("findings: %v", findings(out))
		}
		out = s.bootstrap(t, p, 0, "--prove")
		if !slices.Equal(out.Restarted, []string{containerd}) || !strings.Contains(s.environ(t)["NO_PROXY"], "later.example") {
			t.Errorf("restarted %q", out.Restarted)
		}
	})
}

func TestC29_AStoppedUnitStaysStopped(t *testing.T) {
	s := startSite(t)
	s.run(t, 0, "systemctl", "stop", containerd)
	out := s.bootstrap(t, s.profile, 5)
	if state := s.show(t, "ActiveState"); state != "inactive" {
		t.Errorf("the unit is %s", state)
	}
	said := fmt.Sprintf("%+v", out.Report)
	if !strings.Contains(said, "stopped and stays so") && !strings.Contains(said, "does not run") {
		t.Errorf("it is not said: %s", said)
	}
	s.run(t, 0, "systemctl", "start", containerd)
	if got := s.environ(t)["HTTPS_PROXY"]; got != s.profile.Proxy {
		t.Errorf("started by hand it has HTTPS_PROXY=%q", got)
	}
}

func TestC31_AProxyThatDoesNotWork(t *testing.T) {
	s := startSite(t)
	s.bootstrap(t, s.profile, 0)

	t.Run("dead when asked first: nothing changes", func(t *testing.T) {
		invocation, files := s.invocation(t), s.files(t)
		p := s.profile
		p.Proxy = "http://proxy.corp.example:9"
		out := s.bootstrap(t, p, 1)
		if out.Outcome != apply.ProbeFailed || len(out.Restarted) > 0 {
			t.Errorf("outcome %s: %s", out.Outcome, out.Error)
		}
		if s.invocation(t) != invocation || s.files(t) != files {
			t.Error("the node was touched")
		}
	})
	t.Run("serving this program and not the daemon: undone and proven again", func(t *testing.T) {
		invocation, files := s.invocation(t), s.files(t)
		broken, err := s.FaultProxy(t.Context(), lab.FaultAgentOnly, lab.FaultOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := s.profile
		p.Proxy = broken.URL()
		out := s.bootstrap(t, p, 1)
		if out.Outcome != apply.RolledBack || out.Error == "" {
			t.Errorf("outcome %s: %s", out.Outcome, out.Error)
		}
		if s.invocation(t) == invocation {
			t.Error("the daemon was never restarted")
		}
		if s.files(t) != files || s.environ(t)["HTTPS_PROXY"] != s.profile.Proxy {
			t.Error("the previous state is not back")
		}
		if !slices.ContainsFunc(out.Again, func(e v1alpha1.CanaryEvidence) bool {
			return e.Role == v1alpha1.CanaryExternal && e.Verdict == v1alpha1.VerdictVerified
		}) {
			t.Errorf("it was not proven again: %+v", out.Again)
		}
	})
}

// The first bootstrap of a node has no working baseline: failing before and after must not pass
// for the same failure.
func TestC31_TheFirstChangeIsUndoneToo(t *testing.T) {
	s := startSite(t)
	broken, err := s.FaultProxy(t.Context(), lab.FaultAgentOnly, lab.FaultOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := s.profile
	p.Proxy = broken.URL()
	out := s.bootstrap(t, p, 1)
	if out.Outcome != apply.RolledBack {
		t.Errorf("outcome %s: %s", out.Outcome, out.Error)
	}
	if got := s.files(t); got != "" || s.environ(t)["HTTPS_PROXY"] != "" {
		t.Errorf("left on the node:\n%s", got)
	}
}

func TestBadInputChangesNothing(t *testing.T) {
	s := startSite(t)
	tests := []struct {
		name, yaml, want string
	}{
		{"C3 credentials in the URL", strings.Replace(s.profile.YAML(), "http://proxy", "http://svc:hunter2@proxy", 1), "spec.proxy.http"},
		{"C18 a star", strings.Replace(s.profile.YAML(), `"corp.example"`, `"*"`, 1), "spec.noProxy.entries[0].value"},
		{"an unknown field", s.profile.YAML() + "  proxies: {}\n", "proxies"},
		{"C22 no service network", strings.Replace(s.profile.YAML(), "    serviceCIDRs: [10.96.0.0/16]\n", "", 1), "serviceCIDRs"},
		{"C57 a control character", strings.Replace(s.profile.YAML(), "reason: test", `reason: "a\rExecStartPre=/bin/false"`, 1), "reason"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.write(t, program.ProfilePath, tt.yaml)
			result := s.run(t, 2, program.Agent, "bootstrap", "--profile", program.ProfilePath)
			if said := string(result.Stderr); !strings.Contains(said, tt.want) || strings.Contains(said, "hunter2") {
				t.Errorf("said: %s", said)
			}
			if got := s.files(t); got != "" {
				t.Errorf("written:\n%s", got)
			}
		})
	}
}
