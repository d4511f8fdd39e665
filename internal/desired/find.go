package desired

import (
	"slices"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/runtimes"
)

// Find returns the daemons of a host that a profile's targets mean, and what a person should know
// of those that are left out. A target that is named must be there and usable; a
// v1alpha1.FieldError says which is not. Without targets, the container runtimes that are there are
// meant.
func Find(host runtimes.HostFS, targets []v1alpha1.Target) (found []runtimes.Runtime, notes []string, err error) {
	all, err := runtimes.Detect(host, targets...)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range all {
		switch {
		case f.Refused == "":
			found = append(found, f.Runtime)
		case len(targets) > 0:
			return nil, nil, targetError(f.Adapter.Target(), f.Refused, "mend that, or leave it out of the targets")
		default:
			notes = append(notes, f.Refused)
		}
	}
	for _, target := range targets {
		if !slices.ContainsFunc(found, func(r runtimes.Runtime) bool { return r.Target == target }) {
			return nil, nil, targetError(target, "it is not installed here: no unit file of it was found", "install it first, or leave it out of the targets")
		}
	}
	if len(found) == 0 {
		return nil, notes, targetError("", "no container runtime was found on this host: none has a unit file here", "install one first, or check that --host-root is the top of the host's tree")
	}
	return found, notes, nil
}

func targetError(target v1alpha1.Target, problem, fix string) error {
	return v1alpha1.FieldError{Path: "spec.targets", Found: string(target), Problem: problem, Fix: fix}
}

// Assume returns the daemons of a host that has exactly what a profile targets, each with its usual
// unit and no configuration of its own; containerd when no target is named.
func Assume(targets []v1alpha1.Target) []runtimes.Runtime {
	if len(targets) == 0 {
		targets = []v1alpha1.Target{v1alpha1.TargetContainerd}
	}
	var out []runtimes.Runtime
	for _, a := range runtimes.All() {
		if slices.Contains(targets, a.Target()) {
			out = append(out, runtimes.Runtime{Target: a.Target(), Unit: a.Units()[0]})
		}
	}
	return out
}
