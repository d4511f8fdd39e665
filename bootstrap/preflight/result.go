// Package preflight says whether a host is ready for a profile: a table of checks, each with an ID
// that stays, a verdict, what was seen and what to do. It asks the host's files, its systemd, its
// processes, the proxy and the registries, and changes nothing.
package preflight

import (
	"cmp"
	"slices"
)

// Verdict of one check.
type Verdict string

// The verdicts.
const (
	// Pass: it is as it should be.
	Pass Verdict = "pass"
	// Warn: it works, and a person should know or do something.
	Warn Verdict = "warn"
	// Fail: it does not work, now or from the next restart on; Breaks says which.
	Fail Verdict = "fail"
	// Untested: it could not be found out; what was seen says why.
	Untested Verdict = "untested"
)

// Breaks says when a failure is felt.
type Breaks string

// The times.
const (
	// Now: pulls, or the change that bootstrap would make, fail today.
	Now Breaks = "now"
	// AtRestart: what runs is right, and the next start of the daemon makes it wrong.
	AtRestart Breaks = "restart"
)

// Result is what one check found of one subject. It holds no secret.
type Result struct {
	// ID of the check; it keeps its meaning for ever.
	ID string `json:"id"`
	// Title says what is checked.
	Title string `json:"title"`
	// Subject is the unit, host or image that was looked at; "" for the whole host.
	Subject string  `json:"subject,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Breaks is set on failures.
	Breaks Breaks `json:"breaks,omitempty"`
	// Seen is what was found, the most important first.
	Seen []string `json:"seen"`
	// Fix is what to do; "" when there is nothing to do.
	Fix string `json:"fix,omitempty"`
	// Docs is the address of the check's documentation.
	Docs string `json:"docs"`
}

// Outcome is what all results come to.
type Outcome string

// The outcomes, the worst first.
const (
	Broken          Outcome = "broken"
	BreaksAtRestart Outcome = "breaks-at-restart"
	NotTested       Outcome = "untested"
	Ready           Outcome = "ready"
)

// Report is what a preflight found. It holds no secret.
type Report struct {
	Profile  string  `json:"profile"`
	Revision string  `json:"revision"`
	Outcome  Outcome `json:"outcome"`
	// Checks are the results, those that need somebody first, else by ID.
	Checks []Result `json:"checks"`
	// Environment of each unit in the four layers.
	Environment []UnitEnvironment `json:"environment"`
	// Decisions say which way each host goes.
	Decisions []Decision `json:"decisions"`
}

// Count says how many results have a verdict.
func (r Report) Count(v Verdict) int {
	n := 0
	for _, c := range r.Checks {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// outcome is what results come to: what is broken now weighs more than what a restart breaks, and
// that more than what is not known.
func outcome(results []Result) Outcome {
	worst := Ready
	rank := []Outcome{Broken, BreaksAtRestart, NotTested, Ready}
	for _, r := range results {
		o := Ready
		switch {
		case r.Verdict == Fail && r.Breaks == AtRestart:
			o = BreaksAtRestart
		case r.Verdict == Fail:
			o = Broken
		case r.Verdict == Untested:
			o = NotTested
		}
		if slices.Index(rank, o) < slices.Index(rank, worst) {
			worst = o
		}
	}
	return worst
}

// order puts what needs somebody first.
func order(results []Result) {
	weight := func(r Result) int {
		switch {
		case r.Verdict == Fail && r.Breaks == Now:
			return 0
		case r.Verdict == Fail:
			return 1
		case r.Verdict == Untested:
			return 2
		case r.Verdict == Warn:
			return 3
		default:
			return 4
		}
	}
	slices.SortStableFunc(results, func(a, b Result) int {
		return cmp.Or(weight(a)-weight(b), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Subject, b.Subject))
	})
}

func pass(subject string, seen ...string) Result {
	return Result{Subject: subject, Verdict: Pass, Seen: seen}
}

func warn(subject, fix string, seen ...string) Result {
	return Result{Subject: subject, Verdict: Warn, Fix: fix, Seen: seen}
}

func fail(subject string, breaks Breaks, fix string, seen ...string) Result {
	return Result{Subject: subject, Verdict: Fail, Breaks: breaks, Fix: fix, Seen: seen}
}

func untested(subject, fix string, seen ...string) Result {
	return Result{Subject: subject, Verdict: Untested, Fix: fix, Seen: seen}
}
