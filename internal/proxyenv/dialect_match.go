package proxyenv

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// commas splits at commas and trims white space.
func commas(list string) []string {
	var out []string
	for e := range strings.SplitSeq(list, ",") {
		if e = strings.TrimSpace(e); e != "" {
			out = append(out, e)
		}
	}
	return out
}

// commasAndSpaces splits at commas and at white space.
func commasAndSpaces(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
}

func matchGo(entry string, t target) bool {
	one := httpproxy.Config{HTTPSProxy: probeProxy, NoProxy: entry}
	host := t.bracketed()
	if t.port != "" {
		host += ":" + t.port
	}
	p, err := one.ProxyFunc()(&url.URL{Scheme: "https", Host: host})
	return err == nil && p == nil
}

// isOrBelow reports whether a host is a domain or one of its subdomains.
func isOrBelow(host, domain string) bool {
	return domain != "" && (host == domain || strings.HasSuffix(host, "."+domain))
}

// matchCurl: a leading dot means nothing, ports and brackets are not understood, addresses and IPv4
// networks match addresses only. Newer releases know IPv6 networks as well.
func matchCurl(entry string, t target) bool {
	entry = strings.ToLower(entry)
	if t.addr.IsValid() {
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			return prefix.Addr().Is4() && prefix.Contains(t.addr)
		}
		addr, err := netip.ParseAddr(entry)
		return err == nil && addr == t.addr
	}
	return isOrBelow(strings.TrimSuffix(t.host, "."), strings.TrimSuffix(strings.TrimPrefix(entry, "."), "."))
}

// matchWget compares texts from the end, at a dot, addresses as well as names.
func matchWget(entry string, t target) bool {
	entry = strings.ToLower(entry)
	if strings.HasPrefix(entry, ".") {
		return strings.HasSuffix(t.host, entry)
	}
	return isOrBelow(t.host, entry)
}

// matchPython ignores leading dots and compares the host with and without the port in the URL.
func matchPython(entry string, t target) bool {
	name := strings.ToLower(strings.TrimLeft(entry, "."))
	return isOrBelow(t.bracketed(), name) || isOrBelow(t.authority(), name)
}

// matchRequests tries networks for IPv4, otherwise the host with and without the port in the URL,
// an IPv6 address without brackets, and then urllib's way. Releases before 2.33 also took any text
// that the host ends with, dot or no dot.
func matchRequests(entry string, t target) bool {
	entry = strings.ToLower(strings.ReplaceAll(entry, " ", ""))
	name := strings.TrimLeft(entry, ".")
	if t.addr.Is4() {
		if prefix, err := netip.ParsePrefix(entry); err == nil && prefix.Addr().Is4() && prefix.Contains(t.addr) {
			return true
		}
		return isOrBelow(t.host, name)
	}
	withPort := t.host
	if t.explicit != "" {
		withPort += ":" + t.explicit
	}
	return isOrBelow(t.host, name) || isOrBelow(withPort, name)
}

// cutPort splits entry:port where the port is digits.
func cutPort(entry string) (host, port string) {
	i := strings.LastIndexByte(entry, ':')
	if i <= 0 || i == len(entry)-1 || strings.Trim(entry[i+1:], "0123456789") != "" {
		return entry, ""
	}
	return entry[:i], entry[i+1:]
}

// matchUndici takes host, .host and *.host for the same, each with an optional port.
func matchUndici(entry string, t target) bool {
	host, port := cutPort(strings.ToLower(entry))
	if port != "" && port != t.port {
		return false
	}
	host = strings.TrimPrefix(strings.TrimPrefix(host, "*."), ".")
	return isOrBelow(t.bracketed(), host)
}

// matchAxios takes a host exactly, .host and *.host for subdomains, each with an optional port, and
// networks for addresses; all names of the loopback are one to it.
func matchAxios(entry string, t target) bool {
	entry = strings.ToLower(entry)
	if entry == "*" {
		return true
	}
	if prefix, err := netip.ParsePrefix(entry); err == nil {
		return t.addr.IsValid() && prefix.Contains(t.addr)
	}
	host, port := entry, ""
	if strings.HasPrefix(entry, "[") || strings.Count(entry, ":") == 1 {
		host, port = cutPort(entry)
	}
	if port != "" && port != t.port {
		return false
	}
	host = strings.TrimRight(strings.Trim(strings.TrimPrefix(host, "*"), "[]"), ".")
	switch {
	case strings.HasPrefix(host, "."):
		return strings.HasSuffix(t.host, host)
	case isLoopback(host) && isLoopback(t.host):
		return true
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap() == t.addr.Unmap()
	}
	return host == t.host
}

// isLoopback reports whether a host is one of the names and addresses of this machine.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (addr.Unmap().IsLoopback() || addr.IsUnspecified())
}

// matchDotNet takes a host exactly, and .host for the host and its subdomains.
func matchDotNet(entry string, t target) bool {
	entry = strings.ToLower(entry)
	if domain, ok := strings.CutPrefix(entry, "."); ok {
		return isOrBelow(t.host, domain)
	}
	return t.host == entry
}

// matchRuby takes .host for subdomains, host for both, and understands ports and networks.
func matchRuby(entry string, t target) bool {
	entry = strings.ToLower(entry)
	host, port := entry, ""
	if strings.Count(entry, ":") == 1 {
		host, port = cutPort(entry)
	}
	if port != "" && port != t.port {
		return false
	}
	if t.addr.IsValid() {
		if prefix, err := netip.ParsePrefix(host); err == nil {
			return prefix.Contains(t.addr)
		}
		return host == t.host
	}
	if strings.HasPrefix(host, ".") {
		return strings.HasSuffix(t.host, host)
	}
	return isOrBelow(t.host, host)
}
