package jxtabridge

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// step is the state that all parts share: configuration, counters, messages given to the link, and the Step under way.
type step struct {
	cfg   Config
	me    string // unique value of the gateway
	stats Stats
	now   time.Time
	out   *site.Output
	wake  time.Time // when something is due
	token uint64    // counts messages to peers, and messages of the gateway itself
	given uint64    // counts messages of streams and secure pipes to far sites
	// fates are called when the far site has the message with this token, or will never get it.
	fates map[uint64]func(refused bool)
}

// until asks to be woken at t at the latest; zero: never.
func (s *step) until(t time.Time) {
	s.wake = due.Earliest(s.wake, t)
}

func (s *step) post(o site.Order) { s.out.Orders = append(s.out.Orders, o) }

// ordered sorts the orders of the Step by their kinds: a connection's last message goes before its end.
func ordered(orders []site.Order) []site.Order {
	slices.SortStableFunc(orders, func(a, b site.Order) int { return cmp.Compare(rank(a), rank(b)) })
	return orders
}

func rank(o site.Order) int {
	switch o.(type) {
	case Welcome:
		return 0
	case Send:
		return 1
	case Shout:
		return 2
	case Dial:
		return 3
	case Close:
		return 4
	}
	return 5 // Gate
}

// announceItem gives far sites an item of this site.
func (s *step) announceItem(it site.Item) { s.out.Items = append(s.out.Items, it) }

// done finishes the far message with this token.
func (s *step) done(token uint64) { s.out.Done = append(s.out.Done, token) }

// carry gives a message to the link.
func (s *step) carry(sites []uint16, m site.Message) {
	s.stats.Carried++
	s.out.Carry = append(s.out.Carry, site.Carry{Sites: sites, Message: m})
}

// give is carry with a fate.
func (s *step) give(siteID uint16, m site.Message, fate func(refused bool)) {
	s.given++
	m.Token = s.given
	s.fates[m.Token] = fate
	s.carry([]uint16{siteID}, m)
}

// fate passes on the outcome of a message that was given to the link.
func (s *step) fate(ev site.Fate) {
	if f := s.fates[ev.Token]; f != nil {
		delete(s.fates, ev.Token)
		f(ev.Failed())
	}
}

// remember saves v, as JSON, so that it survives restarts.
func (s *step) remember(key string, v any) {
	value, err := json.Marshal(v)
	if err != nil {
		panic("jxtabridge: memory of plain values: " + err.Error())
	}
	s.record(key, value)
}

// record saves value, so that it survives restarts.
func (s *step) record(key string, value []byte) {
	s.out.Remember = append(s.out.Remember, site.Memory{Key: key, Value: value})
}

func (s *step) forget(key string) { s.record(key, nil) }

// undelivered ends the far message with this token, because a peer here did not get it.
func undelivered(s *step, token uint64, why site.Why, peer string) {
	s.stats.FarUndeliverable++
	s.out.Undelivered = append(s.out.Undelivered, site.Undelivered{Token: token, Why: why, For: peer})
}

func (s *step) note(level, text string, attrs ...any) {
	s.out.Notes = append(s.out.Notes, site.Note{Level: level, Text: text, Attrs: attrs})
}

// complain counts what a peer got wrong; the log shows the first few of each connection.
func (s *step) complain(c *conn, reason string, err error) {
	s.stats.Refused[reason]++
	const shown = 5
	c.complaints++
	if c.complaints > shown {
		return
	}
	attrs := []any{"reason", reason, "peer", c.unique, "remote", c.remote}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	if c.complaints == shown {
		attrs = append(attrs, "further", "only counted")
	}
	s.note("warn", "message refused", attrs...)
}
