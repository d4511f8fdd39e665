package profilefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// maxSize of a profile's file in bytes; a profile with 2,000 entries of the greatest length has
// about as much.
const maxSize = 2 << 20

// Load reads a ProxyProfile from a YAML or JSON file, fills in the defaults and validates it as an
// API server would. Its error is an *Error when the content is at fault.
func Load(path string) (*v1alpha1.ProxyProfile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading profile: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading profile %q: %w", path, err)
	}
	return Parse(path, data)
}

// Parse is Load for a file's content; name stands for the file in errors.
func Parse(name string, data []byte) (*v1alpha1.ProxyProfile, error) {
	d := &decoder{file: name, lines: map[string]int{}}
	root, err := d.document(data)
	if err != nil {
		return nil, err
	}
	profile, err := d.profile(root)
	if err != nil {
		return nil, err
	}
	v1alpha1.SetDefaults(profile)
	for _, fe := range v1alpha1.Validate(profile) {
		d.problems = append(d.problems, Problem{Line: d.lineOf(fe.Path), FieldError: fe})
	}
	return profile, d.err()
}

// decoder reads one file.
type decoder struct {
	file string
	// lines of the fields that were read, by path.
	lines    map[string]int
	problems []Problem
}

func (d *decoder) fail(line int, path, found, problem, fix string) {
	d.problems = append(d.problems, Problem{Line: line, FieldError: v1alpha1.FieldError{Path: path, Found: found, Problem: problem, Fix: fix}})
}

func (d *decoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	return &Error{File: d.file, Problems: d.problems}
}

// document returns the root of the only document.
func (d *decoder) document(data []byte) (*yaml.Node, error) {
	if len(data) > maxSize {
		d.fail(0, "", "", fmt.Sprintf("it is larger than %d bytes", maxSize), "give a profile")
		return nil, d.err()
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		d.fail(0, "", "", "it is empty", "write a ProxyProfile")
		return nil, d.err()
	case err != nil:
		line, problem := syntaxProblem(err)
		d.fail(line, "", "", problem, "check the indentation and the quoting there")
		return nil, d.err()
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		d.fail(more.Line, "", "", "it holds more than one document", "give one profile per file")
		return nil, d.err()
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		d.fail(doc.Line, "", "", "it is not a YAML mapping", "write a ProxyProfile")
		return nil, d.err()
	}
	return doc.Content[0], nil
}

// profile checks the nodes against the types and decodes them.
func (d *decoder) profile(root *yaml.Node) (*v1alpha1.ProxyProfile, error) {
	d.typeMeta(root)
	if err := d.err(); err != nil {
		return nil, err
	}
	profile := &v1alpha1.ProxyProfile{}
	value := d.check("", root, typeOf(profile))
	if err := d.err(); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("reading profile %q: %w", d.file, err)
	}
	if err := json.Unmarshal(raw, profile); err != nil {
		// Everything that has a type was checked above, so this is one of metadata's own formats.
		d.fail(root.Line, "metadata", "", "it cannot be decoded", "keep metadata.name and remove the rest")
		return nil, d.err()
	}
	return profile, nil
}

// typeMeta demands the kind and version that are read here before anything else is judged.
func (d *decoder) typeMeta(root *yaml.Node) {
	for _, want := range [][2]string{
		{"apiVersion", v1alpha1.GroupVersion().String()},
		{"kind", "ProxyProfile"},
	} {
		key, value := lookup(root, want[0])
		switch {
		case value == nil:
			d.fail(root.Line, want[0], "", "it is missing", "write "+want[0]+": "+want[1])
		case value.Value != want[1]:
			d.fail(key.Line, want[0], shown(value.Value), "this is not what is read here", "write "+want[0]+": "+want[1])
		}
	}
}

func lookup(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}
