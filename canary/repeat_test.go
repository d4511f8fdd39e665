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
// this process opens a connection.
type blinkingPuller struct {
	t             *testing.T
	seenAt        int
	pulls, clears int
}

func (p *blinkingPuller) Clear(context.Context) error { p.clears++; return nil }
func (p *blinkingPuller) Close() error                { return nil }

func (p *blinkingPuller) Pull(context.Context) (pull.Arrival, error) {
	if p.pulls++; p.pulls != p.seenAt {
		return pull.Arrival{}, nil
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
	if _, err := server.Write(make([]byte, 1<<16)); err != nil {
		p.t.Fatal(err)
	}
	server.Close()
	if _, err := io.Copy(io.Discard, client); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // many looks long
	return pull.Arrival{}, nil
}

func TestAPullOfWhichNothingWasSeenIsRepeated(t *testing.T) {
	for name, tt := range map[string]struct {
		seenAt, pulls int
		seen          bool
	}{
		"seen at once":         {1, 1, true},
		"seen the second time": {2, 2, true},
		"never seen":           {0, maxPulls, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &blinkingPuller{t: t, seenAt: tt.seenAt}
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
