package systemd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// script answers each look with the next unit, and the last one for ever.
type script struct {
	looks []Unit
	errs  []error
}

func (s *script) show(context.Context) (Unit, error) {
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return Unit{}, err
	}
	u := s.looks[0]
	if len(s.looks) > 1 {
		s.looks = s.looks[1:]
	}
	return u, nil
}

func TestWaitForRestart(t *testing.T) {
	var (
		before  = Unit{ActiveState: "active", InvocationID: "a", MainPID: 1, Result: "success"}
		queued  = Unit{ActiveState: "active", InvocationID: "a", MainPID: 1, JobID: 9}
		stopped = Unit{ActiveState: "inactive", InvocationID: "a", Result: "success"}
		between = Unit{ActiveState: "deactivating", InvocationID: "a", JobID: 9}
		spawned = Unit{ActiveState: "activating", InvocationID: "b", MainPID: 2, JobID: 9}
		samePID = Unit{ActiveState: "active", InvocationID: "b", MainPID: 1}
		after   = Unit{ActiveState: "active", InvocationID: "b", MainPID: 2}
		dead    = Unit{ActiveState: "failed", InvocationID: "b", Result: "exit-code", ExecMainStatus: 203}
		limited = Unit{ActiveState: "failed", InvocationID: "a", Result: "start-limit-hit", StartLimitBurst: 3, StartLimitInterval: time.Minute}
		renews  = Unit{ActiveState: "refreshing", InvocationID: "b", MainPID: 2}
		flaps   = Unit{ActiveState: "activating", SubState: "auto-restart", InvocationID: "b"}
	)
	var (
		job     *JobFailedError
		limit   *StartLimitError
		stop    *NotRunningError
		timeout *TimeoutError
	)
	tests := map[string]struct {
		looks   []Unit
		errs    []error
		results []string
		want    any // pointer to an error type, or nil
	}{
		"job, stop, start":                 {looks: []Unit{queued, between, spawned, after}, results: []string{"done"}},
		"it refreshes right afterwards":    {looks: []Unit{renews, renews, renews, renews, after}},
		"the signal is lost":               {looks: []Unit{queued, between, spawned, after}},
		"systemd re-executes meanwhile":    {looks: []Unit{after}, errs: []error{errors.New("closed"), errors.New("closed")}},
		"the job's end is not enough":      {looks: []Unit{before, before, before, after}, results: []string{"done"}},
		"the same main process":            {looks: []Unit{samePID}, results: []string{"done"}, want: &timeout},
		"nothing new comes":                {looks: []Unit{before}, results: []string{"done"}, want: &timeout},
		"no answer at all":                 {errs: endless(100), want: &timeout},
		"the job fails":                    {looks: []Unit{queued, dead}, results: []string{"failed"}, want: &job},
		"the job fails, the unit flaps":    {looks: []Unit{queued, flaps}, results: []string{"failed"}, want: &job},
		"the job is cancelled":             {looks: []Unit{before}, results: []string{"canceled"}, want: &job},
		"failure without a signal":         {looks: []Unit{queued, dead}, want: &job},
		"failure right after the job":      {looks: []Unit{queued, dead}, results: []string{"done"}, want: &job},
		"start limit":                      {looks: []Unit{queued, limited}, results: []string{"failed"}, want: &limit},
		"C29: stopped by somebody before":  {looks: []Unit{stopped}, results: []string{"done"}, want: &stop},
		"C32: hangs while it starts":       {looks: []Unit{queued, spawned}, want: &timeout},
		"C30: it flaps and never is there": {looks: []Unit{queued, flaps}, results: []string{"done"}, want: &timeout},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				s := &script{looks: test.looks, errs: test.errs}
				results := make(chan string, 1)
				for _, r := range test.results {
					results <- r
				}
				w := waiter{verb: "restarting", unit: "x.service", show: s.show, done: func(u Unit) string { return missingAfterRestart(before, u) }}
				got, err := w.wait(ctx, results)
				if test.want == nil {
					if err != nil || got.InvocationID != "b" {
						t.Errorf("got %+v, %v, want the new process", got, err)
					}
					return
				}
				if err == nil || !errors.As(err, test.want) {
					t.Errorf("got %v, want a %T", err, test.want)
				}
			})
		})
	}
}

func endless(n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = errors.New("no answer")
	}
	return errs
}

func TestSettle(t *testing.T) {
	became := Unit{ActiveState: "active", InvocationID: "b", MainPID: 2}
	died := Unit{ActiveState: "failed", InvocationID: "b", Result: "exit-code"}
	again := Unit{ActiveState: "active", InvocationID: "c", MainPID: 3}
	tests := map[string]struct {
		looks []Unit
		fails bool
	}{
		"stays":                {[]Unit{became}, false},
		"dies":                 {[]Unit{became, became, died}, true},
		"is restarted for him": {[]Unit{became, again}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{looks: test.looks}
				w := waiter{verb: "restarting", unit: "x.service", show: s.show}
				err := w.settle(t.Context(), became, time.Second)
				var job *JobFailedError
				if test.fails != (err != nil) || test.fails && !errors.As(err, &job) {
					t.Errorf("got %v, want failure = %v", err, test.fails)
				}
			})
		})
	}
}

func TestSettleEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		became := Unit{ActiveState: "active"}
		s := &script{looks: []Unit{became}}
		err := waiter{show: s.show}.settle(ctx, became, time.Minute)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's end", err)
		}
	})
}

func TestMissingAfterStartAndStop(t *testing.T) {
	tests := []struct {
		unit           Unit
		started, ended bool
	}{
		{Unit{ActiveState: "active"}, true, false},
		{Unit{ActiveState: "active", JobID: 1}, false, false},
		{Unit{ActiveState: "inactive", Result: "success"}, false, true},
		{Unit{ActiveState: "inactive", Result: "success", Type: "oneshot"}, true, true},
		{Unit{ActiveState: "failed", Result: "exit-code", Type: "oneshot"}, false, true},
		{Unit{ActiveState: "deactivating"}, false, false},
	}
	for _, test := range tests {
		if got := missingAfterStart(test.unit) == ""; got != test.started {
			t.Errorf("%+v counts as started = %v", test.unit, got)
		}
		if got := missingAfterStop(test.unit) == ""; got != test.ended {
			t.Errorf("%+v counts as stopped = %v", test.unit, got)
		}
	}
}
