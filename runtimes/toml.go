package runtimes

import (
	"errors"
	"fmt"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// decodeTOML reads a TOML file into v. The error names the place and not the text there, which may
// hold credentials.
func decodeTOML(file string, content []byte, v any) error {
	err := toml.Unmarshal(content, v)
	if err == nil {
		return nil
	}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		row, column := at.Position()
		return fmt.Errorf("reading %s as TOML: line %d, column %d: %w; correct it there", file, row, column, err)
	}
	return fmt.Errorf("reading %s as TOML: %w; correct it", file, err)
}

// keysInOrder returns the keys below one top-level table in the order in which the text first names
// them, which a map does not keep and which is the order in which containerd tries hosts.
func keysInOrder(content []byte, table string) []string {
	var p unstable.Parser
	p.Reset(content)
	var order []string
	seen := map[string]bool{}
	add := func(key string) {
		if !seen[key] {
			seen[key] = true
			order = append(order, key)
		}
	}
	var current []string
	for p.NextExpression() {
		e := p.Expression()
		keys := keyOf(e)
		full := keys
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			current = keys
		case unstable.KeyValue:
			full = append(append([]string{}, current...), keys...)
		}
		switch {
		case len(full) == 0 || full[0] != table:
		case len(full) > 1:
			add(full[1])
		case e.Kind == unstable.KeyValue && e.Value().Kind == unstable.InlineTable:
			for it := e.Value().Children(); it.Next(); {
				add(keyOf(it.Node())[0])
			}
		}
	}
	return order
}

func keyOf(n *unstable.Node) []string {
	var keys []string
	for it := n.Key(); it.Next(); {
		keys = append(keys, string(it.Node().Data))
	}
	return keys
}
