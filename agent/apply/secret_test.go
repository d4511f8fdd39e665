package apply_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/agent/apply"
)

func TestC54_NoSecretStays(t *testing.T) {
	const secret = "pl4nted-s3cret"
	for _, tail := range []string{"", "/BAD"} {
		h := newHost(t, scratch(t))
		p := h.parts()
		leaks := func(when string) {
			err := filepath.WalkDir(filepath.Join(h.root.Dir(), apply.StateDir), func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() || strings.Contains(path, "/backup/") && when != "afterwards" {
					return err
				}
				content, err := os.ReadFile(path)
				if strings.Contains(string(content), secret) {
					t.Errorf("%s: %s holds the secret", when, path)
				}
				return err
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		p.events = func(e apply.Event) {
			leaks(string(e.Step))
			if saved, err := filepath.Glob(filepath.Join(h.root.Dir(), apply.StateDir, "backup", "*", "*")); err == nil {
				for _, path := range saved {
					if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o600 {
						t.Errorf("%s has mode %s", path, info.Mode())
					}
				}
			}
		}
		req := change("http://u:" + secret + "@new:3128" + tail)
		req.Prober = p.prober
		h.applier(t, p).Apply(t.Context(), req)
		leaks("afterwards")
		if info, err := h.root.Stat(apply.StateDir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the state directory: %v, %v", info, err)
		}
	}
}
