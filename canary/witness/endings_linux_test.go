package witness

import (
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestCounterOffsetIsTheKernels(t *testing.T) {
	if want := unsafe.Offsetof(unix.TCPInfo{}.Bytes_received); bytesReceived != want {
		t.Errorf("bytes received are read at %d, and stand at %d", bytesReceived, want)
	}
}

// A connection that ends between two looks, as Docker's do right after a layer.
func TestConnectionThatEndsBetweenTwoLooks(t *testing.T) {
	const size = 512 << 10
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	looked := make(chan struct{})
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		<-looked
		_, _ = conn.Write(make([]byte, size))
	}()
	kernel, err := openKernel(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	if kernel.(*sockDiag).ended == nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("listening to the ends of connections needs CAP_NET_ADMIN, and CI must have it")
		}
		t.Skip("listening to the ends of connections needs CAP_NET_ADMIN")
	}
	conn, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	remote := netip.MustParseAddrPort(server.Addr().String())
	find := func() (Sample, bool) {
		samples, err := kernel.Connections()
		if err != nil {
			t.Fatal(err)
		}
		var found Sample
		for _, s := range samples {
			if s.Remote == remote && s.Received >= found.Received {
				found = s
			}
		}
		return found, found.ID != 0
	}
	first, ok := find()
	if !ok || first.Inode == 0 {
		t.Fatalf("the open connection is seen as %+v, %v", first, ok)
	}
	close(looked)
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	time.Sleep(50 * time.Millisecond)
	last, ok := find()
	if !ok || last.ID != first.ID || last.Received < size {
		t.Errorf("after its end it is seen as %+v, %v, want ID %d with %d bytes", last, ok, first.ID, size)
	}
}

func FuzzParseEnding(f *testing.F) {
	f.Add(make([]byte, messageSize))
	f.Add(append([]byte{unix.AF_INET}, make([]byte, messageSize+200)...))
	f.Add([]byte{unix.AF_INET6})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if sample, ok := parseEnding(raw); ok && !sample.Remote.Addr().IsValid() {
			t.Errorf("a connection without a remote: %+v", sample)
		}
	})
}
