package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/proxyward/proxyward/internal/systemd"
)

// The dead-man's units. A timer and a service in files, rather than transient ones, hold through a
// reboot.
const (
	DeadmanService = "proxyward-deadman.service"
	DeadmanTimer   = "proxyward-deadman.timer"

	unitDir     = "/etc/systemd/system"
	programName = "proxyward-agent"
)

// DeadmanUnits is what the dead-man needs of systemd.
type DeadmanUnits interface {
	Reload(ctx context.Context) error
	// Start returns when the unit runs, or, for the service, when it has ended well.
	Start(ctx context.Context, unit string) error
	// Stop of a unit that systemd does not know is systemd.ErrNoSuchUnit.
	Stop(ctx context.Context, unit string) error
}

// DeadmanInstaller makes units start at boot.
type DeadmanInstaller interface {
	Enable(ctx context.Context, units ...string) error
	Disable(ctx context.Context, units ...string) error
}

// Program opens the program that the dead-man runs, which has the verb "deadman".
type Program func() (content []byte, release func() error, err error)

// Deadman undoes a change that nobody finishes, although nothing of Proxyward runs any more. It
// implements Guard.
type Deadman struct {
	Files     Files
	Units     DeadmanUnits
	Installer DeadmanInstaller
	Program   Program
	// Dirs to keep the program in, tried in order until systemd can run it there; default
	// DeadmanDirs.
	Dirs []string
}

// DeadmanDirs are where the program is kept. The second is for hosts that mount /var noexec.
func DeadmanDirs() []string { return []string{StateDir + "/bin", "/usr/local/lib/proxyward"} }

func (d *Deadman) dirs() []string {
	if d.Dirs == nil {
		return DeadmanDirs()
	}
	return d.Dirs
}

// Try puts the program and the service in place and has systemd run the service once, exactly as
// it would later: this shows that the program can be executed there, reach systemd and read what
// it would put back. Where it cannot, the next directory is tried.
func (d *Deadman) Try(ctx context.Context, times GuardTimes) (err error) {
	content, release, err := d.Program()
	if err != nil {
		return fmt.Errorf("opening the dead-man's program: %w", err)
	}
	defer func() { err = errors.Join(err, release()) }()
	sum := sha256.Sum256(content)
	var failures []error
	for _, dir := range d.dirs() {
		program := path.Join(dir, hex.EncodeToString(sum[:]), programName)
		err := d.tryAt(ctx, program, content, times)
		if err == nil {
			return nil
		}
		failures = append(failures, fmt.Errorf("running the dead-man from %q: %w", dir, err))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}

func (d *Deadman) tryAt(ctx context.Context, program string, content []byte, times GuardTimes) error {
	if _, err := d.Files.WriteFile(program, content, 0o755); err != nil {
		return err
	}
	if err := d.writeUnit(DeadmanService, serviceUnit(program, times)); err != nil {
		return err
	}
	if err := d.Units.Reload(ctx); err != nil {
		return err
	}
	return d.Units.Start(ctx, DeadmanService)
}

// Arm starts the timer, now and at every boot until it is disarmed.
func (d *Deadman) Arm(ctx context.Context, times GuardTimes) error {
	if err := d.writeUnit(DeadmanTimer, timerUnit(times)); err != nil {
		return err
	}
	if err := d.Units.Reload(ctx); err != nil {
		return err
	}
	// First the boot: once the timer runs, everything of it must be there.
	if err := d.Installer.Enable(ctx, DeadmanTimer); err != nil {
		return fmt.Errorf("arming the dead-man: %w", err)
	}
	if err := d.Units.Start(ctx, DeadmanTimer); err != nil {
		return fmt.Errorf("arming the dead-man: %w", err)
	}
	return nil
}

// Disarm stops the timer and removes units and program. It does not stop the service, which may be
// who calls. The program comes first and goes last, so that where there is none there is nothing
// left to do: not even a reload, without which systemd would call every unit outdated.
func (d *Deadman) Disarm(ctx context.Context) error {
	if installed, err := d.installed(); err != nil || !installed {
		return err
	}
	if err := d.removeTimer(ctx); err != nil {
		return fmt.Errorf("disarming the dead-man: %w", err)
	}
	if _, err := d.Files.Remove(path.Join(unitDir, DeadmanService)); err != nil {
		return fmt.Errorf("disarming the dead-man: %w", err)
	}
	if err := d.Units.Reload(ctx); err != nil {
		return fmt.Errorf("disarming the dead-man: %w", err)
	}
	return d.removeProgram()
}

func (d *Deadman) installed() (bool, error) {
	for _, dir := range d.dirs() {
		_, err := d.Files.Lstat(dir)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("looking for the dead-man: %w", err)
		}
	}
	return false, nil
}

