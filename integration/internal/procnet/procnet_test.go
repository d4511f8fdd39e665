package procnet

import (
	"net"
	"net/netip"
	"os"
	"testing"
)

func TestFindOnThisMachine(t *testing.T) {
	for _, c := range []struct{ network, addr, table string }{
		{"tcp4", "127.0.0.1:0", "/proc/self/net/tcp"},
		{"tcp6", "[::1]:0", "/proc/self/net/tcp6"},
	} {
		l, err := net.Listen(c.network, c.addr)
		if err != nil {
			t.Fatal(err)
		}
		table, err := os.ReadFile(c.table)
		if err != nil {
			t.Fatal(err)
		}
		local := l.Addr().(*net.TCPAddr).AddrPort()
		s, ok := Find(string(table), local)
		if !ok || s.State != Listen || s.Inode == "0" || s.Local != local {
			t.Errorf("%s: got %+v, %t", local, s, ok)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if table, err = os.ReadFile(c.table); err != nil {
			t.Fatal(err)
		}
		if _, ok := Find(string(table), local); ok {
			t.Errorf("%s is found after its end", local)
		}
	}
}

func TestFindIgnoresWhatItCannotRead(t *testing.T) {
	const table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F 00000000:0000 0A 0 0 0 0 0 1\n" +
		"   0: 01007F:0050 00000000:0000 0A 0 0 0 0 0 1\n" +
		"   0: XX00007F:0050 00000000:0000 0A 0 0 0 0 0 1\n" +
		"   0: 0100007F:XX 00000000:0000 0A 0 0 0 0 0 1\n" +
		"   0: 0100007F0100007F:0050 00000000:0000 0A 0 0 0 0 0 1\n" +
		"short\n"
	if s, ok := Find(table, netip.MustParseAddrPort("127.0.0.1:80")); ok {
		t.Errorf("found %+v", s)
	}
}
