//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/integration/program"
	"github.com/proxyward/proxyward/internal/cli"
)

const containerd = "containerd.service"

// demo is the node and what was shown on it so far.
type demo struct {
	lab     *lab.Lab
	node    *lab.Node
	profile program.Profile
	rows    []row
}

// row is one promise with what was seen of it.
type row struct {
	shown, seen, restarts string
	took                  time.Duration
	proof                 []v1alpha1.CanaryEvidence
}

func (d *demo) prepare(ctx context.Context) error {
	proxy := d.lab.Proxy(lab.Auth)
	d.profile = program.Profile{
		Proxy: proxy.URL(), Username: proxy.User, Password: proxy.Password,
		Entries: []string{"corp.example"}, Registries: []string{d.lab.Registry(lab.Internal).Host}, Timeout: "30s",
	}
	for registry, image := range map[string]*string{lab.Internal: &d.profile.Internal, lab.External: &d.profile.External} {
		pushed, err := d.lab.PushCanary(ctx, registry, "proxyward/canary", "1")
		if err != nil {
			return err
		}
		*image = pushed.Ref
	}
	return nil
}

func (d *demo) bootstrap(ctx context.Context) error {
	return d.act(ctx, "a node is put on a proxy that asks for a password", d.profile, apply.Done, 1,
		"every byte by its expected route")
}

func (d *demo) unchanged(ctx context.Context) error {
	return d.act(ctx, "the same again", d.profile, apply.Unchanged, 0, "nothing restarted, proven once more")
}

func (d *demo) dead(ctx context.Context) error {
	p := d.profile
	p.Proxy = "http://proxy.corp.example:9"
	return d.act(ctx, "a proxy that does not answer", p, apply.ProbeFailed, 0, "refused before anything changed")
}

func (d *demo) oneSided(ctx context.Context) error {
	broken, err := d.lab.FaultProxy(ctx, lab.FaultAgentOnly, lab.FaultOptions{})
	if err != nil {
		return err
	}
	p := d.profile
	p.Proxy, p.Username, p.Password = broken.URL(), "", ""
	return d.act(ctx, "a proxy that serves the program and not the daemon", p, apply.RolledBack, 2,
		"undone by itself, and the old state proven again")
}

// act runs bootstrap, shows what it says, and compares how it ended with what was promised.
func (d *demo) act(ctx context.Context, shown string, p program.Profile, outcome apply.Outcome, restarts int, seen string) error {
	fmt.Printf("\n== %s\n$ proxyward-agent bootstrap %s\n", shown, strings.Join(p.Flags(), " "))
	before, err := d.restarts(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	out, err := p.Bootstrap(ctx, d.node)
	took := time.Since(began)
	if err != nil {
		return err
	}
	after, err := d.restarts(ctx)
	if err != nil {
		return err
	}
	r := row{shown: shown, seen: seen, restarts: fmt.Sprint(after - before), took: took}
	if r.proof = out.Canaries; out.Again != nil {
		r.proof = out.Again
	}
	fmt.Printf("   %s, %d restart(s), %s\n", out.Outcome, after-before, took.Round(10*time.Millisecond))
	for _, e := range r.proof {
		fmt.Printf("   %s canary: %s, route %s, from %s\n", strings.ToLower(string(e.Role)), e.Verdict, strings.ToLower(string(e.Route)), e.Remote)
	}
	if out.Error != "" {
		fmt.Println("   " + out.Error)
	}
	if out.Outcome != outcome || after-before != restarts {
		return fmt.Errorf("showing %q: it ended as %s with %d restarts, and was to end as %s with %d: %s%s", shown, out.Outcome, after-before, outcome, restarts, out.Error, out.Stderr)
	}
	d.rows = append(d.rows, r)
	return nil
}

func (d *demo) remove(ctx context.Context) error {
	fmt.Printf("\n== everything is taken back\n$ proxyward-agent remove\n")
	began := time.Now()
	out, err := program.Report(ctx, d.node, "remove")
	if err != nil {
		return err
	}
	env, err := d.node.Environ(ctx, containerd)
	if err != nil {
		return err
	}
	if out.ExitCode != 0 || env["HTTPS_PROXY"] != "" {
		return fmt.Errorf("removing: exit code %d: %s%s", out.ExitCode, out.Error, out.Stderr)
	}
	fmt.Printf("   %s; the daemon has no proxy variable\n", out.Outcome)
	d.rows = append(d.rows, row{shown: "everything is taken back", seen: "the daemon is clean", restarts: fmt.Sprint(len(out.Restarted)), took: time.Since(began)})
	return nil
}

// restarts counts the starts of the daemon in this boot.
func (d *demo) restarts(ctx context.Context) (int, error) {
	journal, err := d.node.Run(ctx, "journalctl", "--boot", "--no-pager", "--output=cat", "--unit="+containerd, "--identifier=systemd")
	if err != nil {
		return 0, err
	}
	return strings.Count(journal, "Started "), nil
}

func (d *demo) summary(w io.Writer, took time.Duration) error {
	fmt.Fprintf(w, "\nSeen on a real node (systemd, containerd, squid), in %s:\n\n", took.Round(time.Second))
	table := cli.Table{Header: []string{"", "WHAT", "SEEN", "RESTARTS", "TIME"}}
	pulls := cli.Table{Header: []string{"", "CANARY", "VERDICT", "ROUTE", "FROM", "BYTES", "TIME"}}
	for i, r := range d.rows {
		number := fmt.Sprint(i + 1)
		table.Row(number, r.shown, r.seen, r.restarts, r.took.Round(10*time.Millisecond).String())
		for _, e := range r.proof {
			pulls.Row(number, strings.ToLower(string(e.Role)), string(e.Verdict), strings.ToLower(string(e.Route)), e.Remote,
				fmt.Sprint(e.Bytes), e.Duration.Round(time.Millisecond).String())
		}
	}
	if err := table.Write(w, false, 2); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return pulls.Write(w, false, 2)
}
