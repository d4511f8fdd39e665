package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Validate says what an API server with Proxyward's CRDs would refuse about a profile. What it lets
// pass, Resolve judges further.
func Validate(p *ProxyProfile) FieldErrors {
	v := &validator{rules: map[string][]Rule{}, limits: map[string]Limit{}}
	for _, r := range Rules() {
		v.rules[r.Path] = append(v.rules[r.Path], r)
	}
	for _, l := range Limits() {
		v.limits[l.Path] = l
	}
	if msgs := validation.IsDNS1123Subdomain(p.Name); len(msgs) > 0 {
		v.fail("metadata.name", p.Name, "it is not a name for an object", "write lower-case letters, digits, dots and dashes, such as corp")
	}
	v.visit("spec", "spec", reflect.ValueOf(p.Spec))
	return v.errs
}

// validator walks one profile. In its methods schema is the path of a field in the schema, and path
// the same with the indexes of the items on the way.
//
// +kubebuilder:object:generate=false
type validator struct {
	rules  map[string][]Rule
	limits map[string]Limit
	errs   FieldErrors
}

func (v *validator) fail(path, found, problem, fix string) {
	v.errs = append(v.errs, FieldError{Path: path, Found: found, Problem: problem, Fix: fix})
}

// visit judges a value that is present, and all that it holds.
func (v *validator) visit(schema, path string, val reflect.Value) {
	if val.Kind() == reflect.Pointer {
		val = val.Elem()
	}
	v.limit(schema, path, val)
	switch leaf := val.Interface().(type) {
	case metav1.Duration:
		v.judge(schema, path, leaf.Duration.String(), leaf.Duration)
		return
	case intstr.IntOrString:
		v.judge(schema, path, leaf.String(), leaf)
		return
	}
	switch val.Kind() {
	case reflect.String:
		v.judge(AnyText, path, val.String(), val.String())
		v.judge(schema, path, val.String(), val.String())
	case reflect.Struct:
		v.judge(schema, path, "", val.Interface())
		for i := range val.NumField() {
			v.field(schema, path, val.Type().Field(i), val.Field(i))
		}
	case reflect.Slice:
		for i := range val.Len() {
			v.visit(schema+"[]", path+"["+strconv.Itoa(i)+"]", val.Index(i))
		}
	case reflect.Map:
		for _, key := range slices.SortedFunc(slices.Values(val.MapKeys()), compareKeys) {
			at := path + "[" + strconv.Quote(key.String()) + "]"
			v.judge(AnyText, at, key.String(), key.String())
			v.visit(schema+"{}", at, val.MapIndex(key))
		}
	}
}

func compareKeys(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }

// field visits a field of a struct unless it is absent, which only required ones must not be.
func (v *validator) field(schema, path string, f reflect.StructField, val reflect.Value) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	schema, path = schema+"."+name, path+"."+name
	absent := val.IsZero() && (strings.Contains(options, "omit") || v.limits[schema].Required)
	if !absent {
		v.visit(schema, path, val)
		return
	}
	if v.limits[schema].Required {
		fix := "write it"
		if schema == "spec.nodeSelector" {
			fix = "write the labels of the nodes, such as {matchLabels: {pool: workers}}, or {} for every node"
		}
		v.fail(path, "", "it is required", fix)
	}
}

// judge runs the rules of one schema path.
func (v *validator) judge(schema, path, found string, value any) {
	for _, r := range v.rules[schema] {
		if !r.good(value) {
			v.fail(path, shown(found), r.Problem, r.Fix)
		}
	}
}

// limit holds a value to its schema's own bounds.
func (v *validator) limit(schema, path string, val reflect.Value) {
	l, ok := v.limits[schema]
	if !ok {
		return
	}
	switch val.Kind() {
	case reflect.String:
		s := val.String()
		if n := utf8.RuneCountInString(s); l.MaxLength > 0 && n > l.MaxLength {
			v.fail(path, shown(s), fmt.Sprintf("it has %d characters", n), fmt.Sprintf("write at most %d", l.MaxLength))
		}
		if len(l.Enum) > 0 && !slices.Contains(l.Enum, s) {
			v.fail(path, shown(s), "there is no such value", "write "+oneOf(l.Enum))
		}
	case reflect.Slice, reflect.Map:
		if n := val.Len(); l.MaxItems > 0 && n > l.MaxItems {
			v.fail(path, "", fmt.Sprintf("it has %d items", n), fmt.Sprintf("write at most %d", l.MaxItems))
		}
		v.unique(l, path, val)
	case reflect.Int32:
		n := int32(val.Int())
		if l.Minimum != nil && n < *l.Minimum || l.Maximum != nil && n > *l.Maximum {
			v.fail(path, strconv.Itoa(int(n)), "it is out of bounds", "write "+l.bounds())
		}
	}
}

// unique fails for each item that says the same as one before it.
func (v *validator) unique(l Limit, path string, val reflect.Value) {
	if !l.Unique && l.UniqueBy == "" {
		return
	}
	first := map[string]int{}
	for i := range val.Len() {
		at, key := fmt.Sprintf("%s[%d]", path, i), val.Index(i)
		if l.UniqueBy != "" {
			at, key = at+"."+l.UniqueBy, fieldByJSON(key, l.UniqueBy)
		}
		if j, seen := first[key.String()]; seen {
			v.fail(at, shown(key.String()), fmt.Sprintf("it says the same as item %d of the list", j), "remove one of the two")
			continue
		}
		first[key.String()] = i
	}
}

func fieldByJSON(val reflect.Value, name string) reflect.Value {
	return val.FieldByNameFunc(func(field string) bool {
		f, _ := val.Type().FieldByName(field)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return tag == name
	})
}

func (l Limit) bounds() string {
	if l.Maximum == nil {
		return fmt.Sprintf("a number from %d", *l.Minimum)
	}
	return fmt.Sprintf("a number from %d to %d", *l.Minimum, *l.Maximum)
}

// maxShown is how many bytes of a found value are shown.
const maxShown = 120

// shown returns a found value as it may be printed: masked where it can hold credentials, and not
// endlessly long.
func shown(s string) string {
	if strings.Contains(s, "@") || strings.Contains(s, "://") {
		s = MaskURL(s)
	}
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}

func oneOf(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	return strings.Join(values[:len(values)-1], ", ") + " or " + values[len(values)-1]
}
