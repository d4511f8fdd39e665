package runtimes

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/internal/unitfile"
)

// unitDirs are the directories of unit files, the nearest first (systemd.unit(5), "Unit File Load
// Path"; the generators' and the transient ones are left out: no package puts a daemon there).
func unitDirs() []string {
	return []string{
		"/etc/systemd/system.control", "/run/systemd/system.control",
		"/etc/systemd/system", "/run/systemd/system",
		"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
	}
}

// Unit is what a host's files say about one systemd unit.
type Unit struct {
	// Name by which it is loaded; for an alias the name of the unit that it leads to.
	Name string
	// Fragment is its own file.
	Fragment string
	// Masked says that it leads to nothing, so that systemd never starts it.
	Masked bool
	// Sources are its file and its drop-ins, in the order in which systemd applies them.
	Sources []unitfile.Source
}

// FindUnit looks for a unit by its file. It returns nil when there is none. Aliases, which are
// symbolic links between unit files, are followed by name.
func FindUnit(host HostFS, name string) (*Unit, error) {
	for range 10 { // an alias of an alias of …: systemd follows few
		file, target, err := fragment(host, name)
		switch {
		case err != nil:
			return nil, err
		case file == "":
			return nil, nil
		case target == "/dev/null":
			return &Unit{Name: name, Fragment: file, Masked: true}, nil
		}
		if alias := path.Base(target); target != "" && alias != name && path.Ext(alias) == path.Ext(name) {
			name = alias
			continue
		}
		names, err := namesOf(host, name)
		if err != nil {
			return nil, err
		}
		return loadUnit(host, name, names, file)
	}
	return nil, fmt.Errorf("looking for unit %q: its aliases lead in a circle; remove one of the links in %s", name, UnitDir)
}

// fragment returns the nearest file of a unit and, when it is a link, what that says.
func fragment(host HostFS, name string) (file, target string, err error) {
	for _, dir := range unitDirs() {
		entries, err := readDir(host, dir)
		if err != nil {
			return "", "", err
		}
		i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
		if i < 0 {
			continue
		}
		file = path.Join(dir, name)
		if entries[i].Type()&fs.ModeSymlink == 0 {
			return file, "", nil
		}
		target, err = host.Readlink(file)
		if err != nil {
			return "", "", err
		}
		return file, target, nil
	}
	return "", "", nil
}

// namesOf returns a unit's name and the names of the links to it: the drop-ins of all of them
// apply.
func namesOf(host HostFS, name string) ([]string, error) {
	names := []string{name}
	for _, dir := range unitDirs() {
		entries, err := readDir(host, dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink == 0 || path.Ext(e.Name()) != path.Ext(name) || slices.Contains(names, e.Name()) {
				continue
			}
			target, err := host.Readlink(path.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			if path.Base(target) == name {
				names = append(names, e.Name())
			}
		}
	}
	return names, nil
}

func loadUnit(host HostFS, name string, names []string, file string) (*Unit, error) {
	content, err := host.ReadFile(file)
	if err != nil {
		return nil, err
	}
	u := &Unit{Name: name, Fragment: file, Masked: len(content) == 0}
	u.Sources = []unitfile.Source{{Path: file, Content: content}}
	dropIns, err := dropInPaths(host, names)
	if err != nil {
		return nil, err
	}
	for _, p := range dropIns {
		target, err := host.Readlink(p)
		if err == nil && target == "/dev/null" {
			continue // masks the same name in the directories after it
		}
		content, err := host.ReadFile(p)
		if err != nil {
			return nil, err
		}
		u.Sources = append(u.Sources, unitfile.Source{Path: p, Content: content})
	}
	return u, nil
}

// dropInPaths lists the drop-ins of a unit, sorted by file name whatever their directory. Of those
// with one name the nearest wins: first the directories of the unit's names, in the order of
// unitDirs, and last those of its type (service.d).
func dropInPaths(host HostFS, names []string) ([]string, error) {
	var dirs []string
	for _, name := range names {
		for _, dir := range unitDirs() {
			for _, n := range dropInNames(name) {
				dirs = append(dirs, path.Join(dir, n+".d"))
			}
		}
	}
	for _, dir := range unitDirs() {
		dirs = append(dirs, path.Join(dir, "service.d"))
	}
	byName := map[string]string{}
	for _, dir := range dirs {
		entries, err := readDir(host, dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			n := e.Name()
			if strings.HasPrefix(n, ".") || path.Ext(n) != ".conf" || e.IsDir() || byName[n] != "" {
				continue
			}
			byName[n] = path.Join(dir, n)
		}
	}
	paths := make([]string, 0, len(byName))
	for _, p := range byName {
		paths = append(paths, p)
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	return paths, nil
}

// dropInNames returns a unit's name, that of its template, and its prefixes cut at each dash:
// a-b.service takes a-.service.d as well.
func dropInNames(name string) []string {
	names := []string{name}
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if prefix, _, found := strings.Cut(stem, "@"); found {
		names = append(names, prefix+"@"+ext)
		stem = prefix
	}
	for i := len(stem) - 1; i > 0; i-- {
		if stem[i] == '-' && i < len(stem)-1 {
			names = append(names, stem[:i+1]+ext)
		}
	}
	return names
}

// last returns the value that holds of a setting that is no list, and the file that gives it.
func (u *Unit) last(section, key string) (value, file string) {
	for _, s := range u.Sources {
		for _, d := range unitfile.ParseUnit(s.Path, s.Content).Directives {
			if d.Section == section && d.Key == key {
				value, file = d.Value, d.Path
			}
		}
	}
	return value, file
}

// Environment says what systemd gives to the unit, of what files say.
func (u *Unit) Environment(host HostFS) unitfile.Environment {
	return unitfile.Effective(unitfile.Input{Unit: u.Name, Files: u.Sources, Read: host.ReadFile})
}

// readDir reads a directory that need not exist. A file in its place is as good as none: systemd
// passes over it.
func readDir(host HostFS, dir string) ([]fs.DirEntry, error) {
	entries, err := host.ReadDir(dir)
	if err != nil && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		if info, statErr := host.Stat(dir); statErr == nil && !info.IsDir() {
			return nil, nil
		}
	}
	return entries, err
}

// readOptional reads a file that need not exist.
func readOptional(host HostFS, file string) (content []byte, found bool, err error) {
	content, err = host.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return content, err == nil, err
}