// removeTimer stops the timer before its file goes. Where there is no file it was never armed, or
// stopped and disabled already: systemd refuses to disable what has none.
func (d *Deadman) removeTimer(ctx context.Context) error {
	file := path.Join(unitDir, DeadmanTimer)
	if _, err := d.Files.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := d.Units.Stop(ctx, DeadmanTimer); err != nil && !errors.Is(err, systemd.ErrNoSuchUnit) {
		return err
	}
	if err := d.Installer.Disable(ctx, DeadmanTimer); err != nil {
		return err
	}
	_, err := d.Files.Remove(file)
	return err
}

// removeProgram removes every version of the program that was left, and nothing else.
func (d *Deadman) removeProgram() error {
	var errs []error
	for _, dir := range d.dirs() {
		versions, err := d.Files.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, version := range versions {
			if sum, err := hex.DecodeString(version.Name()); err != nil || len(sum) != sha256.Size {
				continue // not ours
			}
			_, err := d.Files.Remove(path.Join(dir, version.Name(), programName))
			errs = append(errs, err)
			removeEmpty(d.Files, []string{path.Join(dir, version.Name())})
		}
		removeEmpty(d.Files, []string{dir})
	}
	return errors.Join(errs...)
}

func (d *Deadman) writeUnit(name, content string) error {
	_, err := d.Files.WriteFile(path.Join(unitDir, name), []byte(content), 0o644)
	return err
}

const deadmanHeader = `# Managed by Proxyward, which removes it when the change of the container runtimes' proxy
# that it guards is finished. It undoes that change if nobody finishes it.
`

// serviceUnit renders the service. It has no condition and no dependency that could keep it from
// running, and no start limit: the journal bounds how often it tries.
func serviceUnit(program string, times GuardTimes) string {
	var b strings.Builder
	b.WriteString(deadmanHeader)
	fmt.Fprintf(&b, "[Unit]\nDescription=Undo an unfinished change of the container runtimes' proxy\nStartLimitIntervalSec=0\n\n")
	fmt.Fprintf(&b, "[Service]\nType=oneshot\nExecStart=%s deadman --wait=%ds\n", program, seconds(times.Wait))
	// After waiting for somebody else it has the same time again for its own undo.
	fmt.Fprintf(&b, "TimeoutStartSec=%d\n", seconds(2*times.Wait))
	return b.String()
}

// timerUnit renders the timer. OnActiveSec= counts from arming and, since the timer is enabled,
// from each boot; OnBootSec= would elapse at once on a host that has been up for longer.
// OnUnitInactiveSec= lets it look again after a try that failed; it is no shorter, because the
// service has run, and become inactive, just before the arming.
func timerUnit(times GuardTimes) string {
	after := seconds(times.After)
	return deadmanHeader + fmt.Sprintf("[Unit]\nDescription=Look for an unfinished change of the container runtimes' proxy\n\n"+
		"[Timer]\nOnActiveSec=%d\nOnUnitInactiveSec=%d\nAccuracySec=1s\nUnit=%s\n\n[Install]\nWantedBy=timers.target\n",
		after, after, DeadmanService)
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
