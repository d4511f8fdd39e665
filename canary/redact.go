package canary

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/proxyward/proxyward/internal/proxyenv"
)

// redactor returns a function that masks the secrets of an environment and of a registry's
// credentials in text that others wrote (a daemon's or a library's error), in the forms in which
// they travel: raw, percent-encoded and in a Basic header.
func redactor(environment proxyenv.Environment, auth *RegistryAuth) func(string) string {
	var pairs []string
	add := func(secret string) {
		if secret != "" {
			pairs = append(pairs, secret, proxyenv.Mask)
		}
	}
	credentials := func(user, password string) {
		if password == "" {
			return
		}
		add(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))
		add(url.UserPassword(user, password).String())
		add(url.PathEscape(password))
		add(url.QueryEscape(password))
		add(password)
	}
	for _, v := range environment.Vars {
		u, err := url.Parse(v.Value.Reveal())
		if err != nil || u.User == nil {
			continue
		}
		_, encoded, _ := strings.Cut(userinfo(v.Value.Reveal()), ":")
		add(encoded)
		password, _ := u.User.Password()
		credentials(u.User.Username(), password)
	}
	if auth != nil {
		credentials(auth.Username, auth.Password.Reveal())
	}
	return strings.NewReplacer(pairs...).Replace
}

// userinfo returns the part of a URL between its scheme and its last @ before the path, as written.
func userinfo(text string) string {
	_, rest, _ := strings.Cut(text, "://")
	rest, _, _ = strings.Cut(rest, "/")
	i := strings.LastIndex(rest, "@")
	if i < 0 {
		return ""
	}
	return rest[:i]
}

func sha256Hex(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
