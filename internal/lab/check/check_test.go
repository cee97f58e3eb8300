package check

import (
	"errors"
	"fmt"
	"testing"
)

var errNo = errors.New("no")

// said collects the failures that a test would report.
type said []string

func (s *said) Helper() {}

func (s *said) Errorf(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

func (s *said) Fatalf(format string, args ...any) {
	*s = append(*s, "fatal: "+fmt.Sprintf(format, args...))
}

// Each expectation that fails reports one failure, and one that holds reports none.
func TestWhatFailuresSay(t *testing.T) {
	for _, tt := range []struct {
		do   func(t T) bool
		want string
	}{
		{func(t T) bool { return Equal(t, "len", 2, 2) }, ""},
		{func(t T) bool { return Equal(t, "len", 2, 3) }, "len is 2, want 3"},
		{func(t T) bool { return Equal(t, "name", "a", "b") }, `name is "a", want "b"`},
		{func(t T) bool { return Differ(t, "key", 0, 1) }, ""},
		{func(t T) bool { return Differ(t, "key", 0, 0) }, "key is 0, want another"},
		{func(t T) bool { return Same(t, "list", []int{1}, []int{1}) }, ""},
		{func(t T) bool { return Same(t, "list", []int{1}, []int{2}) }, "list is [1], want [2]"},
		{func(t T) bool { return NoError(t, nil) }, ""},
		{func(t T) bool { return NoError(t, errNo) }, "error no, want none"},
		{func(t T) bool { return ErrorIs(t, fmt.Errorf("open: %w", errNo), errNo) }, ""},
		{func(t T) bool { return ErrorIs(t, nil, nil) }, ""},
		{func(t T) bool { return ErrorIs(t, nil, errNo) }, "error <nil>, want no"},
		{func(t T) bool { return Contains(t, "log", "abc", "b") }, ""},
		{func(t T) bool { return Contains(t, "log", "abc", "d") }, `log is "abc", want "d" in it`},
		{func(t T) bool { return Lacks(t, "log", "abc", "d") }, ""},
		{func(t T) bool { return Lacks(t, "log", "abc", "b") }, `log is "abc", want no "b" in it`},
		{func(t T) bool { return Prefix(t, "type", "text/plain", "text") }, ""},
		{func(t T) bool { return Prefix(t, "type", "text/plain", "plain") }, `type is "text/plain", want it to begin with "plain"`},
		{func(t T) bool { return True(t, "a < b", true, 3) }, ""},
		{func(t T) bool { return True(t, "a < b", false, 3, "x") }, `want a < b, found 3, found "x"`},
		{func(t T) bool { return Equal(Fatal(t), "len", 2, 3) }, "fatal: len is 2, want 3"},
		{func(t T) bool { return Equal(In(t, "seed", 4), "len", 2, 3) }, "len is 2, want 3; in seed 4"},
		{func(t T) bool { return Equal(Fatal(In(t, "a%")), "len", 2, 3) }, "fatal: len is 2, want 3; in a%"},
		{func(t T) bool { return Equal(In(Fatal(t), "a%"), "len", 2, 3) }, "fatal: len is 2, want 3; in a%"},
	} {
		s := &said{}
		holds := tt.do(s)
		if holds != (tt.want == "") {
			t.Errorf("%q: answers %v", tt.want, holds)
		}
		want := said{tt.want}
		if tt.want == "" {
			want = nil
		}
		if fmt.Sprint(*s) != fmt.Sprint(want) {
			t.Errorf("says %q, want %q", *s, want)
		}
	}
}
