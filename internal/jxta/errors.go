package jxta

import "errors"

// Errors that a ParseError wraps.
var (
	ErrShort    = errors.New("ends too early")
	ErrTooLong  = errors.New("exceeds a limit")
	ErrMismatch = errors.New("has an unexpected value")
	ErrSyntax   = errors.New("is not well-formed")
	ErrMissing  = errors.New("is missing")
)

// ParseError names the structure and the field, in the spelling of the protocol, that could not be read or written.
type ParseError struct {
	What  string // "message", "jxta:PA"
	Field string // "elementCount", "PID"
	Err   error
}

// Error names the format, the field and the cause.
func (e *ParseError) Error() string { return "jxta: " + e.What + ": " + e.Field + " " + e.Err.Error() }

// Unwrap is the cause.
func (e *ParseError) Unwrap() error { return e.Err }

func fail(what, field string, err error) error { return &ParseError{what, field, err} }
