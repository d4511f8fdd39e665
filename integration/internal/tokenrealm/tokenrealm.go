// Package tokenrealm is a token server as registries use it: it gives anyone a
// bearer token for the access asked for, signed with a key whose certificate
// the registry trusts.
package tokenrealm

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const lifetime = 5 * time.Minute

// Realm answers token requests.
type Realm struct {
	Issuer string
	// Signer holds an ECDSA P-256 key and the certificate chain for it.
	Signer tls.Certificate
	// Now is the clock, time.Now in use.
	Now func() time.Time
}

type access struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
}

// ServeHTTP answers GET /token?service=…&scope=type:name:actions.
func (r Realm) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	list := []access{}
	for _, scopes := range query["scope"] {
		for scope := range strings.FieldsSeq(scopes) {
			a, err := parseScope(scope)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			list = append(list, a)
		}
	}
	token, err := r.token(query.Get("service"), list)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{"token": token, "access_token": token, "expires_in": int(lifetime.Seconds())}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		return // the client is gone
	}
}

// parseScope reads type:name:actions; the name may hold colons (a port).
func parseScope(scope string) (access, error) {
	first, last := strings.Index(scope, ":"), strings.LastIndex(scope, ":")
	if first < 0 || first == last {
		return access{}, fmt.Errorf("reading scope %q: want type:name:actions", scope)
	}
	return access{Type: scope[:first], Name: scope[first+1 : last], Actions: strings.Split(scope[last+1:], ",")}, nil
}

// token makes a JSON web token (RFC 7519) signed with ES256 (RFC 7518).
func (r Realm) token(service string, list []access) (string, error) {
	key, ok := r.Signer.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return "", fmt.Errorf("signing a token: the key is a %T", r.Signer.PrivateKey)
	}
	var chain []string
	for _, der := range r.Signer.Certificate {
		chain = append(chain, base64.StdEncoding.EncodeToString(der))
	}
	now := r.Now()
	header, err := segment(map[string]any{"typ": "JWT", "alg": "ES256", "x5c": chain})
	if err != nil {
		return "", err
	}
	claims, err := segment(map[string]any{
		"iss": r.Issuer, "sub": "", "aud": service, "jti": rand.Text(), "access": list,
		"iat": now.Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(lifetime).Unix(),
	})
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256([]byte(header + "." + claims))
	a, b, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	signature := make([]byte, 64)
	a.FillBytes(signature[:32])
	b.FillBytes(signature[32:])
	return header + "." + claims + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func segment(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encoding a token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}
