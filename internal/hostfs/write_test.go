package hostfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const target = "/etc/systemd/system/containerd.service.d/zz-proxyward.conf"

func mode(t *testing.T, root *Root, path string) fs.FileMode {
	t.Helper()
	info, err := root.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestC12_MissingDirectoryIsCreated(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	root := tree(t, map[string]string{"etc/": ""})
	changed, err := root.WriteFile(target, []byte("new"), 0o644)
	if err != nil || !changed {
		t.Fatalf("WriteFile = %v, %v, want a change", changed, err)
	}
	if got := mode(t, root, filepath.Dir(target)); got != fs.ModeDir|0o755 {
		t.Errorf("the directory's mode is %v, want 0755 whatever the umask", got)
	}
	if got := mode(t, root, target); got != 0o644 {
		t.Errorf("the file's mode is %v, want 0644", got)
	}
}

func TestC12_FileWhereTheDirectoryBelongs(t *testing.T) {
	dir := filepath.Dir(target)
	root := tree(t, map[string]string{dir: "somebody's"})
	_, err := root.WriteFile(target, []byte("new"), 0o644)
	if !errors.Is(err, ErrNotDirectory) {
		t.Errorf("WriteFile = %v, want ErrNotDirectory", err)
	}
	if data, err := root.ReadFile(dir); err != nil || string(data) != "somebody's" {
		t.Errorf("somebody's file is now %q, %v", data, err)
	}
}

func TestC12_LinkWhereTheDirectoryBelongs(t *testing.T) {
	dir := filepath.Dir(target)
	t.Run("to a directory", func(t *testing.T) {
		root := tree(t, map[string]string{"opt/dropins/": "", dir: "-> /opt/dropins"})
		if _, err := root.WriteFile(target, []byte("new"), 0o644); err != nil {
			t.Fatal(err)
		}
		if data, err := root.ReadFile("/opt/dropins/zz-proxyward.conf"); err != nil || string(data) != "new" {
			t.Errorf("file in the linked directory = %q, %v", data, err)
		}
	})
	t.Run("to nothing", func(t *testing.T) {
		root := tree(t, map[string]string{dir: "-> /opt/dropins"})
		if _, err := root.WriteFile(target, []byte("new"), 0o644); !errors.Is(err, ErrNotDirectory) {
			t.Errorf("WriteFile = %v, want ErrNotDirectory", err)
		}
		if found, err := root.Exists("/opt"); err != nil || found {
			t.Errorf("the link was followed: /opt exists = %v, %v", found, err)
		}
	})
}

func TestC12_OtherThanRegularFilesAreRefused(t *testing.T) {
	tests := map[string]func(root *Root) error{
		"symbolic link": func(r *Root) error { return os.Symlink("/etc/victim", filepath.Join(r.Dir(), "etc/file")) },
		"dangling link": func(r *Root) error { return os.Symlink("/etc/none", filepath.Join(r.Dir(), "etc/file")) },
		"directory":     func(r *Root) error { return os.Mkdir(filepath.Join(r.Dir(), "etc/file"), 0o755) },
		"fifo":          func(r *Root) error { return unix.Mkfifo(filepath.Join(r.Dir(), "etc/file"), 0o644) },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			root := tree(t, map[string]string{"etc/victim": "victim's"})
			if err := prepare(root); err != nil {
				t.Fatal(err)
			}
			before := mode(t, root, "/etc/file")
			if changed, err := root.WriteFile("/etc/file", []byte("new"), 0o600); changed || !errors.Is(err, ErrNotRegular) {
				t.Errorf("WriteFile = %v, %v, want ErrNotRegular", changed, err)
			}
			if after := mode(t, root, "/etc/file"); after != before {
				t.Errorf("what stood there changed from %v to %v", before, after)
			}
			if data, err := root.ReadFile("/etc/victim"); err != nil || string(data) != "victim's" {
				t.Errorf("the link was followed: %q, %v", data, err)
			}
			if err := root.Rename("/etc/victim", "/etc/file"); !errors.Is(err, ErrNotRegular) {
				t.Errorf("Rename onto it = %v, want ErrNotRegular", err)
			}
		})
	}
}

