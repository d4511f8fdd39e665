package apply

import (
	"slices"
	"time"
)

// Bounds of the history. An attempt older than the last 256 is held off by the boot and the
// invocations that its approval names; no start limit in use counts more than 64 starts.
const (
	keptAttempts = 256
	keptRestarts = 64
)

// history is what must outlive a journal: the attempts that were used, and our own restarts, since
// systemd tells a unit's start limit but not how much of it is used.
type history struct {
	Attempts []string            `json:"attempts,omitempty"`
	BootID   string              `json:"bootID,omitempty"`
	Restarts map[string][]moment `json:"restarts,omitempty"`

	// unreadable keeps what is on disk from being replaced.
	unreadable bool
}

// moment is a time in whole milliseconds, so that reading what was written gives the same.
type moment int64

func readHistory(files Reader) (history, error) {
	var h history
	_, err := readSealed(files, HistoryPath, &h)
	return h, err
}

func (h *history) write(files Writer) error {
	if h.unreadable {
		return nil
	}
	return writeSealed(files, HistoryPath, h)
}

func (h *history) used(attempt string) bool { return slices.Contains(h.Attempts, attempt) }

func (h *history) use(attempt string) {
	h.Attempts = append(h.Attempts, attempt)
	h.Attempts = h.Attempts[max(0, len(h.Attempts)-keptAttempts):]
}

// restarted notes a restart. Those of an earlier boot no longer count: systemd began anew.
func (h *history) restarted(bootID, unit string, at time.Time) {
	if h.BootID != bootID || h.Restarts == nil {
		h.BootID, h.Restarts = bootID, map[string][]moment{}
	}
	list := append(h.Restarts[unit], moment(at.UnixMilli()))
	h.Restarts[unit] = list[max(0, len(list)-keptRestarts):]
}

// limitUsed judges whether one more restart, and the one that an undo would need, could meet the
// unit's start limit, as far as our own restarts tell. It returns how long to wait until they
// could not. A time in the future counts as now: the clock was set back.
func (h *history) limitUsed(bootID string, unit string, state UnitState, now time.Time) (wait time.Duration, used bool) {
	const needed = 2
	if state.StartLimitBurst == 0 || state.StartLimitWindow <= 0 || h.BootID != bootID {
		return 0, false
	}
	var recent []time.Time
	for _, m := range h.Restarts[unit] {
		at := time.UnixMilli(int64(m))
		if at.After(now) {
			at = now
		}
		if now.Sub(at) < state.StartLimitWindow {
			recent = append(recent, at)
		}
	}
	over := len(recent) + needed - int(state.StartLimitBurst)
	if over <= 0 {
		return 0, false
	}
	if over > len(recent) {
		// The limit itself is below what we need: waiting does not help.
		return state.StartLimitWindow, true
	}
	return recent[over-1].Add(state.StartLimitWindow).Sub(now), true
}
