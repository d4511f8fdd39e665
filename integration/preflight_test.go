//go:build linux

package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/bootstrap/preflight"
	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/integration/program"
)

// preflightRun is one run of preflight on the node.
type preflightRun struct {
	preflight.Report
	code   int
	stderr string
	took   time.Duration
}

// preflight runs the verb with a profile, and holds each run to its promise: neither the node's
// files nor its units change.
func (s *site) preflight(t *testing.T, p program.Profile, code int) preflightRun {
	t.Helper()
	if err := p.Give(t.Context(), s.node); err != nil {
		t.Fatal(err)
	}
	before := s.everything(t)
	began := time.Now()
	result, err := s.node.Exec(t.Context(), slices.Concat([]string{program.Agent, "-o", "json", "preflight"}, p.Flags())...)
	if err != nil {
		t.Fatal(err)
	}
	run := preflightRun{code: result.ExitCode, stderr: string(result.Stderr), took: time.Since(began)}
	if after := s.everything(t); after != before {
		t.Errorf("preflight changed the node\nbefore:\n%s\nafter:\n%s", before, after)
	}
	if err := json.Unmarshal(result.Stdout, &run.Report); err != nil {
		t.Fatalf("reading the report: %v: %s%s", err, result.Stdout, result.Stderr)
	}
	if p.Password != "" && strings.Contains(string(result.Stdout)+run.stderr, p.Password) {
		t.Error("the output holds the password")
	}
	if run.code != code {
		t.Errorf("exit code %d, want %d: %s", run.code, code, run.open())
	}
	t.Logf("%s in %s, %d checks", run.Outcome, run.took.Round(time.Millisecond), len(run.Checks))
	return run
}

// everything that a check could change by mistake: files with mode, time and digest, and how each
// unit stands.
func (s *site) everything(t *testing.T) string {
	t.Helper()
	const script = `find /etc /usr/lib/systemd /var/lib/proxyward /run/systemd/system -xdev -printf '%p %M %u %s %T@ %l\n' 2>/dev/null | sort | sha256sum
find /etc /var/lib/proxyward -xdev -type f -print0 2>/dev/null | sort -z | xargs -0r sha256sum | sha256sum
ls /var/lib/proxyward 2>/dev/null
systemctl show '*.service' -p Id -p LoadState -p ActiveState -p MainPID -p InvocationID -p NRestarts -p NeedDaemonReload -p DropInPaths | grep -v -e '^Id=systemd-' | sha256sum
systemctl show containerd.service -p ActiveState -p MainPID -p InvocationID -p NRestarts -p NeedDaemonReload -p DropInPaths
ctr -n k8s.io images list -q | sort`
	return string(s.run(t, 0, "sh", "-c", script).Stdout)
}

// open lists what did not pass.
func (r preflightRun) open() string {
	var out []string
	for _, c := range r.Checks {
		if c.Verdict != preflight.Pass {
			out = append(out, fmt.Sprintf("%s %s %s %q", c.ID, c.Verdict, c.Breaks, c.Seen))
		}
	}
	return strings.Join(out, "\n")
}

func (r preflightRun) expect(t *testing.T, id string, verdict preflight.Verdict, says ...string) {
	t.Helper()
	found := false
	for _, c := range r.Checks {
		if c.ID != id {
			continue
		}
		found = true
		text := strings.Join(append(slices.Clone(c.Seen), c.Fix), "\n")
		if c.Verdict != verdict {
			t.Errorf("%s: %s, want %s: %s", id, c.Verdict, verdict, text)
		}
		for _, s := range says {
			if !strings.Contains(text, s) {
				t.Errorf("%s does not say %q: %s", id, s, text)
			}
		}
	}
	if !found {
		t.Errorf("%s was not made", id)
	}
}

