package preflight

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary/canarytest"
)

func TestMain(m *testing.M) { canarytest.Main(m) }

func TestAReadyTreeLacksOnlySystemd(t *testing.T) {
	s := newSite(t)
	began := time.Now()
	report := s.run()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if report.Outcome != NotTested {
		t.Errorf("outcome %s", report.Outcome)
	}
	var open []string
	for _, c := range report.Checks {
		if c.Verdict != Pass {
			open = append(open, c.ID+" "+string(c.Verdict))
		}
	}
	want := []string{"PW103 untested", "PW104 untested", "PW602 untested", "PW603 untested", "PW102 warn"}
	if !slices.Equal(open, want) {
		t.Errorf("not passed: %q, want %q", open, want)
	}
}

func TestEachCheckHasItsOwnIDAndDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/checks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, c := range checks() {
		if ids[c.id] {
			t.Errorf("%s stands twice", c.id)
		}
		ids[c.id] = true
		if want := "\n### " + c.id + "\n**" + c.title + ".** "; !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
		if want := "README.md#" + strings.ToLower(c.id); !strings.HasSuffix(Docs(c.id), want) {
			t.Errorf("%s is documented at %s", c.id, Docs(c.id))
		}
	}
	for line := range strings.Lines(string(page)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok && !ids[id] {
			t.Errorf("the page has %s, which is no check", id)
		}
	}
}

func TestOutcomeIsTheWorst(t *testing.T) {
	now, restart := fail("", Now, "x", "y"), fail("", AtRestart, "x", "y")
	open, odd, good := untested("", "x", "y"), warn("", "x", "y"), pass("", "y")
	for _, test := range []struct {
		name    string
		results []Result
		want    Outcome
	}{
		{"nothing", nil, Ready},
		{"warnings", []Result{good, odd}, Ready},
		{"untested", []Result{good, open, odd}, NotTested},
		{"restart", []Result{open, restart, good}, BreaksAtRestart},
		{"now", []Result{restart, open, now}, Broken},
	} {
		if got := outcome(test.results); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	all := []Result{good, odd, open, restart, now}
	order(all)
	if all[0].Breaks != Now || all[1].Breaks != AtRestart || all[2].Verdict != Untested || all[3].Verdict != Warn || all[4].Verdict != Pass {
		t.Errorf("order: %+v", all)
	}
}

// A check that hangs is given up and says so; the others are not kept.
func TestACheckThatHangsIsUntested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		var progress []Progress
		table := []check{
			{id: "PW901", title: "hangs", deadline: time.Minute, run: func(context.Context, *subject) []Result {
				<-end
				return nil
			}},
			{id: "PW902", title: "ends", run: func(context.Context, *subject) []Result { return []Result{pass("", "seen")} }},
		}
		began := time.Now()
		got := runAll(t.Context(), table, nil, func(p Progress) { progress = append(progress, p) })
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it took %s", took)
		}
		expect(t, got[0], Untested, "did not end within 1m0s")
		expect(t, got[1], Pass, "seen")
		if last := progress[len(progress)-1]; last.Done != 2 || last.Total != 2 || len(last.Running) != 0 {
			t.Errorf("progress ends with %+v", last)
		}
	})
}

func TestChecksRunSideBySideWithinABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		var mu sync.Mutex
		one := func(context.Context, *subject) []Result {
			n := running.Add(1)
			mu.Lock()
			most.Store(max(most.Load(), n))
			mu.Unlock()
			time.Sleep(time.Second)
			running.Add(-1)
			return []Result{pass("", "seen")}
		}
		table := slices.Repeat([]check{{id: "PW901", title: "waits", run: one}}, 3*parallel)
		began := time.Now()
		runAll(t.Context(), table, nil, nil)
		if took := time.Since(began); took != 3*time.Second || most.Load() != parallel {
			t.Errorf("%d checks took %s, %d at once", len(table), took, most.Load())
		}
	})
}

func TestLastAddressOfANetwork(t *testing.T) {
	for cidr, want := range map[string]string{
		"10.96.0.0/16": "10.96.255.255", "10.0.0.5/32": "10.0.0.5", "10.66.0.128/25": "10.66.0.255",
		"fd00::/64": "fd00::ffff:ffff:ffff:ffff", "0.0.0.0/0": "255.255.255.255",
	} {
		if got := last(netip.MustParsePrefix(cidr)).String(); got != want {
			t.Errorf("%s: %s, want %s", cidr, got, want)
		}
	}
}

func TestDecisionsHaveBothEndsOfEachNetwork(t *testing.T) {
	s := newSite(t)
	report := s.run()
	for _, url := range []string{
		"https://10.96.0.0", "https://10.96.255.255", "https://10.244.255.255", "https://10.66.0.255",
		"http://169.254.169.254", "http://[fd00:ec2::254]", "https://" + s.internal.Host,
	} {
		if d := decision(t, report, url); d.Route != v1alpha1.RouteDirect || d.Entry == "" || d.Wrong() {
			t.Errorf("%+v", d)
		}
	}
	if d := decision(t, report, "https://"+s.external.Host); d.Route != v1alpha1.RouteProxy {
		t.Errorf("%+v", d)
	}
}

func decision(t *testing.T, r Report, url string) Decision {
	t.Helper()
	for _, d := range r.Decisions {
		if d.URL == url {
			return d
		}
	}
	t.Fatalf("%s is not in the decision table: %+v", url, r.Decisions)
	return Decision{}
}
