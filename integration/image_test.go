//go:build linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/integration/program"
)

// The Dockerfile is built by a real builder, and what is in the image runs.
func TestImagesAreBuilt(t *testing.T) {
	if _, err := exec.LookPath("buildah"); err != nil || os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the images must be built where CI=true; buildah is needed, and root: %v", err)
		}
		t.Skipf("building images needs buildah and root: %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := program.Build(t.Context(), filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Dockerfile", ".dockerignore"} {
		content, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	buildah := func(args ...string) string {
		t.Helper()
		store := []string{"--root", filepath.Join(dir, "store"), "--runroot", filepath.Join(dir, "run"), "--storage-driver", "vfs"}
		cmd := exec.CommandContext(t.Context(), "buildah", append(store, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("buildah %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, name := range []string{"proxyward", "proxyward-agent"} {
		buildah("bud", "--isolation", "chroot", "--target", name, "-t", name+":test", ".")
		container := lastLine(buildah("from", "--pull=never", name+":test"))
		mount := lastLine(buildah("mount", container))
		entries, err := os.ReadDir(mount)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() || e.Name() == name {
				continue
			}
			t.Errorf("image %s holds %s besides its program", name, e.Name())
		}
		out, err := exec.CommandContext(t.Context(), filepath.Join(mount, name), "version").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), name+" lab ") {
			t.Errorf("the program in image %s says %q: %v", name, out, err)
		}
		buildah("umount", container)
		buildah("rm", container)
	}
}

func lastLine(text string) string {
	return text[strings.LastIndexByte(text, '\n')+1:]
}
