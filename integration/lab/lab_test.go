//go:build linux

package lab_test

import (
	"context"
	"testing"
	"time"

	"github.com/proxyward/proxyward/integration/lab"
)

func TestLabComesUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	began := time.Now()
	l, err := lab.Up(ctx, lab.Config{Name: "selftest", Nodes: []lab.NodeSpec{{Name: "n1"}}, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	t.Log(time.Since(began))
	out, err := l.Node("n1").Run(ctx, "systemctl", "--version")
	t.Log(out, err)
}
