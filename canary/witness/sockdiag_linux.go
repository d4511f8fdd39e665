package witness

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// sockDiag asks one network namespace's kernel tables.
type sockDiag struct {
	handle *netlink.Handle
	// ended listens for connections that end; nil where we may not listen. Without it what comes
	// between the last look and the end of a connection is not counted.
	ended *endings
}

// openKernel opens the network namespace of a process. Where it is another one than ours, only the
// netlink sockets are made in it; the calling thread returns at once.
func openKernel(pid int) (Kernel, error) {
	if pid <= 0 {
		return nil, errors.New("watching the daemon's connections: its process is not known")
	}
	theirs, err := netns.GetFromPid(pid)
	if err != nil {
		return nil, fmt.Errorf("opening the network namespace of process %d: %w", pid, err)
	}
	defer theirs.Close()
	ours, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("opening our own network namespace: %w", err)
	}
	defer ours.Close()
	target := theirs
	if theirs.Equal(ours) {
		target = netns.None() // no switch, and no right to switch is needed
	}
	handle, err := netlink.NewHandleAt(target, unix.NETLINK_INET_DIAG)
	if err != nil {
		return nil, fmt.Errorf("opening sock_diag in the network namespace of process %d: %w", pid, err)
	}
	ended, err := listenForEndings(target)
	if err != nil && !errors.Is(err, unix.EPERM) {
		handle.Close()
		return nil, fmt.Errorf("listening to sock_diag in the network namespace of process %d: %w", pid, err)
	}
	return &sockDiag{handle, ended}, nil
}

// Close implements Kernel.
func (d *sockDiag) Close() error {
	d.handle.Close()
	if d.ended != nil {
		d.ended.close()
	}
	return nil
}

// Connections implements Kernel. Those that ended since the last call come last, so that they were
// seen before with their owner.
func (d *sockDiag) Connections() ([]Sample, error) {
	var samples []Sample
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		found, err := d.handle.SocketDiagTCPInfo(family)
		// An interrupted dump lacks some sockets; the next look has them.
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return nil, fmt.Errorf("listing TCP connections by sock_diag: %w", err)
		}
		for _, s := range found {
			remote, ok := netip.AddrFromSlice(s.InetDiagMsg.ID.Destination)
			if !ok || s.InetDiagMsg.ID.DestinationPort == 0 {
				continue // it listens
			}
			sample := Sample{
				ID:     uint64(s.InetDiagMsg.ID.Cookie[1])<<32 | uint64(s.InetDiagMsg.ID.Cookie[0]),
				Inode:  s.InetDiagMsg.INode,
				Socket: Socket{Remote: netip.AddrPortFrom(remote.Unmap(), s.InetDiagMsg.ID.DestinationPort)},
			}
			if s.TCPInfo != nil {
				sample.Received = s.TCPInfo.Bytes_received
			}
			samples = append(samples, sample)
		}
	}
	if d.ended != nil {
		samples = append(samples, d.ended.take()...)
	}
	return samples, nil
}

// gone says that a process or thread ended while its folder was read.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}
