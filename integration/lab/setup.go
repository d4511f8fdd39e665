//go:build linux

package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// hostPackages are the Debian packages that the lab needs on the host.
func hostPackages() []string {
	return []string{"systemd-container", "mmdebstrap", "iproute2", "squid", "docker-registry", "ca-certificates"}
}

// Setup installs what the lab needs on this machine and builds the roots of
// cfg's nodes and the lab's helper programs, once; it does nothing where all is
// there. Up calls it.
func Setup(ctx context.Context, cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	if err := checkHost(); err != nil {
		return err
	}
	_, err := setup(ctx, cfg)
	return err
}

// setup returns the folder of the helper programs. One process at a time sets
// up; the others wait and find it done. The programs it runs inherit the lock,
// so that one which outlives this process still keeps the others away.
func setup(ctx context.Context, cfg Config) (helpers string, err error) {
	lock, err := lockFile(ctx, cfg.Progress, filepath.Join(runDir, "setup.lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := installPackages(ctx, cfg.Progress, lock); err != nil {
		return "", err
	}
	for _, n := range cfg.Nodes {
		if err := ensureRoot(ctx, cfg.Progress, lock, n.Generation, n.Full); err != nil {
			return "", err
		}
	}
	return ensureHelpers(ctx)
}

func installPackages(ctx context.Context, progress io.Writer, lock *os.File) error {
	var missing []string
	for _, p := range hostPackages() {
		out, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${db:Status-Status}", p).Output()
		if err != nil || string(out) != "installed" {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	say(progress, "installing %s", strings.Join(missing, " "))
	for _, args := range [][]string{
		{"update", "-q"},
		append([]string{"install", "-q", "-y", "--no-install-recommends"}, missing...),
	} {
		if err := aptGet(ctx, progress, lock, args...); err != nil {
			return err
		}
	}
	return stopPackagedServices(ctx, missing)
}

func aptGet(ctx context.Context, progress io.Writer, lock *os.File, args ...string) error {
	var tail bytes.Buffer
	cmd := groupCommand(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.ExtraFiles = []*os.File{lock}
	out := progressLines(progress, &tail)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running apt-get %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(tail.Bytes()))
	}
	return nil
}

// stopPackagedServices ends the services that the packages just installed
// started on the host: the lab runs its own, and the host did not ask for one.
func stopPackagedServices(ctx context.Context, installed []string) error {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return nil
	}
	for _, p := range installed {
		if p == "squid" || p == "docker-registry" {
			if err := run(ctx, "systemctl", "disable", "--now", p); err != nil {
				return err
			}
		}
	}
	return nil
}

// ensureHelpers builds the programs that run inside the lab and returns their
// folder, one per source tree. The build cache of Go makes it cheap when nothing
// changed, and it replaces a program that runs by renaming.
func ensureHelpers(ctx context.Context) (string, error) {
	const module = "github.com/proxyward/proxyward/integration"
	source, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("finding the sources of the lab's helpers: %w: the lab must be run from within its module", err)
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(source)
	bin := filepath.Join(cache, "helpers-"+hex.EncodeToString(sum[:4]))
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("creating the helpers' folder: %w", err)
	}
	cmd := groupCommand(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin+"/", module+"/cmd/labd", module+"/cmd/pause")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the lab's helpers: %w: %s", err, bytes.TrimSpace(out))
	}
	return bin, nil
}

// cacheDir is where roots and helpers are kept between runs.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir() // $XDG_CACHE_HOME, or ~/.cache
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	return filepath.Join(base, "proxyward-lab"), nil
}