func TestPreflightOnANode(t *testing.T) {
	s := startSite(t)

	t.Run("a change would be seen", func(t *testing.T) {
		before := s.everything(t)
		s.run(t, 0, "touch", "/etc/proxyward-was-here")
		if s.everything(t) == before {
			t.Error("a new file was not seen")
		}
		s.run(t, 0, "rm", "/etc/proxyward-was-here")
		before = s.everything(t)
		s.run(t, 0, "systemctl", "restart", containerd)
		if s.everything(t) == before {
			t.Error("a restart was not seen")
		}
	})

	t.Run("ready", func(t *testing.T) {
		run := s.preflight(t, s.profile, 0)
		run.expect(t, "PW102", preflight.Warn, "not there yet")
		run.expect(t, "PW103", preflight.Pass)
		run.expect(t, "PW303", preflight.Pass, "lets this node through")
		run.expect(t, "PW401", preflight.Pass, "a layer arrived")
		run.expect(t, "PW402", preflight.Pass, "a layer arrived")
		if run.took > 5*time.Second {
			t.Errorf("it took %s", run.took)
		}
	})

	t.Run("C48", s.toldApart)

	t.Run("C49 interception", func(t *testing.T) {
		broken, err := s.FaultProxy(t.Context(), lab.FaultIntercept, lab.FaultOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := s.profile
		p.Proxy = broken.URL()
		s.preflight(t, p, 3).expect(t, "PW304", preflight.Fail, "Corporate interception CA", "trustedCA")
	})

	for _, name := range []string{lab.Redirect, lab.Token} {
		t.Run("C17 C50 "+name, func(t *testing.T) {
			p := s.profile
			p.Internal = s.canary(t, name)
			p.Registries = append(slices.Clone(p.Registries), s.Registry(name).Host)
			run := s.preflight(t, p, 0)
			want := map[string]string{lab.Redirect: "https://blobs.corp.example", lab.Token: "https://auth.corp.example"}[name]
			if !slices.ContainsFunc(run.Decisions, func(d preflight.Decision) bool { return strings.HasPrefix(d.URL, want) }) {
				t.Errorf("%s is not in the decision table: %+v", want, run.Decisions)
			}
		})
	}

	// From here on the node has the profile.
	t.Run("bootstrapped", func(t *testing.T) {
		s.bootstrap(t, s.profile, 0)
		run := s.preflight(t, s.profile, 0)
		run.expect(t, "PW102", preflight.Pass)
		run.expect(t, "PW104", preflight.Pass, "exactly the profile's environment")
		run.expect(t, "PW106", preflight.Pass)
		for _, v := range run.Environment[0].Variables {
			if v.Running == nil || v.NextStart == nil || *v.Running != *v.NextStart {
				t.Errorf("%+v", v)
			}
		}
	})

	t.Run("C09 broken by the next restart", func(t *testing.T) {
		const dropIn, env = "/etc/systemd/system/containerd.service.d/zzz-theirs.conf", "/etc/theirs.env"
		for path, content := range map[string]string{dropIn: "[Service]\nEnvironmentFile=/etc/theirs.env\n", env: "NO_PROXY=theirs.example\n"} {
			if err := s.node.WriteFile(t.Context(), path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s.preflight(t, s.profile, 4).expect(t, "PW106", preflight.Fail, env)
		s.run(t, 0, "rm", dropIn, env)
	})

	t.Run("C68 C75 files of others", func(t *testing.T) {
		const shadowed, misplaced = "/etc/systemd/system/containerd.service.d/http-proxy.conf", "/etc/systemd/system/containerd.service/http-proxy.conf"
		for _, path := range []string{shadowed, misplaced} {
			content := "[Service]\nEnvironment=HTTP_PROXY=http://u:hidden1@proxy:3128\n"
			if path == misplaced {
				s.run(t, 0, "mkdir", "-p", "/etc/systemd/system/containerd.service")
			}
			if err := s.node.WriteFile(t.Context(), path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s.run(t, 0, "systemctl", "daemon-reload")
		s.preflight(t, s.profile, 0).expect(t, "PW107", preflight.Warn, shadowed, "mode 0644", misplaced, "containerd.service.d")
		s.run(t, 0, "rm", "-r", shadowed, "/etc/systemd/system/containerd.service")
		s.run(t, 0, "systemctl", "daemon-reload")
	})

	t.Run("daemon from before the files", func(t *testing.T) {
		p := s.profile
		p.Entries = append(slices.Clone(p.Entries), "added.example")
		s.bootstrap(t, p, 0, "--files")
		s.preflight(t, p, 3).expect(t, "PW104", preflight.Fail, "NO_PROXY")
	})

	t.Run("stopped", func(t *testing.T) {
		s.bootstrap(t, s.profile, 0)
		s.run(t, 0, "systemctl", "stop", containerd)
		s.preflight(t, s.profile, 5).expect(t, "PW104", preflight.Untested, "no process")
	})
}

// toldApart runs preflight against each proxy that does not serve: squids that ask for a password
// and that refuse, and proxies that hang, are something else, or speak TLS only.
func (s *site) toldApart(t *testing.T) {
	squid := s.Proxy(lab.Auth)
	t.Run("407 without credentials", func(t *testing.T) {
		p := s.profile
		p.Proxy = squid.URL()
		s.preflight(t, p, 3).expect(t, "PW303", preflight.Fail, "ProxyAuthRequired", "no credentials were sent")
	})
	t.Run("407 with a wrong password", func(t *testing.T) {
		p := s.profile
		p.Proxy, p.Username, p.Password = squid.URL(), squid.User, "wr0ng:p@ss/word"
		s.preflight(t, p, 3).expect(t, "PW303", preflight.Fail, "ProxyAuthRequired", squid.User)
	})
	t.Run("credentials that work", func(t *testing.T) {
		p := s.profile
		p.Proxy, p.Username, p.Password = squid.URL(), squid.User, squid.Password
		s.preflight(t, p, 0).expect(t, "PW303", preflight.Pass)
	})
	for mode, kind := range map[lab.FaultMode]string{
		lab.FaultHang: "ProxyTimeout", lab.FaultNotHTTP: "ProxyNotHTTP", lab.FaultTLSOnly: "ProxyIsTLS",
	} {
		t.Run(string(mode), func(t *testing.T) {
			broken, err := s.FaultProxy(t.Context(), mode, lab.FaultOptions{})
			if err != nil {
				t.Fatal(err)
			}
			p := s.profile
			p.Proxy = broken.URL()
			s.preflight(t, p, 3).expect(t, "PW303", preflight.Fail, kind)
		})
	}
	t.Run("403", func(t *testing.T) {
		deny := s.Proxy(lab.Deny)
		if err := deny.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := s.profile
		p.Proxy = deny.URL()
		s.preflight(t, p, 3).expect(t, "PW303", preflight.Fail, "ProxyForbidden", "403")
	})
	t.Run("nobody listens", func(t *testing.T) {
		p := s.profile
		p.Proxy = "http://proxy.corp.example:9"
		s.preflight(t, p, 3).expect(t, "PW302", preflight.Fail, "refused")
	})
	t.Run("no such name", func(t *testing.T) {
		p := s.profile
		p.Proxy = "http://nobody.corp.example:3128"
		s.preflight(t, p, 3).expect(t, "PW301", preflight.Fail, "nobody.corp.example")
	})
}
