package bootstrap

import (
	"errors"
	"slices"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/desired"
	"github.com/proxyward/proxyward/internal/prober"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// Input is what is wanted of a host.
type Input struct {
	Profile     *v1alpha1.ProxyProfile
	Credentials *proxyenv.Credentials
	// CredentialsVersion changes when the credentials do, and tells nothing of them.
	CredentialsVersion string
	// CA in PEM and its digest, where the profile names one.
	CA       []byte
	CASHA256 string
	// Logins for the canaries' registries.
	Logins prober.Logins
}

// InputError says that what is wanted cannot be used, or not on this host. Nothing was changed.
type InputError struct{ Err error }

// Error implements error.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// Wanted is what a profile means on one host.
type Wanted struct {
	Profile, Revision  string
	CredentialsVersion string
	Spec               *v1alpha1.ProxyRevisionSpec
	Notes              []proxyenv.Note
	// Left says what is on the host and left alone.
	Left     []string
	Units    []drift.Desired
	Canaries []prober.Canary
	CA       []byte
	// Timeout of one pull; 0 for the default.
	Timeout time.Duration
}

// Find returns what is wanted of the host with this tree. Its errors are *InputError, except where
// the host's own files cannot be read.
func Find(host runtimes.HostFS, in Input) (Wanted, error) {
	found, notes, err := desired.Find(host, in.Profile.Spec.Targets)
	if _, isField := errors.AsType[v1alpha1.FieldError](err); isField {
		return Wanted{}, &InputError{Err: err}
	}
	if err != nil {
		return Wanted{}, err
	}
	wanted, err := Resolve(in, found)
	wanted.Left = notes
	return wanted, err
}

// Resolve returns what is wanted of a host with these runtimes. It is pure; its errors are
// *InputError.
func Resolve(in Input, found []runtimes.Runtime) (Wanted, error) {
	fail := func(err error) (Wanted, error) { return Wanted{}, &InputError{Err: err} }
	revision, notes, err := proxyenv.Resolve(proxyenv.Input{Profile: in.Profile, CASHA256: in.CASHA256, DefaultTargets: targets(found)})
	if err != nil {
		return fail(err)
	}
	units, err := desired.Render(desired.Input{Revision: revision, Credentials: in.Credentials, CA: in.CA}, found)
	if err != nil {
		return fail(err)
	}
	canaries, err := prober.Canaries(revision.Canary, in.Logins)
	if err != nil {
		return fail(err)
	}
	wanted := Wanted{
		Profile: revision.Profile, Revision: proxyenv.RevisionName(revision), CredentialsVersion: in.CredentialsVersion,
		Spec: revision, Notes: notes, Units: units, Canaries: canaries, CA: in.CA,
	}
	if t := revision.Canary.Timeout; t != nil {
		wanted.Timeout = t.Duration
	}
	return wanted, nil
}

func targets(found []runtimes.Runtime) []v1alpha1.Target {
	out := make([]v1alpha1.Target, len(found))
	for i, rt := range found {
		out[i] = rt.Target
	}
	return out
}

// notes are all that a person should know.
func (w Wanted) notes() []string {
	out := slices.Clone(w.Left)
	for _, n := range w.Notes {
		out = append(out, n.String())
	}
	return out
}
