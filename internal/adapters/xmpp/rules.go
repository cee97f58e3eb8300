package xmpp

import (
	"slices"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// judge asks the rules about a subject: it returns the subject's mark, or the rule that keeps it here.
func (s *step) judge(now time.Time, about rule.Subject) (mark site.Mark, keeps *rule.Rule) {
	mark.Expires = now.Add(s.cfg.Life)
	r := rule.Judge(s.cfg.Rules, &about)
	switch {
	case r == nil:
		return mark, nil
	case r.Local:
		s.trouble.Count("kept_by_rule")
		return mark, r
	}
	if r.Precedence != nil {
		mark.Precedence = *r.Precedence
	}
	if r.Expires > 0 {
		mark.Expires = now.Add(r.Expires)
	}
	return mark, nil
}

// judged puts a message into custody for the sites to which the rules let it go: one Carry for all with the same mark.
func (s *step) judged(now time.Time, about rule.Subject, to []uint16, m site.Message) {
	var groups []site.Carry
	for _, id := range to {
		about.Site = id
		mark, keeps := s.judge(now, about)
		if keeps != nil {
			continue
		}
		i := slices.IndexFunc(groups, func(g site.Carry) bool {
			return g.Message.Precedence == mark.Precedence && g.Message.Expires.Equal(mark.Expires)
		})
		if i < 0 {
			i, groups = len(groups), append(groups, site.Carry{Message: m})
			groups[i].Message.Mark = mark
		}
		groups[i].Sites = append(groups[i].Sites, id)
	}
	s.out.Carry = append(s.out.Carry, groups...)
}

// SubjectOf is the subject of a client's stanza for the rules, with the octets that go to custody; false: nothing in it crosses.
func SubjectOf(e *stanza.Element) (s rule.Subject, ok bool) {
	from, ok := parseJID(e.Get("from"))
	to, ok2 := parseJID(e.Get("to"))
	s = rule.Subject{From: from.bare(), To: to.bare()}
	kind := e.Get("type")
	switch {
	case !ok || !ok2 || kind == "error":
		return s, false
	case e.Name == "message":
		m := saidIn(e)
		s.Kind, s.Mark, s.Octets = rule.Message, m.Get(code.Label), len(m.Append(nil))
		if m.Kind == code.Group {
			s.Kind = rule.Room
		}
		return s, !m.empty()
	case e.Name == "presence" && slices.Contains(code.Subscriptions, kind):
		s.Kind, s.Octets = rule.Subscription, 1
		return s, true
	case e.Name == "presence" && kind == "":
		s.Kind, s.Octets = rule.Presence, len(presenceIn(e).Append(nil))
		return s, true
	}
	return s, false
}
