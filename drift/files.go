package drift

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/proxyward/proxyward/internal/hostfs"
)

// observeFiles reads our files and everybody's who names a variable of ours for the unit.
func observeFiles(host Tree, ref UnitRef) FileLayer {
	layer := FileLayer{Ours: map[string]FileState{}}
	paths, err := ourPaths(host, ref)
	if err != nil {
		return FileLayer{Err: err}
	}
	for _, p := range paths {
		state, err := fileState(host, p)
		if err != nil {
			return FileLayer{Err: err}
		}
		layer.Ours[p] = state
	}
	layer.Others, err = observeOthers(host, ref)
	if err != nil {
		return FileLayer{Err: err}
	}
	return layer
}

// ourPaths are the files to look at: those desired, those that every unit of ours has, and the CA
// folders that are there.
func ourPaths(host Tree, ref UnitRef) ([]string, error) {
	paths := append(slices.Clone(ref.Paths), dropInPath(ref.Unit), envPath(ref.Unit))
	folders, err := readDir(host, CADir)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		files, err := readDir(host, path.Join(CADir, folder.Name()))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if file.Type().IsRegular() {
				paths = append(paths, path.Join(CADir, folder.Name(), file.Name()))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

func dropInPath(unit string) string { return path.Join(DropInDir, unit+".d", DropInName) }
func envPath(unit string) string    { return path.Join(EnvDir, unit+".env") }

// readDir lists a directory; one that is not there, or is none, has no entries.
func readDir(host Tree, dir string) ([]fs.DirEntry, error) {
	entries, err := host.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, hostfs.ErrNotDirectory) {
		return nil, nil
	}
	return entries, err
}

// fileState reads one file without following a link in its place.
func fileState(host Tree, file string) (FileState, error) {
	info, err := host.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return FileState{}, nil
	case errors.Is(err, hostfs.ErrNotDirectory):
		return FileState{Blocked: true}, nil
	case err != nil:
		return FileState{}, err
	}
	state := FileState{Exists: true, Mode: info.Mode(), Regular: info.Mode().IsRegular()}
	if !state.Regular {
		return state, nil
	}
	state.Content, err = host.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return FileState{}, nil // removed meanwhile
	}
	if err != nil {
		return FileState{}, err
	}
	state.Owned = isOwned(state.Content)
	return state, nil
}

// headerMark begins the first line of every file of ours.
const headerMark = "# Managed by Proxyward"

// isOwned says whether a file bears our header, which is its first line.
func isOwned(content []byte) bool {
	return bytes.HasPrefix(content, []byte(headerMark))
}
