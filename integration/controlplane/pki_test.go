package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/netip"
	"slices"
	"testing"
)

func TestKubeconfigIdentity(t *testing.T) {
	ca, err := newAuthority("lab")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ca.client("system:node:n1", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	data, err := newKubeconfig("https://10.66.0.1:6443", "system:node:n1", ca.pem, p)
	if err != nil {
		t.Fatal(err)
	}
	var got kubeconfig
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(got.Users[0].User.Cert, got.Users[0].User.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(got.Clusters[0].Cluster.CA) {
		t.Fatal("the kubeconfig holds no CA")
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("the client's certificate does not verify: %v", err)
	}
	if s := pair.Leaf.Subject; s.CommonName != "system:node:n1" || !slices.Equal(s.Organization, []string{"system:nodes"}) {
		t.Errorf("the certificate is of %q in %q", s.CommonName, s.Organization)
	}
}

func TestServingCertificate(t *testing.T) {
	ca, err := newAuthority("lab")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ca.server("kubernetes", []string{"kubernetes.default.svc"}, []netip.Addr{netip.MustParseAddr("10.96.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	for host, ok := range map[string]bool{"kubernetes.default.svc": true, "10.96.0.1": true, "other.example": false} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
		if (err == nil) != ok {
			t.Errorf("verifying for %q gave %v, want success: %t", host, err, ok)
		}
	}
}
