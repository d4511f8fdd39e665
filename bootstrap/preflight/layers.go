package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/internal/unitfile"
	"github.com/proxyward/proxyward/runtimes"
)

const fixBootstrap = "run bootstrap with this profile"

func checkRuntimes(_ context.Context, s *subject) []Result {
	var out []Result
	for _, u := range s.units() {
		if why := u.Runtime.Restart.Refuse; why != "" {
			out = append(out, fail(u.Unit, AtRestart, "do that first; Proxyward does not restart the unit before", why))
			continue
		}
		out = append(out, pass(u.Unit, fmt.Sprintf("%s is configured by %s", u.Target, orNone(u.Runtime.Config))))
	}
	for _, left := range s.wanted.Left {
		out = append(out, warn("", "nothing, if it is meant so; else name it in spec.targets", left))
	}
	if len(out) == 0 {
		out = append(out, noRuntime())
	}
	return out
}

func orNone(files []string) string {
	if len(files) == 0 {
		return "no file of its own"
	}
	return strings.Join(files, ", ")
}

// checkFiles is the first layer.
func checkFiles(_ context.Context, _ *subject, u unit) Result {
	if err := u.observed.Files.Err; err != nil {
		return untested("", "make the file readable for root, or remove it", err.Error())
	}
	seen := u.findings(v1alpha1.ReasonFilesDrifted)
	switch {
	case len(seen) == 0:
		return pass("", fmt.Sprintf("all %d files are as this profile gives them", len(u.Files)))
	case u.blocked():
		return fail("", Now, "move away what stands there; Proxyward does not touch what it did not write", seen...)
	case !u.installed():
		return warn("", fixBootstrap, fmt.Sprintf("Proxyward's files are not there yet; bootstrap writes %d", len(u.Files)))
	default:
		return fail("", u.breaks(), fixBootstrap, seen...)
	}
}

// blocked says that a file differs and that no plan would write it, because it is not ours.
func (u unit) blocked() bool {
	for _, f := range u.verdict.Findings {
		if f.Reason != v1alpha1.ReasonFilesDrifted {
			continue
		}
		written := false
		for _, a := range u.plan.Actions {
			written = written || a.Kind == drift.ActionWrite && a.File.Path == f.Path
		}
		if !written {
			return true
		}
	}
	return false
}

// checkLoaded is the second layer.
func checkLoaded(_ context.Context, s *subject, u unit) Result {
	loaded := u.observed.Loaded
	switch {
	case loaded.Absent:
		return noSystemd()
	case loaded.Err != nil:
		return untested("", "see that systemd answers: systemctl show "+u.Unit, loaded.Err.Error())
	case loaded.LoadState != "loaded":
		return fail("", Now, fmt.Sprintf("see systemctl status %s", u.Unit), fmt.Sprintf("systemd says that the unit is %s", loaded.LoadState))
	}
	seen := []string{fmt.Sprintf("%s with %s", loaded.FragmentPath, count(len(loaded.DropInPaths), "drop-in"))}
	reload := u.findings(v1alpha1.ReasonReloadNeeded)
	switch {
	case u.installed() && len(reload) > 0:
		return fail("", u.breaks(), fixBootstrap+", which has systemd read its files again", append(reload, seen...)...)
	case loaded.NeedDaemonReload:
		return warn("", "systemctl daemon-reload; bootstrap does it too", append([]string{"its files changed since systemd read them"}, seen...)...)
	}
	return pass("", seen...)
}

