package config

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pelletier/go-toml/v2/unstable"
)

// key is a line of the schema.
type key struct {
	name string // as in the file; a derived value has the name that Changes shows
	slot
	doc string // for docs/configure.md, without default and bounds; "": the doc of the next key covers both
}

// slot says where the value of a key goes, and how it is read, shown and compared.
type slot struct {
	to     any                         // pointer to the value; nil: nothing compares or writes it
	read   func(s section, key string) // reads a key that is there; nil: the value is derived from the key above
	preset func()                      // sets the value of an absent key; nil: the zero value
	show   func() string               // the value as in the file; nil: plain shows it
	absent string                      // the default for docs/configure.md, as in the file or in words; "": none
	bounds string                      // for docs/configure.md
	quoted bool                        // the file has the value in quotes
	lack   string                      // follows "is missing" in the error
	must   bool                        // the key is required
	live   bool                        // a reload applies another value
	listen bool                        // the gateway listens at this address over TCP
	hidden bool                        // Changes does not show the value
}

// required marks a key that has to be there.
func (k slot) required() slot { k.must = true; return k }

// atOnce marks a key whose new value a reload applies.
func (k slot) atOnce() slot { k.live = true; return k }

// listens marks an address where the gateway listens over TCP.
func (k slot) listens() slot { k.listen = true; return k }

// secret marks a value that Changes does not show.
func (k slot) secret() slot { k.hidden = true; return k }

// usually sets the default that docs/configure.md shows.
func (k slot) usually(absent string) slot { k.absent = absent; return k }

// also adds a check of the value that was read.
func (k slot) also(check func(s section, key string)) slot {
	read := k.read
	k.read = func(s section, key string) { read(s, key); check(s, key) }
	return k
}

// value is the value that to points to.
func (k slot) value() any { return reflect.ValueOf(k.to).Elem().Interface() }

// String is the value as it stands in the file, without quotes.
func (k slot) String() string {
	if k.show != nil {
		return k.show()
	}
	return plain(k.value())
}

// derived is a value that comes from the key above it, such as the key in a key file.
func derived(to any) slot { return slot{to: to} }

func text(to *string) slot {
	return slot{to: to, quoted: true, read: func(s section, key string) { *to = s.text(key) }}
}

// path is a file or directory; a relative one starts at the configuration's directory.
func path(to *string) slot {
	return text(to).also(func(s section, _ string) { *to = s.r.resolve(*to) })
}

// printable is a short text for people.
func printable(to *string) slot {
	return text(to).also(func(s section, key string) {
		if len(*to) > 64 || strings.ContainsFunc(*to, func(c rune) bool { return !unicode.IsPrint(c) }) {
			s.fail(key, "must be at most 64 printable octets, is %q", *to)
			*to = ""
		}
	})
}

func boolean(to *bool) slot {
	return slot{to: to, read: func(s section, key string) {
		v, _ := s.get(key)
		if v.kind != unstable.Bool {
			s.fail(key, "must be true or false, is %s", v.word())
		}
		*to = v.kind == unstable.Bool && v.text == "true"
	}}
}

// whole is a number from least to most; it is set to absent if it is missing or wrong.
func whole[T int | int64 | uint16 | float64](to *T, absent T, least, most int64) slot {
	k := slot{to: to, preset: func() { *to = absent }}
	if absent != 0 {
		k.absent = fmt.Sprint(absent)
	}
	if most < math.MaxInt32 { // a greater bound is not worth showing
		k.bounds = fmt.Sprintf("%d–%d", least, most)
	}
	k.read = func(s section, key string) {
		v, _ := s.get(key)
		n, err := strconv.ParseInt(strings.TrimPrefix(v.text, "+"), 0, 64)
		if v.kind != unstable.Integer || err != nil || n < least || n > most {
			s.fail(key, "must be a whole number from %d to %d, is %s", least, most, v.word())
			return
		}
		*to = T(n)
	}
	return k
}

// amount is a number that is not negative.
func amount(to *float64) slot {
	return slot{to: to, read: func(s section, key string) {
		v, _ := s.get(key)
		n, err := strconv.ParseFloat(strings.TrimPrefix(v.text, "+"), 64)
		if v.kind != unstable.Integer && v.kind != unstable.Float || err != nil || !(n >= 0) || math.IsInf(n, 0) {
			s.fail(key, "must be a number from 0 on, is %s", v.word())
			return
		}
		*to = n
	}}
}

