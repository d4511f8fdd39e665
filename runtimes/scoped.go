package runtimes

import (
	"slices"
	"strings"

	"github.com/proxyward/proxyward/internal/unitfile"
)

// RuntimeEnvironment returns what the runtime gets of its unit's environment, sorted by name: with
// a prefix (Runtime.Prefix) the prefixed variables, without it, laid over the unit's own. A variable
// of the unit that a prefixed one hides is among the latter's Loses.
func RuntimeEnvironment(env unitfile.Environment, prefix string) []unitfile.Variable {
	byName := map[string]unitfile.Variable{}
	for _, v := range env.Variables {
		if v.Removed == nil && (prefix == "" || !strings.HasPrefix(v.Name, prefix)) {
			byName[v.Name] = v
		}
	}
	for _, v := range env.Variables {
		name, prefixed := strings.CutPrefix(v.Name, prefix)
		if v.Removed != nil || prefix == "" || !prefixed {
			continue
		}
		v.Name = name
		if hidden, found := byName[name]; found {
			v.Loses = slices.Concat(v.Loses, []unitfile.Setting{hidden.Setting}, hidden.Loses)
		}
		byName[name] = v
	}
	out := make([]unitfile.Variable, 0, len(byName))
	for _, v := range byName {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b unitfile.Variable) int { return strings.Compare(a.Name, b.Name) })
	return out
}
