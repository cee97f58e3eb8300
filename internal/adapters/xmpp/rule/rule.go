// Package rule holds the operator's decisions about XMPP: which data cross to which site, and which go first. The first rule
// that matches decides. The package is pure.
package rule

import (
	"fmt"
	"time"

	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// Kinds of data that may cross, as the configuration writes them.
const (
	Message      = "message" // from one user to another
	Room         = "room"    // a line in a room
	Presence     = "presence"
	Subscription = "subscription" // a request or an answer about a subscription to presence
	PubSub       = "pubsub"       // an item of a node (XEP-0060, 0163)
	File         = "file"         // the file of a message (XEP-0363)
)

// Kinds are all kinds.
var Kinds = []string{Message, Room, Presence, Subscription, PubSub, File}

// Rule is one rule of the operator. Empty conditions fit everything; texts are patterns, in which * stands for anything.
type Rule struct {
	Label string
	Line  int // of the configuration

	Kind        string
	From        string // bare JID; for a line in a room of this site the nick; for a node its user or service
	To          string // bare JID of the receiver, or of the room; or the node
	Mark        string // the text that a security label displays (XEP-0258)
	Site        uint16 // the receiving site; 0: any
	Least, Most int    // octets that go to custody; 0: any

	Local      bool             // it stays on this LAN
	Precedence *site.Precedence // nil: routine
	Expires    time.Duration    // how long it may wait for the link; 0: xmpp.life
}

// String names the rule for operators.
func (r *Rule) String() string {
	if r.Label != "" {
		return fmt.Sprintf("%q (line %d)", r.Label, r.Line)
	}
	return fmt.Sprintf("line %d", r.Line)
}

// Subject describes data that may cross, for rules.
type Subject struct {
	Kind, From, To, Mark string
	Site                 uint16
	Octets               int
}

// Misses says which condition the subject does not meet, by its key in the configuration; "" when the rule fits.
func (r *Rule) Misses(s *Subject) string {
	switch {
	case r.Kind != "" && r.Kind != s.Kind:
		return "kind"
	case r.From != "" && !filter.Match(r.From, s.From):
		return "from"
	case r.To != "" && !filter.Match(r.To, s.To):
		return "to"
	case r.Mark != "" && !filter.Match(r.Mark, s.Mark):
		return "mark"
	case r.Site != 0 && r.Site != s.Site:
		return "site"
	case s.Octets < r.Least:
		return "octets_min"
	case r.Most != 0 && s.Octets > r.Most:
		return "octets_max"
	}
	return ""
}

// Judge returns the first rule that fits; nil: none does.
func Judge(rules []Rule, s *Subject) *Rule {
	for i := range rules {
		if rules[i].Misses(s) == "" {
			return &rules[i]
		}
	}
	return nil
}
