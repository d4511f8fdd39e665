package runtimes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/internal/unitfile"
)

// Where the files that put a unit on a proxy stand.
const (
	// UnitDir holds <unit>.d/zz-proxyward.conf.
	UnitDir = "/etc/systemd/system"
	// DropInName sorts after whatever people call theirs: systemd applies drop-ins by file name.
	DropInName = "zz-proxyward.conf"
	// EnvDir holds <unit>.env.
	EnvDir = "/etc/proxyward/env"
	// CADir holds a folder for each trusted CA, named by its digest.
	CADir = "/etc/proxyward/ca"
	// CAFile is the name of the file in such a folder. Go reads every file there.
	CAFile = "ca.crt"
)

// Modes of those files.
const (
	// DropInMode: everyone may know what is configured, secrets apart.
	DropInMode = 0o644
	// EnvMode: the assignments carry the credentials.
	EnvMode = 0o600
	// CAMode: certificates are public.
	CAMode = 0o644
)

// HeaderMark begins the first line of every file of Proxyward. A file without it is somebody
// else's and is neither changed nor removed.
const HeaderMark = "# Managed by Proxyward"

const (
	headerLine = HeaderMark + "; a change here is taken back or reported. Change the ProxyProfile instead."
	docsURL    = "https://github.com/proxyward/proxyward/blob/main/docs/node-contract.md"
)

// Owned reports whether content bears Proxyward's header.
func Owned(content []byte) bool { return strings.HasPrefix(string(content), HeaderMark) }

// DropInPath is where the drop-in of a unit stands.
func DropInPath(unit string) string { return UnitDir + "/" + unit + ".d/" + DropInName }

// EnvPath is where the assignments of a unit stand.
func EnvPath(unit string) string { return EnvDir + "/" + unit + ".env" }

// CAPath is where the trusted CA with a digest stands.
func CAPath(sha256 string) string { return CADir + "/" + sha256 + "/" + CAFile }

// RenderInput is what the files of one unit are made of.
type RenderInput struct {
	// Profile and Revision are named in the drop-in's header.
	Profile, Revision string
	Target            v1alpha1.Target
	// Unit with its suffix .service.
	Unit string
	// Prefix of the variables that reach only the runtime (Runtime.Prefix), or "".
	Prefix string
	// Environment that the daemon must have, without the prefix.
	Environment proxyenv.Environment
	// CA is the trusted CA in PEM, exactly the bytes of which the environment's SSL_CERT_DIR names
	// the digest; nil when there is none.
	CA []byte
}

// Render returns the files that give a unit its environment. The same input gives the same bytes.
//
// It refuses every text that systemd would read as something else than it is: control characters
// anywhere (systemd ends a line at \r as well, so that a comment could become a directive), a
// comment that ends in a backslash (before 241 the next line would be part of it), a value that an
// environment file cannot carry, and a CA that is more or less than certificates.
func Render(in RenderInput) (Desired, error) {
	if err := checkUnit(in.Unit); err != nil {
		return Desired{}, err
	}
	out := Desired{Target: in.Target, Unit: in.Unit}
	scoped := Scoped(in.Environment, in.Prefix)
	ca, err := renderCA(in)
	if err != nil {
		return Desired{}, fmt.Errorf("rendering the trusted CA of %s: %w", in.Unit, err)
	}
	if ca != nil {
		out.Files = append(out.Files, *ca)
	}
	env, err := renderEnv(in.Unit, scoped)
	if err != nil {
		return Desired{}, fmt.Errorf("rendering %s: %w", EnvPath(in.Unit), err)
	}
	dropIn, err := renderDropIn(in, scoped)
	if err != nil {
		return Desired{}, fmt.Errorf("rendering %s: %w", DropInPath(in.Unit), err)
	}
	out.Files = append(out.Files, env, dropIn)
	return out, nil
}

