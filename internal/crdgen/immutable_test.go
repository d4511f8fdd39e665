package main

import (
	"context"
	"testing"
)

func TestRevisionsNeverChange(t *testing.T) {
	a := newAdmission(t, "proxyrevisions")
	revision := func(profile string) map[string]any {
		return map[string]any{"spec": map[string]any{"profile": profile, "noProxy": []any{}}}
	}
	for changed, want := range map[string]int{"corp": 0, "other": 1} {
		errs, _ := a.cel.Validate(context.Background(), nil, a.structural, revision(changed), revision("corp"), costBudget)
		if len(errs) != want {
			t.Errorf("from corp to %s: %v", changed, errs)
		}
	}
}
