package mark

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"aldis/internal/rules/filter"
	"aldis/internal/rules/query"
	"aldis/internal/site"
)

// Rule is one of the operator's rules: conditions, where empty ones match everything, and the marks for a message.
type Rule struct {
	Line    int    // of the configuration
	Label   string // for people
	Group   string // unique values
	Pipe    string
	Peer    string          // the sender
	Element string          // pattern of an element's name; Element and Type must match the same element
	Type    string          // pattern of an element's MIME type
	Least   int             // octets
	Most    int             // 0: any
	Content query.Condition // on the content of an element; Content, Element and Type must match the same one

	Precedence site.Precedence
	Expires    time.Duration // 0: never
	Wait       time.Duration // how long a far message waits for local peers that are away; 0: the usual time
	LastValue  string        // name of the element with the key; "": nothing is replaced
	Pattern    *Pattern      // finds the key in that element's data; nil: all of the data is the key
	Links      []string      // names of the bearers that the message may take; nil: any
	Open       string        // group to which the message goes instead of to sites; "": none
}

// fits says whether the rule matches a message.
func (r *Rule) fits(pl *site.Message, s *site.Subject) bool {
	if r.Group != "" && r.Group != pl.Scope || r.Pipe != "" && r.Pipe != s.Topic || r.Peer != "" && r.Peer != pl.From ||
		s.Octets < r.Least || r.Most != 0 && s.Octets > r.Most {
		return false
	}
	if r.Element == "" && r.Type == "" && r.Content.Zero() {
		return true
	}
	for _, e := range pl.Parts {
		if r.Content.Fits(e.Data, filter.Match) && (r.Element == "" || filter.Match(r.Element, e.Name)) && (r.Type == "" || filter.Match(r.Type, mime(e.Type))) {
			return true
		}
	}
	return false
}

// mime is a MIME type without parameters.
func mime(t string) string {
	t, _, _ = strings.Cut(t, ";")
	return strings.TrimSpace(t)
}

// maxKey is the longest key, in octets; longer data is no key: it would be text, not a name.
const maxKey = 256

// Mark gives a message the marks of the first rule that matches; s is its adapter's description of it. Messages of streams are
// not marked: they keep their order and all of their blocks, and are routine.
func Mark(rules []Rule, now time.Time, pl *site.Message, s *site.Subject) {
	i := Judge(rules, pl, s)
	if i < 0 {
		return
	}
	r := &rules[i]
	pl.Precedence, pl.Links, pl.Open = r.Precedence, strings.Join(r.Links, ","), r.Open
	if r.Expires > 0 {
		pl.Expires = now.Add(r.Expires)
	}
	pl.LastValue, pl.Key = "", 0
	if key, ok := r.key(pl); ok {
		pl.LastValue = key
		pl.Key = hash(key)
	}
}

// Route sets the bearers of a message again after a restart: the journal does not store them.
func Route(rules []Rule, pl *site.Message, s *site.Subject) {
	if i := Judge(rules, pl, s); i >= 0 {
		pl.Links = strings.Join(rules[i].Links, ",")
	}
}

// Judge returns the index of the rule that matches a message; -1: none.
func Judge(rules []Rule, pl *site.Message, s *site.Subject) int {
	if len(rules) == 0 || s.Stream || s.Ordered {
		return -1
	}
	return slices.IndexFunc(rules, func(r Rule) bool { return r.fits(pl, s) })
}

// Wait is how long a far message waits for local peers that are away: the time of the first rule that matches, or else usual.
func Wait(rules []Rule, usual time.Duration, pl *site.Message, s *site.Subject) time.Duration {
	if i := Judge(rules, pl, s); i >= 0 && rules[i].Wait > 0 {
		return rules[i].Wait
	}
	return usual
}

// Remark restores the text of a key if only its hash is known, as after a start.
func Remark(rules []Rule, pl *site.Message, s *site.Subject) {
	if pl.Key == 0 {
		return
	}
	again := *pl
	Mark(rules, time.Time{}, &again, s)
	if again.Key == pl.Key {
		pl.LastValue = again.LastValue
	}
}

// key names the subject of a message: from one sender on one pipe, the same key means the same subject.
func (r *Rule) key(pl *site.Message) (string, bool) {
	if r.LastValue == "" {
		return "", false
	}
	for _, e := range pl.Parts {
		if e.Name != r.LastValue {
			continue
		}
		key := e.Data
		if r.Pattern != nil {
			var ok bool
			if key, ok = r.Pattern.Key(e.Data); !ok {
				return "", false
			}
		}
		if len(key) == 0 || len(key) > maxKey {
			return "", false
		}
		return strings.Join([]string{pl.Scope, pl.Topic, pl.From, pl.To, pl.Service, pl.Param, string(key)}, site.KeyEnd), true
	}
	return "", false
}

