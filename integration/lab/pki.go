//go:build linux

package lab

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
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// pki is a certificate authority with its files in one folder.
type pki struct {
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	caPEM  []byte
	caFile string
}

// newPKI makes a CA and writes its certificate to dir/ca.crt and its key to
// dir/ca.key.
func newPKI(dir, commonName string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the CA's folder: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the CA's key: %w", err)
	}
	template := certificate(commonName)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the CA's certificate: %w", err)
	}
	if _, _, err := writePair(dir, "ca", der, key, 0o600); err != nil {
		return nil, err
	}
	return loadPKI(dir)
}

func loadPKI(dir string) (*pki, error) {
	p := &pki{dir: dir, caFile: filepath.Join(dir, "ca.crt")}
	pair, err := tls.LoadX509KeyPair(p.caFile, filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the lab's CA: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("reading the lab's CA: its key is a %T", pair.PrivateKey)
	}
	if p.caPEM, err = os.ReadFile(p.caFile); err != nil {
		return nil, fmt.Errorf("reading the lab's CA: %w", err)
	}
	p.cert, p.key = pair.Leaf, key
	return p, nil
}

// issue makes a server certificate for a host name and an address and returns
// its files.
func (p *pki) issue(name string, addr netip.Addr) (certFile, keyFile string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("making a key for %q: %w", name, err)
	}
	template := certificate(name)
	template.DNSNames = []string{name}
	template.IPAddresses = []net.IP{addr.AsSlice()}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, p.cert, key.Public(), p.key)
	if err != nil {
		return "", "", fmt.Errorf("making a certificate for %q: %w", name, err)
	}
	return writePair(p.dir, name, der, key, 0o600)
}

func certificate(commonName string) *x509.Certificate {
	// Certificates need distinct serial numbers; a nanosecond's is distinct
	// enough within one lab.
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: commonName, Organization: []string{"Proxyward lab"}},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(90 * 24 * time.Hour),
	}
}

func writePair(dir, name string, der []byte, key *ecdsa.PrivateKey, keyMode os.FileMode) (certFile, keyFile string, err error) {
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
	if err := os.WriteFile(keyFile, keyPEM, keyMode); err != nil {
		return "", "", fmt.Errorf("writing the key of %q: %w", name, err)
	}
	return certFile, keyFile, nil
}

func (l *Lab) makePKI() (err error) {
	if err := os.MkdirAll(l.state.path("log"), 0o755); err != nil {
		return fmt.Errorf("creating the log folder: %w", err)
	}
	l.pki, err = newPKI(l.state.path("pki"), "Proxyward lab CA")
	return err
}

// CA is the PEM of the authority that signed the certificates of all registries;
// the nodes trust it.
func (l *Lab) CA() []byte { return l.pki.caPEM }
