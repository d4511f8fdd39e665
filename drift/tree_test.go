package drift

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/internal/hostfs"
)

// tree makes a host's tree of real files: "-> x" is a symbolic link, a name ending in / a directory.
func tree(t *testing.T, files map[string]string) *hostfs.Root {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		put(t, dir, name, content)
	}
	root, err := hostfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if strings.HasSuffix(name, "/") {
		if err := os.MkdirAll(full, 0o755); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if to, ok := strings.CutPrefix(content, "-> "); ok {
		err = os.Symlink(to, full)
	} else {
		err = os.WriteFile(full, []byte(content), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
