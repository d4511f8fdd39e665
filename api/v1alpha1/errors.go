package v1alpha1

import (
	"fmt"
	"strings"
)

// FieldError is one field of a profile that cannot be used, said so that a person can mend it.
//
// +kubebuilder:object:generate=false
type FieldError struct {
	// Path of the field, such as spec.noProxy.entries[3].value.
	Path string
	// Found is the value as it stands, with any credentials masked; empty when there is none.
	Found string
	// Problem says what is wrong with it.
	Problem string
	// Fix says what to write instead.
	Fix string
}

// Error implements error in one line: path, what was found, why it cannot be used, what to write.
func (e FieldError) Error() string {
	var b strings.Builder
	b.WriteString(e.Path)
	if e.Found != "" {
		fmt.Fprintf(&b, ": found %q", e.Found)
	}
	b.WriteString(": ")
	b.WriteString(e.Problem)
	if e.Fix != "" {
		b.WriteString("; ")
		b.WriteString(e.Fix)
	}
	return b.String()
}

// FieldErrors are all fields that cannot be used. As an error it has one line for each.
//
// +kubebuilder:object:generate=false
type FieldErrors []FieldError

// Error implements error.
func (e FieldErrors) Error() string {
	lines := make([]string, len(e))
	for i, fe := range e {
		lines[i] = fe.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns the errors as an error, or nil when there are none.
func (e FieldErrors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}
