//go:build linux

package integration_test

import (
	"os/exec"
	"path"
	"path/filepath"
	"testing"

	"github.com/proxyward/proxyward/integration/lab"
)

// TestHostPackages runs on a real node what the packages that deal with a host claim of systemd:
// their tests with the build tag node, which need to be root where systemd is process 1.
func TestHostPackages(t *testing.T) {
	lab.Require(t)
	packages := []string{"internal/systemd", "drift"}
	programs := map[string]string{}
	for _, p := range packages {
		programs[p] = filepath.Join(t.TempDir(), path.Base(p)+".test")
		build := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "node", "-o", programs[p], "./"+p)
		build.Dir = ".."
		build.Env = append(build.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building the tests of %s: %v\n%s", p, err, out)
		}
	}
	for _, generation := range lab.GenerationsUnderTest(t) {
		t.Run(string(generation), func(t *testing.T) {
			n := lab.Start(t, lab.Config{Nodes: []lab.NodeSpec{{Name: "n1", Generation: generation}}}).Node("n1")
			for _, p := range packages {
				t.Run(p, func(t *testing.T) {
					program := "/root/" + filepath.Base(programs[p])
					if err := n.CopyIn(t.Context(), programs[p], program, 0o755); err != nil {
						t.Fatal(err)
					}
					result, err := n.Exec(t.Context(), program, "-test.v", "-test.run", "^TestNode", "-test.timeout", "5m")
					if err != nil {
						t.Fatal(err)
					}
					if result.ExitCode != 0 {
						t.Errorf("exit code %d\n%s%s", result.ExitCode, result.Stdout, result.Stderr)
						return
					}
					t.Logf("%s", result.Stdout)
				})
			}
		})
	}
}
