package proxyenv

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// minMasked is the length in bytes below which a password is masked only where it stands in a URL:
// replacing every "a" would leave nothing to read.
const minMasked = 4

// Masker masks known credentials in text from outside, in every form in which programs print them.
type Masker struct{ replacer *strings.Replacer }

// NewMasker returns a masker of the credentials; nil ones leave it the work of MaskText.
func NewMasker(credentials ...*Credentials) *Masker {
	var pairs []string
	for _, c := range credentials {
		for _, form := range c.Forms() {
			pairs = append(pairs, form, Mask)
		}
	}
	return &Masker{replacer: strings.NewReplacer(pairs...)}
}

// Mask returns text without the credentials, and without the userinfo of anything like a URL.
func (m *Masker) Mask(text string) string { return MaskText(m.replacer.Replace(text)) }

// Forms returns the texts in which the password may appear: raw, percent-encoded in the usual ways,
// as a JSON string, and in base64 alone or as user:password of a Proxy-Authorization header. The
// longest come first. They are secret. A password of fewer than 4 bytes has none.
func (c *Credentials) Forms() []string {
	if c == nil || len(c.Password.Reveal()) < minMasked {
		return nil
	}
	password := c.Password.Reveal()
	forms := []string{
		password, encodeUserinfo(password), strings.ToLower(encodeUserinfo(password)),
		url.QueryEscape(password), url.PathEscape(password),
		strings.TrimPrefix(url.UserPassword("", password).String(), ":"),
	}
	if quoted, err := json.Marshal(password); err == nil {
		forms = append(forms, strings.Trim(string(quoted), `"`))
	}
	for _, text := range []string{password, c.Username + ":" + password} {
		forms = append(forms,
			base64.StdEncoding.EncodeToString([]byte(text)), base64.RawStdEncoding.EncodeToString([]byte(text)),
			base64.URLEncoding.EncodeToString([]byte(text)), base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	slices.SortFunc(forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(slices.DeleteFunc(forms, func(f string) bool { return len(f) < minMasked }))
}
