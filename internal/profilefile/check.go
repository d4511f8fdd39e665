package profilefile

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func typeOf(v any) reflect.Type { return reflect.TypeOf(v) }

// check holds a node to a Go type by its JSON names and returns what to decode for it. A null is
// an absent field, as it is for the API server.
func (d *decoder) check(path string, n *yaml.Node, t reflect.Type) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, seen := d.lines[path]; !seen {
		d.lines[path] = n.Line
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		d.fail(n.Line, path, "", "it uses a YAML anchor or alias", "write the value out")
		return nil
	}
	if n.Tag == "!!null" {
		return nil
	}
	switch t {
	case typeOf(metav1.Duration{}):
		return d.duration(path, n)
	case typeOf(intstr.IntOrString{}):
		return d.intOrString(path, n)
	case typeOf(metav1.Time{}):
		return d.text(path, n)
	case typeOf(metav1.FieldsV1{}):
		return nil // bookkeeping of the API server, of no use here
	}
	switch t.Kind() {
	case reflect.Struct:
		return d.object(path, n, t)
	case reflect.Map:
		return d.dictionary(path, n, t)
	case reflect.Slice:
		return d.list(path, n, t)
	case reflect.String:
		return d.text(path, n)
	case reflect.Bool:
		return d.boolean(path, n)
	default:
		return d.number(path, n, t)
	}
}

func (d *decoder) object(path string, n *yaml.Node, t reflect.Type) any {
	if n.Kind != yaml.MappingNode {
		d.fail(n.Line, path, scalar(n), "it must have fields of its own", "write its fields on lines of their own, indented: "+strings.Join(names(t), ", "))
		return nil
	}
	fields := fieldsOf(t)
	out := map[string]any{}
	d.pairs(path, n, func(key, value *yaml.Node) {
		at := join(path, key.Value)
		f, ok := fields[key.Value]
		if !ok {
			d.fail(key.Line, join(path, shown(key.Value)), "", "there is no such field", suggestField(key.Value, names(t)))
			return
		}
		d.lines[at] = key.Line
		if v := d.check(at, value, f); v != nil {
			out[key.Value] = v
		}
	})
	return out
}

func (d *decoder) dictionary(path string, n *yaml.Node, t reflect.Type) any {
	if n.Kind != yaml.MappingNode {
		d.fail(n.Line, path, scalar(n), "it must be a mapping", "write key: value pairs")
		return nil
	}
	out := map[string]any{}
	d.pairs(path, n, func(key, value *yaml.Node) {
		at := path + "[" + strconv.Quote(key.Value) + "]"
		d.lines[at] = key.Line
		out[key.Value] = d.check(at, value, t.Elem())
	})
	return out
}

// pairs calls visit for each key once.
func (d *decoder) pairs(path string, n *yaml.Node, visit func(key, value *yaml.Node)) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			d.fail(key.Line, path, "", "a key must be plain text", "write field: value")
			continue
		}
		if line, seen := first[key.Value]; seen {
			d.fail(key.Line, join(path, shown(key.Value)), "", "it is already written in line "+strconv.Itoa(line), "keep one of the two")
			continue
		}
		first[key.Value] = key.Line
		visit(key, value)
	}
}

func (d *decoder) list(path string, n *yaml.Node, t reflect.Type) any {
	if n.Kind != yaml.SequenceNode {
		d.fail(n.Line, path, scalar(n), "it must be a list", "write - in front of each item, or [a, b]")
		return nil
	}
	out := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		at := path + "[" + strconv.Itoa(i) + "]"
		if item.Tag == "!!null" {
			d.fail(item.Line, at, "", "the item is empty", "write its value or remove it")
			continue
		}
		out = append(out, d.check(at, item, t.Elem()))
	}
	return out
}

func (d *decoder) text(path string, n *yaml.Node) any {
	if n.Kind != yaml.ScalarNode {
		d.fail(n.Line, path, "", "it must be text", "write the value on one line")
		return nil
	}
	if n.Tag != "!!str" && n.Tag != "!!timestamp" {
		d.fail(n.Line, path, shown(n.Value), "YAML reads this as "+kindName(n.Tag)+", and text is meant", "put it in quotes")
		return nil
	}
	return n.Value
}

func (d *decoder) boolean(path string, n *yaml.Node) any {
	var b bool
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&b) != nil {
		d.fail(n.Line, path, scalar(n), "it must be true or false", "write true or false, without quotes")
		return nil
	}
	return b
}

func (d *decoder) number(path string, n *yaml.Node, t reflect.Type) any {
	var i int64
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Decode(&i) != nil || reflect.Zero(t).CanInt() && reflect.Zero(t).OverflowInt(i) {
		d.fail(n.Line, path, scalar(n), "it must be a whole number", "write digits, without quotes")
		return nil
	}
	return i
}

func (d *decoder) duration(path string, n *yaml.Node) any {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		if _, err := time.ParseDuration(n.Value); err == nil {
			return n.Value
		}
	}
	d.fail(n.Line, path, scalar(n), "it is not a duration", "write a number with its unit, such as 90s, 10m or 6h")
	return nil
}

func (d *decoder) intOrString(path string, n *yaml.Node) any {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return n.Value
	}
	var i int32
	if n.Kind == yaml.ScalarNode && n.Tag == "!!int" && n.Decode(&i) == nil {
		return i
	}
	d.fail(n.Line, path, scalar(n), "it must be a whole number or a percentage", `write a number such as 2, or a percentage such as "10%"`)
	return nil
}

// scalar returns what is shown of a node that has the wrong type.
func scalar(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	return shown(n.Value)
}

func kindName(tag string) string {
	switch tag {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	default:
		return "something else"
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// lineOf returns the line of a field, or of the nearest one around it that is in the file.
func (d *decoder) lineOf(path string) int {
	for {
		if line, ok := d.lines[path]; ok || path == "" {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}
