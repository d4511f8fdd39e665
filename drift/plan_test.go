package drift

import (
	"slices"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/runtimes"
)

func TestDiffOfUnitThatWasNotObserved(t *testing.T) {
	plan := Diff([]Desired{theDesired()}, nil, "v1")
	if got, want := summary(plan), "[] unknown [Unreadable]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDiffOrdersActionsOfSeveralUnits(t *testing.T) {
	first, second := theDesired(), theDesired()
	second.Unit = "kubelet.service"
	second.Files = slices.Clone(second.Files)
	second.Files[1].Path, second.Files[2].Path = runtimes.EnvPath(second.Unit), runtimes.DropInPath(second.Unit)
	var observed []Observed
	for _, d := range []Desired{second, first} {
		o := inSync(d)
		for p := range o.Files.Ours {
			o.Files.Ours[p] = FileState{}
		}
		o.Process.Environ = nil
		o.Loaded.PropagatesRestart = []string{"bound.service"}
		observed = append(observed, o)
	}
	plan := Diff([]Desired{first, second}, observed, "v1")
	want := []string{
		"write " + caFile, "write " + runtimes.EnvPath(unit), "write " + runtimes.EnvPath("kubelet.service"),
		"write " + runtimes.DropInPath(unit), "write " + runtimes.DropInPath("kubelet.service"), "reload ", "restart ", "restart ",
	}
	var got []string
	for _, a := range plan.Actions {
		got = append(got, string(a.Kind)+" "+a.File.Path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("actions are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if restarts := plan.Restarts(); !slices.Equal(restarts, []string{unit, "kubelet.service"}) {
		t.Errorf("restarts are %v, want the desired order", restarts)
	}
	if why := plan.Actions[6].Why; !strings.Contains(why, "bound.service") {
		t.Errorf("a unit that is restarted too is not named in %q", why)
	}
}

func TestC56_PrefixedVariablesAreCompared(t *testing.T) {
	d := theDesired()
	d.Runtime.Prefix = "CONTAINERD_"
	o := inSync(d)
	o.Process.Environ = runtimes.Scoped(d.Environment, "CONTAINERD_").Vars
	o.Loaded.UnsetEnvironment = nil
	if got, want := summary(Diff([]Desired{d}, []Observed{o}, "v1")), "[] true []"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	o.Process.Environ = theVars()
	if got, want := summary(Diff([]Desired{d}, []Observed{o}, "v1")), "[restart] false [RestartNeeded]"; got != want {
		t.Errorf("without the prefix: got %s, want %s", got, want)
	}
}

func TestRemovalKeepsWhatAnotherUnitShares(t *testing.T) {
	gone, stays := absent(), theDesired()
	stays.Unit = "kubelet.service"
	stays.Files = stays.Files[:1]
	o := inSync(theDesired())
	other := inSync(stays)
	plan := Diff([]Desired{gone, stays}, []Observed{o, other}, "v1")
	for _, a := range plan.Actions {
		if a.File.Path == caFile {
			t.Errorf("the shared CA is %sd", a.Kind)
		}
	}
}

func TestReason(t *testing.T) {
	tests := []struct {
		verdict UnitVerdict
		want    string
	}{
		{UnitVerdict{InSync: runtimes.True, Findings: []v1alpha1.Finding{{Reason: v1alpha1.ReasonShadowed}}}, v1alpha1.ReasonInSync},
		{UnitVerdict{Findings: []v1alpha1.Finding{{Reason: v1alpha1.ReasonUnreadable}}}, v1alpha1.ReasonUnreadable},
		{UnitVerdict{InSync: runtimes.False, Findings: []v1alpha1.Finding{{Reason: v1alpha1.ReasonOverridden}, {Reason: v1alpha1.ReasonRestartNeeded}}}, v1alpha1.ReasonOverridden},
	}
	for _, test := range tests {
		if got := test.verdict.Reason(); got != test.want {
			t.Errorf("Reason of %+v = %q, want %q", test.verdict, got, test.want)
		}
	}
}
