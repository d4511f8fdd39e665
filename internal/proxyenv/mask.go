package proxyenv

import (
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// MaskURL returns one URL, however malformed, with everything that may be a credential masked.
func MaskURL(raw string) string { return v1alpha1.MaskURL(raw) }

// MaskText returns text from outside (a file of somebody else's, a daemon's error) with the
// userinfo of everything in it that looks like a URL masked, malformed ones included: a userinfo
// may hold @, /, #, quotes and, where the URL is in quotes or its host does not make sense
// otherwise, white space. It errs on the side of masking.
//
// What does not look like part of a URL stays, so a URL without quotes whose password goes on after
// digits and white space (http://u:1 2@host) cannot be told from a host and an address of mail. A
// caller who knows the secret uses a Masker.
func MaskText(text string) string {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		maskLine(&b, line)
	}
	return b.String()
}

func maskLine(b *strings.Builder, line string) {
	for {
		i := strings.Index(line, "://")
		if i < 0 {
			b.WriteString(maskSchemeless(line))
			return
		}
		start := schemeStart(line, i)
		end := urlEnd(line, start, i+3)
		if word := strings.LastIndexAny(line[:start], " \t\"'=,;({[<|") + 1; strings.Contains(line[word:start], ":") {
			// The :// stands inside something like user:password@host.
			b.WriteString(maskSchemeless(line[:word]))
			b.WriteString(maskToken(line[word:end]))
		} else {
			b.WriteString(maskSchemeless(line[:start]))
			b.WriteString(maskURLs(line[start:end]))
		}
		line = line[end:]
	}
}

// maskURLs masks a token that begins with a URL. Of several in it, joined by commas or quotes, each
// is masked for itself as long as none has an @ that the next could be part of.
func maskURLs(token string) string {
	if next := strings.Index(token[strings.Index(token, "://")+3:], "://"); next >= 0 && !strings.Contains(token, "@") {
		cut := strings.Index(token, "://") + 3 + next
		cut = schemeStart(token, cut)
		if cut > 0 {
			return v1alpha1.MaskURL(token[:cut]) + maskURLs(token[cut:])
		}
	}
	return v1alpha1.MaskURL(token)
}

// schemeStart returns where the scheme before the :// at i begins.
func schemeStart(s string, i int) int {
	start := i
	for start > 0 && isSchemeByte(s[start-1]) {
		start--
	}
	return start
}

func isSchemeByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
}

// urlEnd returns where the URL that begins at start, with its authority at auth, ends in a line.
func urlEnd(line string, start, auth int) int {
	if start > 0 && (line[start-1] == '"' || line[start-1] == '\'') {
		if end := closingQuote(line, auth, line[start-1]); end >= 0 {
			return end
		}
	}
	end := len(line)
	if i := strings.IndexAny(line[auth:], " \t\r\n"); i >= 0 {
		end = auth + i
	}
	if strings.Contains(line[auth:end], "@") || plausibleAuthority(line[auth:end]) {
		return end
	}
	// It has no host that makes sense, so perhaps white space in a password cut it short.
	if i := strings.LastIndexByte(line, '@'); i >= end {
		end = i
		if j := strings.IndexAny(line[end:], " \t\r\n"); j >= 0 {
			return end + j
		}
		return len(line)
	}
	return end
}

// closingQuote returns the index of the quote that ends a quoted text. A quote that is escaped, or
// that an @ follows before any white space, is part of it.
func closingQuote(line string, from int, quote byte) int {
	for i := from; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case quote:
			rest := line[i+1:]
			if j := strings.IndexAny(rest, " \t\r\n,"); j >= 0 {
				rest = rest[:j]
			}
			if !strings.Contains(rest, "@") {
				return i
			}
		}
	}
	return -1
}

// plausibleAuthority reports whether a URL's rest begins with host or host:port.
func plausibleAuthority(s string) bool {
	if i := strings.IndexAny(s, `/?#"',;)`); i >= 0 {
		s = s[:i]
	}
	if bare := strings.TrimSuffix(s, ":"); bare != s {
		if !strings.Contains(bare, ":") {
			return false // a user, and a password that begins with white space
		}
		s = bare
	}
	e := registryEntry(strings.TrimRight(s, ".]}"))
	return e.kind == kindName || e.kind == kindAddress
}

// maskSchemeless masks user:password@host without a scheme, as proxies are sometimes written.
func maskSchemeless(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		i := strings.IndexAny(s, " \t\r\n")
		if i < 0 {
			i = len(s)
		}
		b.WriteString(maskToken(s[:i]))
		if i < len(s) {
			b.WriteByte(s[i])
			i++
		}
		s = s[i:]
	}
	return b.String()
}

// maskToken masks what may be user:password in front of the last @ of a word.
func maskToken(word string) string {
	at := strings.LastIndexByte(word, '@')
	colon := strings.IndexByte(word, ':')
	if at < 0 || colon < 0 || colon > at || strings.HasPrefix(word[at:], "@sha256:") || strings.HasPrefix(word[at:], "@sha512:") {
		return word
	}
	start := strings.LastIndexAny(word[:colon], `="'(,;`) + 1
	return word[:start] + Mask + word[at:]
}
