// Package pki is a certificate authority of a few lines, for services whose
// clients are told to trust it.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	// validity is long enough for a lab that is left running.
	validity = 90 * 24 * time.Hour
	// backdating allows for clocks that differ.
	backdating = time.Hour
)

// Authority signs server certificates. Its files lie in one folder.
type Authority struct {
	// CertFile holds the authority's certificate in PEM.
	CertFile string
	// PEM is the content of CertFile.
	PEM []byte

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority and writes ca.crt and ca.key to dir, which it makes.
func New(dir, commonName string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of authority %q: %w", commonName, err)
	}
	template, err := newTemplate(commonName)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of authority %q: %w", commonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of authority %q: %w", commonName, err)
	}
	if _, _, err := write(dir, "ca", der, key); err != nil {
		return nil, err
	}
	return Load(dir)
}

// Load reads an authority that New wrote to dir.
func Load(dir string) (*Authority, error) {
	a := &Authority{dir: dir, CertFile: filepath.Join(dir, "ca.crt")}
	pair, err := tls.LoadX509KeyPair(a.CertFile, filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the authority in %q: %w", dir, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("reading the authority in %q: its key is a %T", dir, pair.PrivateKey)
	}
	if a.PEM, err = os.ReadFile(a.CertFile); err != nil {
		return nil, fmt.Errorf("reading the authority in %q: %w", dir, err)
	}
	a.cert, a.key = pair.Leaf, key
	return a, nil
}

// Issue makes a server certificate for the name and the addresses.
func (a *Authority) Issue(name string, addrs ...net.IP) (tls.Certificate, error) {
	template, err := newTemplate(name)
	if err != nil {
		return tls.Certificate{}, err
	}
	template.DNSNames, template.IPAddresses = []string{name}, addrs
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a key for %q: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate for %q: %w", name, err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// IssueFiles is [Authority.Issue] into NAME.crt and NAME.key beside the
// authority's own files.
func (a *Authority) IssueFiles(name string, addrs ...net.IP) (certFile, keyFile string, err error) {
	pair, err := a.Issue(name, addrs...)
	if err != nil {
		return "", "", err
	}
	return write(a.dir, name, pair.Certificate[0], pair.PrivateKey)
}

func newTemplate(commonName string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("making a serial number for %q: %w", commonName, err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName, Organization: []string{"Proxyward lab"}},
		NotBefore:    now.Add(-backdating),
		NotAfter:     now.Add(validity),
	}, nil
}

func write(dir, name string, der []byte, key any) (certFile, keyFile string, err error) {
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", "", fmt.Errorf("encoding the key of %q: %w", name, err)
	}
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(certFile, certPEM, 0o644); err != nil {
		return "", "", fmt.Errorf("writing the certificate of %q: %w", name, err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if err := os.WriteFile(keyFile, keyPEM, 0o600); err != nil {
		return "", "", fmt.Errorf("writing the key of %q: %w", name, err)
	}
	return certFile, keyFile, nil
}
