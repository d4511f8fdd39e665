package drift

import (
	"fmt"
	"slices"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// ContestLimits say when a file counts as contested. The zero value takes the defaults.
type ContestLimits struct {
	// Undone is how many times within Window somebody must undo our file; default 3.
	Undone int
	// Window in which the times are counted; default 10 minutes.
	Window time.Duration
	// Backoff before the file is written again, doubling each time up to MaxBackoff; defaults 10
	// minutes and 6 hours. A file that stays for Window after it was written starts anew.
	Backoff, MaxBackoff time.Duration
}

func (l ContestLimits) withDefaults() ContestLimits {
	if l.Undone == 0 {
		l.Undone = 3
	}
	if l.Window == 0 {
		l.Window = 10 * time.Minute
	}
	if l.Backoff == 0 {
		l.Backoff = 10 * time.Minute
	}
	if l.MaxBackoff == 0 {
		l.MaxBackoff = 6 * time.Hour
	}
	return l
}

// Contest notices that somebody keeps undoing our files, and ends the fight by backing off. It has
// no clock: each call is told the time. It is not safe for concurrent use.
type Contest struct {
	limits ContestLimits
	files  map[string]*contested
}

// contested is the history of one file.
type contested struct {
	undone  []time.Time
	backoff time.Duration
	until   time.Time
}

// NewContest returns a contest without history.
func NewContest(limits ContestLimits) *Contest {
	return &Contest{limits: limits.withDefaults(), files: map[string]*contested{}}
}

// Undone notes that a file which had been as desired no longer is. It is called once for each time,
// not for each look at the same damage.
func (c *Contest) Undone(path string, now time.Time) {
	f := c.files[path]
	if f == nil {
		f = &contested{}
		c.files[path] = f
	}
	if f.backoff > 0 && now.Sub(f.until) > c.limits.Window {
		*f = contested{} // it stayed: whoever fought has ended
	}
	f.undone = append(f.undone, now)
	f.undone = slices.DeleteFunc(f.undone, func(t time.Time) bool { return now.Sub(t) > c.limits.Window })
	if f.backoff == 0 && len(f.undone) < c.limits.Undone {
		return
	}
	// Once contested, each further time is enough.
	if f.backoff == 0 {
		f.backoff = c.limits.Backoff
	} else {
		f.backoff = min(2*f.backoff, c.limits.MaxBackoff)
	}
	f.until = now.Add(f.backoff)
	f.undone = nil
}

// MayWrite says whether a file may be written now, and if not, from when on.
func (c *Contest) MayWrite(path string, now time.Time) (bool, time.Time) {
	f := c.files[path]
	if f == nil || !now.Before(f.until) {
		return true, time.Time{}
	}
	return false, f.until
}

// Findings are the files that are contested now, sorted by path.
func (c *Contest) Findings(now time.Time) []v1alpha1.Finding {
	var findings []v1alpha1.Finding
	for path, f := range c.files {
		if now.Before(f.until) {
			findings = append(findings, v1alpha1.Finding{
				Reason: v1alpha1.ReasonContested,
				Path:   path,
				Message: fmt.Sprintf("somebody keeps undoing this file; Proxyward writes it again at %s; find out who else manages it",
					f.until.UTC().Format(time.RFC3339)),
			})
		}
	}
	slices.SortFunc(findings, func(a, b v1alpha1.Finding) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return findings
}

// Forget drops a file's history: what is desired of it changed.
func (c *Contest) Forget(path string) { delete(c.files, path) }
