package proxyenv

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// entryKind is what Go's matcher takes one NO_PROXY entry for.
type entryKind int

const (
	kindDead       entryKind = iota // matches nothing that can be asked for
	kindName                        // a name and its subdomains
	kindSubdomains                  // subdomains only
	kindAddress                     // one IP address
	kindCIDR                        // literal addresses of a network
	kindEverything                  // *
)

// entry is one NO_PROXY entry as Go's matcher understands it.
type entry struct {
	kind entryKind
	// host is the name, .domain, bare address or CIDR in its normal form.
	host string
	// port that it is limited to, or "".
	port string
	// problem and fix are set when it is dead, fix perhaps not.
	problem, fix string
}

// value returns the entry as it should stand in NO_PROXY.
func (e entry) value() string {
	if e.port == "" {
		return e.host
	}
	if strings.Contains(e.host, ":") {
		return "[" + e.host + "]:" + e.port
	}
	return e.host + ":" + e.port
}

// parseEntry says what Go's matcher makes of one entry. Spaces around it and letter case carry no
// meaning and are normalised away, as are spellings of the same address.
func parseEntry(raw string) entry {
	v := strings.ToLower(strings.TrimSpace(raw))
	switch {
	case v == "":
		return dead("it is empty", "remove it")
	case v == "*":
		return entry{kind: kindEverything, host: "*"}
	case strings.ContainsRune(v, ','):
		return dead("it holds several entries", "write one entry for each value")
	case strings.ContainsAny(v, " \t\r\n"):
		return dead("it has white space inside, and Go separates entries by commas only", "write one entry for each value")
	case strings.ContainsAny(v, "<>${}\"'`()"):
		return dead("it looks like a placeholder or like quoting that was never replaced", "write the value that was meant")
	case strings.Contains(v, "://"):
		return dead("it is a URL, and entries are hosts", suggest(v[strings.Index(v, "://")+3:]))
	case strings.Contains(v, "/"):
		return parseCIDR(v)
	}
	if addr, err := netip.ParseAddr(v); err == nil {
		return parseAddr(addr, "")
	}
	if strings.HasPrefix(v, "[") && strings.HasSuffix(v, "]") {
		return dead("Go does not match an address in brackets without a port", suggest(v[1:len(v)-1]))
	}
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		if strings.Contains(v, ":") || strings.ContainsAny(v, "[]") {
			return dead("it is neither host:port nor an IPv6 address", "")
		}
		return parseName(v, "")
	}
	if port == "" {
		return parseEntry(host) // Go takes it for the host on every port
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port {
		return dead("its port is not a number from 1 to 65535", suggest(host))
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return parseAddr(addr, port)
	}
	return parseName(host, port)
}

func dead(problem, fix string) entry { return entry{kind: kindDead, problem: problem, fix: fix} }

// suggest returns what to write instead, when s up to its first slash is an entry that works.
func suggest(s string) string {
	s, _, _ = strings.Cut(s, "/")
	s = strings.TrimSuffix(strings.TrimSuffix(s, ":"), ".")
	if s == "" || strings.Contains(s, "@") {
		return ""
	}
	if e := parseEntry(s); e.kind != kindDead && e.kind != kindEverything {
		return "write " + e.value()
	}
	return ""
}

func parseAddr(addr netip.Addr, port string) entry {
	if addr.Zone() != "" {
		return dead("Go does not match an address with a zone", suggest(addr.WithZone("").String()))
	}
	return entry{kind: kindAddress, host: addr.Unmap().String(), port: port}
}

func parseCIDR(v string) entry {
	if _, network, err := net.ParseCIDR(v); err == nil {
		return entry{kind: kindCIDR, host: network.String()}
	}
	before, after, _ := strings.Cut(v, "/")
	if i := strings.LastIndexByte(after, ':'); i >= 0 {
		if _, network, err := net.ParseCIDR(before + "/" + after[:i]); err == nil {
			return dead("a CIDR cannot have a port", "write "+network.String())
		}
	}
	if _, err := netip.ParseAddr(before); err == nil {
		if after == "" {
			return dead("the prefix length after the slash is missing", suggest(before))
		}
		return dead("its prefix length is not valid for that address", "")
	}
	return dead("it has a path, and entries are hosts", suggest(before))
}

// parseName judges a name or .domain.
func parseName(host, port string) entry {
	e := entry{kind: kindName, port: port}
	name := host
	if rest, ok := strings.CutPrefix(name, "*."); ok {
		e.kind, name = kindSubdomains, rest
	} else if rest, ok := strings.CutPrefix(name, "."); ok {
		e.kind, name = kindSubdomains, rest
	}
	switch {
	case strings.Contains(name, "*"):
		return dead("Go matches no wildcard inside an entry", wildcardFix(name))
	case strings.HasSuffix(name, "."):
		return dead("Go compares names as written, and no client asks with a dot at the end", trailingDotFix(host))
	case isNumericName(name):
		return dead("it is part of an address, and Go matches whole addresses and CIDRs only", wildcardFix(name+".*"))
	}
	ascii, ok := asciiName(name)
	if !ok {
		return dead("it is not a host name", "")
	}
	e.host = ascii
	if e.kind == kindSubdomains {
		e.host = "." + ascii
	}
	return e
}

// asciiName returns a name as Go's matcher compares it, and whether a client can ask for it.
func asciiName(name string) (string, bool) {
	for i := 0; i < len(name); i++ {
		if name[i] >= utf8.RuneSelf {
			ascii, err := idna.Lookup.ToASCII(name)
			if err != nil {
				return "", false
			}
			name = ascii
			break
		}
	}
	if name == "" || len(name) > 253 {
		return "", false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return "", false
		}
		for i := 0; i < len(label); i++ {
			c := label[i]
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
				return "", false
			}
		}
	}
	return name, true
}

// isNumericName reports whether a name can only be meant as (part of) an IPv4 address.
func isNumericName(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	_, err := strconv.ParseUint(last, 10, 64)
	return err == nil
}

func trailingDotFix(host string) string {
	if trimmed := strings.TrimRight(host, "."); trimmed != "" {
		if isNumericName(trimmed) {
			return wildcardFix(trimmed + ".*")
		}
		return suggest(trimmed)
	}
	return "remove it"
}

// wildcardFix turns 10.*, 10.1.* and the like into the CIDR that was meant.
func wildcardFix(name string) string {
	labels := strings.Split(name, ".")
	var octets []string
	for _, l := range labels {
		n, err := strconv.ParseUint(l, 10, 8)
		if err != nil {
			break
		}
		octets = append(octets, strconv.FormatUint(n, 10))
	}
	if len(octets) == 0 || len(octets) > 3 || strings.Trim(strings.Join(labels[len(octets):], ""), "*") != "" {
		return "write the domain with a leading dot, or a CIDR"
	}
	bits := 8 * len(octets)
	for len(octets) < 4 {
		octets = append(octets, "0")
	}
	return "write " + strings.Join(octets, ".") + "/" + strconv.Itoa(bits)
}

// SplitList splits a NO_PROXY text at commas and white space, the way that the most tolerant
// clients do, into entries in their normal form, each once and in order of first appearance.
// What no client could match is kept as it stands, for Lint to name.
func SplitList(text string) []string {
	seen := map[string]bool{}
	var out []string
	for _, f := range strings.FieldsFunc(text, func(r rune) bool {
		return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n'
	}) {
		v := f
		if e := parseEntry(f); e.kind != kindDead {
			v = e.value()
		}
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}
