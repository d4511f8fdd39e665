package pki

import (
	"crypto/x509"
	"net"
	"testing"
)

func TestIssuedCertificatesAreTrusted(t *testing.T) {
	dir := t.TempDir()
	made, err := New(dir, "test CA")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(t.TempDir(), "other CA")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := loaded.Issue("host.example", net.ParseIP("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	verify := func(a *Authority, name string) error {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(a.PEM)
		_, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		return err
	}
	for _, name := range []string{"host.example", "192.0.2.1"} {
		if err := verify(made, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if verify(made, "else.example") == nil {
		t.Error("valid for another name")
	}
	if verify(other, "host.example") == nil {
		t.Error("trusted by way of another authority")
	}
}
