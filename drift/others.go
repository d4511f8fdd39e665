package drift

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// others collects, in systemd's order, the files of other people that name a variable of ours.
type others struct {
	host Tree
	ref  UnitRef
	list []OtherFile
	// envFiles are in force so far, in order.
	envFiles []envFileRef
}

// envFileRef is one EnvironmentFile= and whether it comes after ours.
type envFileRef struct {
	path  string
	after bool
}

// observeOthers reads the manager's defaults, the unit file, its drop-ins and the environment files
// that these name. systemd applies them in this order: defaults, Environment= in the order of the
// files, then every environment file in the order of EnvironmentFile=, then UnsetEnvironment=. Our
// drop-in names an environment file, so only environment files after it, and directives that take
// back what it says, can win over it.
func observeOthers(host Tree, ref UnitRef) ([]OtherFile, error) {
	o := &others{host: host, ref: ref}
	if err := o.manager(); err != nil {
		return nil, err
	}
	unitFile, err := fragment(host, ref.Unit)
	if err != nil {
		return nil, err
	}
	if unitFile != "" {
		if err := o.unitFile(unitFile, false); err != nil {
			return nil, err
		}
	}
	list, err := dropIns(host, ref.Unit)
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		if err := o.dropIn(d); err != nil {
			return nil, err
		}
	}
	for _, f := range o.envFiles {
		if err := o.environmentFile(f); err != nil {
			return nil, err
		}
	}
	return o.list, nil
}

// manager reads DefaultEnvironment=, which every unit inherits. These values lose to all others.
func (o *others) manager() error {
	files := []string{"/etc/systemd/system.conf"}
	for _, dir := range []string{"/usr/lib/systemd/system.conf.d", "/run/systemd/system.conf.d", "/etc/systemd/system.conf.d"} {
		entries, err := readDir(o.host, dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if path.Ext(e.Name()) == ".conf" && !strings.HasPrefix(e.Name(), ".") {
				files = append(files, path.Join(dir, e.Name()))
			}
		}
	}
	for _, file := range files {
		data, mode, err := o.read(file)
		if err != nil {
			return err
		}
		found := OtherFile{Path: file, Mode: mode}
		for _, d := range parseDirectives(data) {
			if d.section == "Manager" && d.key == "DefaultEnvironment" {
				o.assign(&found, d.value)
			}
		}
		o.add(found)
	}
	return nil
}

// dropIn reads one drop-in, unless it is ours.
func (o *others) dropIn(d dropIn) error {
	name := path.Base(d.path)
	if d.path == dropInPath(o.ref.Unit) {
		return nil
	}
	if name == DropInName {
		return o.namesake(d)
	}
	if d.masked {
		return nil
	}
	return o.unitFile(d.path, name > DropInName)
}

// namesake judges a drop-in with the name of ours: systemd reads only the nearest of a name.
func (o *others) namesake(d dropIn) error {
	dirs := dropInDirectories(o.ref.Unit)
	if slices.Index(dirs, path.Dir(d.path)) > slices.Index(dirs, path.Dir(dropInPath(o.ref.Unit))) {
		return nil // ours is nearer: it will not be read once ours is there
	}
	info, err := o.host.Lstat(d.path)
	if err != nil {
		return err
	}
	o.list = append(o.list, OtherFile{
		Path: d.path, Mode: info.Mode(), Wins: true,
		Problem: "systemd reads it instead of Proxyward's drop-in, which has the same name in a directory that counts less",
	})
	return nil
}

// unitFile reads the directives of a unit file or drop-in that concern the environment.
func (o *others) unitFile(file string, after bool) error {
	data, mode, err := o.read(file)
	if err != nil {
		return err
	}
	found := OtherFile{Path: file, Mode: mode}
	for _, d := range parseDirectives(data) {
		if d.section != "Service" {
			continue
		}
		switch d.key {
		case "Environment":
			o.assign(&found, d.value)
		case "EnvironmentFile":
			if d.value == "" {
				if after {
					found.Wins, found.Problem = true, "its empty EnvironmentFile= drops Proxyward's"
				}
				o.envFiles = nil
				continue
			}
			if problem := o.name(d.value, after); problem != "" {
				found.Problem = problem
			}
		case "UnsetEnvironment":
			o.unset(&found, d.value, after)
		}
	}
	o.add(found)
	return nil
}