func TestWriteFileChangesOnlyWhatDiffers(t *testing.T) {
	root := tree(t, map[string]string{"etc/": ""})
	steps := []struct {
		data    string
		mode    fs.FileMode
		changed bool
	}{
		{"a", 0o600, true},
		{"a", 0o600, false},
		{"b", 0o600, true},
		{"b", 0o644, true},
		{"b", 0o644, false},
		{"", 0o644, true},
		{"", 0o644, false},
	}
	for _, s := range steps {
		changed, err := root.WriteFile("/etc/file", []byte(s.data), s.mode)
		if err != nil || changed != s.changed {
			t.Errorf("WriteFile(%q, %v) = %v, %v, want %v", s.data, s.mode, changed, err, s.changed)
		}
		if data, err := root.ReadFile("/etc/file"); err != nil || string(data) != s.data || mode(t, root, "/etc/file") != s.mode {
			t.Errorf("after WriteFile(%q, %v) there is %q, %v", s.data, s.mode, data, err)
		}
	}
}

func TestWriteFileKeepsInodeOfUnchangedFile(t *testing.T) {
	root := tree(t, map[string]string{"etc/": ""})
	stat := func() fs.FileInfo {
		if _, err := root.WriteFile("/etc/file", []byte("same"), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := root.Stat("/etc/file")
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if first, second := stat(), stat(); !os.SameFile(first, second) || !first.ModTime().Equal(second.ModTime()) {
		t.Error("unchanged bytes were written again")
	}
}

func TestWriteFileGivesForeignFileToRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("only root may give files away; run the tests as root")
		}
		t.Skip("only root may give files away")
	}
	root := tree(t, map[string]string{"etc/file": "same"})
	real := filepath.Join(root.Dir(), "etc/file")
	if err := os.Chown(real, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if changed, err := root.WriteFile("/etc/file", []byte("same"), 0o644); err != nil || !changed {
		t.Fatalf("WriteFile = %v, %v, want a change of owner", changed, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(real, &st); err != nil || st.Uid != 0 || st.Gid != 0 {
		t.Errorf("owner is %d:%d, %v, want root", st.Uid, st.Gid, err)
	}
}

var errInjected = errors.New("injected")

func TestWriteFileFailingAtEachStepLosesNothing(t *testing.T) {
	tests := []struct {
		step    string
		inject  func(*operations)
		written bool
	}{
		{"create", func(o *operations) { o.create = func(string) (*os.File, error) { return nil, errInjected } }, false},
		{"write", func(o *operations) {
			o.write = func(f *os.File, data []byte) error { _, _ = f.Write(data[:1]); return errInjected }
		}, false},
		{"chown", func(o *operations) { o.chown = func(*os.File) error { return errInjected } }, false},
		{"chmod", func(o *operations) { o.chmod = func(*os.File, fs.FileMode) error { return errInjected } }, false},
		{"sync", func(o *operations) { o.sync = func(*os.File) error { return errInjected } }, false},
		{"rename", func(o *operations) { o.rename = func(string, string) error { return errInjected } }, false},
		{"sync of the directory", func(o *operations) { o.syncDir = func(string) error { return errInjected } }, true},
	}
	for _, test := range tests {
		t.Run(test.step, func(t *testing.T) {
			root := tree(t, map[string]string{"etc/file": "old"})
			test.inject(&root.ops)
			changed, err := root.WriteFile("/etc/file", []byte("new"), 0o600)
			if changed || !errors.Is(err, errInjected) {
				t.Fatalf("WriteFile = %v, %v, want the injected error", changed, err)
			}
			want := "old"
			if test.written {
				want = "new" // in place, only its durability is not known
			}
			if data, err := root.ReadFile("/etc/file"); err != nil || string(data) != want {
				t.Errorf("the file is %q, %v, want %q", data, err, want)
			}
			entries, err := root.ReadDir("/etc")
			if err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

func TestC12_ReadOnlyFileSystemIsSaid(t *testing.T) {
	root := tree(t, map[string]string{"etc/file": "old"})
	root.ops.create = func(name string) (*os.File, error) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: unix.EROFS}
	}
	_, err := root.WriteFile("/etc/file", []byte("new"), 0o600)
	if !errors.Is(err, ErrReadOnly) {
		t.Errorf("WriteFile = %v, want ErrReadOnly", err)
	}
	if err != nil && strings.Contains(err.Error(), root.Dir()) {
		t.Errorf("the message names a path of this process: %v", err)
	}
}

func TestKilledWritersRestIsTakenAway(t *testing.T) {
	root := tree(t, map[string]string{"etc/file": "old"})
	rest := temporary(filepath.Join(root.Dir(), "etc/file"))
	for name, act := range map[string]func() error{
		"write":  func() error { _, err := root.WriteFile("/etc/file", []byte("new"), 0o600); return err },
		"remove": func() error { _, err := root.Remove("/etc/file"); return err },
	} {
		// A link, as somebody might plant one.
		if err := os.Symlink(filepath.Join(root.Dir(), "victim"), rest); err != nil {
			t.Fatal(err)
		}
		if err := act(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(rest); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s left the rest of an earlier write: %v", name, err)
		}
		if _, err := os.Lstat(filepath.Join(root.Dir(), "victim")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s wrote through a planted link: %v", name, err)
		}
	}
}

func TestRemove(t *testing.T) {
	root := tree(t, map[string]string{"etc/file": "x", "etc/link": "-> /etc/file", "etc/dir/full": "y"})
	for _, step := range []struct {
		path    string
		removed bool
	}{{"/etc/link", true}, {"/etc/link", false}, {"/none/such", false}} {
		if removed, err := root.Remove(step.path); err != nil || removed != step.removed {
			t.Errorf("Remove(%q) = %v, %v, want %v", step.path, removed, err, step.removed)
		}
	}
	if found, err := root.Exists("/etc/file"); err != nil || !found {
		t.Errorf("removing a link removed what it leads to: %v, %v", found, err)
	}
	if _, err := root.Remove("/etc/dir"); err == nil {
		t.Error("Remove of a directory with content succeeded")
	}
}

func TestRename(t *testing.T) {
	root := tree(t, map[string]string{"a/file": "x", "b/old": "y"})
	if err := root.Rename("/a/file", "/b/old"); err != nil {
		t.Fatal(err)
	}
	if data, err := root.ReadFile("/b/old"); err != nil || string(data) != "x" {
		t.Errorf("the file is %q, %v", data, err)
	}
	if err := root.Rename("/a/file", "/b/old"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Rename of nothing = %v, want fs.ErrNotExist", err)
	}
}

func TestSELinuxLabelIsKept(t *testing.T) {
	root := tree(t, map[string]string{"etc/file": "old"})
	real := filepath.Join(root.Dir(), "etc/file")
	for path, label := range map[string]string{real: "system_u:object_r:file_t:s0\x00", filepath.Dir(real): "system_u:object_r:dir_t:s0\x00"} {
		if err := unix.Setxattr(path, labelAttribute, []byte(label), 0); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("labels cannot be set here: %v", err)
			}
			t.Skipf("labels cannot be set here: %v", err)
		}
	}
	for path, want := range map[string]string{"/etc/file": "file_t", "/etc/new": "dir_t"} {
		if _, err := root.WriteFile(path, []byte("new"), 0o644); err != nil {
			t.Fatal(err)
		}
		label, ok := readLabel(filepath.Join(root.Dir(), path))
		if !ok || !strings.Contains(string(label), want) {
			t.Errorf("label of %q is %q, want %s", path, label, want)
		}
	}
}
