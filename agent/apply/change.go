package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/proxyward/proxyward/drift"
)

// Change is one file before and after. The contents lie in the attempt's backup directory, so
// that either state can be reached by whoever comes next.
type Change struct {
	Path string `json:"path"`
	Unit string `json:"unit,omitempty"`
	Prev Side   `json:"prev"`
	Next Side   `json:"next"`
	// NewDirs are the directories that the change makes, the deepest first.
	NewDirs []string `json:"newDirs,omitempty"`
}

// Side is a file in one of its two states.
type Side struct {
	Exists bool        `json:"exists"`
	Mode   fs.FileMode `json:"mode,omitempty"`
	// Saved is where its content lies.
	Saved string `json:"saved,omitempty"`
}

const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// attemptDir is where an attempt's contents lie. The attempt is somebody else's text, so it is
// hashed rather than used as a name.
func attemptDir(attempt string) string {
	sum := sha256.Sum256([]byte(attempt))
	return path.Join(backupDir, hex.EncodeToString(sum[:8]))
}

// planChanges looks at what the plan's files replace. Anything but a regular file in their place
// is refused.
func planChanges(files Reader, actions []drift.Action, attempt string) ([]Change, error) {
	dir := attemptDir(attempt)
	var changes []Change
	for _, a := range actions {
		if a.Kind != drift.ActionWrite && a.Kind != drift.ActionRemove {
			continue
		}
		c := Change{Path: a.File.Path, Unit: a.Unit}
		name := path.Join(dir, strconv.Itoa(len(changes)))
		info, err := files.Lstat(c.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("looking at %q before changing it: %w", c.Path, err)
		case !info.Mode().IsRegular():
			return nil, refusal(ReasonNotRegular, nil, "%q is %s and no regular file; move it away", c.Path, info.Mode())
		default:
			c.Prev = Side{Exists: true, Mode: info.Mode() & modeBits, Saved: name + ".prev"}
		}
		if a.Kind == drift.ActionWrite {
			c.Next = Side{Exists: true, Mode: a.File.Mode & modeBits, Saved: name + ".next"}
			if c.NewDirs, err = missingDirs(files, path.Dir(c.Path)); err != nil {
				return nil, err
			}
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func missingDirs(files Reader, dir string) ([]string, error) {
	var missing []string
	for ; dir != "/" && dir != "."; dir = path.Dir(dir) {
		_, err := files.Lstat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking at directory %q: %w", dir, err)
		}
		missing = append(missing, dir)
	}
	return missing, nil
}

// saveContents copies both sides of every change into the attempt's directory.
func saveContents(files Files, changes []Change, actions []drift.Action, attempt string) error {
	if err := files.MkdirAll(attemptDir(attempt), 0o700); err != nil {
		return err
	}
	next := map[string][]byte{}
	for _, a := range actions {
		if a.Kind == drift.ActionWrite {
			next[a.File.Path] = a.File.Content
		}
	}
	for _, c := range changes {
		if c.Prev.Exists {
			content, err := files.ReadFile(c.Path)
			if err != nil {
				return fmt.Errorf("saving %q: %w", c.Path, err)
			}
			if err := save(files, c.Prev.Saved, content); err != nil {
				return fmt.Errorf("saving %q: %w", c.Path, err)
			}
		}
		if c.Next.Exists {
			if err := save(files, c.Next.Saved, next[c.Path]); err != nil {
				return fmt.Errorf("saving what %q will be: %w", c.Path, err)
			}
		}
	}
	return nil
}

func save(files Writer, saved string, content []byte) error {
	_, err := files.WriteFile(saved, content, 0o600)
	return err
}

// put brings one file into one of its states, byte and mode exact; doing it again changes nothing.
func put(files Files, c Change, side Side) error {
	if !side.Exists {
		_, err := files.Remove(c.Path)
		return err
	}
	content, err := files.ReadFile(side.Saved)
	if err != nil {
		return fmt.Errorf("reading what %q should be: %w", c.Path, err)
	}
	_, err = files.WriteFile(c.Path, content, side.Mode)
	return err
}

// putNext writes the new files in order; putPrev takes them back in the opposite order, so that
// what refers to a file is never there without it.
func putNext(files Files, changes []Change) error {
	for _, c := range changes {
		if err := put(files, c, c.Next); err != nil {
			return err
		}
	}
	return nil
}

// putPrev goes on after a failure: one file that cannot be put back keeps no other from it.
func putPrev(files Files, changes []Change) error {
	var errs []error
	for i := len(changes) - 1; i >= 0; i-- {
		c := changes[i]
		if err := put(files, c, c.Prev); err != nil {
			errs = append(errs, err)
			continue
		}
		if !c.Prev.Exists {
			removeEmpty(files, c.NewDirs)
		}
	}
	return errors.Join(errs...)
}

// removeEmpty removes directories, deepest first, up to one that cannot go because something is
// in it: then it is somebody else's too.
func removeEmpty(files Writer, dirs []string) {
	for _, dir := range dirs {
		if _, err := files.Remove(dir); err != nil {
			return
		}
	}
}

// purge removes an attempt's contents, which may hold secrets.
func purge(files Writer, rec *Record) error {
	var errs []error
	for _, c := range rec.Changes {
		for _, side := range []Side{c.Prev, c.Next} {
			if side.Saved == "" {
				continue
			}
			if _, err := files.Remove(side.Saved); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if _, err := files.Remove(attemptDir(rec.Attempt)); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
