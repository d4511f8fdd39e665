//go:build linux

package lab

import "net/netip"

// APIServerHost is the name that nodes know for the API server of a cluster.
// The lab keeps its name and address; package cluster starts what answers there.
const APIServerHost = "api.corp.example"

// APIServerAddr is the address of [APIServerHost], on the corporate network in
// the services namespace.
func (l *Lab) APIServerAddr() netip.Addr { return l.state.addr(apiServerOctet) }

// ServicesNetNS is the path of the namespace that the lab's services run in.
// What runs in it ends with the lab.
func (l *Lab) ServicesNetNS() string { return nsPath(l.state.servicesNS()) }

// Subnet is the corporate network, which holds the nodes and the services.
func (l *Lab) Subnet() netip.Prefix { return l.state.subnet() }
