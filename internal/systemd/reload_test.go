package systemd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwaitReload(t *testing.T) {
	refused := errors.New("refused")
	never := time.Hour
	tests := map[string]struct {
		reply, probe time.Duration
		replyErr     error
		probeErr     error
		want         error
		took         time.Duration
	}{
		"reply at once":                  {reply: time.Millisecond, probe: never, took: time.Millisecond},
		"refusal":                        {reply: time.Millisecond, replyErr: refused, probe: never, want: refused, took: time.Millisecond},
		"slow reload":                    {reply: 9 * time.Second, probe: 10 * time.Second, took: 9 * time.Second},
		"lost reply":                     {reply: never, probe: time.Millisecond, took: reloadProbe + time.Millisecond + reloadGrace},
		"reply after the probe's answer": {reply: reloadProbe + reloadGrace, replyErr: refused, probe: time.Millisecond, want: refused, took: reloadProbe + reloadGrace},
		"the probe fails":                {reply: never, probe: time.Millisecond, probeErr: refused, want: refused, took: reloadProbe + time.Millisecond},
		"neither":                        {reply: never, probe: never, want: context.DeadlineExceeded, took: time.Minute},
	}
	after := func(d time.Duration, err error) <-chan error {
		c := make(chan error, 1)
		time.AfterFunc(d, func() { c <- err })
		return c
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				err := awaitReload(ctx, after(test.reply, test.replyErr), func() <-chan error { return after(test.probe, test.probeErr) })
				if !errors.Is(err, test.want) || test.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if took := time.Since(began); took != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
			})
		})
	}
}
