package preflight

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"sync"

	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/internal/node"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// parallel is how many checks run at once. Most of them wait for the network.
const parallel = 8

// Request is what one preflight is asked for.
type Request struct {
	bootstrap.Input
	// Observe is told of progress, one call at a time; nil for nobody.
	Observe func(Progress)
	// Resolver of names, and Roots that are trusted besides the profile's CA; nil for those of the
	// calling process.
	Resolver canary.Resolver
	Roots    *x509.CertPool
}

// Progress is how far a preflight is.
type Progress struct {
	Done, Total int
	// Running are the titles of the checks in hand, in the order of their IDs.
	Running []string
}

// Run makes every check on a host and changes nothing there.
//
// Its error says why nothing is known (ctx ended among others); a *bootstrap.InputError that the profile, or what goes
// with it, cannot be used on this host.
func Run(ctx context.Context, host *node.Node, req Request) (Report, error) {
	wanted, err := bootstrap.Find(host.Root, req.Input)
	if err != nil {
		return Report{}, err
	}
	s := newSubject(ctx, host, wanted, req)
	results := runAll(ctx, checks(), s, req.Observe)
	if err := ctx.Err(); err != nil {
		return Report{}, fmt.Errorf("checking the host: %w", err)
	}
	masker := proxyenv.NewMasker(req.Credentials)
	for i := range results {
		results[i].Fix = masker.Mask(results[i].Fix)
		for j, text := range results[i].Seen {
			results[i].Seen[j] = masker.Mask(text)
		}
	}
	return Report{
		Profile: wanted.Profile, Revision: wanted.Revision, Outcome: outcome(results), Checks: results,
		Environment: s.environment(), Decisions: s.table(),
	}, nil
}

// runAll runs checks side by side and returns their results in order.
func runAll(ctx context.Context, table []check, s *subject, observe func(Progress)) []Result {
	found := make([][]Result, len(table))
	tell := newTeller(table, observe)
	slots := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for i, c := range table {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			tell.began(i)
			defer tell.ended(i)
			found[i] = runOne(ctx, c, s)
		})
	}
	all.Wait()
	results := slices.Concat(found...)
	order(results)
	return results
}

// runOne runs a check until its deadline. One that does not mind it is left behind: it only reads.
func runOne(ctx context.Context, c check, s *subject) []Result {
	deadline := c.deadline
	if deadline == 0 {
		deadline = defaultDeadline
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	done := make(chan []Result, 1)
	go func() { done <- c.run(ctx, s) }()
	var results []Result
	select {
	case results = <-done:
	case <-ctx.Done():
		results = []Result{untested("", "run it again; if it stays so, something on this host hangs", fmt.Sprintf("it did not end within %s", deadline))}
	}
	for i := range results {
		results[i].ID, results[i].Title, results[i].Docs = c.id, c.title, Docs(c.id)
	}
	return results
}

// teller tells of progress.
type teller struct {
	table   []check
	observe func(Progress)

	mu      sync.Mutex
	done    int
	running []int
}

func newTeller(table []check, observe func(Progress)) *teller {
	return &teller{table: table, observe: observe}
}

func (t *teller) began(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = append(t.running, i)
	slices.Sort(t.running)
	t.tell()
}

func (t *teller) ended(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = slices.DeleteFunc(t.running, func(j int) bool { return i == j })
	t.done++
	t.tell()
}

func (t *teller) tell() {
	if t.observe == nil {
		return
	}
	p := Progress{Done: t.done, Total: len(t.table)}
	for _, i := range t.running {
		p.Running = append(p.Running, t.table[i].title)
	}
	t.observe(p)
}
