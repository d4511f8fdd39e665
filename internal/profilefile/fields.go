package profilefile

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// fieldsOf returns the fields of a struct by their JSON names, those of inlined structs included.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && (f.Anonymous || options == "inline"):
			maps.Copy(out, fieldsOf(f.Type))
		case name != "" && name != "-":
			out[name] = f.Type
		}
	}
	return out
}

func names(t reflect.Type) []string { return slices.Sorted(maps.Keys(fieldsOf(t))) }

// suggestField says which field was probably meant, or which there are.
func suggestField(wrong string, known []string) string {
	best, distance := "", len(wrong)
	for _, name := range known {
		if n := editDistance(strings.ToLower(wrong), strings.ToLower(name)); n < distance {
			best, distance = name, n
		}
	}
	if best != "" && distance <= max(1, len(wrong)/2) {
		return "write " + best
	}
	return "the fields here are " + strings.Join(known, ", ")
}

// editDistance counts the insertions, deletions and substitutions between two texts.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
