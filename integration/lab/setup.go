//go:build linux

package lab

import (
	"bytes"
	"context"
	"fmt"
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
	lock, err := lockFile(filepath.Join(runDir, "setup.lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := installPackages(ctx, cfg); err != nil {
		return err
	}
	for _, n := range cfg.Nodes {
		if _, err := ensureRoot(ctx, cfg.Progress, n.Generation, n.Full); err != nil {
			return err
		}
	}
	_, err = ensureHelpers(ctx)
	return err
}

func installPackages(ctx context.Context, cfg Config) error {
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
	say(cfg.Progress, "installing %s", strings.Join(missing, " "))
	for _, args := range [][]string{
		{"update", "-q"},
		append([]string{"install", "-q", "-y", "--no-install-recommends"}, missing...),
	} {
		if err := aptGet(ctx, cfg, args...); err != nil {
			return err
		}
	}
	return stopPackagedServices(ctx, missing)
}

func aptGet(ctx context.Context, cfg Config, args ...string) error {
	var tail bytes.Buffer
	cmd := groupCommand(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out := progressLines(cfg.Progress, &tail)
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
// folder. The build cache of Go makes it cheap when nothing changed.
func ensureHelpers(ctx context.Context) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("creating the helpers' folder: %w", err)
	}
	const module = "github.com/proxyward/proxyward/integration"
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
