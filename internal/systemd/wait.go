package systemd

import (
	"context"
	"time"
)

// waiter waits for what a job should bring about.
type waiter struct {
	verb, unit string
	show       func(ctx context.Context) (Unit, error)
	// done says what is still missing, "" when nothing is.
	done func(Unit) string
}

// quietPolls is how many looks must find a dead unit without a job before it counts as failed
// although systemd's word on the job has not come: the word may be on its way.
const quietPolls = 3

// wait looks at the unit until nothing is missing, the job failed or ctx ended. A look that fails
// is repeated: systemd may just be re-executing itself.
func (w waiter) wait(ctx context.Context, results <-chan string) (Unit, error) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var (
		last      Unit
		jobResult string
		quiet     int
		missing   = "an answer of systemd"
	)
	for {
		if now, err := w.show(ctx); err == nil {
			last = now
			if missing = w.done(now); missing == "" {
				return now, nil
			}
			if now.JobID == 0 && !now.Running() {
				quiet++
			} else {
				quiet = 0
			}
			if failed(jobResult) || quiet > 0 && jobResult != "" || quiet >= quietPolls {
				return now, w.failure(now, jobResult)
			}
		}
		select {
		case <-ctx.Done():
			return last, &TimeoutError{Verb: w.verb, Unit: w.unit, Missing: missing, Last: last, Cause: ctx.Err()}
		case jobResult = <-results:
		case <-tick.C:
		}
	}
}

// failed says whether a job's result is known and not success.
func failed(jobResult string) bool { return jobResult != "" && jobResult != "done" }

// failure says why a unit is not what the job should have made it.
func (w waiter) failure(now Unit, jobResult string) error {
	switch {
	case now.Result == "start-limit-hit":
		return &StartLimitError{Verb: w.verb, Unit: w.unit, Burst: now.StartLimitBurst, Interval: now.StartLimitInterval.String()}
	case !failed(jobResult) && now.ActiveState == "inactive" && now.Result == "success":
		// Somebody stopped it meanwhile.
		return &NotRunningError{Unit: w.unit, ActiveState: now.ActiveState}
	}
	return &JobFailedError{
		Verb: w.verb, Unit: w.unit, JobResult: jobResult,
		ServiceResult: now.Result, ExecMainStatus: now.ExecMainStatus,
	}
}

// settle watches that a unit stays as it became.
func (w waiter) settle(ctx context.Context, became Unit, settle time.Duration) error {
	if settle <= 0 {
		return nil
	}
	enough := time.NewTimer(settle)
	defer enough.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	last := became
	for {
		select {
		case <-ctx.Done():
			return &TimeoutError{Verb: w.verb, Unit: w.unit, Missing: "the unit to settle", Last: last, Cause: ctx.Err()}
		case <-enough.C:
			return w.stayed(ctx, became)
		case <-tick.C:
			if err := w.stayed(ctx, became); err != nil {
				return err
			}
		}
	}
}

// stayed compares a unit with what it became.
func (w waiter) stayed(ctx context.Context, became Unit) error {
	now, err := w.show(ctx)
	if err != nil {
		return err
	}
	if now.InvocationID != became.InvocationID || now.ActiveState != "active" || now.MainPID != became.MainPID {
		return w.failure(now, "done")
	}
	return nil
}
