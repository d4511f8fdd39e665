//go:build linux

package main

import (
	"context"
	"errors"
	"testing"
)

func TestExitCode(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"done", t.Context(), nil, 0},
		{"failed", t.Context(), errors.New("no such lab"), 1},
		{"interrupted", interrupted, errors.New("killed"), 130},
		{"a command on a node", t.Context(), &commandError{code: 3}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exitCode(tt.ctx, tt.err); got != tt.want {
				t.Errorf("ending with %d, want %d", got, tt.want)
			}
		})
	}
}
