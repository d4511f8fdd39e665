package cli

import (
	"errors"
	"fmt"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// The exit codes of every verb; a verb with more says so in its help.
const (
	ExitOK      = 0
	ExitFailure = 1
	// ExitBadInput: what was given is wrong or incomplete; nothing was changed.
	ExitBadInput = 2
)

// BadInputError says that what the caller gave cannot be used, and that nothing was changed.
type BadInputError struct{ Err error }

// Error implements error.
func (e *BadInputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *BadInputError) Unwrap() error { return e.Err }

// BadInput returns a *BadInputError with a message made as by fmt.Errorf.
func BadInput(format string, args ...any) error {
	return &BadInputError{Err: fmt.Errorf(format, args...)}
}

// ExitError ends a verb with a code of its own.
type ExitError struct {
	Code int
	// Err is nil when everything has been said already.
	Err error
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("ending with exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode returns the code that an error stands for: its own for an *ExitError, 2 for bad input
// (a *BadInputError, or fields of a profile that cannot be used), 1 for any other, 0 for nil.
func ExitCode(err error) int {
	var exit *ExitError
	var bad *BadInputError
	var fields v1alpha1.FieldErrors
	var field v1alpha1.FieldError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &bad), errors.As(err, &fields), errors.As(err, &field):
		return ExitBadInput
	default:
		return ExitFailure
	}
}

// Said reports whether the verb has told the person everything, so that nothing is left to print.
func Said(err error) bool {
	var exit *ExitError
	return errors.As(err, &exit) && exit.Err == nil
}
