package gateway

import (
	"fmt"
	"strings"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/site"
)

// MessageOrder is the operator's order about one message of this site. The answer is kept under Ref for the caller that asks
// with it (Messages.Answer).
type MessageOrder struct {
	Ref        uint64
	Message    uint64
	Do         MessageDo
	Precedence site.Precedence // with DoPrecede
	By         string          // the operator who gave it
}

// MessageDo is what is ordered.
type MessageDo string

// What may be ordered.
const (
	DoHold    MessageDo = "hold"
	DoRelease MessageDo = "release"
	DoCancel  MessageDo = "cancel"
	DoPrecede MessageDo = "precedence"
)

// GatewayEvent marks MessageOrder as an event of the gateway.
func (MessageOrder) GatewayEvent() {}

// MessageAnswer says what came of an order.
type MessageAnswer struct {
	Ref     uint64
	Known   bool // there is such a message
	Obeyed  bool // the order is fulfilled now, for one recipient at least
	Changed bool // and was not before
	Text    string
}

// orders are the orders of operators about messages: the answers to the last ones, and the standing orders to hold a
// precedence.
type orders struct {
	store    *mail.Store
	services orderRoad
	adapters *adapters // which say what is a stream
	carrier  func(*mail.Peer) mail.Orders
	answers  []MessageAnswer
	holds    map[site.Precedence]hold
	sweep    ClassOrder // the last order about a precedence, until all is done; Ref 0: it is
	left     []uint64   // IDs of messages that it may concern
	done     int        // messages for which it is fulfilled
	under    int        // messages that are under way somewhere
}

// orderRoad is the part of the gateway that orders need.
type orderRoad interface {
	journal
	log
	TellFates(now time.Time)
	siteName(peer uint16) string // for people
}

const mostAnswers = 64

func (s *orders) add(answer MessageAnswer) {
	s.answers = append(s.answers[max(0, len(s.answers)-mostAnswers+1):], answer)
}

func (s *orders) answer(ref uint64) (MessageAnswer, bool) {
	for _, a := range s.answers {
		if a.Ref == ref {
			return a, true
		}
	}
	return MessageAnswer{}, false
}

func (s *orders) name(peer uint16) string { return s.services.siteName(peer) }

// apply carries out an order about a message, as far as it can, and answers in words.
func (s *orders) apply(now time.Time, o MessageOrder) {
	a := s.try(now, o)
	a.Ref = o.Ref
	s.add(a)
}

// parted are the names of a message's recipients, by what an order can do for them.
type parted struct {
	entries []*mail.Entry // those where it does something
	acts    []string
	same    []string // those where it is so already
	through []string // those to which it is under way
}

func (s *orders) try(now time.Time, o MessageOrder) MessageAnswer {
	name := history.Name(o.Message)
	held := s.store.Get(o.Message)
	if held == nil || held.Ended() || held.Content.Payload == nil {
		if l := s.store.Lives.Get(o.Message); l != nil {
			return MessageAnswer{Known: true, Text: fmt.Sprintf("message %s has ended, and nothing changes that: %s", name, s.ends(l))}
		}
		return MessageAnswer{Text: fmt.Sprintf("no message %s is known here: it ended before this start, or long ago, or never was", name)}
	}
	if s.orderable(o.Message) == nil {
		return MessageAnswer{Known: true, Text: fmt.Sprintf("message %s is a part of a stream (a BiDi pipe or a socket), whose parts keep their order: it goes as it is", name)}
	}
	p := s.part(held, o)
	if len(p.entries) == 0 {
		return MessageAnswer{Known: true, Obeyed: len(p.same) > 0, Text: p.words(name, o)}
	}
	what := string(o.Do)
	if o.Do == DoPrecede {
		what = o.Precedence.String()
	}
	s.store.Lives.Note(o.Message, history.Event{What: history.Ordered, Detail: what + ", by " + o.By})
	for _, e := range p.entries {
		was := e.Content.Payload.Precedence
		if err := s.act(now, e, o); err != nil {
			return MessageAnswer{Known: true, Text: fmt.Sprintf("message %s stays as it is: %v", name, err)}
		}
		s.precede(now, e, was)
	}
	if o.Do == DoPrecede {
		s.store.Lives.Mark(o.Message, o.Precedence)
	}
	s.services.TellFates(now)
	s.services.Note("info", "an order for a message was carried out", "message", name, "order", what, "by", o.By, "peers", strings.Join(p.acts, ", "))
	return MessageAnswer{Known: true, Obeyed: true, Changed: true, Text: p.words(name, o)}
}

// part says what an order does for which recipient.
func (s *orders) part(held *mail.Message, o MessageOrder) (p parted) {
	for _, id := range held.Recipients() {
		e, name := held.For(id), s.name(id)
		switch so, waits := s.reach(e, o); {
		case so:
			p.same = append(p.same, name)
		case !waits:
			p.through = append(p.through, name)
		default:
			p.entries, p.acts = append(p.entries, e), append(p.acts, name)
		}
	}
	return p
}

// reach says whether an order is fulfilled for a recipient already, and whether it can be.
func (s *orders) reach(e *mail.Entry, o MessageOrder) (so, waits bool) {
	orders := s.carrier(e.Peer)
	waits = orders.Waits(e)
	switch o.Do {
	case DoHold:
		so, waits = e.OnHold, waits && !e.Tried()
	case DoRelease:
		so = !e.OnHold && waits
	case DoPrecede:
		so = e.Content.Payload.Precedence == o.Precedence
	case DoCancel:
		waits = (waits || !orders.Whole(e)) && !e.Tried()
	}
	return so, waits
}

// act carries out an order for one recipient. Where a message has one number for several, the first call does it for all.
func (s *orders) act(now time.Time, e *mail.Entry, o MessageOrder) error {
	orders := s.carrier(e.Peer)
	switch o.Do {
	case DoHold, DoRelease:
		orders.Hold(now, e, o.Do == DoHold)
	case DoCancel:
		if e.For(e.Peer.ID) == e { // otherwise an earlier one has cancelled it
			orders.Cancel(now, e)
		}
	case DoPrecede:
		if e.Content.Payload.Precedence != o.Precedence {
			return orders.Precede(now, e, o.Precedence)
		}
	}
	return nil
}

// words says what came of an order.
func (p parted) words(name string, o MessageOrder) string {
	var parts []string
	say := func(sites []string, text string) {
		if len(sites) > 0 {
			parts = append(parts, fmt.Sprintf(text, strings.Join(sites, ", ")))
		}
	}
	switch o.Do {
	case DoHold:
		say(p.acts, "it is held: it does not go to %s until it is released, and its lifetime runs")
		say(p.same, "for %s it was held already")
	case DoRelease:
		say(p.acts, "it is released: it goes to %s in its turn")
		say(p.same, "for %s it was not held")
	case DoCancel:
		say(p.acts, "it is cancelled: it does not go to %s any more")
	case DoPrecede:
		say(p.acts, "it goes to %s as "+o.Precedence.String())
		say(p.same, "for %s it is "+o.Precedence.String()+" already")
	}
	say(p.through, "to %s it is under way: it goes through as it is, for nobody here can know whether it has arrived")
	return "message " + name + ": " + strings.Join(parts, "; ")
}

// ends says how a message has ended.
func (s *orders) ends(l *history.Life) string {
	var parts []string
	for _, f := range l.Fates {
		text := s.name(f.Peer) + ": " + string(f.State)
		if !f.Since.IsZero() {
			text += " at " + f.Since.UTC().Format(time.RFC3339)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
