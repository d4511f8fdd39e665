package apply

import (
	"strconv"
	"testing"
	"time"
)

func TestC30_LimitUsed(t *testing.T) {
	now := time.Unix(1000, 0)
	ago := func(seconds ...int) []moment {
		var out []moment
		for _, s := range seconds {
			out = append(out, moment(now.Add(-time.Duration(s)*time.Second).UnixMilli()))
		}
		return out
	}
	for _, tc := range []struct {
		name     string
		burst    uint32
		window   time.Duration
		restarts []moment
		boot     string
		used     bool
		wait     time.Duration
	}{
		{name: "no limit", window: time.Minute, restarts: ago(1, 1, 1)},
		{name: "no window", burst: 3, restarts: ago(1, 1, 1)},
		{name: "none yet", burst: 3, window: time.Minute},
		{name: "room for the undo", burst: 3, window: time.Minute, restarts: ago(5)},
		{name: "no room for the undo", burst: 3, window: time.Minute, restarts: ago(50, 5), used: true, wait: 10 * time.Second},
		{name: "two must pass", burst: 3, window: time.Minute, restarts: ago(50, 40, 5), used: true, wait: 20 * time.Second},
		{name: "passed", burst: 3, window: time.Minute, restarts: ago(90, 80, 70)},
		{name: "another boot", burst: 3, window: time.Minute, restarts: ago(3, 2, 1), boot: "old"},
		{name: "the clock was set back", burst: 3, window: time.Minute, restarts: ago(-500, -500), used: true, wait: time.Minute},
		{name: "a limit of one", burst: 1, window: time.Minute, used: true, wait: time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			boot := tc.boot
			if boot == "" {
				boot = "now"
			}
			h := history{BootID: boot, Restarts: map[string][]moment{"u": tc.restarts}}
			wait, used := h.limitUsed("now", "u", UnitState{StartLimitBurst: tc.burst, StartLimitWindow: tc.window}, now)
			if used != tc.used || wait != tc.wait {
				t.Errorf("used %t, wait %s; want %t, %s", used, wait, tc.used, tc.wait)
			}
		})
	}
}

func TestHistory_IsBounded(t *testing.T) {
	var h history
	for i := range 10 * keptAttempts {
		h.use(strconv.Itoa(i))
		h.restarted("boot", "u", time.Unix(int64(i), 0))
	}
	if len(h.Attempts) != keptAttempts || len(h.Restarts["u"]) != keptRestarts {
		t.Errorf("%d attempts, %d restarts", len(h.Attempts), len(h.Restarts["u"]))
	}
	if !h.used(strconv.Itoa(10*keptAttempts - 1)) {
		t.Error("the last attempt was forgotten")
	}
	h.restarted("next boot", "u", time.Unix(0, 0))
	if len(h.Restarts["u"]) != 1 {
		t.Error("restarts of an earlier boot count")
	}
}