// Scoped returns the environment that the unit's own process must have so that the runtime in it
// has env. Without a prefix that is env itself. With one, every variable is prefixed, and what must
// be absent from the runtime is set to nothing: K3s and RKE2 lay the prefixed variables over their
// own, so that only an empty one hides what they would pass on.
func Scoped(env proxyenv.Environment, prefix string) proxyenv.Environment {
	if prefix == "" {
		return env
	}
	out := env
	out.Vars, out.Unset = nil, nil
	for _, v := range env.Vars {
		out.Vars = append(out.Vars, proxyenv.Var{Name: prefix + v.Name, Value: v.Value})
	}
	for _, name := range env.Unset {
		out.Vars = append(out.Vars, proxyenv.Var{Name: prefix + name, Value: proxyenv.PlainSecret("")})
	}
	slices.SortFunc(out.Vars, func(a, b proxyenv.Var) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// unitName is what systemd allows in the name of a service (unit-name.c), template instances
// included.
var unitName = regexp.MustCompile(`^[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\@-]+)?\.service$`)

func checkUnit(unit string) error {
	if len(unit) > 255 || !unitName.MatchString(unit) {
		return fmt.Errorf("rendering the files of unit %q: it is not the name of a service; write it with its suffix, as containerd.service", unit)
	}
	return nil
}

func renderEnv(unit string, env proxyenv.Environment) (File, error) {
	var content, masked strings.Builder
	content.WriteString(headerLine + "\n")
	masked.WriteString(headerLine + "\n")
	for _, v := range env.Vars {
		line, err := unitfile.EnvLine(v.Name, v.Value.Reveal())
		if err != nil {
			return File{}, err
		}
		if size := len(v.Name) + 1 + len(v.Value.Reveal()); size > proxyenv.MaxEnvString {
			return File{}, fmt.Errorf("%s would have %d bytes, and the kernel starts no process with more than %d in one variable; write domains and CIDRs rather than single hosts", v.Name, size, proxyenv.MaxEnvString)
		}
		shown := line
		if v.Value.Masked() != v.Value.Reveal() {
			if shown, err = unitfile.EnvLine(v.Name, v.Value.Masked()); err != nil {
				return File{}, err
			}
		}
		content.WriteString(line)
		masked.WriteString(shown)
	}
	return File{Path: EnvPath(unit), Mode: EnvMode, Content: []byte(content.String()), Masked: []byte(masked.String())}, nil
}

func renderDropIn(in RenderInput, scoped proxyenv.Environment) (File, error) {
	var d dropIn
	d.comment(strings.TrimPrefix(headerLine, "# "))
	d.comment("Profile:  " + in.Profile)
	d.comment("Revision: " + in.Revision)
	if in.Environment.NodeDigest != "" {
		d.comment("Node:     " + in.Environment.NodeDigest + " (digest of the entries that are this node's own)")
	}
	d.comment("Docs:     " + docsURL)
	d.comment("")
	if len(scoped.Vars) > 0 {
		d.comment("What " + in.Unit + " is given, with secrets masked:")
	}
	for _, v := range scoped.Vars {
		if strings.EqualFold(v.Name, in.Prefix+"NO_PROXY") {
			d.comment(fmt.Sprintf("  %s: the %d entries below", v.Name, len(in.Environment.Entries)))
			continue
		}
		d.comment("  " + v.Name + "=" + v.Value.Masked())
	}
	if len(scoped.Unset) > 0 {
		d.comment("What is taken away from it, whoever sets it: " + strings.Join(scoped.Unset, ", "))
	}
	d.entries(in.Environment.Entries)
	d.line("")
	d.line("[Service]")
	d.line("EnvironmentFile=-" + EnvPath(in.Unit))
	if len(scoped.Unset) > 0 {
		d.line("UnsetEnvironment=" + strings.Join(scoped.Unset, " "))
	}
	if d.err != nil {
		return File{}, d.err
	}
	content := []byte(d.b.String())
	return File{Path: DropInPath(in.Unit), Mode: DropInMode, Content: content, Masked: content}, nil
}

// dropIn collects lines and keeps the first error.
type dropIn struct {
	b   strings.Builder
	err error
}

func (d *dropIn) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *dropIn) line(text string) {
	if unitfile.HasControl(text) || !unitfile.ValidText(text) {
		d.fail(fmt.Errorf("the text %+q holds a control character or is not valid UTF-8, and systemd could read part of it as a setting; remove that from the profile", text))
		return
	}
	d.b.WriteString(text)
	d.b.WriteByte('\n')
}

func (d *dropIn) comment(text string) {
	if strings.HasSuffix(text, `\`) {
		d.fail(fmt.Errorf("the comment %q ends in a backslash, with which some systemd takes the next line for part of it; end it with something else", text))
		return
	}
	if text == "" {
		d.line("#")
		return
	}
	d.line("# " + text)
}

// entries lists the entries of NO_PROXY, each with where it comes from. The reason, which is
// somebody's text, never ends a line.
func (d *dropIn) entries(entries []v1alpha1.NoProxyEntry) {
	if len(entries) == 0 {
		return
	}
	d.comment("")
	d.comment("NO_PROXY:")
	width := 0
	for _, e := range entries {
		width = max(width, min(len(e.Value), 40))
	}
	for _, e := range entries {
		if strings.ContainsAny(e.Value, " ,") || e.Value == "" {
			d.fail(fmt.Errorf("the NO_PROXY entry %q holds a space or a comma, or nothing; write each entry by itself", e.Value))
			return
		}
		why := strings.ToLower(string(e.Source))
		if e.Reason != "" {
			why += ": " + e.Reason
		}
		d.comment("  " + e.Value + strings.Repeat(" ", max(0, width-len(e.Value))) + " (" + why + ")")
	}
}
