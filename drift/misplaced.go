package drift

import (
	"path"
	"slices"
	"strings"
)

// readMisplaced finds files that were meant for the unit and that systemd does not read: drop-ins in
// a folder of another name, or of a name that does not end in .conf.
func (o *others) readMisplaced() error {
	stem := strings.TrimSuffix(o.ref.Unit, path.Ext(o.ref.Unit))
	right := o.ref.Unit + ".d"
	for _, name := range []string{o.ref.Unit, stem + ".d", stem, right} {
		dir := path.Join(DropInDir, name)
		entries, err := readDir(o.host, dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			hidden := strings.HasPrefix(e.Name(), ".")
			if !e.Type().IsRegular() || name == right && (hidden || path.Ext(e.Name()) == ".conf") {
				continue
			}
			why := "systemd does not read it: the folder's name must be " + right
			if name == right {
				why = "systemd does not read it: the file's name must end in .conf"
			}
			if err := o.noteMisplaced(path.Join(dir, e.Name()), why); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *others) noteMisplaced(file, why string) error {
	content, mode, err := readIfThere(o.host, file)
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(o.list, func(f OtherFile) bool { return f.Path == file })
	if mentionsProxy(content) && !known {
		o.list = append(o.list, OtherFile{Path: file, Mode: mode, Problem: why})
	}
	return nil
}
