package config

import (
	"math"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

var messageKeys = []string{"label", "group", "pipe", "peer", "element", "type", "octets_min", "octets_max", "content", "precedence", "expires", "wait", "supersede", "supersede_pattern"}

// How long a far message may wait for local peers that are away.
const (
	minWait = time.Second
	maxWait = 365 * 24 * time.Hour
)

// readDelivery reads how long far messages wait for local peers that are away, and how many octets of them.
func (r *reader) readDelivery() {
	s, d := section{r, r.tree.tables["delivery"], "delivery"}, &r.cfg.Delivery
	d.Wait = s.duration("wait", 24*time.Hour, minWait, maxWait)
	if d.Wait == 0 {
		s.fail("wait", "must be at least %v: messages that arrive while a peer redials would be lost", minWait)
	}
	d.MaxOctets = s.integer("max_octets", 64<<20, 64<<10, 16<<30)
	d.MaxOctetsOfPeer = s.integer("max_octets_per_peer", max(16<<10, d.MaxOctets/4), 16<<10, 16<<30)
	if d.MaxOctetsOfPeer > d.MaxOctets && d.MaxOctets > 0 {
		s.fail("max_octets_per_peer", "is more than delivery.max_octets, which is for all peers together: %d", d.MaxOctets)
	}
}

// readMessages reads how urgent messages are, how long they are worth sending, and what they replace.
func (r *reader) readMessages() {
	for i, t := range r.tree.arrays["message"] {
		s := section{r, t, "message"}
		if i == maxFilters {
			r.fail(t.line, "message", "there are more than %d rules", maxFilters)
			return
		}
		rule := mark.Rule{
			Line: t.line, Label: s.printable("label", false), Group: filterID(s, "group", "group", jxta.KindGroup), Peer: filterID(s, "peer", "peer", jxta.KindPeer),
			Pipe: filterID(s, "pipe", "pipe", jxta.KindPipe), Element: s.text("element", false), Type: s.text("type", false),
			Least: s.integer("octets_min", 0, 1, math.MaxInt32), Most: s.integer("octets_max", 0, 1, math.MaxInt32),
			Expires: s.duration("expires", 0, time.Second, 365*24*time.Hour), Wait: s.duration("wait", 0, minWait, maxWait), Supersede: s.text("supersede", false), Content: s.condition(),
		}
		if rule.Most != 0 && rule.Least > rule.Most {
			s.fail("octets_min", "the rule can never match: nothing has at least %d and at most %d octets", rule.Least, rule.Most)
		}
		rule.Precedence, _ = site.ParsePrecedence(s.choice("precedence", "routine", site.Precedences...))
		if text := s.text("supersede_pattern", false); text != "" {
			var err error
			if rule.Pattern, err = mark.ParsePattern(text); err != nil {
				s.fail("supersede_pattern", "%q %v; like \"TRK;{key};*\"", text, err)
			}
			if rule.Supersede == "" {
				s.fail("supersede_pattern", "needs supersede: the name of the element that it is for")
			}
		}
		for _, e := range r.cfg.Messages {
			if !e.Covers(rule) {
				continue
			}
			r.fail(t.line, "message", "the rule can never match: that of line %d comes first and takes all that it fits", e.Line)
			break
		}
		r.cfg.Messages = append(r.cfg.Messages, rule)
	}
}
