package config

import (
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"aldis/internal/link/profile"
)

// section reads the values of one table; if the table is absent, so are all its values.
type section struct {
	r      *reader
	t      *table
	path   string
	before int // mistakes that were found before this section's own
}

// wrong says whether the section has a mistake, or one of these keys has.
func (s section) wrong(keys ...string) bool {
	return slices.ContainsFunc(s.r.faults[s.before:], func(f *profile.FieldError) bool {
		return keys == nil || slices.Contains(keys, strings.TrimPrefix(f.Key, s.path+"."))
	})
}

func (s section) get(key string) (value, bool) {
	if s.t == nil {
		return value{}, false
	}
	v, ok := s.t.values[key]
	return v, ok
}

func (s section) has(key string) bool {
	_, ok := s.get(key)
	return ok
}

// line is the line of key, or else that of its section.
func (s section) line(key string) int {
	if v, ok := s.get(key); ok {
		return v.line
	}
	if s.t != nil {
		return s.t.line
	}
	return 0
}

func (s section) fail(key, format string, args ...any) {
	s.r.fail(s.line(key), s.path+"."+key, format, args...)
}

// missing reports that a required key is absent; what completes the sentence. It is silent if a line that is not TOML was meant
// to set the key.
func (s section) missing(key, what string) {
	if !s.r.tree.wanted(key) {
		s.fail(key, "is missing%s", what)
	}
}

// text is a string that is not empty; "" if it is absent or wrong.
func (s section) text(key string) string {
	v, ok := s.get(key)
	switch {
	case !ok:
	case v.kind != unstable.String:
		s.fail(key, "must be text in quotes, is %s", v.word())
	case strings.TrimSpace(v.text) == "":
		s.fail(key, "is empty")
	default:
		return v.text
	}
	return ""
}