func noSystemd() Result {
	return untested("", "run it on the host itself", "there is no systemd here to ask")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// checkProcess is the third layer.
func checkProcess(_ context.Context, _ *subject, u unit) Result {
	p := u.observed.Process
	switch {
	case u.observed.Loaded.Absent:
		return noSystemd()
	case p.Err != nil:
		return untested("", "run it as root in the host's PID namespace", p.Err.Error())
	case p.Running == runtimes.False:
		return untested("", "start it, or run this again once it runs", fmt.Sprintf("the unit is %s, so it has no process", u.verdict.State))
	case p.Running == runtimes.Unknown:
		return untested("", "run this again once it runs", fmt.Sprintf("the unit is %s, so its process need not be the daemon yet", u.verdict.State))
	case u.runsAsDesired():
		return pass("", fmt.Sprintf("process %d, started %s, has exactly the profile's environment", p.PID, p.Started.UTC().Format("2006-01-02 15:04:05 UTC")))
	}
	seen := u.findings(v1alpha1.ReasonRestartNeeded)
	if len(seen) == 0 {
		seen = []string{fmt.Sprintf("process %d has another environment than the profile's", p.PID)}
	}
	if !u.installed() {
		return warn("", fixBootstrap, append([]string{"it does not run on this profile yet"}, seen...)...)
	}
	return fail("", Now, fixBootstrap+", which restarts it", seen...)
}

// checkAbove is the fourth layer.
func checkAbove(_ context.Context, _ *subject, u unit) Result {
	if err := u.observed.Above.Err; err != nil {
		return untested("", "make the file readable, or mend it", err.Error())
	}
	if len(u.observed.Above.Overrides) == 0 {
		return pass("", "nothing wins over the environment")
	}
	var seen []string
	for _, o := range u.observed.Above.Overrides {
		where := said(o.File, o.Key)
		if u.observed.Above.FromDaemon {
			where += " (the daemon says so itself)"
		}
		seen = append(seen, fmt.Sprintf("%s sets %s to %q and wins over the environment", where, o.Variable, proxyenv.MaskText(o.Value)))
	}
	return fail("", Now, "remove these settings and restart the unit; the environment is then what counts", seen...)
}

// checkOthers names other people's files, those first that systemd does not read as it looks.
func checkOthers(_ context.Context, s *subject, u unit) Result {
	if err := u.observed.Files.Err; err != nil {
		return untested("", "make the file readable for root, or remove it", err.Error())
	}
	var seen []string
	misread := false
	for _, o := range u.observed.Files.Others {
		if o.Wins && len(u.findings(v1alpha1.ReasonOverridden)) > 0 {
			continue // PW106 has it
		}
		if allCertificates(o.Names) && o.Problem == "" {
			continue // PW108 has it
		}
		misread = misread || o.Problem != ""
		seen = append(seen, otherFile(o))
	}
	if lost := s.lostLines(u); len(lost) > 0 {
		misread, seen = true, append(seen, lost...)
	}
	if len(seen) == 0 {
		return pass("", "no other file of the unit speaks of a proxy")
	}
	fix := "adopt or remove them: they have no effect beside Proxyward's file, and come back when that goes"
	if misread {
		fix = "correct or remove them: systemd does not read them as they look"
	}
	return warn("", fix, seen...)
}

// lostLines are those of drop-ins that speak of proxies and that systemd drops as a whole, because
// of where they stand.
func (s *subject) lostLines(u unit) []string {
	next, err := s.nextStart(u)
	if err != nil {
		return nil // PW106 says so
	}
	var out []string
	for _, n := range next.Notes {
		known := slices.ContainsFunc(u.observed.Files.Others, func(o drift.OtherFile) bool { return o.Path == n.Path })
		if known || n.Kind != unitfile.NoteDropped || n.Path == runtimes.DropInPath(u.Unit) || !strings.HasSuffix(n.Path, ".conf") {
			continue
		}
		content, err := s.host.Root.ReadFile(n.Path)
		if err == nil && strings.Contains(strings.ToUpper(string(content)), "_PROXY") {
			out = append(out, n.String())
		}
	}
	return out
}

func otherFile(o drift.OtherFile) string {
	var parts []string
	if len(o.Names) > 0 {
		parts = append(parts, "sets "+strings.Join(o.Names, ", "))
	}
	if o.Problem != "" {
		parts = append(parts, o.Problem)
	}
	if o.Mode.Perm()&0o044 != 0 && secretIn(o) {
		parts = append(parts, "holds a password that others may read")
	}
	return fmt.Sprintf("%s (mode %#o): %s", o.Path, o.Mode.Perm(), strings.Join(parts, "; "))
}

func secretIn(o drift.OtherFile) bool {
	for _, v := range o.Vars {
		if v.Value.Masked() != v.Value.Reveal() {
			return true
		}
	}
	return false
}

func allCertificates(names []string) bool {
	for _, n := range names {
		if !strings.Contains(n, "SSL_CERT_") {
			return false
		}
	}
	return len(names) > 0
}
