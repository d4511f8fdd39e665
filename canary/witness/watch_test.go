package witness

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestTallyKeepsWhatWasOpenedMeanwhile(t *testing.T) {
	remote := netip.MustParseAddrPort("10.0.0.9:3128")
	sample := func(id uint64, inode uint32, received uint64) Sample {
		return Sample{ID: id, Inode: inode, Socket: Socket{Remote: remote, Received: received}}
	}
	asked := 0
	owned := func() (map[uint32]bool, error) {
		asked++
		return map[uint32]bool{10: true, 20: true, 21: true}, nil
	}
	tally := newTally([]Sample{sample(1, 10, 5000)})
	for _, samples := range [][]Sample{
		{sample(1, 10, 9000), sample(2, 20, 100), sample(3, 99, 7777), sample(4, 0, 6666)},
		{sample(1, 10, 9999), sample(2, 20, 4000), sample(3, 99, 8888)},
		{sample(2, 0, 3)}, // closed: orphaned, counter no longer there
		{sample(5, 21, 70)},
		{},
	} {
		if err := tally.add(samples, owned); err != nil {
			t.Fatal(err)
		}
	}
	var received []uint64
	for _, s := range tally.sockets() {
		received = append(received, s.Received)
	}
	slices.Sort(received)
	if !slices.Equal(received, []uint64{70, 4000}) {
		t.Errorf("kept %v, want the maxima of the two new sockets of ours: 70 and 4000", received)
	}
	if asked != 2 {
		t.Errorf("owners were looked up %d times, want once per look with a new socket: 2", asked)
	}
}

func TestTallyReportsThatOwnersAreUnknown(t *testing.T) {
	broken := errors.New("no owners")
	err := newTally(nil).add([]Sample{{ID: 1, Inode: 1}}, func() (map[uint32]bool, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("add returned %v, want %v", err, broken)
	}
}

func TestSocketsOfDescendants(t *testing.T) {
	proc := t.TempDir()
	process := func(pid, children string, links ...string) {
		for i, link := range links {
			if err := os.MkdirAll(filepath.Join(proc, pid, "fd"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(link, filepath.Join(proc, pid, "fd", string(rune('0'+i)))); err != nil {
				t.Fatal(err)
			}
		}
		task := filepath.Join(proc, pid, "task", pid)
		if err := os.MkdirAll(task, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(task, "children"), []byte(children), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	process("7", "8 9 ", "socket:[100]", "/dev/null", "pipe:[5]")
	process("8", "10", "socket:[200]")
	process("10", "", "socket:[300]")
	process("11", "", "socket:[400]") // a stranger; 9 has ended already
	got, err := socketsOf(proc, 7)
	if err != nil {
		t.Fatal(err)
	}
	for inode, want := range map[uint32]bool{100: true, 200: true, 300: true, 400: false} {
		if got[inode] != want {
			t.Errorf("socket %d held: %v, want %v", inode, got[inode], want)
		}
	}
	if _, err := socketsOf(proc, 12); err == nil {
		t.Error("a process that is not there has no error")
	}
}

func TestWatchSeesOurOwnConnection(t *testing.T) {
	const size = 256 << 10
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(make([]byte, size))
			conn.Close()
		}
	}()
	fetch := func() net.Conn {
		conn, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	before := fetch()
	defer before.Close()
	watch, err := Start(t.Context(), os.Getpid())
	if err != nil {
		t.Fatalf("starting a watch: %v", err)
	}
	during := fetch()
	time.Sleep(5 * Interval)
	during.Close()
	sockets, err := watch.Stop()
	if err != nil {
		t.Fatalf("watching: %v", err)
	}
	remote := netip.MustParseAddrPort(server.Addr().String())
	var found []Socket
	for _, s := range sockets {
		if s.Remote == remote {
			found = append(found, s)
		}
	}
	if len(found) != 1 || found[0].Received < size {
		t.Errorf("saw %+v, want one connection to %s with %d bytes", found, remote, size)
	}
}

func TestStartNeedsAProcess(t *testing.T) {
	if _, err := Start(t.Context(), 0); err == nil {
		t.Error("a watch without a process started")
	}
}
