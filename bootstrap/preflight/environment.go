package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/internal/unitfile"
	"github.com/proxyward/proxyward/runtimes"
)

// UnitEnvironment is the proxy environment of one unit in the four layers.
type UnitEnvironment struct {
	Unit      string     `json:"unit"`
	Variables []Variable `json:"variables"`
	// DropIns and EnvironmentFiles are those that systemd has loaded.
	DropIns          []string `json:"dropIns,omitempty"`
	EnvironmentFiles []string `json:"environmentFiles,omitempty"`
	// Unknown says which layers could not be read, and why.
	Unknown []string `json:"unknown,omitempty"`
}

// Variable is one variable of a unit. Values have their credentials masked; null stands for a
// variable that is not set.
type Variable struct {
	Name string `json:"name"`
	// Desired by the profile.
	Desired *string `json:"desired"`
	// NextStart is what the files on disk give to the daemon's next start, From the place that
	// wins, and Loses the places that it beats, the strongest first.
	NextStart *string  `json:"nextStart"`
	From      string   `json:"from,omitempty"`
	Loses     []string `json:"loses,omitempty"`
	// Loaded is what systemd has of it from Environment=; environment files it reads at the start.
	Loaded *string `json:"loaded"`
	// Running is what the process has.
	Running *string `json:"running"`
	// Above is what wins over the environment, with its place.
	Above string `json:"above,omitempty"`
}

