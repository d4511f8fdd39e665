package proxyenv

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// Client is a kind of program that reads proxy variables in its own way.
type Client string

// The clients.
const (
	ClientGo       Client = "go"
	ClientCurl     Client = "curl"
	ClientWget     Client = "wget"
	ClientPython   Client = "python" // urllib
	ClientRequests Client = "requests"
	ClientJava     Client = "java"
	ClientUndici   Client = "undici"
	ClientAxios    Client = "axios"
	ClientDotNet   Client = "dotnet"
	ClientRuby     Client = "ruby"
)

// Dialect is how one client reads the proxy variables.
type Dialect struct {
	Client Client
	// Title for a person.
	Title string
	// Checked names the version that a test makes real requests with, to compare; "" says that the
	// rules were only read, never tried.
	Checked string

	// httpVars, httpsVars and noProxyVars are looked up in this order; the first non-empty counts.
	httpVars    []string
	httpsVars   []string
	noProxyVars []string
	// starAlone says that * counts, when it is the whole list.
	starAlone bool
	// split cuts NO_PROXY into entries.
	split func(string) []string
	// match says whether an entry sends a target direct.
	match func(entry string, t target) bool
}

// target is what a client is asked to reach.
type target struct {
	// host in lower case, an IPv6 address without brackets.
	host string
	// port as it stands in the URL, or "".
	explicit string
	// port that is dialled.
	port string
	addr netip.Addr // zero for names
}

// authority returns host[:explicit port] as it stands in a URL.
func (t target) authority() string {
	h := t.bracketed()
	if t.explicit != "" {
		h += ":" + t.explicit
	}
	return h
}

func (t target) bracketed() string {
	if t.addr.Is6() {
		return "[" + t.host + "]"
	}
	return t.host
}

// Dialects returns every client's, Go's first. Go's is asked through a Matcher.
func Dialects() []Dialect {
	httpLower := []string{"http_proxy"}
	httpBoth, httpsBoth, noBoth := []string{"http_proxy", "HTTP_PROXY"}, []string{"https_proxy", "HTTPS_PROXY"}, []string{"no_proxy", "NO_PROXY"}
	return []Dialect{
		{Client: ClientGo, Title: "Go (container runtimes, kubelet)", Checked: "the Go that it is built with",
			httpVars: []string{"HTTP_PROXY", "http_proxy"}, httpsVars: []string{"HTTPS_PROXY", "https_proxy"}, noProxyVars: []string{"NO_PROXY", "no_proxy"}, split: commas, match: matchGo},
		{Client: ClientCurl, Title: "curl", Checked: "curl 7.88",
			httpVars: httpLower, httpsVars: httpsBoth, noProxyVars: noBoth, starAlone: true, split: commasAndSpaces, match: matchCurl},
		{Client: ClientWget, Title: "wget", Checked: "wget 1.21",
			httpVars: httpLower, httpsVars: []string{"https_proxy"}, noProxyVars: []string{"no_proxy"}, split: commas, match: matchWget},
		{Client: ClientPython, Title: "Python urllib", Checked: "Python 3.11",
			httpVars: httpBoth, httpsVars: httpsBoth, noProxyVars: noBoth, starAlone: true, split: commas, match: matchPython},
		{Client: ClientRequests, Title: "Python requests", Checked: "requests 2.34",
			httpVars: httpBoth, httpsVars: httpsBoth, noProxyVars: noBoth, starAlone: true, split: commas, match: matchRequests},
		{Client: ClientJava, Title: "Java", Checked: "OpenJDK 17"},
		{Client: ClientUndici, Title: "undici (EnvHttpProxyAgent of Node.js)", Checked: "undici 7.30",
			httpVars: httpBoth, httpsVars: httpsBoth, noProxyVars: noBoth, starAlone: true, split: commasAndSpaces, match: matchUndici},
		{Client: ClientAxios, Title: "axios", Checked: "axios 1.21",
			httpVars: httpBoth, httpsVars: httpsBoth, noProxyVars: noBoth, starAlone: true, split: commasAndSpaces, match: matchAxios},
		{Client: ClientDotNet, Title: ".NET HttpClient",
			httpVars: httpBoth, httpsVars: httpsBoth, noProxyVars: noBoth, split: commas, match: matchDotNet},
		{Client: ClientRuby, Title: "Ruby net/http",
			httpVars: httpBoth, httpsVars: httpsBoth, noProxyVars: noBoth, split: commasAndSpaces, match: matchRuby},
	}
}

