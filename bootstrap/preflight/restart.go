package preflight

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/internal/unitfile"
	"github.com/proxyward/proxyward/runtimes"
)

// ourRestarts is how many starts one change may cost a unit: the restart, and the one that undoes
// it.
const ourRestarts = 2

func checkContainers(_ context.Context, _ *subject, u unit) Result {
	e := u.Runtime.Restart
	switch e.KillsContainers {
	case runtimes.False:
		return pass("", "containers go on while it restarts: "+e.Why)
	case runtimes.True:
		return warn("", "drain the node first, or set KillMode=process (Docker: live-restore)", "a restart kills every container: "+e.Why)
	}
	return untested("", "see what a restart of this unit does before it has containers to lose", "what a restart does to containers is not known: "+e.Why)
}

func checkStartLimit(ctx context.Context, s *subject, u unit) Result {
	if s.host.Systemd == nil {
		return noSystemd()
	}
	shown, err := s.host.Systemd.Show(ctx, u.Unit)
	if err != nil {
		return untested("", "see that systemd answers", err.Error())
	}
	limit := fmt.Sprintf("%d starts are allowed within %s", shown.StartLimitBurst, shown.StartLimitInterval)
	switch {
	case shown.Result == "start-limit-hit":
		return fail("", Now, "systemctl reset-failed "+u.Unit+", after what kept it from starting is mended", "its starts were too many, so systemd refuses to start it", limit)
	case shown.StartLimitBurst == 0 || shown.StartLimitInterval == 0:
		return pass("", "its starts are not limited")
	case shown.StartLimitBurst < ourRestarts:
		return warn("", fmt.Sprintf("raise StartLimitBurst= to %d", ourRestarts), limit+"; a change that must be undone needs "+fmt.Sprint(ourRestarts))
	}
	return pass("", limit)
}

func checkPropagation(_ context.Context, _ *subject, u unit) Result {
	switch l := u.observed.Loaded; {
	case l.Absent:
		return noSystemd()
	case l.Err != nil:
		return untested("", "see that systemd answers", l.Err.Error())
	case len(l.PropagatesRestart) > 0:
		return warn("", "nothing, if they may be restarted; they are part of the plan", "a restart takes along: "+strings.Join(l.PropagatesRestart, ", "))
	}
	return pass("", "a restart takes no other unit along")
}

// checkBootOrder says whether the order of a boot leaves time for the files: what runs Proxyward is
// ordered before the daemon, the kubelet after it, and the files are on a file system that is there
// by then.
func checkBootOrder(_ context.Context, s *subject, u unit) Result {
	var wrong, seen []string
	starters, err := s.starters()
	if err != nil {
		return untested("", "make the unit files readable", err.Error())
	}
	for _, b := range starters {
		if b.filesOnly && !slices.Contains(b.before, u.Unit) {
			wrong = append(wrong, fmt.Sprintf("%s runs bootstrap --files and is not ordered Before=%s, so the daemon may start without the files", b.name, u.Unit))
		} else if b.filesOnly {
			seen = append(seen, fmt.Sprintf("%s writes the files before it", b.name))
		}
	}
	kubelet, err := runtimes.FindUnit(s.host.Root, "kubelet.service")
	switch {
	case err != nil:
		return untested("", "make the kubelet's unit files readable", err.Error())
	case kubelet != nil && !kubelet.Masked && u.Unit != "kubelet.service":
		if slices.Contains(words(kubelet.Sources, "After"), u.Unit) {
			seen = append(seen, "the kubelet starts after it")
		} else {
			seen = append(seen, fmt.Sprintf("the kubelet is not ordered After=%s: it waits for the socket by itself", u.Unit))
		}
	}
	if len(wrong) > 0 {
		return fail("", AtRestart, "add Before="+u.Unit+" to that unit", wrong...)
	}
	if len(starters) == 0 {
		seen = append(seen, "no unit of this host runs Proxyward; the files that are on disk are what a boot finds")
	}
	return pass("", seen...)
}

// starter is a unit that runs Proxyward at boot.
type starter struct {
	name      string
	filesOnly bool
	before    []string
}

// starters finds the units in the administrator's folder that run bootstrap.
func (s *subject) starters() ([]starter, error) {
	entries, err := s.host.Root.ReadDir(runtimes.UnitDir)
	if err != nil {
		return nil, nilIfAbsent(err)
	}
	var out []starter
	for _, e := range entries {
		if path.Ext(e.Name()) != ".service" || !e.Type().IsRegular() {
			continue
		}
		found, err := runtimes.FindUnit(s.host.Root, e.Name())
		if err != nil {
			return nil, err
		}
		if found == nil || found.Masked {
			continue
		}
		for _, command := range directives(found.Sources, "Service", "ExecStart") {
			if strings.Contains(command, "proxyward") && strings.Contains(command, "bootstrap") {
				out = append(out, starter{
					name: found.Name, before: words(found.Sources, "Before"),
					filesOnly: strings.Contains(command, "--files") && !strings.Contains(command, "--prove"),
				})
				break
			}
		}
	}
	return out, nil
}

// words are those of a list in [Unit].
func words(sources []unitfile.Source, key string) []string {
	var out []string
	for _, value := range directives(sources, "Unit", key) {
		out = append(out, strings.Fields(value)...)
	}
	return out
}

func directives(sources []unitfile.Source, section, key string) []string {
	var out []string
	for _, src := range sources {
		for _, d := range unitfile.ParseUnit(src.Path, src.Content).Directives {
			if d.Section == section && d.Key == key {
				out = append(out, d.Value)
			}
		}
	}
	return out
}
