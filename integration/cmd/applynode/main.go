//go:build linux

// Command applynode makes a change on a lab node as the agent does, and dies by SIGKILL at a
// chosen point of it. It is also the dead-man's program there, and the daemon that is restarted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/agent/apply/applytest"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/internal/systemd"
	"github.com/proxyward/proxyward/runtimes"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const usage = "usage: applynode serve | deadman --wait=DURATION | (change|remove|successor|undoer) UNIT PROXY POINT MOMENT"

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve()
	case len(args) == 2 && args[0] == "deadman":
		wait, err := time.ParseDuration(strings.TrimPrefix(args[1], "--wait="))
		if err != nil {
			return err
		}
		return deadman(ctx, wait)
	case len(args) == 5:
		return mortal(ctx, args[0], args[1], args[2], args[3], args[4])
	}
	return errors.New(usage)
}

func mortal(ctx context.Context, verb, unit, proxy, point, moment string) error {
	at, err := strconv.Atoi(point)
	if err != nil {
		return err
	}
	when, err := strconv.Atoi(moment)
	if err != nil {
		return err
	}
	killer := &applytest.Killer{At: at, Moment: applytest.Moment(when), Die: func(string) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}}
	n, err := openNode(ctx, killer)
	if err != nil {
		return err
	}
	defer n.manager.Close()
	prober := killer.Prober(prober{n.manager})
	var result apply.Result
	switch verb {
	case "change", "remove":
		req := apply.Request{
			Plan: plan(verb, unit, proxy), Local: true, Attempt: strconv.FormatInt(time.Now().UnixNano(), 36),
			Checks: apply.Checks{Prober: prober},
		}
		if verb == "change" {
			req.Revision = "rev-2"
		}
		result = n.applier.Apply(ctx, req)
	case "successor":
		result = n.applier.Recover(ctx, apply.Recovery{Forward: true, Checks: apply.Checks{Prober: prober}})
	case "undoer":
		result = n.applier.Recover(ctx, apply.Recovery{})
	default:
		return errors.New(usage)
	}
	return report(result)
}

// report prints the outcome; one that leaves something to do is an error.
func report(r apply.Result) error {
	fmt.Println(r.Outcome, "first:", r.Err, "undo:", r.UndoErr, "notes:", r.Notes)
	switch r.Outcome {
	case apply.Done, apply.Unchanged, apply.RolledBack, apply.Interrupted:
		return nil
	}
	return fmt.Errorf("ended %s: %w", r.Outcome, errors.Join(r.Err, r.UndoErr))
}

func deadman(ctx context.Context, wait time.Duration) error {
	n, err := openNode(ctx, &applytest.Killer{})
	if err != nil {
		return err
	}
	defer n.manager.Close()
	r := n.applier.RunDeadman(ctx, wait)
	if r.Outcome == apply.Unchanged && r.Err != nil {
		return r.Err
	}
	return report(r)
}

func plan(verb, unit, proxy string) drift.Plan {
	env := runtimes.File{Path: "/etc/proxyward/env/" + unit + ".env", Mode: 0o600, Content: []byte("HTTPS_PROXY=" + proxy + "\n")}
	dropIn := runtimes.File{
		Path: "/etc/systemd/system/" + unit + ".d/zz-proxyward.conf", Mode: 0o644,
		Content: []byte("# Managed by Proxyward\n[Service]\nEnvironmentFile=-" + env.Path + "\n"),
	}
	actions := []drift.Action{{Kind: drift.ActionWrite, Unit: unit, File: env}, {Kind: drift.ActionWrite, Unit: unit, File: dropIn}}
	if verb == "remove" {
		actions = []drift.Action{
			{Kind: drift.ActionRemove, Unit: unit, File: runtimes.File{Path: dropIn.Path}},
			{Kind: drift.ActionRemove, Unit: unit, File: runtimes.File{Path: env.Path}},
		}
	}
	actions = append(actions, drift.Action{Kind: drift.ActionReload}, drift.Action{Kind: drift.ActionRestart, Unit: unit})
	return drift.Plan{Hash: proxy, Actions: actions}
}

// node is this host, seen through a killer.
type node struct {
	manager *systemd.Manager
	applier *apply.Applier
}

func openNode(ctx context.Context, killer *applytest.Killer) (*node, error) {
	root, err := hostfs.Open("/")
	if err != nil {
		return nil, err
	}
	manager, err := systemd.Connect(ctx, "/")
	if err != nil {
		return nil, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	files := killer.Files(root)
	units := killer.Units(nodeUnits{apply.Systemd{Manager: manager}}, func(unit string) error {
		// The job is queued for certain when some time has passed, and the process still starts then.
		go func() { _, _ = manager.Restart(ctx, unit, systemd.RestartOptions{}) }()
		time.Sleep(20 * time.Millisecond)
		return nil
	})
	applier, err := apply.New(apply.Config{
		Files: files, Units: units, Lock: apply.HostLock{Root: root, Verb: "applynode"},
		BootID: strings.TrimSpace(string(boot)), By: "applynode",
		Guard: &apply.Deadman{Files: files, Units: units, Installer: units, Program: apply.OwnProgram},
		Timeouts: apply.Timeouts{
			Restart: 4 * time.Second, Reload: 30 * time.Second, Prove: 5 * time.Second, Successor: time.Second,
		},
	})
	if err != nil {
		return nil, err
	}
	return &node{manager: manager, applier: applier}, nil
}

// nodeUnits is all of systemd that the killer wraps.
type nodeUnits struct{ apply.Systemd }

func (u nodeUnits) Stop(ctx context.Context, unit string) error { return u.Manager.Stop(ctx, unit) }
func (u nodeUnits) Enable(ctx context.Context, units ...string) error {
	return u.Manager.Enable(ctx, units...)
}
func (u nodeUnits) Disable(ctx context.Context, units ...string) error {
	return u.Manager.Disable(ctx, units...)
}

// prober fails for a daemon whose process has BAD in its environment.
type prober struct{ manager *systemd.Manager }

func (prober) Ask(context.Context) apply.Proof { return apply.Proof{} }

func (p prober) Prove(ctx context.Context, units []string) apply.Proof {
	var proof apply.Proof
	for _, unit := range units {
		state, err := p.manager.Show(ctx, unit)
		if err == nil {
			var environ []byte
			environ, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", state.MainPID))
			if strings.Contains(string(environ), "BAD") {
				err = errors.New("the proxy is bad")
			}
		}
		if err != nil {
			proof.Failures = append(proof.Failures, apply.Failure{Subject: unit, Kind: "Pull", Message: err.Error()})
		}
	}
	return proof
}
