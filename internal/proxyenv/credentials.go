package proxyenv

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// encodeUserinfo percent-encodes every byte that RFC 3986 §2.3 does not call unreserved, so that
// the result means the same raw bytes to every URL parser, whatever it tolerates.
func encodeUserinfo(raw string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if isUnreserved(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// withCredentials puts credentials into a proxy URL that has none. The user and the password are
// raw and are percent-encoded here, the one place where that happens.
func withCredentials(proxyURL string, c *Credentials) (Secret, error) {
	if c == nil {
		return PlainSecret(proxyURL), nil
	}
	scheme, rest, ok := strings.Cut(proxyURL, "://")
	if !ok {
		return Secret{}, fmt.Errorf("adding credentials to the proxy URL: found no scheme in %q; write http://host:port", v1alpha1.MaskURL(proxyURL))
	}
	if c.Username == "" {
		return Secret{}, fmt.Errorf("adding credentials to the proxy URL %q: the username is empty; fill in the Secret's key username", v1alpha1.MaskURL(proxyURL))
	}
	text := scheme + "://" + encodeUserinfo(c.Username) + ":" + encodeUserinfo(c.Password.Reveal()) + "@" + rest
	if _, err := url.Parse(text); err != nil {
		// The parser's own error quotes the URL, so it is not passed on.
		return Secret{}, fmt.Errorf("adding credentials to the proxy URL: %q is not a URL; write http://host:port", v1alpha1.MaskURL(proxyURL))
	}
	return NewSecret(text, scheme+"://"+Mask+"@"+rest), nil
}

// normaliseProxyURL returns a proxy URL with its scheme and host in lower case and without a
// trailing slash, or what is wrong with it. An empty URL stays empty.
func normaliseProxyURL(raw string) (string, error) {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return "", nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" ||
		u.ForceQuery || strings.Trim(u.Path, "/") != "" || strings.ContainsAny(raw, "@#") {
		return "", fmt.Errorf("is not a proxy's URL")
	}
	switch u.Scheme {
	case "http", "https", "socks5":
	default:
		return "", fmt.Errorf("has the scheme %q", u.Scheme)
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}
