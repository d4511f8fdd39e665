//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/integration/program"
)

const hangPath = "/etc/systemd/system/containerd.service.d/50-hang.conf"

// killed makes the daemon hang in its start with the new environment, kills the program that
// changed it, and leaves the rest to the dead-man.
func (d *demo) killed(ctx context.Context) error {
	const shown = "the program is killed while the daemon cannot start"
	proxy := d.lab.Proxy(lab.Open)
	next := d.profile
	next.Proxy, next.Username, next.Password = proxy.URL(), "", ""
	port := next.Proxy[strings.LastIndex(next.Proxy, ":"):]
	hang := fmt.Sprintf("[Service]\nTimeoutStartSec=30s\nExecStartPre=/bin/sh -c 'case \"$$HTTPS_PROXY\" in *%s*) exec sleep 600;; esac'\n", port)
	if err := d.node.WriteFile(ctx, hangPath, []byte(hang), 0o644); err != nil {
		return err
	}
	if err := next.Give(ctx, d.node); err != nil {
		return err
	}
	fmt.Printf("\n== %s\n$ proxyward-agent bootstrap %s &\n$ kill -KILL $!\n", shown, strings.Join(next.Flags(), " "))
	before, err := d.node.Environ(ctx, containerd)
	if err != nil {
		return err
	}
	starts, err := d.restarts(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	start := append([]string{"systemd-run", "--quiet", "--unit=change", program.Agent, "bootstrap"}, next.Flags()...)
	for _, step := range [][]string{{"systemctl", "daemon-reload"}, start} {
		if _, err := d.node.Run(ctx, step...); err != nil {
			return err
		}
	}
	if err := d.starting(ctx); err != nil {
		return err
	}
	// Starting the service is what its timer does in a few minutes.
	for _, step := range [][]string{
		{"systemctl", "kill", "--signal=SIGKILL", "change.service"},
		{"systemctl", "is-active", "--quiet", "proxyward-deadman.timer"},
		{"systemctl", "start", "proxyward-deadman.service"},
		{"systemctl", "is-active", "--quiet", containerd},
		{"rm", hangPath},
	} {
		if _, err := d.node.Run(ctx, step...); err != nil {
			return err
		}
	}
	after, err := d.node.Environ(ctx, containerd)
	if err != nil {
		return err
	}
	if after["HTTPS_PROXY"] != before["HTTPS_PROXY"] {
		return fmt.Errorf("showing %q: the daemon does not have its old proxy again", shown)
	}
	took := time.Since(began)
	startsAfter, err := d.restarts(ctx)
	if err != nil {
		return err
	}
	fmt.Println("   the dead-man put the files back and started the daemon with its old environment")
	d.rows = append(d.rows, row{shown: shown, seen: "saved by the dead-man, with the old environment", restarts: fmt.Sprint(startsAfter - starts), took: took})
	return nil
}

// starting waits until the daemon hangs in its new start.
func (d *demo) starting(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		state, err := d.node.Show(ctx, containerd, "ActiveState")
		if err != nil {
			return fmt.Errorf("waiting for the new start of %s: %w", containerd, err)
		}
		if strings.TrimSpace(state) == "activating" {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}
