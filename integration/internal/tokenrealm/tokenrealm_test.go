package tokenrealm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

func realm(t *testing.T) (Realm, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := tls.Certificate{Certificate: [][]byte{[]byte("certificate")}, PrivateKey: key}
	return Realm{Issuer: "issuer", Signer: signer, Now: func() time.Time { return time.Unix(1_000_000, 0) }}, key
}

func ask(r Realm, query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/token?"+query, nil))
	return w
}

func TestTokenIsSignedAndCarriesTheScopes(t *testing.T) {
	r, key := realm(t)
	w := ask(r, "service=reg&scope=repository:host:5000/a:pull,push&scope=registry:catalog:*")
	var answer struct{ Token string }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	parts := strings.Split(answer.Token, ".")
	if len(parts) != 3 {
		t.Fatalf("token %q", answer.Token)
	}
	decode := func(s string) []byte {
		raw, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	signature := decode(parts[2])
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !ecdsa.Verify(&key.PublicKey, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Error("the signature is wrong")
	}
	var claims struct {
		Iss, Aud string
		Exp      int64
		Access   []access
	}
	if err := json.Unmarshal(decode(parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	want := []access{
		{"repository", "host:5000/a", []string{"pull", "push"}},
		{"registry", "catalog", []string{"*"}},
	}
	if claims.Iss != "issuer" || claims.Aud != "reg" || claims.Exp != 1_000_300 || !reflect.DeepEqual(claims.Access, want) {
		t.Errorf("claims %+v", claims)
	}
}

func TestBadScopeIsRefused(t *testing.T) {
	r, _ := realm(t)
	for _, scope := range []string{"repository", "repository:a"} {
		if w := ask(r, "service=reg&scope="+scope); w.Code != http.StatusBadRequest {
			t.Errorf("scope %q: status %d", scope, w.Code)
		}
	}
}
