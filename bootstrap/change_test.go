package bootstrap

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/proxyward/proxyward/agent/apply"
)

func TestNotEnded_SaysWhatTheUndoFailedAt(t *testing.T) {
	first, undo := &apply.InterruptedError{Step: apply.StepProve}, &fs.PathError{Op: "open", Path: "/etc", Err: fs.ErrPermission}
	for name, left := range map[string]apply.Result{
		"refused":                {Outcome: apply.Refused, Err: first},
		"undo failed":            {Outcome: apply.UndoFailed, Attempt: "a", Err: first, UndoErr: undo},
		"undo alone is reported": {Outcome: apply.UndoFailed, Attempt: "a", UndoErr: undo},
	} {
		t.Run(name, func(t *testing.T) {
			err := notEnded(left)
			if left.Err != nil && !errors.Is(err, left.Err) || left.UndoErr != nil && !errors.Is(err, left.UndoErr) {
				t.Errorf("%q lacks a cause", err)
			}
		})
	}
}
