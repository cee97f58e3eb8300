package config

import (
	"github.com/pelletier/go-toml/v2/unstable"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// section reads the values of one table; of a table that is absent everything is.
type section struct {
	r    *reader
	t    *table
	path string
}

func (s section) get(key string) (value, bool) {
	if s.t == nil {
		return value{}, false
	}
	v, ok := s.t.values[key]
	return v, ok
}

// line is where key stands, or else its section.
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

// missing reports a key that has to be there, unless a line that is not TOML was meant to set it.
func (s section) missing(key string) {
	if !s.r.tree.wanted(key) {
		s.fail(key, "is missing")
	}
}

// text is a string that is not empty; "" after a mistake or where it is absent.
func (s section) text(key string, required bool) string {
	v, ok := s.get(key)
	switch {
	case !ok && required:
		s.missing(key)
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

func (s section) id() uint16 {
	if _, ok := s.get("id"); !ok {
		s.missing("id")
		return 0
	}
	return uint16(s.integer("id", 0, 1, 65535))
}

func (s section) name(required bool) string { return s.printable("name", required) }

// printable is a short text for people.
func (s section) printable(key string, required bool) string {
	name := s.text(key, required)
	if len(name) > 64 || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		s.fail(key, "must be at most 64 printable octets, is %q", name)
		return ""
	}
	return name
}

// flag is true or false; false where it is absent or after a mistake.
func (s section) flag(key string) bool {
	v, ok := s.get(key)
	if ok && v.kind != unstable.Bool {
		s.fail(key, "must be true or false, is %s", v.word())
		return false
	}
	return ok && v.text == "true"
}

// integer is a number from least to most; absent after a mistake.
func (s section) integer(key string, absent, least, most int) int {
	v, ok := s.get(key)
	if !ok {
		return absent
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(v.text, "+"), 0, 64)
	if v.kind != unstable.Integer || err != nil || n < int64(least) || n > int64(most) {
		s.fail(key, "must be a whole number from %d to %d, is %s", least, most, v.word())
		return absent
	}
	return int(n)
}

func (s section) address(key string, required bool) netip.AddrPort {
	text := s.text(key, required)
	if text == "" {
		return netip.AddrPort{}
	}
	a, err := netip.ParseAddrPort(text)
	switch {
	case err != nil && strings.HasPrefix(text, ":"):
		s.fail(key, "must be an address and a port, is %q; for all addresses of this machine write \"0.0.0.0%s\"", text, text)
	case err != nil:
		s.fail(key, "must be an IP address and a port, like \"10.20.0.1:9701\", is %q", text)
	case a.Port() == 0:
		s.fail(key, "needs a port from 1 to 65535, is %q", text)
	default:
		return a
	}
	return netip.AddrPort{}
}

// duration is "0s" or a time from least to most; absent after a mistake.
func (s section) duration(key string, absent, least, most time.Duration) time.Duration {
	text := s.text(key, false)
	if text == "" {
		return absent
	}
	d, err := time.ParseDuration(text)
	if err != nil || d != 0 && d < least || d > most {
		s.fail(key, "must be \"0s\" or a time from \"%v\" to \"%v\" with its unit, like \"20s\", is %q", least, most, text)
		return absent
	}
	return d
}

// choice is one of the words; "" after a mistake.
func (s section) choice(key, absent string, words ...string) string {
	if _, ok := s.get(key); !ok {
		return absent
	}
	text := s.text(key, false)
	if text != "" && !slices.Contains(words, text) {
		s.fail(key, "must be one of \"%s\", is %q", strings.Join(words, `", "`), text)
		return ""
	}
	return text
}
