//go:build linux

package integration

import (
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/integration/program"
)

const containerd = "containerd.service"

// site is a lab with one node that has Proxyward's programs, and a profile that works there.
type site struct {
	*lab.Lab
	node    *lab.Node
	profile program.Profile
}

func startSite(t *testing.T) *site {
	t.Helper()
	l := lab.Start(t, lab.Config{Nodes: []lab.NodeSpec{{Name: "n1"}}})
	s := &site{Lab: l, node: l.Node("n1")}
	dir := t.TempDir()
	if err := program.Build(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := program.Install(t.Context(), s.node, dir); err != nil {
		t.Fatal(err)
	}
	s.profile = program.Profile{
		Proxy:      l.Proxy(lab.Open).URL(),
		Entries:    []string{"corp.example"},
		Registries: []string{l.Registry(lab.Internal).Host},
		Internal:   s.canary(t, lab.Internal),
		External:   s.canary(t, lab.External),
		Timeout:    "30s",
	}
	return s
}

func (s *site) canary(t *testing.T, registry string) string {
	t.Helper()
	image, err := s.PushCanary(t.Context(), registry, "proxyward/canary", "1")
	if err != nil {
		t.Fatal(err)
	}
	return image.Ref
}

// bootstrap runs the verb and expects its exit code.
func (s *site) bootstrap(t *testing.T, p program.Profile, code int, flags ...string) program.Outcome {
	t.Helper()
	out, err := p.Bootstrap(t.Context(), s.node, flags...)
	return checked(t, out, err, code)
}

func checked(t *testing.T, out program.Outcome, err error, code int) program.Outcome {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if out.ExitCode != code {
		t.Fatalf("exit code %d, want %d: %s %s %+v", out.ExitCode, code, out.Error, out.Stderr, out.Report)
	}
	return out
}

// run runs a program on the node and expects its exit code.
func (s *site) run(t *testing.T, code int, args ...string) lab.Result {
	t.Helper()
	result, err := s.node.Exec(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	if result.ExitCode != code {
		t.Fatalf("%q: exit code %d, want %d: %s%s", strings.Join(args, " "), result.ExitCode, code, result.Stdout, result.Stderr)
	}
	return result
}

func (s *site) show(t *testing.T, property string) string {
	t.Helper()
	value, err := s.node.Show(t.Context(), containerd, property)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(value)
}

func (s *site) invocation(t *testing.T) string {
	t.Helper()
	return s.show(t, "InvocationID")
}

func (s *site) environ(t *testing.T) map[string]string {
	t.Helper()
	env, err := s.node.Environ(t.Context(), containerd)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// files lists what Proxyward has below /etc, with mode and digest.
func (s *site) files(t *testing.T) string {
	t.Helper()
	return string(s.run(t, 0, "sh", "-c",
		`find /etc/proxyward /etc/systemd/system -name '*proxyward*' -o -path '/etc/proxyward/*' -type f 2>/dev/null | sort | xargs -r stat -c '%n %a'; find /etc/proxyward /etc/systemd/system -type f -path '*proxyward*' 2>/dev/null | sort | xargs -r sha256sum`).Stdout)
}

func evidence(t *testing.T, out program.Outcome, role v1alpha1.CanaryRole) v1alpha1.CanaryEvidence {
	t.Helper()
	for _, e := range out.Canaries {
		if e.Role == role {
			return e
		}
	}
	t.Fatalf("no evidence of the %s canary: %+v", role, out.Report)
	return v1alpha1.CanaryEvidence{}
}

func findings(out program.Outcome) map[string][]string {
	found := map[string][]string{}
	for _, u := range out.Units {
		for _, f := range u.Findings {
			found[f.Reason] = append(found[f.Reason], f.Path+": "+f.Message)
		}
	}
	return found
}

// write writes a file on the node.
func (s *site) write(t *testing.T, path, content string) {
	t.Helper()
	if err := s.node.WriteFile(t.Context(), path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
