// Package check has functions for the expectations of a test, one to a line, so that a failure says which expectation failed, what was
// found and what was wanted.
//
//	must := check.Fatal(t)
//	check.NoError(must, err)
//	check.Equal(must, "len(found)", len(found), 1)
//	check.Equal(check.In(t, name), "found[0].Life", found[0].Life, time.Hour)
//
// Each function says whether the expectation holds. The package also has waits for a condition, and free addresses for programs that a
// test starts. T stands for *testing.T.
//
// Files: check.go expectations; wait.go waits; vacant.go free addresses.
package check

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// T is the part of a *testing.T that the package needs.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Equal wants got == want.
func Equal[V comparable](t T, what string, got, want V) bool {
	t.Helper()
	if got != want {
		t.Errorf("%s is %s, want %s", what, show(got), show(want))
	}
	return got == want
}

// Differ wants got != not.
func Differ[V comparable](t T, what string, got, not V) bool {
	t.Helper()
	if got == not {
		t.Errorf("%s is %s, want another", what, show(got))
	}
	return got != not
}

// Same wants two values that reflect.DeepEqual takes for one.
func Same(t T, what string, got, want any) bool {
	t.Helper()
	ok := reflect.DeepEqual(got, want)
	if !ok {
		t.Errorf("%s is %s, want %s", what, show(got), show(want))
	}
	return ok
}

// NoError wants err to be nil.
func NoError(t T, err error) bool {
	t.Helper()
	if err != nil {
		t.Errorf("error %v, want none", err)
	}
	return err == nil
}

// ErrorIs wants an error that errors.Is takes for target; nil wants none.
func ErrorIs(t T, err, target error) bool {
	t.Helper()
	ok := errors.Is(err, target)
	if !ok {
		t.Errorf("error %v, want %v", err, target)
	}
	return ok
}

// Contains wants part somewhere in text.
func Contains(t T, what, text, part string) bool {
	t.Helper()
	ok := strings.Contains(text, part)
	if !ok {
		t.Errorf("%s is %q, want %q in it", what, text, part)
	}
	return ok
}

// Lacks wants part nowhere in text.
func Lacks(t T, what, text, part string) bool {
	t.Helper()
	ok := !strings.Contains(text, part)
	if !ok {
		t.Errorf("%s is %q, want no %q in it", what, text, part)
	}
	return ok
}

// Prefix wants text to begin with part.
func Prefix(t T, what, text, part string) bool {
	t.Helper()
	ok := strings.HasPrefix(text, part)
	if !ok {
		t.Errorf("%s is %q, want it to begin with %q", what, text, part)
	}
	return ok
}

// True wants ok, the truth of the statement what; values are those that ok was computed from.
func True(t T, what string, ok bool, values ...any) bool {
	t.Helper()
	if ok {
		return true
	}
	text := ""
	for _, v := range values {
		text += ", found " + show(v)
	}
	t.Errorf("want %s%s", what, text)
	return false
}

// show formats a value for people: texts are quoted.
func show(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case []byte:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%+v", v)
}

// Fatal is a T for which the first failure ends the test.
func Fatal(t T) T { return fatal{t} }

type fatal struct{ T }

func (f fatal) Errorf(format string, args ...any) {
	f.T.Helper()
	f.T.Fatalf(format, args...)
}

// In is a T whose failures say in which case they happened.
func In(t T, of ...any) T { return in{t, fmt.Sprintln(of...)} }

type in struct {
	T
	of string // ends with a newline
}

func (i in) text(format string, args []any) string {
	return fmt.Sprintf(format, args...) + "; in " + i.of[:len(i.of)-1]
}

func (i in) Errorf(format string, args ...any) {
	i.T.Helper()
	i.T.Errorf("%s", i.text(format, args))
}

func (i in) Fatalf(format string, args ...any) {
	i.T.Helper()
	i.T.Fatalf("%s", i.text(format, args))
}

// Only returns the elements of one type from a list, in their order: for example the orders of an adapter that are messages.
func Only[T, O any](list []O) (of []T) {
	for _, o := range list {
		if o, ok := any(o).(T); ok {
			of = append(of, o)
		}
	}
	return of
}
