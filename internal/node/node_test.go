package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proxyward/proxyward/internal/hostfs"
)

func TestPath_LinksStayInTheTree(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "var"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/run", filepath.Join(dir, "var/run")); err != nil {
		t.Fatal(err)
	}
	root, err := hostfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&Node{Root: root}).Path("/var/run/docker.sock")
	if want := filepath.Join(dir, "run/docker.sock"); err != nil || got != want {
		t.Errorf("found at %q: %v; want %q", got, err, want)
	}
}
