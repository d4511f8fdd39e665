package witness

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Where things stand in the kernel's struct inet_diag_msg (linux/inet_diag.h) and, for the last, in
// struct tcp_info (linux/tcp.h).
const (
	familyAt      = 0
	remotePortAt  = 6
	remoteAt      = 24
	cookieAt      = 44
	inodeAt       = 68
	messageSize   = 72
	bytesReceived = 128
)

// infoAttribute is INET_DIAG_INFO, the attribute that holds a struct tcp_info.
const infoAttribute = 2

// endings collects the connections that end, which the kernel tells with their last counters: a
// daemon may close one right after its last byte, between two looks.
type endings struct {
	socket *nl.NetlinkSocket
	done   chan struct{}

	mu      sync.Mutex
	samples []Sample
}

// listenForEndings begins to listen in a network namespace, netns.None for the caller's. It needs
// CAP_NET_ADMIN there.
func listenForEndings(namespace netns.NsHandle) (*endings, error) {
	socket, err := nl.SubscribeAt(namespace, netns.None(), unix.NETLINK_INET_DIAG,
		unix.SKNLGRP_INET_TCP_DESTROY, unix.SKNLGRP_INET6_TCP_DESTROY)
	if err != nil {
		return nil, err
	}
	e := &endings{socket: socket, done: make(chan struct{})}
	go e.run()
	return e, nil
}

func (e *endings) run() {
	defer close(e.done)
	for {
		messages, _, err := e.socket.Receive()
		if errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EINTR) {
			continue // some were lost; the others still count
		}
		if err != nil {
			return // closed
		}
		for _, m := range messages {
			if sample, ok := parseEnding(m.Data); ok {
				e.mu.Lock()
				e.samples = append(e.samples, sample)
				e.mu.Unlock()
			}
		}
	}
}

// take returns what was collected since it was last called.
func (e *endings) take() []Sample {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := e.samples
	e.samples = nil
	return taken
}

func (e *endings) close() {
	e.socket.Close()
	<-e.done
}

// parseEnding reads one message; ok is false for what is no TCP connection with counters.
func parseEnding(raw []byte) (sample Sample, ok bool) {
	if len(raw) < messageSize {
		return Sample{}, false
	}
	length := 4
	switch raw[familyAt] {
	case unix.AF_INET:
	case unix.AF_INET6:
		length = 16
	default:
		return Sample{}, false
	}
	remote, _ := netip.AddrFromSlice(raw[remoteAt : remoteAt+length])
	sample = Sample{
		ID:     uint64(binary.NativeEndian.Uint32(raw[cookieAt+4:]))<<32 | uint64(binary.NativeEndian.Uint32(raw[cookieAt:])),
		Inode:  binary.NativeEndian.Uint32(raw[inodeAt:]),
		Socket: Socket{Remote: netip.AddrPortFrom(remote.Unmap(), binary.BigEndian.Uint16(raw[remotePortAt:]))},
	}
	info := attribute(raw[messageSize:], infoAttribute)
	if len(info) < bytesReceived+8 {
		return Sample{}, false
	}
	sample.Received = binary.NativeEndian.Uint64(info[bytesReceived:])
	return sample, true
}

// attribute returns the value of one netlink attribute, nil where it is not there. The library's
// own parser reads beyond a last attribute that is not padded.
func attribute(raw []byte, kind uint16) []byte {
	for len(raw) >= unix.SizeofRtAttr {
		length := int(binary.NativeEndian.Uint16(raw))
		if length < unix.SizeofRtAttr || length > len(raw) {
			return nil
		}
		if binary.NativeEndian.Uint16(raw[2:]) == kind {
			return raw[unix.SizeofRtAttr:length]
		}
		raw = raw[min((length+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1), len(raw)):]
	}
	return nil
}
