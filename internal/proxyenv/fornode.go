package proxyenv

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// CADir is where the trusted CA with a digest lies on a host. A new CA has a new folder, so the
// environment alone tells which CA a process runs with.
func CADir(sha256 string) string { return "/etc/proxyward/ca/" + sha256 }

// CertDirs is the value of SSL_CERT_DIR with a trusted CA. Go reads these folders beside the first
// bundle file that it finds, so the host's own store stays in use: the first two are the defaults
// that setting the variable replaces (crypto/x509, root_linux.go).
func CertDirs(sha256 string) string {
	return "/etc/ssl/certs:/etc/pki/tls/certs:" + CADir(sha256)
}

// OwnedVariables returns the names that are Proxyward's in every environment, sorted: the three
// proxy variables in both cases. SSL_CERT_DIR is owned only while a trusted CA is given, and
// ALL_PROXY never: Go does not read it, and other programs that do are not ours.
func OwnedVariables() []string {
	return []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
}

// ForNode returns the environment that every targeted daemon of one node must run with.
//
// It fails when the credentials that the revision names are not given, when some are given that it
// does not name, and when one variable would be longer than the kernel takes (MaxEnvString).
func ForNode(in NodeInput) (Environment, error) {
	rev := in.Revision
	switch {
	case rev.CredentialsSecretName != "" && in.Credentials == nil:
		return Environment{}, fmt.Errorf("computing the environment of profile %q: its credentials (Secret %q) were not given; give the directory with the files username and password (--credentials DIR)", rev.Profile, rev.CredentialsSecretName)
	case rev.CredentialsSecretName == "" && in.Credentials != nil:
		return Environment{}, fmt.Errorf("computing the environment of profile %q: credentials were given and the profile asks for none; write spec.proxy.credentialsSecretName, or leave them out", rev.Profile)
	}
	env := Environment{Entries: slices.Clone(rev.NoProxy)}
	if own := nodeEntries(rev, in.Mirrors); len(own) > 0 {
		env.NodeDigest = entriesDigest(own)
		env.Entries = append(env.Entries, own...)
		slices.SortFunc(env.Entries, func(a, b v1alpha1.NoProxyEntry) int { return strings.Compare(a.Value, b.Value) })
	}
	httpProxy, err := proxyValue(rev.HTTPProxy, in.Credentials)
	if err != nil {
		return Environment{}, err
	}
	httpsProxy, err := proxyValue(rev.HTTPSProxy, in.Credentials)
	if err != nil {
		return Environment{}, err
	}
	env.set("HTTP_PROXY", httpProxy)
	env.set("HTTPS_PROXY", httpsProxy)
	env.set("NO_PROXY", PlainSecret(joinEntries(env.Entries)))
	if ca := rev.TrustedCA; ca != nil {
		env.Vars = append(env.Vars, Var{Name: "SSL_CERT_DIR", Value: PlainSecret(CertDirs(ca.SHA256))})
	}
	slices.SortFunc(env.Vars, func(a, b Var) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(env.Unset)
	return env, env.checkSizes()
}

// set gives both cases of a variable a value, or unsets both when there is none.
func (e *Environment) set(name string, value Secret) {
	for _, n := range []string{name, strings.ToLower(name)} {
		if value.Reveal() == "" {
			e.Unset = append(e.Unset, n)
			continue
		}
		e.Vars = append(e.Vars, Var{Name: n, Value: value})
	}
}

func (e *Environment) checkSizes() error {
	for _, v := range e.Vars {
		if size := len(v.Name) + 1 + len(v.Value.Reveal()); size > MaxEnvString {
			return fmt.Errorf("computing the environment: %s would have %d bytes, and the kernel starts no process with more than %d in one variable; write domains and CIDRs rather than single hosts", v.Name, size, MaxEnvString)
		}
	}
	return nil
}

func proxyValue(proxyURL string, c *Credentials) (Secret, error) {
	if proxyURL == "" {
		return Secret{}, nil
	}
	return withCredentials(proxyURL, c)
}

// nodeEntries returns entries for the mirrors that are private addresses and that no entry of the
// revision covers. Names are left to the profile: whether one is internal cannot be seen from it.
func nodeEntries(rev *v1alpha1.ProxyRevisionSpec, mirrors []string) []v1alpha1.NoProxyEntry {
	set := newEntrySet(len(mirrors), excludedSet(rev.Excluded))
	var covered *Matcher
	for _, raw := range mirrors {
		e := registryEntry(raw)
		if e.kind != kindAddress || !isPrivate(e.host) {
			continue
		}
		if covered == nil {
			covered = coverage(rev.NoProxy)
		}
		if host := urlHost(e); covered.Decide("https://"+host).Direct && covered.Decide("http://"+host).Direct {
			continue
		}
		set.add(v1alpha1.SourceNode, e.value(), "mirror configured on this node")
	}
	return set.sorted()
}

// coverage is the matcher of a list alone, whatever the proxies are.
func coverage(entries []v1alpha1.NoProxyEntry) *Matcher {
	return NewMatcher(Environment{Vars: []Var{
		{Name: "HTTP_PROXY", Value: PlainSecret(probeProxy)},
		{Name: "HTTPS_PROXY", Value: PlainSecret(probeProxy)},
		{Name: "NO_PROXY", Value: PlainSecret(joinEntries(entries))},
	}, Entries: entries})
}

func isPrivate(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	return addr.IsPrivate() || addr.IsLinkLocalUnicast() || sharedAddressSpace().Contains(addr.AsSlice())
}

// sharedAddressSpace is RFC 6598's network, which carriers and some clouds use as private.
func sharedAddressSpace() *net.IPNet {
	return &net.IPNet{IP: net.IPv4(100, 64, 0, 0).To4(), Mask: net.CIDRMask(10, 32)}
}

func entriesDigest(entries []v1alpha1.NoProxyEntry) string {
	h := sha256.New()
	for _, e := range entries {
		h.Write([]byte(e.Value + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}
