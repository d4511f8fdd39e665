package proxyenv

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// Decision says which way Go sends a request.
type Decision struct {
	// URL that was asked for, with credentials masked.
	URL string
	// Direct says that no proxy is asked.
	Direct bool
	// Proxy that is asked, when not Direct.
	Proxy Secret
	// Entry of NO_PROXY that made it direct; nil when something else decided.
	Entry *v1alpha1.NoProxyEntry
	// Why, for a person.
	Why string
	// Err is set when URL is not one that can be asked for; then the rest says nothing.
	Err error
}

// Matcher answers which way Go sends requests under an environment. The answers are those of
// golang.org/x/net/http/httpproxy, which net/http itself uses; the matcher adds what decided.
type Matcher struct {
	decide  func(*url.URL) (*url.URL, error)
	broken  map[string]string // scheme → variable whose value does not parse
	values  map[string]string // scheme → value of its variable
	noProxy string
	entries []v1alpha1.NoProxyEntry // lend source and reason to what is in noProxy
}

// NewMatcher returns the matcher of an environment, read as Go reads it: the upper-case variable
// first, the lower-case one where that is absent or empty. Entries of the environment lend their
// source and reason to the values in NO_PROXY.
func NewMatcher(env Environment) *Matcher {
	vars := map[string]string{}
	for _, v := range env.Vars {
		vars[v.Name] = v.Value.Reveal()
	}
	get := func(name string) string {
		if v := vars[name]; v != "" {
			return v
		}
		return vars[strings.ToLower(name)]
	}
	cfg := httpproxy.Config{HTTPProxy: get("HTTP_PROXY"), HTTPSProxy: get("HTTPS_PROXY"), NoProxy: get("NO_PROXY")}
	m := &Matcher{
		decide: cfg.ProxyFunc(),
		broken: map[string]string{},
		values: map[string]string{"http": cfg.HTTPProxy, "https": cfg.HTTPSProxy},

		noProxy: cfg.NoProxy,
		entries: env.Entries,
	}
	for scheme, name := range map[string]string{"http": "HTTP_PROXY", "https": "HTTPS_PROXY"} {
		if m.values[scheme] != "" && !usable(m.decide, scheme, cfg.NoProxy) {
			m.broken[scheme] = name
		}
	}
	return m
}

// probeProxy stands for any proxy where only the answer "proxy or direct" matters.
const probeProxy = "http://proxy.invalid:1"

// usable reports whether the proxy of a scheme is one at all for Go. It is asked for a host that
// no entry but * can match.
func usable(decide func(*url.URL) (*url.URL, error), scheme, noProxy string) bool {
	p, err := decide(&url.URL{Scheme: scheme, Host: "probe.invalid"})
	return err == nil && (p != nil || matchesEverything(noProxy))
}

func matchesEverything(noProxy string) bool {
	for raw := range strings.SplitSeq(noProxy, ",") {
		if strings.TrimSpace(raw) == "*" {
			return true
		}
	}
	return false
}

// Decide says which way a request for an absolute http or https URL goes.
func (m *Matcher) Decide(rawURL string) Decision {
	d := Decision{URL: v1alpha1.MaskURL(rawURL)}
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		d.Err = fmt.Errorf("reading the URL %q: it is malformed; write scheme://host[:port]", d.URL)
		return d
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		d.Err = fmt.Errorf("reading the URL %q: it is not an absolute http or https URL; write https://host[:port]", d.URL)
		return d
	}
	proxy, err := m.decide(u)
	if err != nil {
		d.Err = fmt.Errorf("asking Go's matcher for %q: %w", d.URL, err)
		return d
	}
	variable := strings.ToUpper(u.Scheme) + "_PROXY"
	if proxy != nil {
		d.Proxy = NewSecret(proxy.String(), v1alpha1.MaskURL(proxy.String()))
		d.Why = fmt.Sprintf("no NO_PROXY entry matches, so %s is used", variable)
		if m.misread(u.Scheme, proxy) {
			d.Why = fmt.Sprintf("the value of %s is not a URL; Go takes %q for the proxy's host, and the request fails", variable, proxy.Hostname())
		}
		return d
	}
	d.Direct = true
	switch {
	case m.values[u.Scheme] == "":
		d.Why = fmt.Sprintf("%s is not set", variable)
	case m.broken[u.Scheme] != "":
		d.Why = fmt.Sprintf("the value of %s is not a URL, and Go then goes direct without a word", variable)
	case alwaysDirect(u.Hostname()):
		d.Why = "Go never asks a proxy for localhost and loopback addresses"
	default:
		d.Entry = m.deciding(u)
		d.Why = "an entry of NO_PROXY matches"
		if d.Entry != nil {
			d.Why = describe(*d.Entry)
		}
	}
	return d
}

// misread reports whether Go, unable to parse a value as it stands, put http:// in front of it and
// so took its scheme for the host. That is what becomes of a space in a URL.
func (m *Matcher) misread(scheme string, proxy *url.URL) bool {
	before, _, ok := strings.Cut(m.values[scheme], "://")
	return ok && strings.EqualFold(before, proxy.Hostname()) && strings.HasPrefix(proxy.Path, "//")
}

// deciding returns the first entry that, were it the only one, would make a request direct.
func (m *Matcher) deciding(u *url.URL) *v1alpha1.NoProxyEntry {
	for _, v := range commas(m.noProxy) {
		one := httpproxy.Config{HTTPProxy: probeProxy, HTTPSProxy: probeProxy, NoProxy: v}
		if p, err := one.ProxyFunc()(u); err == nil && p == nil {
			e := provenance(m.entries, v)
			return &e
		}
	}
	return nil
}

func describe(e v1alpha1.NoProxyEntry) string {
	s := fmt.Sprintf("NO_PROXY entry %s matches", e.Value)
	switch {
	case e.Source != "" && e.Reason != "":
		s += fmt.Sprintf(" (%s: %s)", strings.ToLower(string(e.Source)), e.Reason)
	case e.Source != "":
		s += fmt.Sprintf(" (%s)", strings.ToLower(string(e.Source)))
	}
	return s
}

// alwaysDirect reports whether Go goes direct to a host whatever the environment says.
func alwaysDirect(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
