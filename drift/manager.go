package drift

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// managerFiles lists the files that configure systemd itself, in the order in which they apply. The
// nearest of a name counts, also where it only links to /dev/null.
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
		files = append(files, byName[name])
	}
	return files, nil
}