// id is the number of a node.
func id(to *uint16) slot { return whole(to, 0, 1, 65535).required() }

// duration is "0s" or a time from least to most; it is set to absent if it is missing or wrong.
func duration(to *time.Duration, absent, least, most time.Duration) slot {
	k := slot{to: to, quoted: true, preset: func() { *to = absent }, bounds: brief(least) + "–" + brief(most)}
	k.show = func() string { return brief(*to) }
	if absent != 0 {
		k.absent = brief(absent)
	}
	k.read = func(s section, key string) {
		text := s.text(key)
		if text == "" {
			return
		}
		d, err := time.ParseDuration(text)
		if err != nil || d != 0 && d < least || d > most {
			s.fail(key, "must be \"0s\" or a time from \"%v\" to \"%v\" with its unit, like \"20s\", is %q", least, most, text)
			return
		}
		*to = d
	}
	return k
}

// brief is a duration as people write it: 24h, not 24h0m0s.
func brief(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func address(to *netip.AddrPort) slot {
	return slot{to: to, quoted: true, read: func(s section, key string) {
		text := s.text(key)
		if text == "" {
			return
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
			*to = a
		}
	}}
}

// reached is an address that others dial; why has a placeholder for what it must not be.
func reached(to *netip.AddrPort, why string) slot {
	return address(to).also(func(s section, key string) {
		if to.IsValid() && to.Addr().IsUnspecified() {
			s.fail(key, why, to.Addr())
		}
	})
}

// multicast is a group and its port.
func multicast(to *netip.AddrPort, absent netip.AddrPort) slot {
	k := address(to).also(func(s section, key string) {
		if a := to.Addr(); to.IsValid() && (!a.Is4() || !a.IsMulticast()) {
			s.fail(key, "%s is no IPv4 multicast address (224.0.0.0 to 239.255.255.255)", a)
		}
	})
	k.preset = func() { *to = absent }
	if absent.IsValid() {
		k.absent = absent.String()
	}
	return k
}

// word is one of several words.
func word(to *string, absent string, words ...string) slot {
	return choice(to, absent, words, words...)
}

// choice is one of the words, and sets the value at the same index; absent is a word, or "" for the zero value.
func choice[T comparable](to *T, absent string, words []string, values ...T) slot {
	k := pick(absent, words, func(word string) {
		if i := slices.Index(words, word); i >= 0 {
			*to = values[i]
		}
	})
	k.to, k.show = to, func() string {
		if i := slices.Index(values, *to); i >= 0 {
			return words[i]
		}
		return plain(*to)
	}
	return k
}

// pick passes one of the words, or absent, to set.
func pick(absent string, words []string, set func(string)) slot {
	all := strings.Join(words, `", "`)
	k := slot{quoted: true, absent: absent, bounds: "`" + strings.Join(words, "`, `") + "`", lack: `: one of "` + all + `"`}
	k.preset = func() { set(absent) }
	k.read = func(s section, key string) {
		text := s.text(key)
		if text != "" && !slices.Contains(words, text) {
			s.fail(key, "must be one of \"%s\", is %q", all, text)
			return
		}
		set(text)
	}
	return k
}

// list is texts with commas between them; add takes each. A TOML array of strings is also accepted.
func list(to any, add func(s section, key, text string)) slot {
	return slot{to: to, quoted: true, read: func(s section, key string) {
		if v, _ := s.get(key); v.kind == unstable.Array {
			if len(v.list) == 0 {
				s.fail(key, "must be a list of texts in quotes")
			}
			for _, text := range v.list {
				add(s, key, text)
			}
			return
		}
		for text := range strings.SplitSeq(s.text(key), ",") {
			text = strings.TrimSpace(text)
			if text != "" {
				add(s, key, text)
			}
		}
	}}
}

// parsed is a text that parse turns into a value. format is the message for a mistake: it gets parse's error and then the text.
func parsed[T any](to *T, format string, parse func(string) (T, error)) slot {
	return slot{to: to, quoted: true, read: func(s section, key string) {
		text := s.text(key)
		if text == "" {
			return
		}
		v, err := parse(text)
		if err != nil {
			s.fail(key, format, err, text)
			return
		}
		*to = v
	}}
}

// far is the id of a peer, given by name or id.
func far(to *uint16) slot {
	return slot{to: to, quoted: true, read: func(s section, key string) {
		if text := s.text(key); text != "" {
			*to = s.r.site(s, key, text)
		}
	}}
}
