// Package route applies the operator's [[route]] rules: which bearers a message may take to a site, and how soon it should arrive.
// The rules are applied for each recipient whenever the gateway chooses a bearer, so the journal stores nothing of their result.
package route

import (
	"slices"
	"time"

	"aldis/internal/site"
)

// Rule is one of the operator's rules: conditions, where empty ones match everything, and their effect on a message.
type Rule struct {
	Line       int               // of the configuration
	Label      string            // for people
	Precedence []site.Precedence // nil: any
	Least      int               // octets
	Most       int               // 0: any
	Longest    time.Duration     // of the message's whole lifetime; 0: any, also unlimited
	Sites      []uint16          // that the message is for; nil: any

	Links  []string      // names of the bearers that the message may take; nil: any
	Within time.Duration // how soon it should arrive; 0: before it expires, and from flash precedence on as soon as possible
	Beyond bool          // it may take a link that has used its octets of the day
}

// Subject is a message for one site, as rules see it.
type Subject struct {
	Precedence site.Precedence
	Octets     int           // of its parts
	Lifetime   time.Duration // from acceptance to expiry; 0: unlimited
	Site       uint16
}

// Of describes a message that was accepted at a time, which is zero if it is unknown.
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

// fits says whether the rule matches a message.
func (r *Rule) fits(s Subject) bool {
	return (r.Precedence == nil || slices.Contains(r.Precedence, s.Precedence)) && (r.Sites == nil || slices.Contains(r.Sites, s.Site)) &&
		s.Octets >= r.Least && (r.Most == 0 || s.Octets <= r.Most) && (r.Longest == 0 || s.Lifetime != 0 && s.Lifetime <= r.Longest)
}

// Judge is the first rule that matches; nil: none does.
func Judge(rules []Rule, s Subject) *Rule {
	if i := slices.IndexFunc(rules, func(r Rule) bool { return r.fits(s) }); i >= 0 {
		return &rules[i]
	}
	return nil
}

// Takes says whether a message of the rule may take a bearer; a nil rule allows any.
func (r *Rule) Takes(link string) bool {
	return r == nil || r.Links == nil || slices.Contains(r.Links, link)
}

// Covers says that r matches every message that o matches.
func (r *Rule) Covers(o *Rule) bool {
	return within(r.Precedence, o.Precedence) && within(r.Sites, o.Sites) && r.Least <= o.Least &&
		(r.Most == 0 || o.Most != 0 && o.Most <= r.Most) && (r.Longest == 0 || o.Longest != 0 && o.Longest <= r.Longest)
}

// within says that wide contains all of narrow; a nil list contains everything.
func within[T comparable](wide, narrow []T) bool {
	return wide == nil || narrow != nil && !slices.ContainsFunc(narrow, func(v T) bool { return !slices.Contains(wide, v) })
}
