package proxyenv

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// Severity of a finding.
type Severity string

// The severities.
const (
	// SeverityError findings are refused by Resolve or at admission.
	SeverityError Severity = "Error"
	// SeverityWarning findings work otherwise than they look.
	SeverityWarning Severity = "Warning"
	// SeverityInfo findings concern clients other than Go only, which the runtimes are not.
	SeverityInfo Severity = "Info"
)

// LintFinding is one thing about a profile or a NO_PROXY list that does not do what it seems to.
type LintFinding struct {
	Severity Severity
	// Path of the field; for a list, its variable's name and the index of the entry.
	Path string
	// Value as it stands, with credentials masked.
	Value string
	// Clients that it concerns; empty: all.
	Clients []Client
	// Problem says what becomes of it, and Fix what to write instead.
	Problem, Fix string
}

// String returns the finding in one line.
func (f LintFinding) String() string {
	s := f.Path + ": "
	if f.Value != "" {
		s += fmt.Sprintf("%q: ", f.Value)
	}
	s += f.Problem
	if f.Fix != "" {
		s += "; " + f.Fix
	}
	return s
}

// Lint says what in a profile does not do what it seems to.
func Lint(p *v1alpha1.ProxyProfile) []LintFinding {
	l := &linter{}
	l.proxyURL("spec.proxy.http", p.Spec.Proxy.HTTP)
	l.proxyURL("spec.proxy.https", p.Spec.Proxy.HTTPS)
	l.oneProxy(p.Spec.Proxy)
	var values []string
	for i, e := range p.Spec.NoProxy.Entries {
		l.entry(fmt.Sprintf("spec.noProxy.entries[%d].value", i), e.Value)
		values = append(values, e.Value)
	}
	l.registries(p.Spec, values)
	l.canaries(p.Spec, values)
	return l.findings
}

// LintEnvironment says the same of proxy variables that somebody else wrote, quotes and all.
func LintEnvironment(env Environment) []LintFinding {
	l := &linter{}
	seen := map[string]string{}
	for _, v := range env.Vars {
		upper := strings.ToUpper(v.Name)
		switch upper {
		case "HTTP_PROXY", "HTTPS_PROXY":
			l.proxyURL(v.Name, v.Value.Reveal())
		case "NO_PROXY":
			for i, e := range commas(v.Value.Reveal()) {
				l.entry(fmt.Sprintf("%s[%d]", v.Name, i), e)
			}
		default:
			continue
		}
		if other, ok := seen[upper]; ok && other != v.Value.Reveal() {
			l.warn(v.Name, "", []Client{ClientGo, ClientCurl, ClientWget, ClientPython},
				"the upper-case and the lower-case variable differ: Go takes the upper-case one, the others the lower-case one", "write the same value into both")
		}
		seen[upper] = v.Value.Reveal()
	}
	return l.findings
}

// linter collects findings.
type linter struct{ findings []LintFinding }

func (l *linter) add(s Severity, path, value string, clients []Client, problem, fix string) {
	l.findings = append(l.findings, LintFinding{Severity: s, Path: path, Value: MaskText(value), Clients: clients, Problem: problem, Fix: fix})
}

func (l *linter) warn(path, value string, clients []Client, problem, fix string) {
	l.add(SeverityWarning, path, value, clients, problem, fix)
}

// proxyURL judges a proxy's URL: what Go makes of it, and what others do.
func (l *linter) proxyURL(path, raw string) {
	value := strings.TrimSpace(raw)
	if value == "" {
		return
	}
	masked := MaskURL(value)
	scheme, rest, hasScheme := strings.Cut(value, "://")
	switch {
	case strings.Contains(value, "@"):
		l.add(SeverityError, path, masked, nil, "it holds credentials, which everybody who may read profiles or units would see",
			"put username and password, not encoded, into the Secret that spec.proxy.credentialsSecretName names")
		return
	case !hasScheme:
		l.add(SeverityError, path, masked, nil, "it has no scheme; Go and curl put http:// in front, others refuse it", "write http://"+strings.TrimRight(masked, "/"))
		return
	}
	normal, err := normaliseProxyURL(value)
	if err != nil {
		l.add(SeverityError, path, masked, []Client{ClientGo}, "it "+err.Error()+", and Go then goes direct or to a host that is not there", "write http://host:port")
		return
	}
	if scheme != strings.ToLower(scheme) || strings.HasSuffix(rest, "/") {
		l.warn(path, masked, nil, "Go reads it as "+normal, "write "+normal)
	}
	if e := parseEntry(strings.TrimPrefix(normal, strings.ToLower(scheme)+"://")); e.port == "" {
		l.warn(path, masked, []Client{ClientGo, ClientCurl}, "it has no port: Go takes the scheme's own (80, 443, 1080), curl takes 1080", "write the port")
	}
}

// oneProxy warns where one of the two kinds of traffic goes direct.
func (l *linter) oneProxy(p v1alpha1.Proxy) {
	switch {
	case p.HTTP != "" && p.HTTPS == "":
		l.warn("spec.proxy.https", "", nil, "it is absent, so https:// URLs, and with them nearly all registries, go direct", "write it too, unless that is meant")
	case p.HTTPS != "" && p.HTTP == "":
		l.warn("spec.proxy.http", "", nil, "it is absent, so http:// URLs go direct", "write it too, unless that is meant")
	}
}

