package gateway

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/forecast"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/site"
)

// ClassOrder is the operator's order to hold all messages of this site that have a precedence, those that wait and those that
// come, or to release them. The answer is kept under Ref, as that to a MessageOrder.
type ClassOrder struct {
	Ref        uint64
	Precedence site.Precedence
	Do         MessageDo // DoHold or DoRelease
	By         string    // the operator who gave it
}

// GatewayEvent marks ClassOrder as an event of the gateway.
func (ClassOrder) GatewayEvent() {}

// hold is an order to hold a precedence.
type hold struct {
	since time.Time
	by    string
}

// bucketStanding of the journal: precedence -> since when, in milliseconds, and by whom.
const bucketStanding = "standing"

func (h hold) append(b []byte) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(h.since.UnixMilli())), h.by[:min(len(h.by), 200)]...)
}

func (s *orders) restore(key, value []byte) error {
	if len(key) != 1 || site.Precedence(key[0]) > site.Deferred || len(value) < 8 {
		return mail.ErrRecord
	}
	s.put(site.Precedence(key[0]), hold{time.UnixMilli(int64(binary.BigEndian.Uint64(value))).UTC(), string(value[8:])})
	return nil
}

func (s *orders) put(p site.Precedence, h hold) {
	if s.holds == nil {
		s.holds = map[site.Precedence]hold{}
	}
	s.holds[p] = h
}

// sweepMost is for how many messages one turn of the loop carries out an order about all.
const sweepMost = 2000

// obeyClass notes the order, and begins with the messages that wait. It holds the newest first: a list loses its last at no cost.
func (s *orders) obeyClass(now time.Time, o ClassOrder) {
	for len(s.left) > 0 { // the order before
		s.step(now)
	}
	h := hold{now.UTC().Round(0), o.By}
	key := []byte{byte(o.Precedence)}
	if before, is := s.holds[o.Precedence]; o.Do == DoHold && !is {
		s.put(o.Precedence, h)
		s.services.Record(bucketStanding, key, h.append(nil))
	} else if o.Do == DoRelease && is {
		delete(s.holds, o.Precedence)
		s.services.Record(bucketStanding, key, nil)
	} else {
		o.By = before.by
	}
	s.sweep, s.done, s.under = o, 0, 0
	s.left = s.store.IDs(nil)
	slices.Sort(s.left)
	if o.Do == DoRelease {
		slices.Reverse(s.left)
	}
	s.step(now)
}

// step carries out the last order as far as one turn has room, and answers when all is done.
func (s *orders) step(now time.Time) {
	o := s.sweep
	if o.Ref == 0 {
		return
	}
	from := max(0, len(s.left)-sweepMost)
	for _, id := range slices.Backward(s.left[from:]) {
		if held := s.orderable(id); held != nil {
			done, under := s.all(now, held, o)
			s.done, s.under = s.done+done, s.under+under
		}
	}
	s.left = s.left[:from]
	if len(s.left) > 0 {
		return
	}
	s.add(MessageAnswer{Ref: o.Ref, Known: true, Obeyed: true, Changed: true, Text: s.words()})
	s.services.Note("info", "an order for all messages of a precedence was carried out", "precedence", o.Precedence.String(), "order", string(o.Do), "by", o.By, "messages", s.done)
	s.sweep, s.left = ClassOrder{}, nil
}

// all carries out an order about all messages on one of them, for the recipients for which it has that precedence.
func (s *orders) all(now time.Time, held *mail.Message, o ClassOrder) (done, under int) {
	for _, id := range held.Recipients() {
		e := held.For(id)
		so, waits := s.reach(e, MessageOrder{Do: o.Do})
		switch {
		case e.Content.Payload.Precedence != o.Precedence:
		case so && o.Do == DoHold:
			done = 1
		case !so && waits:
			done = 1
			s.store.Lives.Note(held.ID, history.Event{What: history.Ordered, Peer: id, Detail: fmt.Sprintf("%s all %s, by %s", o.Do, o.Precedence, o.By)})
			s.act(now, e, MessageOrder{Do: o.Do}) // holding has no error
		case !so:
			under = 1
		}
	}
	return done, under
}

// words says what came of the last order.
func (s *orders) words() string {
	o, text := s.sweep, ""
	switch {
	case o.Do == DoHold:
		text = fmt.Sprintf("%s messages are held until they are released, also those that come: ", o.Precedence)
		if s.done == 0 {
			text += "none waits now"
		} else {
			text += fmt.Sprintf("%d held now, and their lifetimes run", s.done)
		}
	case s.done == 0:
		return fmt.Sprintf("%s messages are not held any more: none was waiting", o.Precedence)
	default:
		text = fmt.Sprintf("%s messages are not held any more: %d released", o.Precedence, s.done)
	}
	if s.under > 0 {
		text += fmt.Sprintf("; %d under way: what is under way goes through as it is", s.under)
	}
	return text
}

// heed holds the message that was accepted last, if an order holds its precedence.
func (s *orders) heed(now time.Time) {
	held := s.store.Newest()
	if held == nil || held.Ended() || !s.takes(held.Content.Payload) {
		return
	}
	p := held.Content.Payload.Precedence
	s.all(now, held, ClassOrder{Precedence: p, Do: DoHold, By: s.holds[p].by})
}

// takes says whether a message like this is held when it comes.
func (s *orders) takes(m *site.Message) bool {
	return m != nil && s.has(m.Precedence) && !s.adapters.describe(m).Stream
}

func (s *orders) has(p site.Precedence) bool {
	_, is := s.holds[p]
	return is
}

// precede holds or releases a message that was given another precedence, where an order holds one of the two.
func (s *orders) precede(now time.Time, e *mail.Entry, was site.Precedence) {
	is := e.Content.Payload.Precedence
	if s.has(was) == s.has(is) || e.OnHold == s.has(is) {
		return
	}
	do := DoRelease
	if s.has(is) {
		do = DoHold
	}
	s.act(now, e, MessageOrder{Do: do}) // holding has no error
}

// due is when step has something to do; zero: never.
func (s *orders) due(now time.Time) (at time.Time) {
	if len(s.left) > 0 {
		return now
	}
	return at
}

// status is the orders that stand, the most urgent precedence first, with what they hold for these sites.
func (s *orders) status(sites []forecast.Site) (list []api.HoldStatus) {
	for _, p := range slices.SortedFunc(maps.Keys(s.holds), func(a, b site.Precedence) int { return b.Rank() - a.Rank() }) {
		row := api.HoldStatus{Precedence: p.String(), Since: s.holds[p].since, By: s.holds[p].by}
		for i := range sites {
			row.Messages += sites[i].Box.HeldBack(p.Rank())
		}
		list = append(list, row)
	}
	return list
}

// orderable is a message in custody about which orders may be given: not one of a stream, whose parts keep their order; nil: there
// is none.
func (s *orders) orderable(id uint64) *mail.Message {
	held := s.store.Get(id)
	if held == nil || held.Ended() || held.Content.Payload == nil || s.adapters.describe(held.Content.Payload).Stream {
		return nil
	}
	return held
}
