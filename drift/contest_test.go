package drift

import (
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

func TestContest(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	limits := ContestLimits{Undone: 3, Window: 10 * time.Minute, Backoff: 10 * time.Minute, MaxBackoff: 30 * time.Minute}
	type step struct {
		at     time.Duration
		undone bool
		may    bool
	}
	tests := map[string][]step{
		"twice is a repair": {
			{0, true, true}, {time.Minute, true, true},
		},
		"three times within the window is a contest": {
			{0, true, true}, {time.Minute, true, true}, {2 * time.Minute, true, false},
			{11 * time.Minute, false, false}, {12 * time.Minute, false, true},
		},
		"three times over a longer time is none": {
			{0, true, true}, {9 * time.Minute, true, true}, {11 * time.Minute, true, true}, {20 * time.Minute, true, true},
		},
		"once contested, each time doubles the wait up to the limit": {
			{0, true, true}, {0, true, true}, {0, true, false},
			{10 * time.Minute, true, false}, {29 * time.Minute, false, false}, // 20 minutes
			{30 * time.Minute, true, false}, {59 * time.Minute, false, false}, // 30, not 40
			{60 * time.Minute, true, false}, {90 * time.Minute, false, true},
		},
		"a file that stayed starts anew": {
			{0, true, true}, {0, true, true}, {0, true, false},
			{10 * time.Minute, false, true},
			{21 * time.Minute, true, true}, {21 * time.Minute, true, true}, {21 * time.Minute, true, false},
			{30 * time.Minute, false, false}, {31 * time.Minute, false, true},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			c := NewContest(limits)
			for i, s := range steps {
				now := start.Add(s.at)
				if s.undone {
					c.Undone("/a", now)
				}
				may, until := c.MayWrite("/a", now)
				if may != s.may {
					t.Fatalf("step %d at %v: may write = %v until %v, want %v", i, s.at, may, until, s.may)
				}
				if !may && !until.After(now) {
					t.Errorf("step %d: it may be written from %v on, which is past", i, until)
				}
				if contested := len(c.Findings(now)) == 1; contested == may {
					t.Errorf("step %d: the findings say contested = %v", i, contested)
				}
			}
		})
	}
}

func TestContestNamesFilesAndForgets(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := NewContest(ContestLimits{})
	for range 3 {
		c.Undone("/b", now)
		c.Undone("/a", now)
	}
	c.Undone("/c", now)
	findings := c.Findings(now)
	if len(findings) != 2 || findings[0].Path != "/a" || findings[1].Path != "/b" {
		t.Fatalf("findings are %+v, want /a and /b", findings)
	}
	if f := findings[0]; f.Reason != v1alpha1.ReasonContested || !strings.Contains(f.Message, "2026-01-01T00:10:00Z") {
		t.Errorf("finding is %+v", f)
	}
	c.Forget("/a")
	if may, _ := c.MayWrite("/a", now); !may {
		t.Error("a forgotten file is still contested")
	}
}