// names are the variables that a unit is looked at for, as its own process has them.
func (u unit) names() []string {
	var names []string
	scoped := runtimes.Scoped(u.Environment, u.Runtime.Prefix)
	for _, v := range scoped.Vars {
		names = append(names, v.Name)
	}
	names = append(names, scoped.Unset...)
	for _, o := range u.observed.Files.Others {
		names = append(names, o.Names...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// environment joins the four layers.
func (s *subject) environment() []UnitEnvironment {
	out := []UnitEnvironment{}
	for _, u := range s.units() {
		e := UnitEnvironment{
			Unit: u.Unit, Variables: []Variable{},
			DropIns: u.observed.Loaded.DropInPaths, EnvironmentFiles: u.observed.Loaded.EnvironmentFiles,
		}
		next, err := s.nextStart(u)
		for _, problem := range []error{err, u.observed.Files.Err, u.observed.Loaded.Err, u.observed.Process.Err, u.observed.Above.Err} {
			if problem != nil {
				e.Unknown = append(e.Unknown, problem.Error())
			}
		}
		if u.observed.Loaded.Absent {
			e.Unknown = append(e.Unknown, "there is no systemd here, so nothing is loaded and nothing runs")
		}
		for _, name := range u.names() {
			e.Variables = append(e.Variables, u.variable(name, next))
		}
		out = append(out, e)
	}
	return out
}

func (u unit) variable(name string, next unitfile.Environment) Variable {
	v := Variable{
		Name:    name,
		Desired: masked(runtimes.Scoped(u.Environment, u.Runtime.Prefix).Vars, name),
		Loaded:  masked(u.observed.Loaded.Environment, name),
		Running: masked(u.observed.Process.Environ, strings.TrimPrefix(name, u.Runtime.Prefix)),
	}
	if set, ok := next.Lookup(name); ok {
		value := variable(name, set.Value).Value.Masked()
		v.NextStart, v.From = &value, set.Position.String()
	}
	for _, have := range next.Variables {
		if have.Name != name {
			continue
		}
		if have.Removed != nil {
			v.From = have.Removed.String() + " (unset)"
		}
		for _, l := range have.Loses {
			v.Loses = append(v.Loses, l.Position.String())
		}
	}
	for _, o := range u.observed.Above.Overrides {
		if strings.EqualFold(o.Variable, name) {
			v.Above = fmt.Sprintf("%s (%s %s)", proxyenv.MaskText(o.Value), o.File, o.Key)
		}
	}
	return v
}

func masked(vars []proxyenv.Var, name string) *string {
	for _, v := range vars {
		if v.Name == name {
			text := v.Value.Masked()
			return &text
		}
	}
	return nil
}

// nextStart is what the files on disk give to the unit's next start.
func (s *subject) nextStart(u unit) (unitfile.Environment, error) {
	found, err := runtimes.FindUnit(s.host.Root, u.Unit)
	if err != nil {
		return unitfile.Environment{}, err
	}
	if found == nil || found.Masked {
		return unitfile.Environment{}, fmt.Errorf("reading the files of %q: there is no unit file that systemd would load", u.Unit)
	}
	return found.Environment(s.host.Root), nil
}

// checkNextStart says whether the next start gives the desired environment, and whether there will
// be one at all.
func checkNextStart(_ context.Context, s *subject, u unit) Result {
	next, err := s.nextStart(u)
	if err != nil {
		return untested("", "make the unit's files readable", err.Error())
	}
	for _, f := range next.EnvFiles {
		if !f.Optional && !f.Read {
			return fail("", AtRestart, "restore the file, or write a - before its name",
				fmt.Sprintf("%s names the environment file %s, which cannot be read: systemd will not start the unit", f.Position, f.File))
		}
	}
	if seen := u.findings(v1alpha1.ReasonOverridden); len(seen) > 0 {
		return fail("", u.breaks(), "remove the proxy settings there, or have the file sort before Proxyward's", seen...)
	}
	if !u.installed() {
		return pass("", append([]string{"nothing wins over the files that bootstrap will write"}, u.sets(next)...)...)
	}
	if differs := u.differences(next); len(differs) > 0 {
		return fail("", AtRestart, fixBootstrap, differs...)
	}
	seen := []string{"the next start gives exactly the profile's environment, from " + runtimes.EnvPath(u.Unit)}
	if next.Incomplete {
		return warn("", "see the notes of PW107", append(seen, "some files could not be read to the end")...)
	}
	return pass("", seen...)
}

// sets lists what is set now without us.
func (u unit) sets(next unitfile.Environment) []string {
	var out []string
	for _, name := range u.names() {
		if v, ok := next.Lookup(name); ok {
			out = append(out, fmt.Sprintf("%s is set by %s", name, v.Position))
		}
	}
	return out
}

// differences are the variables that the next start gives otherwise than desired.
func (u unit) differences(next unitfile.Environment) []string {
	var out []string
	scoped := runtimes.Scoped(u.Environment, u.Runtime.Prefix)
	for _, want := range scoped.Vars {
		have, ok := next.Lookup(want.Name)
		switch {
		case !ok:
			out = append(out, want.Name+" will be missing")
		case have.Value != want.Value.Reveal():
			out = append(out, fmt.Sprintf("%s will be what %s says", want.Name, have.Position))
		}
	}
	for _, name := range scoped.Unset {
		if have, ok := next.Lookup(name); ok {
			out = append(out, fmt.Sprintf("%s will be set by %s", name, have.Position))
		}
	}
	return out
}

// checkRoundTrip reads the files that would be written as each systemd does.
func checkRoundTrip(_ context.Context, _ *subject, u unit) Result {
	var dropIn unitfile.Source
	content := map[string][]byte{}
	for _, f := range u.Files {
		content[f.Path] = f.Content
		if f.Path == runtimes.DropInPath(u.Unit) {
			dropIn = unitfile.Source{Path: f.Path, Content: f.Content}
		}
	}
	var seen []string
	for _, dialect := range unitfile.EnvDialects() {
		got := unitfile.Effective(unitfile.Input{
			Unit: u.Unit, Files: []unitfile.Source{dropIn}, Dialect: dialect,
			Read: func(path string) ([]byte, error) {
				if c, ok := content[path]; ok {
					return c, nil
				}
				return nil, fmt.Errorf("reading %q: Proxyward does not write it", path)
			},
		})
		for _, d := range u.differences(got) {
			if !slices.Contains(seen, d) {
				seen = append(seen, d)
			}
		}
	}
	if len(seen) > 0 {
		return fail("", Now, "report this as a bug of Proxyward, with this line", seen...)
	}
	return pass("", fmt.Sprintf("%s read back as the same bytes by every systemd from 239 on", count(len(u.Environment.Vars), "variable")))
}

// checkForeignValues says what Go makes of proxy variables that somebody else wrote.
func checkForeignValues(_ context.Context, s *subject, u unit) Result {
	if u.observed.Files.Err != nil {
		return untested("", "make the file readable for root", u.observed.Files.Err.Error())
	}
	var seen []string
	files := 0
	for _, o := range u.observed.Files.Others {
		if len(o.Vars) == 0 {
			continue
		}
		files++
		for _, f := range proxyenv.LintEnvironment(proxyenv.Environment{Vars: o.Vars}) {
			if f.Severity != proxyenv.SeverityInfo {
				seen = append(seen, o.Path+": "+f.String())
			}
		}
	}
	switch {
	case len(seen) > 0:
		return warn("", "they stop to matter with bootstrap; do not carry them over as they are", seen...)
	case files == 0:
		return pass("", "nobody else sets a proxy variable for the unit")
	}
	return pass("", fmt.Sprintf("%s read by Go as they look", count(files, "file")))
}
