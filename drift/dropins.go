package drift

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Where Proxyward's files stand on a host.
const (
	// DropInDir holds <unit>.d directories.
	DropInDir = "/etc/systemd/system"
	// DropInName sorts after whatever people call theirs.
	DropInName = "zz-proxyward.conf"
	// EnvDir holds <unit>.env.
	EnvDir = "/etc/proxyward/env"
	// CADir holds a folder per trusted CA.
	CADir = "/etc/proxyward/ca"
)

// unitDirectories are systemd's own, nearest first (systemd.unit(5), "Unit File Search Path"). The
// last is /usr/lib where that is not merged.
func unitDirectories() []string {
	return []string{
		"/etc/systemd/system.control",
		"/run/systemd/system.control",
		"/run/systemd/transient",
		"/run/systemd/generator.early",
		"/etc/systemd/system",
		"/etc/systemd/system.attached",
		"/run/systemd/system",
		"/run/systemd/system.attached",
		"/run/systemd/generator",
		"/usr/local/lib/systemd/system",
		"/usr/lib/systemd/system",
		"/run/systemd/generator.late",
		"/lib/systemd/system",
	}
}

// dropInDirectories are the directories whose drop-ins apply to a unit, in the order in which a
// file name masks the same name further on: per search directory the unit's own and its prefixes'
// (foo-bar.service.d, foo-.service.d), and after all of them those of the unit's type (service.d).
func dropInDirectories(unit string) []string {
	names := dropInNames(unit)
	var dirs []string
	for _, dir := range unitDirectories() {
		for _, name := range names {
			dirs = append(dirs, path.Join(dir, name))
		}
	}
	for _, dir := range unitDirectories() {
		dirs = append(dirs, path.Join(dir, typeDropInName(unit)))
	}
	return dirs
}

// dropInNames are the names of the drop-in directories of one unit and of its prefixes, the
// nearest first.
func dropInNames(unit string) []string {
	ext := path.Ext(unit)
	stem := strings.TrimSuffix(unit, ext)
	names := []string{unit + ".d"}
	for i := len(stem) - 1; i > 0; i-- {
		if stem[i-1] == '-' {
			names = append(names, stem[:i]+ext+".d")
		}
	}
	return names
}

// typeDropInName is the name of the drop-in directory of all units of a type: service.d.
func typeDropInName(unit string) string {
	return strings.TrimPrefix(path.Ext(unit), ".") + ".d"
}

// dropIn is a drop-in that systemd would read, or that is masked.
type dropIn struct {
	path string
	// masked files link to /dev/null or are empty: they only keep the same name elsewhere away.
	masked bool
}

// dropIns lists a unit's drop-ins in the order in which systemd applies them: by file name,
// whatever the directory.
func dropIns(host Tree, unit string) ([]dropIn, error) {
	byName := map[string]dropIn{}
	for _, dir := range dropInDirectories(unit) {
		entries, err := readDir(host, dir)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			name := entry.Name()
			if _, taken := byName[name]; taken || strings.HasPrefix(name, ".") || path.Ext(name) != ".conf" {
				continue
			}
			file := path.Join(dir, name)
			usable, masks, err := usable(host, file)
			if err != nil {
				return nil, err
			}
			if usable || masks {
				byName[name] = dropIn{path: file, masked: masks}
			}
		}
	}
	list := make([]dropIn, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list, nil
}

// fragment returns the unit file that systemd would load, "" when there is none.
func fragment(host Tree, unit string) (string, error) {
	for _, dir := range unitDirectories() {
		file := path.Join(dir, unit)
		usable, masks, err := usable(host, file)
		if err != nil {
			return "", err
		}
		if usable {
			return file, nil
		}
		if masks {
			return "", nil
		}
	}
	return "", nil
}

// usable says whether systemd would read a file, or whether the file masks those of its name in
// farther directories: an empty one, or a link to /dev/null. The link is judged by its text,
// because the tree may have no /dev.
func usable(host Tree, file string) (usable, masks bool, err error) {
	info, err := host.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := host.Readlink(file)
		if err != nil {
			return false, false, err
		}
		if target == "/dev/null" {
			return false, true, nil
		}
		info, err = host.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			return false, false, nil
		}
		if err != nil {
			return false, false, err
		}
	}
	masks = info.Mode().IsRegular() && info.Size() == 0
	return info.Mode().IsRegular() && !masks, masks, nil
}

// managerFiles lists the files that configure systemd itself, in the order in which they apply.
func managerFiles(host Tree) ([]string, error) {
	files := []string{"/etc/systemd/system.conf"}
	byName := map[string]string{}
	for _, dir := range []string{"/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"} {
		dir = path.Join(dir, "system.conf.d")
		entries, err := readDir(host, dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name := e.Name()
			if _, taken := byName[name]; !taken && path.Ext(name) == ".conf" && !strings.HasPrefix(name, ".") {
				byName[name] = path.Join(dir, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if readable, _, err := usable(host, byName[name]); err != nil {
			return nil, err
		} else if readable {
			files = append(files, byName[name])
		}
	}
	return files, nil
}
