// Package secrettest plants credentials in tests and finds them again: whatever a test makes the
// program say (logs, errors, events, statuses, metrics, files that all may read) must not hold them
// in any form.
package secrettest

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/internal/proxyenv"
)

// Planted returns credentials that occur in no other text and that every form of encoding changes.
func Planted() *proxyenv.Credentials {
	return proxyenv.NewCredentials("planted-user", `Pl4nted@s:cr/t%40#"\$é`)
}

// Leaks returns the forms of the credentials' password that text holds, named without showing them;
// none is what a test wants. It knows the password raw, percent-encoded, as a JSON or Go string, in
// base64 alone and as user:password, and in hexadecimal, and also its beginning, which a URL that
// was cut at its @ or # would show.
func Leaks(text string, c *proxyenv.Credentials) []string {
	var found []string
	for _, form := range forms(c) {
		if strings.Contains(text, form.text) {
			found = append(found, form.name)
		}
	}
	return found
}

// Check fails the test for each planted form in text; what names the text.
func Check(t testing.TB, what, text string, c *proxyenv.Credentials) {
	t.Helper()
	for _, leak := range Leaks(text, c) {
		t.Errorf("%s holds the password (%s)", what, leak)
	}
}

// form is one way to write a password.
type form struct{ name, text string }

func forms(c *proxyenv.Credentials) []form {
	password := c.Password.Reveal()
	var out []form
	for _, text := range c.Forms() {
		out = append(out, form{"one of its usual encodings", text})
	}
	out = append(out, form{"hexadecimal", hex.EncodeToString([]byte(password))})
	if i := strings.IndexAny(password, "@:/%#"); i >= 4 {
		out = append(out, form{"its beginning", password[:i]})
	}
	return out
}
