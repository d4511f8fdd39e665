package drift

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/proxyward/proxyward/internal/systemd"
)

// WatchConfig says what to watch.
type WatchConfig struct {
	// Host's tree, on a file system that tells of changes.
	Host WatchTree
	// Dirs whose every file matters, and single Files; host paths. Neither need exist.
	Dirs, Files []string
	// Systemd's events (systemd.Manager.Watch); nil where there is no systemd.
	Systemd <-chan systemd.Event
	// Debounce is how long things must be quiet before a look; default 50 ms. When they never are,
	// a look is due after four times that.
	Debounce time.Duration
	// FullPass is the time between looks without any cause, the net under the watches; default 5
	// minutes.
	FullPass time.Duration
}

// WatchTree is what Watch needs of a host's tree.
type WatchTree interface {
	Tree
	// Dir is where the tree is, as this process sees it.
	Dir() string
}

// Look says that something may have changed and is to be observed.
type Look struct {
	// Cause, for a person: the path, the unit, or "full pass".
	Cause string
}

// causeFullPass is the cause of a look that has none.
const causeFullPass = "full pass"

// WatchPaths returns the directories and files of a unit whose changes matter: the drop-in
// directories that people write to, the unit's own environment and CA, and what the runtime's
// adapter read. Directories that systemd generates are left to its reload signal.
func WatchPaths(ref UnitRef) (dirs, files []string) {
	for _, dir := range []string{
		"/etc/systemd/system.control", "/run/systemd/system.control",
		DropInDir, "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
	} {
		for _, name := range append(dropInNames(ref.Unit), typeDropInName(ref.Unit)) {
			dirs = append(dirs, path.Join(dir, name))
		}
		files = append(files, path.Join(dir, ref.Unit))
	}
	files = append(files, envPath(ref.Unit))
	files = append(files, ref.Paths...)
	files = append(files, ref.Runtime.Config...)
	return dirs, files
}

// Watch tells when to observe again, until ctx ends; then the channel is closed. Directories that
// are created later, replaced, or reached through symbolic links count. The first look is due at
// once.
func Watch(ctx context.Context, config WatchConfig) (<-chan Look, error) {
	if config.Debounce == 0 {
		config.Debounce = 50 * time.Millisecond
	}
	if config.FullPass == 0 {
		config.FullPass = 5 * time.Minute
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching the host's files: %w; raise fs.inotify.max_user_instances if there are too many", err)
	}
	w := &watcher{config: config, notify: notify, looks: make(chan Look, 1)}
	if err := w.attach(); err != nil {
		return nil, errors.Join(err, notify.Close())
	}
	go w.run(ctx)
	return w.looks, nil
}

// watcher is one running Watch.
type watcher struct {
	config WatchConfig
	notify *fsnotify.Watcher
	looks  chan Look
	points watchPoints
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.looks)
	defer func() { _ = w.notify.Close() }() // nothing is left to do with an error
	full := time.NewTicker(w.config.FullPass)
	defer full.Stop()
	quiet := time.NewTimer(0) // the first look
	defer quiet.Stop()
	var (
		cause  = causeFullPass
		since  time.Time // of the first event that has not led to a look
		events = w.config.Systemd
	)
	due := func(why string) {
		if since.IsZero() {
			since, cause = time.Now(), why
		}
		quiet.Reset(min(w.config.Debounce, max(0, 4*w.config.Debounce-time.Since(since))))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-w.notify.Events:
			if !open {
				return
			}
			if why := w.judge(event); why != "" {
				due(why)
			}
		case err, open := <-w.notify.Errors:
			if !open {
				return
			}
			// Events were lost: watch anew and look at everything.
			due(fmt.Sprintf("lost events: %v", errors.Join(err, w.attach())))
		case event, open := <-events:
			if !open {
				events = nil
				continue
			}
			due(systemdCause(event))
		case <-full.C:
			if err := w.attach(); err != nil {
				due(err.Error())
				continue
			}
			due(causeFullPass)
		case <-quiet.C:
			since = time.Time{}
			w.look(cause)
		}
	}
}

// look passes a look on. When one still waits to be taken, that one serves.
func (w *watcher) look(cause string) {
	select {
	case w.looks <- Look{Cause: cause}:
	default:
	}
}

func systemdCause(e systemd.Event) string {
	if e.Unit == "" {
		return "systemd " + string(e.Kind)
	}
	return "systemd " + string(e.Kind) + " " + e.Unit
}

// judge returns the host path that an event is about when it matters. A change of a directory or
// link on the way to what is watched also moves the watches.
func (w *watcher) judge(event fsnotify.Event) string {
	hostPath, interest := w.points.about(event.Name)
	switch interest {
	case none:
		return ""
	case onTheWay:
		if !event.Has(fsnotify.Create) && !event.Has(fsnotify.Remove) && !event.Has(fsnotify.Rename) {
			return ""
		}
		if err := w.attach(); err != nil {
			return err.Error()
		}
	}
	return hostPath
}

// attach brings the watches in line with where the paths lead now. Watches belong to inodes, so
// they are all set anew: what has the same name may be another directory. Each directory is watched
// before what is in it is looked at, so nothing that appears meanwhile is missed.
func (w *watcher) attach() error {
	for _, name := range w.notify.WatchList() {
		_ = w.notify.Remove(name) // its inode may be gone
	}
	w.points = newWatchPoints(w.config.Host.Dir(), w.notify.Add)
	for _, dir := range w.config.Dirs {
		if err := w.points.walk(w.config.Host, dir, true); err != nil {
			return fmt.Errorf("watching %q: %w", dir, err)
		}
	}
	for _, file := range w.config.Files {
		if err := w.points.walk(w.config.Host, file, false); err != nil {
			return fmt.Errorf("watching %q: %w", file, err)
		}
	}
	return nil
}
