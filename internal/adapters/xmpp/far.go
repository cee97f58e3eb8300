package xmpp

import (
	"fmt"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// farMessage takes a message from another site.
func (f *Adapter) farMessage(now time.Time, m site.FarMessage) {
	c := f.componentAt(m.Site)
	if c == nil || len(m.Message.Parts) != 1 {
		f.farTrouble(now, m, code.ErrMalformed)
		return
	}
	data := m.Message.Parts[0].Data
	if m.Message.Published && m.Message.Topic != topicOutcome {
		f.rooms.farLine(now, m, data)
		return
	}
	if m.Message.Published {
		f.farOutcome(now, m, data)
		return
	}
	from, ok := localOf(m.Message.From)
	to, ok2 := localOf(m.Message.To)
	if !ok || !ok2 || from != m.Message.From || to != m.Message.To {
		f.farTrouble(now, m, code.ErrMalformed)
		return
	}
	far, here := jid{local: from, domain: c.site.Domain}, jid{local: to, domain: f.cfg.Domain}
	if code.IsSubscription(data) {
		s, err := code.ParseSubscription(data)
		if err != nil {
			f.farTrouble(now, m, err)
			return
		}
		f.presence.farSubscription(now, c, from, to, s)
		f.handOver(now, c, m, stanza.New(ns, "presence", "from", far.String(), "to", here.String(), "type", code.Subscriptions[s]), 0)
		return
	}
	s, err := code.ParseMessage(data)
	if room := s.Get(code.Invite); err == nil && room != "" {
		if j, ok := parseJID(room); !ok || j.local == "" {
			err = code.ErrMalformed
		}
	}
	if err != nil || s.Kind == code.Group || !stanza.Printable(s.Body) {
		f.farTrouble(now, m, code.ErrMalformed)
		return
	}
	f.uploads.offered(now, m.Site, &s)
	n := f.numbers[m.Site]
	n.came(theirs{s.Number, m.Message.ID, from, to})
	ref := ""
	if s.About != code.Nothing {
		if ref = n.id(s.Ref); ref == "" {
			s.About = code.Nothing
		}
	}
	f.trouble.Count("far_messages")
	f.handOver(now, c, m, elementOf(&s, far.String(), here.String(), m.Message.ID, ref), s.Number+1)
}

// handOver gives the server a stanza made from a far message. number is the number of the message plus 1; 0: it has none.
func (f *Adapter) handOver(now time.Time, c *component, m site.FarMessage, e stanza.Element, number uint16) {
	if f.hold(c, e, held{token: m.Token, site: m.Site, number: number, until: m.Until}) {
		return
	}
	f.out.Undelivered = append(f.out.Undelivered, site.Undelivered{Token: m.Token, Why: site.NoRoom})
	if number != 0 {
		f.tell(now, m.Site, code.Outcome{Number: number - 1, Became: code.Failed, Reason: code.ReasonOf("resource-constraint")})
	}
}

// farOutcome tells clients here what became of their messages at a far site.
func (f *Adapter) farOutcome(now time.Time, m site.FarMessage, data []byte) {
	list, err := code.ParseOutcomes(data)
	if err != nil {
		f.farTrouble(now, m, err)
		return
	}
	type stanzaOn struct {
		*component
		stanza.Element
	}
	var all []stanzaOn
	for i, o := range list {
		if c, e, ok := f.outcome(m, o, i); ok {
			all = append(all, stanzaOn{c, e})
		} else {
			f.trouble.Count("outcome_late")
		}
	}
	for i, s := range all {
		if last := i == len(all)-1; last {
			f.handOver(now, s.component, m, s.Element, 0)
		} else {
			f.hold(s.component, s.Element, held{until: m.Until})
		}
	}
	if len(all) == 0 {
		f.out.Done = append(f.out.Done, m.Token)
	}
}

// outcome is the stanza for the sender of a message, the i-th of a far message; false: the message was forgotten.
func (f *Adapter) outcome(m site.FarMessage, o code.Outcome, i int) (c *component, e stanza.Element, ok bool) {
	numbers := f.numbers[m.Site]
	c = f.componentAt(m.Site)
	if o.Became == code.Barred {
		numbers, c = f.numbers[0], f.roomsAt(m.Site)
	}
	mine := numbers.find(func(m *ours) bool { return m.number() == o.Number })
	if c == nil || mine == nil || mine.id == "" && o.Became < code.Failed {
		return nil, e, false
	}
	if o.Became >= code.Failed {
		return c, failed(c, mine, o.Reason.String(), "the server of "+c.domain+" did not take the message"), true
	}
	e = stanza.New(ns, "message", "from", jid{local: mine.to, domain: c.domain}.String(), "to", mine.from.String(), "id", fmt.Sprint(m.Message.ID, "-", i), "type", typeOf[mine.kind])
	if o.Became == code.Received {
		return c, e.With(stanza.New(nsReceipts, "received", "id", mine.id)), true
	}
	return c, e.With(stanza.New(nsMarkers, "displayed", "id", mine.id)), true
}
