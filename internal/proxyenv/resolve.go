package proxyenv

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// Facts are what was discovered about the cluster. A nil list was not discovered; an empty one was
// found to be empty.
type Facts struct {
	v1alpha1.ClusterFacts
	// APIServerAddresses are the IP addresses behind the API server's name.
	APIServerAddresses []string
}

// PinnedFacts returns the facts that a profile's status holds; nil pins nothing.
func PinnedFacts(pinned *v1alpha1.PinnedFacts) Facts {
	if pinned == nil {
		return Facts{}
	}
	return Facts{ClusterFacts: pinned.ClusterFacts, APIServerAddresses: pinned.APIServerAddresses}
}

// Input is everything that a revision is made from.
type Input struct {
	Profile *v1alpha1.ProxyProfile
	// Facts discovered; what the profile says itself wins over them.
	Facts Facts
	// CASHA256 is the digest of the trusted CA's PEM bytes, in hexadecimal; required when the
	// profile names a CA.
	CASHA256 string
	// DefaultTargets are meant when the profile names no target; Containerd when this is empty too.
	// They decide which facts are required and are not part of the revision.
	DefaultTargets []v1alpha1.Target
}

// Note is something about a resolved profile that a person should know and that stops nothing.
type Note struct {
	// Path of the field that it is about.
	Path string
	// Value that it is about, with credentials masked, or "".
	Value string
	// Message is a sentence.
	Message string
}

// String returns the note in one line.
func (n Note) String() string {
	if n.Value == "" {
		return n.Path + ": " + n.Message
	}
	return fmt.Sprintf("%s: %q: %s", n.Path, n.Value, n.Message)
}

// Resolve makes a revision of a profile: the proxies, and every NO_PROXY entry with its source and
// reason, sorted, each once. Absent fields mean their defaults. The profile is not changed.
//
// Its error is a v1alpha1.FieldErrors that names every field that is missing or cannot be used.
func Resolve(in Input) (*v1alpha1.ProxyRevisionSpec, []Note, error) {
	profile := in.Profile.DeepCopy()
	v1alpha1.SetDefaults(profile)
	r := &resolver{spec: &profile.Spec, facts: in.Facts, targets: targetsOf(profile, in.DefaultTargets)}

	out := &v1alpha1.ProxyRevisionSpec{
		Profile:               profile.Name,
		CredentialsSecretName: r.spec.Proxy.CredentialsSecretName,
		Canary:                r.spec.Canary,
		Drift:                 r.spec.Drift,
		Targets:               slices.Sorted(slices.Values(r.spec.Targets)),
	}
	r.proxies(out)
	out.TrustedCA = r.trustedCA(in.CASHA256)
	out.Cluster = r.cluster()
	r.requireFacts(out.Cluster)
	out.InternalRegistries = r.registries()
	out.Excluded = r.excluded()
	out.NoProxy = r.entries(out)
	if len(r.errs) > 0 {
		return nil, nil, r.errs
	}
	r.noteExclusions(out)
	return out, r.notes, nil
}

// resolver collects what is found out while one profile is resolved.
type resolver struct {
	spec    *v1alpha1.ProxyProfileSpec
	facts   Facts
	targets []v1alpha1.Target
	errs    v1alpha1.FieldErrors
	notes   []Note
}

func (r *resolver) fail(path, found, problem, fix string) {
	r.errs = append(r.errs, v1alpha1.FieldError{Path: path, Found: found, Problem: problem, Fix: fix})
}

func (r *resolver) note(path, value, format string, args ...any) {
	r.notes = append(r.notes, Note{Path: path, Value: value, Message: fmt.Sprintf(format, args...)})
}

func targetsOf(p *v1alpha1.ProxyProfile, defaults []v1alpha1.Target) []v1alpha1.Target {
	switch {
	case len(p.Spec.Targets) > 0:
		return p.Spec.Targets
	case len(defaults) > 0:
		return defaults
	default:
		return []v1alpha1.Target{v1alpha1.TargetContainerd}
	}
}

// proxies fills in both proxy URLs.
func (r *resolver) proxies(out *v1alpha1.ProxyRevisionSpec) {
	const fix = "write scheme://host:port with the scheme http, https or socks5; credentials go into the Secret that spec.proxy.credentialsSecretName names"
	for _, f := range []struct {
		path, raw string
		to        *string
	}{
		{"spec.proxy.http", r.spec.Proxy.HTTP, &out.HTTPProxy},
		{"spec.proxy.https", r.spec.Proxy.HTTPS, &out.HTTPSProxy},
	} {
		u, err := normaliseProxyURL(f.raw)
		if err != nil {
			r.fail(f.path, v1alpha1.MaskURL(f.raw), err.Error(), fix)
			continue
		}
		*f.to = u
	}
	const bothFix = "write the other one too if such traffic needs the proxy"
	switch {
	case r.spec.Proxy.HTTP == "" && r.spec.Proxy.HTTPS == "":
		r.fail("spec.proxy", "", "it names no proxy", "write spec.proxy.https, and spec.proxy.http for http:// URLs")
	case r.spec.Proxy.HTTPS == "":
		r.note("spec.proxy.https", "", "it is absent, so https:// URLs, and with them nearly all registries, go direct; %s", bothFix)
	case r.spec.Proxy.HTTP == "":
		r.note("spec.proxy.http", "", "it is absent, so http:// URLs go direct; %s", bothFix)
	}
}

func (r *resolver) trustedCA(sha string) *v1alpha1.ResolvedCA {
	ca := r.spec.Proxy.TrustedCA
	if ca == nil {
		return nil
	}
	sha = strings.ToLower(sha)
	if raw, err := hex.DecodeString(sha); err != nil || len(raw) != 32 {
		r.fail("spec.proxy.trustedCA", ca.ConfigMapName, "its certificates were not found, so their digest is unknown",
			fmt.Sprintf("create the ConfigMap with the key %s, or give the file on the command line", ca.Key))
		return nil
	}
	return &v1alpha1.ResolvedCA{ConfigMapKey: *ca, SHA256: sha}
}

// registries returns the internal registries in their normal form, sorted.
func (r *resolver) registries() []string {
	if r.spec.Registries.Internal == nil {
		return nil
	}
	out := []string{}
	for i, raw := range r.spec.Registries.Internal {
		path := fmt.Sprintf("spec.registries.internal[%d]", i)
		e := registryEntry(raw)
		if e.kind != kindName && e.kind != kindAddress {
			problem := e.problem
			if problem == "" {
				problem = "it is not one registry"
			}
			r.fail(path, v1alpha1.MaskURL(raw), problem, cmp.Or(e.fix, "write host or host:port, as images name it"))
			continue
		}
		out = append(out, e.value())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// registryEntry is the entry that covers a registry as a runtime asks for it: an address in
// brackets needs none of them in NO_PROXY when it has no port.
func registryEntry(raw string) entry {
	v := strings.TrimSpace(raw)
	if strings.HasPrefix(v, "[") && strings.HasSuffix(v, "]") {
		v = v[1 : len(v)-1]
	}
	return parseEntry(v)
}
