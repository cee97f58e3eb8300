// Package route says by which bearers a message may go to a site, and how soon it should be there: the operator's [[route]] rules.
// They are judged for each recipient whenever the gateway chooses a bearer, so nothing of them is in the journal.
package route

import (
	"slices"
	"time"

	"aldis/internal/site"
)

// Rule is one of the operator's: conditions, of which empty ones fit everything, and what they mean for a message.
type Rule struct {
	Line       int               // of the configuration
	Label      string            // for people
	Precedence []site.Precedence // nil: any
	Least      int               // octets
	Most       int               // 0: any
	Longest    time.Duration     // of the message's whole lifetime; 0: any, and also one without an end
	Sites      []uint16          // that it is for; nil: any

	Links  []string      // names of the bearers that it may take; nil: any
	Within time.Duration // so soon it should be there; 0: before it expires, and from flash precedence on as soon as possible
	Beyond bool          // it may go where a link has used its octets of the day
}

// Subject is a message for one site, as rules see it.
type Subject struct {
	Precedence site.Precedence
	Octets     int           // of its parts
	Lifetime   time.Duration // from acceptance to expiry; 0: it has no end
	Site       uint16
}

// Of describes a message that was accepted at a time, zero where nobody knows.
func Of(m *site.Message, accepted time.Time, to uint16) Subject {
	s := Subject{Precedence: m.Precedence, Site: to}
	for i := range m.Parts {
		s.Octets += len(m.Parts[i].Data)
	}
	if !m.Expires.IsZero() && !accepted.IsZero() {
		s.Lifetime = m.Expires.Sub(accepted)
	}
	return s
}

// fits says whether the rule is about a message.
func (r *Rule) fits(s Subject) bool {
	return (r.Precedence == nil || slices.Contains(r.Precedence, s.Precedence)) && (r.Sites == nil || slices.Contains(r.Sites, s.Site)) &&
		s.Octets >= r.Least && (r.Most == 0 || s.Octets <= r.Most) && (r.Longest == 0 || s.Lifetime != 0 && s.Lifetime <= r.Longest)
}

// Judge is the first rule that fits; nil: none does.
func Judge(rules []Rule, s Subject) *Rule {
	if i := slices.IndexFunc(rules, func(r Rule) bool { return r.fits(s) }); i >= 0 {
		return &rules[i]
	}
	return nil
}

// Takes says whether a message of the rule may take a bearer; nil is no rule.
func (r *Rule) Takes(link string) bool {
	return r == nil || r.Links == nil || slices.Contains(r.Links, link)
}

// Covers says that r fits every message that o fits.
func (r *Rule) Covers(o *Rule) bool {
	return within(r.Precedence, o.Precedence) && within(r.Sites, o.Sites) && r.Least <= o.Least &&
		(r.Most == 0 || o.Most != 0 && o.Most <= r.Most) && (r.Longest == 0 || o.Longest != 0 && o.Longest <= r.Longest)
}

// within says that a list, nil: everything, has all of another.
func within[T comparable](wide, narrow []T) bool {
	return wide == nil || narrow != nil && !slices.ContainsFunc(narrow, func(v T) bool { return !slices.Contains(wide, v) })
}
