package main

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// TestLimitsAreTheSchemas holds the table of limits to the schema in both directions.
func TestLimitsAreTheSchemas(t *testing.T) {
	inSchema := map[string]string{}
	spec := newAdmission(t, "proxyprofiles").structural.Properties["spec"]
	collect(inSchema, "spec", &spec, false)
	inTable := map[string]string{}
	for _, l := range v1alpha1.Limits() {
		if _, twice := inTable[l.Path]; twice {
			t.Errorf("%s has two limits", l.Path)
		}
		inTable[l.Path] = describeLimit(l)
	}
	for path, want := range inSchema {
		if got := inTable[path]; got != want {
			t.Errorf("%s: the table says %q, the schema %q", path, got, want)
		}
	}
	for path, got := range inTable {
		if _, ok := inSchema[path]; !ok {
			t.Errorf("%s: the table says %q, the schema nothing", path, got)
		}
	}
}

// describeLimit writes a limit the way that collect writes one of the schema.
func describeLimit(l v1alpha1.Limit) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if l.Required {
		add("required")
	}
	if len(l.Enum) > 0 {
		values := slices.Clone(l.Enum)
		sort.Strings(values)
		add("enum %v", values)
	}
	if l.MaxItems > 0 {
		add("items %d", l.MaxItems)
	}
	if l.MaxLength > 0 {
		add("length %d", l.MaxLength)
	}
	if l.Minimum != nil {
		add("minimum %d", *l.Minimum)
	}
	if l.Maximum != nil {
		add("maximum %d", *l.Maximum)
	}
	if l.Unique {
		add("unique")
	}
	if l.UniqueBy != "" {
		add("unique by %s", l.UniqueBy)
	}
	return strings.Join(out, ", ")
}

// collect describes the limits of a schema and of all below it.
func collect(out map[string]string, path string, s *structuralschema.Structural, required bool) {
	l := v1alpha1.Limit{Path: path}
	if v := s.ValueValidation; v != nil {
		for _, e := range v.Enum {
			l.Enum = append(l.Enum, fmt.Sprint(e.Object))
		}
		for from, to := range map[*int64]*int{v.MaxItems: &l.MaxItems, v.MaxProperties: &l.MaxItems, v.MaxLength: &l.MaxLength} {
			if from != nil {
				*to = int(*from)
			}
		}
		for from, to := range map[*float64]**int32{v.Minimum: &l.Minimum, v.Maximum: &l.Maximum} {
			if from != nil {
				n := int32(*from)
				*to = &n
			}
		}
	}
	if s.XListType != nil {
		l.Unique = *s.XListType == "set"
		if *s.XListType == "map" {
			l.UniqueBy = strings.Join(s.XListMapKeys, ",")
		}
	}
	// proxy itself is required too; that it names a proxy is a rule of its own.
	l.Required = required && path != "spec.proxy"
	if text := describeLimit(l); text != "" {
		out[path] = text
	}
	for name, prop := range s.Properties {
		collect(out, path+"."+name, &prop, s.ValueValidation != nil && slices.Contains(s.ValueValidation.Required, name))
	}
	if s.Items != nil {
		collect(out, path+"[]", s.Items, false)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		collect(out, path+"{}", s.AdditionalProperties.Structural, false)
	}
}
