//go:build linux

package lab

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/proxyward/proxyward/integration/internal/pki"
)

func (l *Lab) makePKI() (err error) {
	if err := os.MkdirAll(l.state.path("log"), 0o755); err != nil {
		return fmt.Errorf("creating the log folder: %w", err)
	}
	l.pki, err = pki.New(l.state.path("pki"), "Proxyward lab CA")
	return err
}

// CA is the PEM of the authority that signed the certificates of all registries;
// the nodes trust it.
func (l *Lab) CA() []byte { return l.pki.PEM }

// issue makes a server certificate for a host name and an address and returns
// its files.
func (l *Lab) issue(name string, addr netip.Addr) (certFile, keyFile string, err error) {
	return l.pki.IssueFiles(name, addr.AsSlice())
}
