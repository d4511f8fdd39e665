package drift

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/proxyward/proxyward/internal/hostfs"
)

// interest is why an event may matter.
type interest int

const (
	none interest = iota
	// watched: it is about a file whose content counts.
	watched
	// onTheWay: it is about a directory or link through which a watched path goes, so where that
	// leads may have changed.
	onTheWay
)

// maxLinks is how many symbolic links a path may go through, as in the kernel.
const maxLinks = 40

// watchPoints are the directories to watch, as this process sees them, and for each the names in
// it that matter.
type watchPoints struct {
	root string
	// watch starts to watch a directory.
	watch func(dir string) error
	dirs  map[string]*watchPoint
}

type watchPoint struct {
	// every file matters, but dotfiles, which systemd ignores and Proxyward writes through.
	every bool
	names map[string]interest
}

func newWatchPoints(root string, watch func(dir string) error) watchPoints {
	return watchPoints{root: root, watch: watch, dirs: map[string]*watchPoint{}}
}

// about says what an event's name is about, as a host path.
func (p watchPoints) about(name string) (string, interest) {
	dir, base := filepath.Split(name)
	point := p.dirs[filepath.Clean(dir)]
	if point == nil {
		return "", none
	}
	found := point.names[base]
	if found == none && point.every && !strings.HasPrefix(base, ".") {
		found = watched
	}
	return "/" + strings.TrimPrefix(strings.TrimPrefix(name, p.root), "/"), found
}

// at returns the point of a directory, which is watched from then on.
func (p watchPoints) at(hostDir string) (*watchPoint, error) {
	dir := filepath.Join(p.root, hostDir)
	if point := p.dirs[dir]; point != nil {
		return point, nil
	}
	// A directory that is gone by now is told by the one above it.
	if err := p.watch(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	point := &watchPoint{names: map[string]interest{}}
	p.dirs[dir] = point
	return point, nil
}

// walk follows a host path through its directories and links, and notes in each directory which
// name leads on. Where the path ends before it should, the last directory is watched for the next
// name to appear. A path that goes in circles ends there.
func (p watchPoints) walk(host Tree, target string, isDir bool) error {
	rest := strings.Split(strings.TrimPrefix(path.Clean(target), "/"), "/")
	here := "/"
	for links := 0; len(rest) > 0 && links <= maxLinks; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			here = path.Dir(here)
			continue
		}
		content := len(rest) == 0 && !isDir
		point, err := p.at(here)
		if err != nil {
			return err
		}
		next := path.Join(here, name)
		info, err := host.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, hostfs.ErrNotDirectory) {
			point.note(name, content)
			return nil
		}
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			links++
			point.note(name, false)
			to, err := host.Readlink(next)
			if errors.Is(err, fs.ErrNotExist) {
				return nil // gone by now: its directory tells
			}
			if err != nil {
				return err
			}
			if path.IsAbs(to) {
				here = "/"
			}
			rest = append(strings.Split(path.Clean(to), "/"), rest...)
			continue
		}
		point.note(name, content)
		if !info.IsDir() {
			return nil
		}
		here = next
	}
	if !isDir {
		return nil
	}
	point, err := p.at(here)
	if err != nil {
		return err
	}
	point.every = true
	return nil
}

// note marks a name. What leads on outweighs what only counts itself.
func (w *watchPoint) note(name string, content bool) {
	if !content {
		w.names[name] = onTheWay
	} else if w.names[name] == none {
		w.names[name] = watched
	}
}