// DialectOf returns the dialect of one client, or false.
func DialectOf(client Client) (Dialect, bool) {
	all := Dialects()
	i := slices.IndexFunc(all, func(d Dialect) bool { return d.Client == client })
	if i < 0 {
		return Dialect{}, false
	}
	return all[i], true
}

// Explain says which way one client reaches a host (a name, an address, host:port, or a URL; https
// when it has no scheme) under an environment.
func Explain(env Environment, host string, client Client) Decision {
	rawURL := host
	if !strings.Contains(rawURL, "://") {
		rawURL = "https://" + bracketBare(host) + "/"
	}
	d, ok := DialectOf(client)
	switch {
	case !ok:
		return Decision{URL: v1alpha1.MaskURL(rawURL), Err: fmt.Errorf("explaining %q: there is no client %q", v1alpha1.MaskURL(host), client)}
	case client == ClientGo:
		return NewMatcher(env).Decide(rawURL)
	}
	return d.decide(env, rawURL)
}

func bracketBare(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		return "[" + host + "]"
	}
	return host
}

func (d Dialect) decide(env Environment, rawURL string) Decision {
	out := Decision{URL: v1alpha1.MaskURL(rawURL)}
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		out.Err = fmt.Errorf("reading the URL %q: it is not an absolute http or https URL; write https://host[:port]", out.URL)
		return out
	}
	if d.match == nil {
		out.Direct = true
		out.Why = d.Title + " does not read proxy variables; only its own settings (http.proxyHost, http.nonProxyHosts) count"
		return out
	}
	proxyVars := d.httpsVars
	if u.Scheme == "http" {
		proxyVars = d.httpVars
	}
	name, proxy := lookupVar(env, proxyVars)
	if proxy.Reveal() == "" {
		out.Direct = true
		out.Why = fmt.Sprintf("%s finds no proxy for %s in the environment", d.Title, u.Scheme)
		return out
	}
	_, noProxy := lookupVar(env, d.noProxyVars)
	t := targetOf(u)
	if strings.TrimSpace(noProxy.Reveal()) == "*" && d.starAlone {
		out.Direct, out.Entry = true, &v1alpha1.NoProxyEntry{Value: "*"}
		out.Why = describe(*out.Entry)
		return out
	}
	for _, e := range d.split(noProxy.Reveal()) {
		if d.match(e, t) {
			out.Direct = true
			entry := provenance(env.Entries, e)
			out.Entry = &entry
			out.Why = describe(entry)
			return out
		}
	}
	out.Proxy = proxy
	out.Why = fmt.Sprintf("no NO_PROXY entry matches for %s, so %s is used", d.Title, name)
	return out
}

func provenance(entries []v1alpha1.NoProxyEntry, value string) v1alpha1.NoProxyEntry {
	if i := slices.IndexFunc(entries, func(e v1alpha1.NoProxyEntry) bool { return e.Value == value }); i >= 0 {
		return entries[i]
	}
	return v1alpha1.NoProxyEntry{Value: value}
}

// lookupVar returns the first of the variables that is there and not empty.
func lookupVar(env Environment, names []string) (string, Secret) {
	for _, name := range names {
		for _, v := range env.Vars {
			if v.Name == name && v.Value.Reveal() != "" {
				return name, v.Value
			}
		}
	}
	return "", Secret{}
}

func targetOf(u *url.URL) target {
	t := target{host: strings.ToLower(u.Hostname()), explicit: u.Port(), port: u.Port()}
	if addr, err := netip.ParseAddr(t.host); err == nil {
		t.addr = addr
	}
	if t.port == "" {
		t.port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return t
}
