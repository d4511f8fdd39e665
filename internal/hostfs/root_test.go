package hostfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// tree makes a host tree: "dir/" is a directory, "a -> b" a symbolic link, else a file.
func tree(t *testing.T, files map[string]string) *Root {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case name[len(name)-1] == '/':
			err = os.MkdirAll(full, 0o755)
		case len(content) > 3 && content[:3] == "-> ":
			err = os.Symlink(content[3:], full)
		default:
			err = os.WriteFile(full, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestOpenNeedsDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); !errors.Is(err, ErrNotDirectory) {
		t.Errorf("Open(file) = %v, want ErrNotDirectory", err)
	}
	if _, err := Open(file + "-absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open(absent) = %v, want fs.ErrNotExist", err)
	}
}

func TestReadFileResolvesLinksInsideTheTree(t *testing.T) {
	root := tree(t, map[string]string{
		"etc/real/a.conf": "host's",
		"etc/absolute":    "-> /etc/real/a.conf",
		"etc/relative":    "-> real/a.conf",
		"etc/up":          "-> ../../../../../etc/real/a.conf",
		"etc/dir":         "-> /etc/real",
		"etc/loop":        "-> loop",
	})
	for _, path := range []string{"/etc/real/a.conf", "/etc/absolute", "/etc/relative", "/etc/up", "/etc/dir/a.conf", "/../../etc/absolute"} {
		data, err := root.ReadFile(path)
		if err != nil || string(data) != "host's" {
			t.Errorf("ReadFile(%q) = %q, %v, want the host's file", path, data, err)
		}
	}
	if _, err := root.ReadFile("/etc/loop"); err == nil {
		t.Error("ReadFile of a link to itself succeeded")
	}
	if _, err := root.ReadFile("etc/real/a.conf"); err == nil {
		t.Error("ReadFile of a relative path succeeded")
	}
	if _, err := root.ReadFile("/etc/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile(absent) = %v, want fs.ErrNotExist", err)
	}
}

func TestReadFileRefusesOtherThanBoundedRegularFiles(t *testing.T) {
	root := tree(t, map[string]string{"dir/": "", "big": ""})
	if err := unix.Mkfifo(filepath.Join(root.Dir(), "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(root.Dir(), "big"), MaxFileSize+1); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"/dir": ErrNotRegular, "/fifo": ErrNotRegular, "/big": ErrTooLarge} {
		if _, err := root.ReadFile(path); !errors.Is(err, want) {
			t.Errorf("ReadFile(%q) = %v, want %v", path, err, want)
		}
	}
	if err := os.Truncate(filepath.Join(root.Dir(), "big"), MaxFileSize); err != nil {
		t.Fatal(err)
	}
	if data, err := root.ReadFile("/big"); err != nil || len(data) != MaxFileSize {
		t.Errorf("ReadFile of exactly the limit = %d bytes, %v", len(data), err)
	}
}

func TestStatFollowsLstatDoesNot(t *testing.T) {
	root := tree(t, map[string]string{"etc/file": "x", "etc/link": "-> /etc/file", "etc/dangling": "-> /none"})
	if info, err := root.Stat("/etc/link"); err != nil || !info.Mode().IsRegular() {
		t.Errorf("Stat(link) = %v, %v, want the regular file", info, err)
	}
	if info, err := root.Lstat("/etc/link"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("Lstat(link) = %v, %v, want the link", info, err)
	}
	if target, err := root.Readlink("/etc/link"); err != nil || target != "/etc/file" {
		t.Errorf("Readlink = %q, %v", target, err)
	}
	if found, err := root.Exists("/etc/dangling"); err != nil || found {
		t.Errorf("Exists(dangling) = %v, %v, want false", found, err)
	}
	if _, err := root.Lstat("/"); err == nil {
		t.Error("Lstat of the root itself succeeded, though it names no entry")
	}
	if _, err := root.ReadDir("/etc/file"); !errors.Is(err, ErrNotDirectory) {
		t.Errorf("ReadDir(file) = %v, want ErrNotDirectory", err)
	}
	entries, err := root.ReadDir("/etc")
	if err != nil || len(entries) != 3 || entries[0].Name() != "dangling" {
		t.Errorf("ReadDir = %v, %v, want three sorted entries", entries, err)
	}
}