// hash is 24 bits of a hash, never 0, which means no key.
func hash(key string) uint32 {
	h := sha256.Sum256([]byte(key))
	return max(1, uint32(h[0])<<16|uint32(h[1])<<8|uint32(h[2]))
}

// Pattern finds a key in an element's data: literal text, "*" for anything, and "{key}" once. Each wildcard takes as little as
// it can. The pattern must match all of the data, so it usually ends in "*".
type Pattern struct {
	parts []part // in order; literals and wildcards
	key   int    // index of the part that is the key
}

type part struct {
	literal string
	wild    bool // "*" or "{key}"
}

const keyWord = "{key}"

// String is the pattern in the form of the configuration.
func (p *Pattern) String() (text string) {
	for i, x := range p.parts {
		switch {
		case i == p.key:
			text += keyWord
		case x.wild:
			text += "*"
		default:
			text += x.literal
		}
	}
	return text
}

// maxPattern is the longest pattern, in octets.
const maxPattern = 256

// ParsePattern reads "TRK;{key};*" or "*<id>{key}</id>*".
func ParsePattern(text string) (*Pattern, error) {
	before, after, some := strings.Cut(text, keyWord)
	switch {
	case !some:
		return nil, fmt.Errorf("has no {key}")
	case strings.Contains(after, keyWord):
		return nil, fmt.Errorf("has more than one {key}")
	case len(text) > maxPattern:
		return nil, fmt.Errorf("is longer than %d octets", maxPattern)
	case strings.HasSuffix(before, "*") || strings.HasPrefix(after, "*"):
		return nil, fmt.Errorf("has * beside {key}: where would the key begin or end?")
	}
	p := &Pattern{}
	add := func(text string) {
		for i, literal := range strings.Split(text, "*") {
			if i > 0 {
				p.parts = append(p.parts, part{wild: true})
			}
			if literal != "" {
				p.parts = append(p.parts, part{literal: literal})
			}
		}
	}
	add(before)
	p.key = len(p.parts)
	p.parts = append(p.parts, part{wild: true})
	add(after)
	return p, nil
}

// Key finds the key. It takes time proportional to the data, at worst multiplied by the length of the pattern.
func (p *Pattern) Key(data []byte) ([]byte, bool) {
	text := string(data)
	var key string
	for i := 0; i < len(p.parts); i++ {
		if !p.parts[i].wild {
			rest, ok := strings.CutPrefix(text, p.parts[i].literal)
			if !ok {
				return nil, false
			}
			text = rest
			continue
		}
		at, next := len(text), ""
		last := i == len(p.parts)-1
		if !last && !p.parts[i+1].wild {
			next = p.parts[i+1].literal
			if i+1 == len(p.parts)-1 { // it must end the data
				if !strings.HasSuffix(text, next) {
					return nil, false
				}
				at = len(text) - len(next)
				if i == p.key { // the key is as short as possible: it ends at the first occurrence, which must be the last
					if strings.Index(text, next) != at {
						return nil, false
					}
				}
			} else if at = strings.Index(text, next); at < 0 {
				return nil, false
			}
		} else if !last {
			at = 0
		}
		if i == p.key {
			key = text[:at]
		}
		text = text[at:]
	}
	return []byte(key), text == ""
}

// Covers says that r matches every message that o matches.
func (r Rule) Covers(o Rule) bool {
	within := func(wide, narrow string) bool { return wide == "" || wide == narrow }
	pattern := func(wide, narrow string) bool {
		return wide == "" || narrow != "" && filter.PatternCovers(wide, narrow)
	}
	// Two patterns must match the same element, so one of them alone says nothing about a rule that has the other.
	elements := r.Element == "" && r.Type == "" && r.Content.Zero() ||
		pattern(r.Element, o.Element) && pattern(r.Type, o.Type) && (r.Content.Zero() || r.Content == o.Content)
	return within(r.Group, o.Group) && within(r.Pipe, o.Pipe) && within(r.Peer, o.Peer) && elements &&
		r.Least <= o.Least && (r.Most == 0 || o.Most != 0 && o.Most <= r.Most)
}
