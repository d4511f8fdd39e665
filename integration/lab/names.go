//go:build linux

package lab

import (
	"net/netip"
	"slices"
)

// namedAddr is a host name of the lab and its address.
type namedAddr struct {
	name string
	addr netip.Addr
}

// Host names of the lab's services; the addresses follow from the lab's index.
const (
	proxyHost    = "proxy.corp.example"
	blobsHost    = "blobs.corp.example"
	authHost     = "auth.corp.example"
	externalHost = "registry.external.example"
)

const (
	blobsOctet     = 6
	authOctet      = 8
	apiServerOctet = 10
)

// corporateHosts are the names that nodes can resolve.
func (s *state) corporateHosts() []namedAddr {
	hosts := []namedAddr{
		{proxyHost, s.addr(proxyOctet)},
		{blobsHost, s.addr(blobsOctet)},
		{authHost, s.addr(authOctet)},
		{APIServerHost, s.addr(apiServerOctet)},
	}
	for _, r := range s.registryTable() {
		if r.name != External {
			hosts = append(hosts, namedAddr{r.host, r.addr})
		}
	}
	return hosts
}

// allHosts are the names that the proxies can resolve.
func (s *state) allHosts() []namedAddr {
	return append(s.corporateHosts(), namedAddr{externalHost, s.externalAddr(externalOctet)})
}

// serviceAddrs are the addresses of the services namespace on the corporate
// network; the first is the bridge's own.
func (s *state) serviceAddrs() []netip.Addr {
	addrs := []netip.Addr{s.addr(1)}
	for _, h := range s.corporateHosts() {
		if !slices.Contains(addrs, h.addr) {
			addrs = append(addrs, h.addr)
		}
	}
	return addrs
}
