package drift

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/internal/unitfile"
)

// observeOthers finds other people's files that set, unset or drop a variable of ours for a unit,
// in the order in which systemd applies them. Whether one wins is judged as if our drop-in were in
// place with every variable set, which it may not be yet.
func observeOthers(host Tree, ref UnitRef) ([]OtherFile, error) {
	o := &others{host: host, ref: ref, sources: map[string]source{}}
	if err := o.readManager(); err != nil {
		return nil, err
	}
	if err := o.readUnit(); err != nil {
		return nil, err
	}
	effective := unitfile.Effective(unitfile.Input{
		Unit: ref.Unit, Manager: o.defaults, Files: o.files, Read: o.readEnvironmentFile,
	})
	if o.err != nil {
		return nil, o.err
	}
	o.collect(effective)
	o.describe(effective.Notes)
	if err := o.readMisplaced(); err != nil {
		return nil, err
	}
	return o.list, nil
}

// others is the search for other people's files of one unit.
type others struct {
	host Tree
	ref  UnitRef

	defaults []unitfile.Assignment
	files    []unitfile.Source
	// sources are all files that were read, by path.
	sources map[string]source
	list    []OtherFile
	err     error // of reading an environment file
}

// source is one file, with its place in systemd's order.
type source struct {
	rank    int
	mode    fs.FileMode
	content []byte
}

// readManager reads DefaultEnvironment=, which every unit inherits.
func (o *others) readManager() error {
	files, err := managerFiles(o.host)
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := o.read(file)
		if err != nil {
			return err
		}
		for _, d := range unitfile.ParseUnit(file, content).Directives {
			if d.Section == "Manager" && d.Key == "DefaultEnvironment" {
				list, _ := unitfile.ParseEnvironment(d.Position, o.ref.Unit, d.Value)
				o.defaults = append(o.defaults, list...)
			}
		}
	}
	return nil
}

// readUnit reads the unit file and its drop-ins, with a stand-in for ours at its place.
func (o *others) readUnit() error {
	unitFile, err := fragment(o.host, o.ref.Unit)
	if err != nil {
		return err
	}
	if unitFile != "" {
		if err := o.add(unitFile); err != nil {
			return err
		}
	}
	list, err := dropIns(o.host, o.ref.Unit)
	if err != nil {
		return err
	}
	placed := false
	for _, d := range list {
		name := path.Base(d.path)
		if name >= DropInName && !placed {
			placed = true
			o.files = append(o.files, unitfile.Source{Path: dropInPath(o.ref.Unit), Content: []byte("[Service]\nEnvironmentFile=-" + envPath(o.ref.Unit) + "\n")})
		}
		switch {
		case d.path == dropInPath(o.ref.Unit):
		case name == DropInName:
			o.judgeNamesake(d)
		case !d.masked:
			if err := o.add(d.path); err != nil {
				return err
			}
			if name > DropInName {
				o.judgeResets(d.path)
			}
		}
	}
	if !placed {
		o.files = append(o.files, unitfile.Source{Path: dropInPath(o.ref.Unit), Content: []byte("[Service]\nEnvironmentFile=-" + envPath(o.ref.Unit) + "\n")})
	}
	return nil
}

// add reads a unit file or drop-in.
func (o *others) add(file string) error {
	content, err := o.read(file)
	if err != nil {
		return err
	}
	o.files = append(o.files, unitfile.Source{Path: file, Content: content})
	return nil
}

// judgeNamesake judges a drop-in with the name of ours: systemd reads only the nearest of a name.
func (o *others) judgeNamesake(d dropIn) {
	dirs := dropInDirectories(o.ref.Unit)
	if slices.Index(dirs, path.Dir(d.path)) > slices.Index(dirs, path.Dir(dropInPath(o.ref.Unit))) {
		return // ours is nearer, once it is there
	}
	o.list = append(o.list, OtherFile{
		Path: d.path, Wins: true,
		Problem: "systemd reads it instead of Proxyward's drop-in, which has the same name in a directory that counts less",
	})
}

// judgeResets looks in a drop-in after ours for an empty directive that drops what ours says.
func (o *others) judgeResets(file string) {
	source := o.sources[file]
	for _, d := range unitfile.ParseUnit(file, source.content).Directives {
		if d.Section == "Service" && d.Value == "" && (d.Key == "EnvironmentFile" || d.Key == "UnsetEnvironment") {
			o.list = append(o.list, OtherFile{
				Path: file, Mode: source.mode, Wins: true,
				Problem: "its empty " + d.Key + "= drops what Proxyward's drop-in says",
			})
			return
		}
	}
}