// entry judges one NO_PROXY entry: dead in Go, or dead in other clients.
func (l *linter) entry(path, raw string) {
	e := parseEntry(raw)
	switch e.kind {
	case kindEverything:
		l.add(SeverityError, path, raw, nil, "it sends everything past the proxy", "write the domains and networks that are meant")
		return
	case kindDead:
		l.add(SeverityError, path, raw, append([]Client{ClientGo}, deadIn(strings.TrimSpace(raw))...), "Go matches nothing with it: "+e.problem, e.fix)
		return
	}
	if strings.HasPrefix(strings.TrimSpace(raw), "*.") {
		l.warn(path, raw, deadIn(strings.TrimSpace(raw)), "only some clients know the wildcard", "write "+e.value())
		return
	}
	if dead := deadIn(e.value()); len(dead) > 0 {
		l.add(SeverityInfo, path, raw, dead, "it matches nothing in "+clientList(dead)+", should they get this list", "")
	}
	if e.kind == kindCIDR && strings.HasSuffix(e.host, "/0") {
		l.warn(path, raw, nil, "every address asked for as an address goes past the proxy", "write the networks that are meant")
	}
}

// registries warns where a registry's name seems to be covered by the network it is in.
func (l *linter) registries(s v1alpha1.ProxyProfileSpec, values []string) {
	networks := networkEntries(append(append([]string{}, values...), s.Cluster.NodeCIDRs...))
	for i, raw := range s.Registries.Internal {
		if e := registryEntry(raw); e.kind == kindName && networks != "" && !coveredBy(values, e) {
			l.warn(fmt.Sprintf("spec.registries.internal[%d]", i), raw, []Client{ClientGo},
				"the networks in NO_PROXY ("+networks+") never match a name, whatever it resolves to; Proxyward adds the registry by name",
				"add its domain to spec.noProxy.entries if other hosts of it are asked for by name")
		}
	}
}

// canaries warns of an internal canary whose registry goes through the proxy, and of an external
// one whose registry does not.
func (l *linter) canaries(s v1alpha1.ProxyProfileSpec, values []string) {
	direct := append(append([]string{}, values...), s.Registries.Internal...)
	for _, c := range []struct {
		path  string
		image *v1alpha1.CanaryImage
		want  bool
		what  string
	}{
		{"spec.canary.internal.image", s.Canary.Internal, true, "its registry is not among the entries and internal registries, so its pull goes through the proxy and proves the wrong way"},
		{"spec.canary.external.image", s.Canary.External, false, "its registry is among the entries or internal registries, so its pull goes past the proxy and proves nothing of it"},
	} {
		if c.image == nil {
			continue
		}
		registry, _, _ := strings.Cut(c.image.Image, "/")
		e := registryEntry(registry)
		if (e.kind == kindName || e.kind == kindAddress) && coveredBy(direct, e) != c.want {
			l.warn(c.path, c.image.Image, []Client{ClientGo}, c.what, "see spec.registries.internal")
		}
	}
}

// coveredBy reports whether a list sends a registry direct in Go.
func coveredBy(values []string, e entry) bool {
	var entries []v1alpha1.NoProxyEntry
	for _, v := range values {
		if p := registryEntry(v); p.kind != kindDead {
			entries = append(entries, v1alpha1.NoProxyEntry{Value: p.value()})
		}
	}
	return coverage(entries).Decide("https://" + urlHost(e)).Direct
}

func networkEntries(values []string) string {
	var out []string
	for _, v := range values {
		if e := parseEntry(v); e.kind == kindCIDR {
			out = append(out, e.host)
		}
	}
	return strings.Join(out, ", ")
}

// deadIn returns the clients besides Go that match nothing with an entry. It asks each client's
// own rules for the hosts that the entry could be meant for.
func deadIn(value string) []Client {
	var out []Client
	for _, d := range Dialects() {
		if d.Client == ClientGo || d.match == nil {
			continue
		}
		alive := false
		for _, t := range meant(value) {
			alive = alive || d.match(value, t)
		}
		if !alive {
			out = append(out, d.Client)
		}
	}
	return out
}

// meant returns targets of which at least one must match, were the entry understood.
func meant(value string) []target {
	e := parseEntry(value)
	host := strings.TrimPrefix(e.host, ".")
	port := e.port
	if port == "" {
		port = "443"
	}
	named := func(h string) target { return target{host: h, explicit: e.port, port: port} }
	switch e.kind {
	case kindCIDR:
		prefix, err := netip.ParsePrefix(e.host)
		if err != nil {
			return nil
		}
		addr := prefix.Addr()
		return []target{{host: addr.String(), port: port, addr: addr}}
	case kindAddress:
		addr, err := netip.ParseAddr(e.host)
		if err != nil {
			return nil
		}
		return []target{{host: e.host, explicit: e.port, port: port, addr: addr}}
	case kindName, kindSubdomains:
		return []target{named(host), named("a." + host)}
	default:
		trimmed := strings.Trim(strings.ToLower(value), "[]*.")
		if addr, err := netip.ParseAddr(trimmed); err == nil {
			return []target{{host: trimmed, port: port, addr: addr}}
		}
		return []target{named(trimmed), named("a." + trimmed)}
	}
}

func clientList(clients []Client) string {
	names := make([]string, len(clients))
	for i, c := range clients {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}
