// Package desired says what must stand on one host: it joins a revision, the credentials and the CA
// with what the host's own files say of its runtimes. Every verb, and the agent, get the desired
// state here, so that the same profile gives the same bytes everywhere.
//
// Only Find reads a host; the rest takes values and returns values.
package desired

import (
	"net/url"
	"slices"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// Input is what is wanted, and the secrets that the revision does not hold.
type Input struct {
	// Revision to put on the host, made by proxyenv.Resolve.
	Revision *v1alpha1.ProxyRevisionSpec
	// Credentials for the proxy; nil when the revision names none.
	Credentials *proxyenv.Credentials
	// CA in PEM; nil when the revision names none.
	CA []byte
}

// Render returns what each of the runtimes found on a host must be, in their order. All of them
// get the same environment.
func Render(in Input, found []runtimes.Runtime) ([]drift.Desired, error) {
	env, err := proxyenv.ForNode(proxyenv.NodeInput{Revision: in.Revision, Credentials: in.Credentials, Mirrors: Mirrors(found)})
	if err != nil {
		return nil, err
	}
	revision := proxyenv.RevisionName(in.Revision)
	var out []drift.Desired
	for _, rt := range found {
		files, err := runtimes.Render(runtimes.RenderInput{
			Profile: in.Revision.Profile, Revision: revision,
			Target: rt.Target, Unit: rt.Unit, Prefix: rt.Prefix,
			Environment: env, CA: in.CA,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, drift.Desired{Desired: files, Environment: env, Runtime: rt})
	}
	return out, nil
}

// Absent returns the wish that nothing of Proxyward is left on the runtimes found.
func Absent(found []runtimes.Runtime) []drift.Desired {
	var out []drift.Desired
	for _, rt := range found {
		out = append(out, drift.Desired{
			Desired:     runtimes.Desired{Target: rt.Target, Unit: rt.Unit},
			Environment: proxyenv.Environment{Unset: proxyenv.OwnedVariables()},
			Runtime:     rt,
			Absent:      true,
		})
	}
	return out
}

// Mirrors lists the hosts that the runtimes pull from instead of the registries, each once. What
// does not parse as a URL is the adapter's to report and is no host.
func Mirrors(found []runtimes.Runtime) []string {
	var out []string
	for _, rt := range found {
		for _, registry := range rt.Hosts {
			for _, host := range registry.Hosts {
				if u, err := url.Parse(host); err == nil && u.Host != "" && !slices.Contains(out, u.Host) {
					out = append(out, u.Host)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}
