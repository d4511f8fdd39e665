package v1alpha1

import "strings"

// masked stands for whatever was masked.
const masked = "***"

// MaskURL returns one URL, however malformed, with everything that may be a credential masked. It
// errs on the side of masking: what stands before the last @ is userinfo unless it is plainly an
// image digest, and a port that is no number is taken for a password whose host was forgotten.
func MaskURL(raw string) string {
	scheme, rest := "", raw
	if i := strings.Index(raw, "://"); i >= 0 {
		scheme, rest = raw[:i+3], raw[i+3:]
		if !isScheme(raw[:i]) {
			scheme, rest = "", raw // the :// stands in a password
		}
	}
	if i := lastUserinfoAt(rest); i >= 0 {
		return scheme + masked + rest[i:]
	}
	return scheme + maskTail(rest)
}

// isScheme reports whether s consists of what RFC 3986 §3.1 allows in a scheme.
func isScheme(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") == ""
}

// lastUserinfoAt returns the index of the @ that ends the userinfo, or -1. The @ of a digest
// (name@sha256:…) ends none.
func lastUserinfoAt(s string) int {
	for end := len(s); ; {
		i := strings.LastIndexByte(s[:end], '@')
		if i < 0 {
			return -1
		}
		if after := s[i+1:]; !strings.HasPrefix(after, "sha256:") && !strings.HasPrefix(after, "sha512:") {
			return i
		}
		end = i
	}
}

// maskTail masks a port that is no number in host:port and what follows.
func maskTail(s string) string {
	authority := s
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		authority = s[:i]
	}
	start := 0
	if i := strings.LastIndexByte(authority, ']'); i >= 0 {
		start = i
	}
	colon := strings.IndexByte(authority[start:], ':')
	if colon < 0 {
		return s
	}
	colon += start
	port := authority[colon+1:]
	if bare := strings.TrimRight(port, ":.,;)]}\"'"); bare == "" || isPort(bare) {
		return s
	}
	if strings.IndexByte(port, ':') >= 0 && isHexColons(authority) {
		return s // a bare IPv6 address
	}
	return s[:colon+1] + masked
}

// isPort reports whether s is a decimal port number.
func isPort(s string) bool {
	if s == "" || len(s) > 5 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) < 5 || s <= "65535"
}

// isHexColons reports whether s can be an IPv6 address.
func isHexColons(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF:.") == ""
}
