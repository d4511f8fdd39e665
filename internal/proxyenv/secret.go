package proxyenv

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Mask stands wherever a secret would.
const Mask = "***"

// Secret is text that may carry credentials. Every way of printing it prints Masked; only Reveal
// gives the text itself, and only the renderer, the comparison with a process and a dialled proxy
// need that. The zero value is the empty text. Compare two by Equal, not by ==.
type Secret struct {
	// text is behind a pointer because fmt prints the insides of a value that is an unexported
	// field, without asking its methods; of a pointer it prints the address.
	text   *string
	masked string
}

// NewSecret returns text whose printed form is masked. An empty masked prints as Mask.
func NewSecret(text, masked string) Secret {
	if masked == "" {
		masked = Mask
	}
	return Secret{text: &text, masked: masked}
}

// PlainSecret returns text that holds nothing secret and prints as itself.
func PlainSecret(text string) Secret { return Secret{text: &text, masked: text} }

// Reveal returns the text itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Equal reports whether two secrets have the same text.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }

// Masked returns the text with its secret part masked.
func (s Secret) Masked() string { return s.masked }

// String implements fmt.Stringer with the masked form.
func (s Secret) String() string { return s.masked }

// Format implements fmt.Formatter with the masked form, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.masked) }

// LogValue implements slog.LogValuer with the masked form.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.masked) }

// MarshalJSON implements json.Marshaler with the masked form.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.masked) }

// MarshalText implements encoding.TextMarshaler with the masked form.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.masked), nil }

// Credentials are a proxy's user and password, raw: not percent-encoded.
type Credentials struct {
	Username string
	Password Secret
}

// NewCredentials returns credentials whose password never prints.
func NewCredentials(username, password string) *Credentials {
	return &Credentials{Username: username, Password: NewSecret(password, "")}
}