// collect makes an entry of each file that sets or unsets a variable of ours.
func (o *others) collect(effective unitfile.Environment) {
	entries := map[string]*OtherFile{}
	entry := func(file string, wins bool) *OtherFile {
		key := file
		if wins {
			key += "\x00wins"
		}
		if entries[key] == nil {
			entries[key] = &OtherFile{Path: file, Mode: o.sources[file].mode, Wins: wins}
		}
		return entries[key]
	}
	ours := envPath(o.ref.Unit)
	for _, v := range effective.Variables {
		if !isOurs(v.Name, o.ref.Runtime.Prefix) {
			continue
		}
		for i, s := range append([]unitfile.Setting{v.Setting}, v.Loses...) {
			if s.Path == ours {
				continue
			}
			e := entry(s.Path, i == 0)
			if !slices.Contains(e.Names, v.Name) {
				e.Names = append(e.Names, v.Name)
				e.Vars = append(e.Vars, proxyenv.Var{Name: v.Name, Value: maskedSecret(s.Value)})
			}
		}
		if v.Removed != nil {
			e := entry(v.Removed.Path, true)
			e.Problem = "it unsets what Proxyward sets"
			if !slices.Contains(e.Names, v.Name) {
				e.Names = append(e.Names, v.Name)
			}
		}
	}
	for _, e := range entries {
		o.list = append(o.list, *e)
	}
	slices.SortStableFunc(o.list, func(a, b OtherFile) int {
		if d := o.sources[a.Path].rank - o.sources[b.Path].rank; d != 0 {
			return d
		}
		return strings.Compare(a.Problem, b.Problem)
	})
}

// describe adds what systemd makes of lines that are not what they look like. A note without a
// variable's name concerns us when the file speaks of proxies at all.
func (o *others) describe(notes []unitfile.Note) {
	for _, note := range notes {
		source, known := o.sources[note.Path]
		ours := isOurs(note.Name, o.ref.Runtime.Prefix) || note.Name == "" && mentionsProxy(source.content)
		if !known || !ours || note.Kind == unitfile.NoteVersions {
			continue
		}
		i := slices.IndexFunc(o.list, func(f OtherFile) bool { return f.Path == note.Path })
		if i < 0 {
			o.list = append(o.list, OtherFile{Path: note.Path, Mode: source.mode})
			i = len(o.list) - 1
		}
		if o.list[i].Problem == "" {
			o.list[i].Problem = note.String()
		}
	}
}

// mentionsProxy says whether a text speaks of what we care for, in whatever form.
func mentionsProxy(content []byte) bool {
	upper := bytes.ToUpper(content)
	return bytes.Contains(upper, []byte("_PROXY")) || bytes.Contains(upper, []byte("SSL_CERT_"))
}

// readEnvironmentFile reads for unitfile.Effective. In place of ours it gives every variable that
// Proxyward may set. A failure other than absence must not pass for absence.
func (o *others) readEnvironmentFile(file string) ([]byte, error) {
	if file == envPath(o.ref.Unit) {
		return standIn(o.ref.Runtime.Prefix), nil
	}
	content, err := o.read(file)
	if err != nil {
		o.err = err
		return nil, err
	}
	if _, read := o.sources[file]; !read {
		return nil, fs.ErrNotExist
	}
	return content, nil
}

// read reads a file and remembers it. One that is missing is as if it were empty.
func (o *others) read(file string) ([]byte, error) {
	content, mode, err := readIfThere(o.host, file)
	if err != nil || mode == 0 {
		return nil, err
	}
	if _, again := o.sources[file]; !again {
		o.sources[file] = source{rank: len(o.sources), mode: mode, content: content}
	}
	return content, nil
}

// readIfThere reads a file and its mode, which is 0 when there is none.
func readIfThere(host Tree, file string) ([]byte, fs.FileMode, error) {
	gone := func(err error) bool {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, hostfs.ErrNotDirectory)
	}
	info, err := host.Stat(file)
	if gone(err) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	content, err := host.ReadFile(file)
	if gone(err) {
		return nil, 0, nil
	}
	return content, info.Mode(), err
}