// assign notes the variables of ours that an Environment= sets.
func (o *others) assign(found *OtherFile, value string) {
	vars, problem := parseAssignments(value)
	o.set(found, vars)
	if problem != "" {
		found.Problem = problem
	}
}

// set keeps the variables of ours; the last assignment of a name counts.
func (o *others) set(found *OtherFile, vars []proxyenv.Var) {
	for _, v := range vars {
		if !isOurs(v.Name, o.ref.Runtime.Prefix) {
			continue
		}
		found.Vars = slices.DeleteFunc(found.Vars, func(have proxyenv.Var) bool { return have.Name == v.Name })
		found.Vars = append(found.Vars, v)
		if !slices.Contains(found.Names, v.Name) {
			found.Names = append(found.Names, v.Name)
		}
	}
}

// unset notes an UnsetEnvironment=, which wins wherever it stands: systemd applies it last.
func (o *others) unset(found *OtherFile, value string, after bool) {
	if value == "" {
		if after {
			found.Wins, found.Problem = true, "its empty UnsetEnvironment= drops Proxyward's"
		}
		return
	}
	taken := OtherFile{Path: found.Path, Mode: found.Mode, Wins: true, Problem: "it unsets what Proxyward sets"}
	for _, word := range strings.Fields(value) {
		if name, _, _ := strings.Cut(strings.Trim(word, `"'`), "="); isOurs(name, o.ref.Runtime.Prefix) {
			taken.Names = append(taken.Names, name)
		}
	}
	if len(taken.Names) > 0 {
		o.list = append(o.list, taken)
	}
}

// name notes an environment file. What cannot be told without systemd is said.
func (o *others) name(value string, after bool) (problem string) {
	file := strings.TrimPrefix(value, "-")
	if file == envPath(o.ref.Unit) {
		return ""
	}
	stem := strings.TrimSuffix(o.ref.Unit, path.Ext(o.ref.Unit))
	file = strings.NewReplacer("%%", "%", "%n", o.ref.Unit, "%N", stem, "%p", stem).Replace(file)
	if strings.Contains(file, "%") || !path.IsAbs(file) {
		return fmt.Sprintf("it names the environment file %q, which only systemd can find", value)
	}
	if !strings.ContainsAny(path.Base(file), "*?[") {
		o.envFiles = append(o.envFiles, envFileRef{path: file, after: after})
		return ""
	}
	entries, err := readDir(o.host, path.Dir(file))
	if err != nil {
		return err.Error()
	}
	for _, e := range entries {
		if ok, err := path.Match(path.Base(file), e.Name()); ok && err == nil {
			o.envFiles = append(o.envFiles, envFileRef{path: path.Join(path.Dir(file), e.Name()), after: after})
		}
	}
	return ""
}

// environmentFile reads one environment file that is in force.
func (o *others) environmentFile(ref envFileRef) error {
	data, mode, err := o.read(ref.path)
	if err != nil {
		return err
	}
	found := OtherFile{Path: ref.path, Mode: mode, Wins: ref.after}
	vars, problem := parseEnvironmentFile(data)
	o.set(&found, vars)
	found.Problem = problem
	if len(found.Names) > 0 {
		o.list = append(o.list, found)
	}
	return nil
}

// add keeps a unit file that says something about our variables.
func (o *others) add(found OtherFile) {
	if len(found.Names) > 0 && found.Wins {
		// It drops ours, whatever else it sets.
		found.Names, found.Vars = nil, nil
	}
	if len(found.Names) > 0 || found.Problem != "" {
		o.list = append(o.list, found)
	}
}

// read reads a file that may be missing, which is as if it were empty.
func (o *others) read(file string) ([]byte, fs.FileMode, error) {
	data, err := o.host.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, hostfs.ErrNotDirectory) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := o.host.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil // removed meanwhile
	}
	if err != nil {
		return nil, 0, err
	}
	return data, info.Mode(), nil
}
