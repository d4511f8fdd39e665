package drift

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/runtimes"
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
	paths := append(slices.Clone(ref.Paths), runtimes.DropInPath(ref.Unit), runtimes.EnvPath(ref.Unit))
	folders, err := readDir(host, runtimes.CADir)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		files, err := readDir(host, path.Join(runtimes.CADir, folder.Name()))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if file.Type().IsRegular() {
				paths = append(paths, path.Join(runtimes.CADir, folder.Name(), file.Name()))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

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
	state.Owned = runtimes.Owned(state.Content)
	return state, nil
}
