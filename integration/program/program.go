//go:build linux

// Package program puts Proxyward's own programs, built as they are released, on a node of the lab
// and runs them there as a person or a unit would.
package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/integration/lab"
)

// Where things are on a node.
const (
	Agent       = "/usr/local/bin/proxyward-agent"
	CLI         = "/usr/local/bin/proxyward"
	ProfilePath = "/etc/corp/profile.yaml"
	Credentials = "/etc/corp/credentials"
)

// Build builds both programs, static and stripped, into a directory (an absolute path). They are
// built in their own module, so with the dependencies that a release has.
func Build(ctx context.Context, dir string) error {
	const module = "github.com/proxyward/proxyward"
	found, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("looking for the module %q: %w", module, err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-C", strings.TrimSpace(string(found)), "-trimpath",
		"-ldflags=-s -w -X main.version=lab", "-o", dir+"/", "./cmd/proxyward", "./cmd/proxyward-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the programs: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// Install copies both programs from where Build put them onto a node.
func Install(ctx context.Context, n *lab.Node, dir string) error {
	for _, path := range []string{Agent, CLI} {
		if err := n.CopyIn(ctx, filepath.Join(dir, filepath.Base(path)), path, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// Profile is what the lab's profiles differ in.
type Profile struct {
	// Proxy URL for both schemes.
	Proxy string
	// Entries of NO_PROXY, beside those that are computed.
	Entries []string
	// Registries that are internal.
	Registries []string
	// Internal and External canaries; none where empty.
	Internal, External string
	// Username and Password for the proxy, none where both are empty.
	Username, Password string
	// Timeout of one pull, the default where empty.
	Timeout string
}

// YAML is the profile as a person would write it.
func (p Profile) YAML() string {
	var b strings.Builder
	b.WriteString("apiVersion: proxyward.dev/v1alpha1\nkind: ProxyProfile\nmetadata: {name: lab}\nspec:\n  nodeSelector: {}\n")
	fmt.Fprintf(&b, "  proxy:\n    http: %q\n    https: %q\n", p.Proxy, p.Proxy)
	if p.Username+p.Password != "" {
		b.WriteString("    credentialsSecretName: proxy\n")
	}
	if len(p.Entries) > 0 {
		b.WriteString("  noProxy:\n    entries:\n")
		for _, e := range p.Entries {
			fmt.Fprintf(&b, "      - {value: %q, reason: test}\n", e)
		}
	}
	b.WriteString("  cluster:\n    domain: cluster.local\n    serviceCIDRs: [10.96.0.0/16]\n    podCIDRs: [10.244.0.0/16]\n    nodeCIDRs: [10.66.0.0/16]\n    apiServer: api.corp.example:6443\n")
	if len(p.Registries) > 0 {
		fmt.Fprintf(&b, "  registries:\n    internal: [%s]\n", strings.Join(p.Registries, ", "))
	}
	b.WriteString("  canary:\n")
	if p.Timeout != "" {
		fmt.Fprintf(&b, "    timeout: %s\n", p.Timeout)
	}
	if p.Internal != "" {
		fmt.Fprintf(&b, "    internal: {image: %q}\n", p.Internal)
	}
	if p.External != "" {
		fmt.Fprintf(&b, "    external: {image: %q}\n", p.External)
	}
	return b.String()
}

// Give puts the profile and its credentials on a node.
func (p Profile) Give(ctx context.Context, n *lab.Node) error {
	if err := n.WriteFile(ctx, ProfilePath, []byte(p.YAML()), 0o644); err != nil {
		return err
	}
	for name, value := range map[string]string{"username": p.Username, "password": p.Password} {
		if err := n.WriteFile(ctx, Credentials+"/"+name, []byte(value), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Flags that name the profile on the node.
func (p Profile) Flags() []string {
	flags := []string{"--profile", ProfilePath}
	if p.Username+p.Password != "" {
		flags = append(flags, "--credentials", Credentials)
	}
	return flags
}

// Outcome of a program that printed a report.
type Outcome struct {
	bootstrap.Report
	ExitCode int
	// Stderr of the program.
	Stderr string
}

// Bootstrap gives a node the profile and runs bootstrap on it.
func (p Profile) Bootstrap(ctx context.Context, n *lab.Node, flags ...string) (Outcome, error) {
	if err := p.Give(ctx, n); err != nil {
		return Outcome{}, err
	}
	return Report(ctx, n, append(append([]string{"bootstrap"}, p.Flags()...), flags...)...)
}

// Report runs a verb that prints a report. One that ended before it had any is no error: the
// report is then empty and Stderr says why.
func Report(ctx context.Context, n *lab.Node, args ...string) (Outcome, error) {
	result, err := n.Exec(ctx, append([]string{Agent, "-o", "json"}, args...)...)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{ExitCode: result.ExitCode, Stderr: string(result.Stderr)}
	if len(bytes.TrimSpace(result.Stdout)) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(result.Stdout, &out.Report); err != nil {
		return out, fmt.Errorf("reading the report of %q: %w: %s", args, err, result.Stdout)
	}
	return out, nil
}
