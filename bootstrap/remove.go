package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/internal/desired"
	"github.com/proxyward/proxyward/internal/node"
	"github.com/proxyward/proxyward/runtimes"
)

// Remove leaves a host clean of Proxyward: the files go, and daemons that run with what they said
// are restarted. The record of changes below apply.StateDir stays.
func Remove(ctx context.Context, host *node.Node, observe apply.Observer) (Report, error) {
	found, err := configured(host.Root)
	if err != nil {
		return Report{}, err
	}
	units := desired.Absent(found)
	c, err := begin(ctx, host, "remove", observe)
	if err != nil {
		return Report{}, err
	}
	c.judgeBy(host, units)
	c.request.Daemons = node.Daemons{Node: host}
	plan, _ := host.Look(ctx, units, "")
	result := c.apply(ctx, plan)
	after, _ := host.Look(ctx, units, "")
	return newReport(Wanted{}, plan, result, after, c.notes), nil
}

// configured returns the daemons whose units have files of ours, whether a profile still asks for
// them or not. Of one that its adapter cannot read no more is known than the unit's name.
func configured(host runtimes.HostFS) ([]runtimes.Runtime, error) {
	var units []string
	for dir, suffix := range map[string]string{runtimes.UnitDir: ".d", runtimes.EnvDir: ".env"} {
		entries, err := host.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking for files of Proxyward: %w", err)
		}
		for _, e := range entries {
			unit, matches := strings.CutSuffix(e.Name(), suffix)
			if !matches || slices.Contains(units, unit) {
				continue
			}
			ours, err := owned(host, path.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			if ours {
				units = append(units, unit)
			}
		}
	}
	slices.Sort(units)
	out := make([]runtimes.Runtime, len(units))
	for i, unit := range units {
		out[i] = inspect(host, unit)
	}
	return out, nil
}

// owned says whether an environment file, or the drop-in in a directory, is ours.
func owned(host runtimes.HostFS, file string) (bool, error) {
	if strings.HasSuffix(file, ".d") {
		file = path.Join(file, runtimes.DropInName)
	}
	content, err := host.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for files of Proxyward: %w", err)
	}
	return runtimes.Owned(content), nil
}

func inspect(host runtimes.HostFS, unit string) runtimes.Runtime {
	for _, adapter := range runtimes.All() {
		if !slices.Contains(adapter.Units(), unit) {
			continue
		}
		if rt, err := adapter.Inspect(host, unit); err == nil {
			return rt
		}
		return runtimes.Runtime{Target: adapter.Target(), Unit: unit, API: runtimes.PullNone}
	}
	return runtimes.Runtime{Unit: unit, API: runtimes.PullNone}
}
