package input

import (
	"errors"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
)

// plainError is an error with a shorter text.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }

func (e *plainError) Unwrap() error { return e.err }

// Plain returns the error without the name of the package that it comes from: the user
// of a command has not called it.
func Plain(err error) error {
	var refused *canonicaljson.Error
	if err == nil || !errors.As(err, &refused) {
		return err
	}
	return &plainError{strings.TrimPrefix(err.Error(), "canonicaljson: "), err}
}
