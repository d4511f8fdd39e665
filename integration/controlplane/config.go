package controlplane

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
)

// Config says what [Start] starts and where.
type Config struct {
	// Binaries is the folder of the programs, as [Find] returns it. Required.
	Binaries string
	// Dir holds the keys, the data and the logs; absolute, created where
	// missing. It is the caller's to remove. Required.
	Dir string
	// NetNS is the path of the network namespace to run in, such as
	// /run/netns/NAME. Empty means the caller's own.
	NetNS string
	// Address is where the API server listens and what it tells clients.
	// Default 127.0.0.1.
	Address netip.Addr
	// Port is the API server's port. Default: a free one. Required with
	// NetNS, where none can be looked for.
	Port uint16
	// Names are further names that the serving certificate holds, for clients
	// that know Address by them.
	Names []string
	// ServiceCIDR and PodCIDR are the cluster's ranges; a node gets a /24 of
	// the latter. Defaults 10.96.0.0/16 and 10.244.0.0/16.
	ServiceCIDR, PodCIDR netip.Prefix
	// Controllers adds kube-controller-manager and kube-scheduler, which
	// nodes, DaemonSets and ServiceAccount objects need.
	Controllers bool
	// Detach lets the programs outlive the calling process; without it the
	// kernel kills them when that ends. Whoever sets it ends them otherwise,
	// by emptying the network namespace for instance.
	Detach bool
	// Progress receives a line for each step. Default: nowhere.
	Progress io.Writer
}

// ports are the TCP ports on the loopback device that only the parts of the
// control plane itself use, and the API server's.
type ports struct {
	api, etcdClient, etcdPeer, controllerManager, scheduler uint16
}

// withDefaults returns c with its defaults filled in, or what is wrong in it.
func (c Config) withDefaults() (Config, error) {
	if c.Binaries == "" || c.Dir == "" {
		return c, errors.New("reading the control plane's configuration: Binaries and Dir must be given")
	}
	if !filepath.IsAbs(c.Dir) {
		return c, fmt.Errorf("reading the control plane's configuration: Dir %q must be absolute", c.Dir)
	}
	if c.NetNS != "" && c.Port == 0 {
		return c, errors.New("reading the control plane's configuration: NetNS is given, so Port must be too")
	}
	if !c.Address.IsValid() {
		c.Address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if !c.ServiceCIDR.IsValid() {
		c.ServiceCIDR = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, 0, 0}), 16)
	}
	if !c.PodCIDR.IsValid() {
		c.PodCIDR = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, 0, 0}), 16)
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	return c, nil
}

// choosePorts picks the ports: the usual ones in a namespace of the lab's
// own, free ones where the machine's other programs run.
func (c Config) choosePorts() (ports, error) {
	if c.NetNS != "" {
		return ports{api: c.Port, etcdClient: 2379, etcdPeer: 2380, controllerManager: 10257, scheduler: 10259}, nil
	}
	p := ports{api: c.Port}
	chosen := []*uint16{&p.etcdClient, &p.etcdPeer, &p.controllerManager, &p.scheduler}
	if p.api == 0 {
		chosen = append(chosen, &p.api)
	}
	// All are held open until the last is found, so that none comes twice.
	for _, port := range chosen {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return ports{}, fmt.Errorf("looking for a free port: %w", err)
		}
		defer listener.Close()
		addr, err := netip.ParseAddrPort(listener.Addr().String())
		if err != nil {
			return ports{}, fmt.Errorf("reading the port of %q: %w", listener.Addr(), err)
		}
		*port = addr.Port()
	}
	return p, nil
}
