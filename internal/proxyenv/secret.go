package proxyenv

import (
	"encoding/json"
	"log/slog"
)

// Mask stands wherever a secret would.
const Mask = "***"

// Secret is text that may carry credentials. Every way of printing it prints Masked; only Reveal
// gives the text itself, and only the renderer, the comparison with a process and a dialled proxy
// need that.
type Secret struct {
	text   string
	masked string
}

// NewSecret returns text whose printed form is masked. An empty masked prints as Mask.
func NewSecret(text, masked string) Secret {
	if masked == "" {
		masked = Mask
	}
	return Secret{text: text, masked: masked}
}

// PlainSecret returns text that holds nothing secret and prints as itself.
func PlainSecret(text string) Secret { return Secret{text: text, masked: text} }

// Reveal returns the text itself.
func (s Secret) Reveal() string { return s.text }

// Masked returns the text with its secret part masked.
func (s Secret) Masked() string { return s.masked }

// String implements fmt.Stringer with the masked form.
func (s Secret) String() string { return s.masked }

// GoString implements fmt.GoStringer with the masked form, for %#v.
func (s Secret) GoString() string { return "proxyenv.Secret(" + s.masked + ")" }

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
