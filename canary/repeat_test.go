package canary

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/proxyward/proxyward/canary/pull"
)

// blinkingPuller transfers nothing that can be seen until the pull with the number seenAt, in which
// this process receives bytes by a connection, as in all that follow.
type blinkingPuller struct {
	t             *testing.T
	seenAt        int
	bytes         int
	pulls, clears int
}

func (p *blinkingPuller) Clear(context.Context) error { p.clears++; return nil }
func (p *blinkingPuller) Close() error                { return nil }

func (p *blinkingPuller) Pull(context.Context) (pull.Arrival, error) {
	arrival := pull.Arrival{Size: 64 << 10}
	if p.pulls++; p.pulls < p.seenAt {
		return arrival, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := server.Write(make([]byte, p.bytes)); err != nil {
		p.t.Fatal(err)
	}
	server.Close()
	if _, err := io.Copy(io.Discard, client); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // many looks long
	return arrival, nil
}

func TestAPullOfWhichNothingWasSeenIsRepeated(t *testing.T) {
	for name, tt := range map[string]struct {
		seenAt, bytes, pulls int
		seen                 bool
	}{
		"seen at once":          {1, 64 << 10, 1, true},
		"seen the second time":  {2, 64 << 10, 2, true},
		"never seen":            {maxPulls + 1, 0, maxPulls, false},
		"too little of it seen": {1, 1 << 10, maxPulls, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &blinkingPuller{t: t, seenAt: tt.seenAt, bytes: tt.bytes}
			var o observation
			sockets, watchErr, tidyErr := o.pullUntilSeen(t.Context(), p, Request{MainPID: os.Getpid(), Timeout: 10 * time.Second})
			if watchErr != nil || tidyErr != nil {
				t.Fatal(watchErr, tidyErr)
			}
			if p.pulls != tt.pulls || p.clears != tt.pulls || (len(sockets) > 0) != tt.seen {
				t.Errorf("%d pulls and %d clears, %d sockets seen; want %d of each, seen %t", p.pulls, p.clears, len(sockets), tt.pulls, tt.seen)
			}
		})
	}
}
