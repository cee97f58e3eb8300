package gateway

import (
	"encoding/binary"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
	"aldis/internal/rules/calendar"
)

// silence is EMCON of this node: it transmits nothing at all, receives, keeps and delivers to its own LAN. Acknowledgements,
// messages and items that it owes go when the silence ends, in as few datagrams as they fit into.
//
// A silence with an end is over when the wall clock has reached that end and, besides, as much time has passed as lay ahead
// when it was ordered: docs/decisions/silence-clock.md.
type silence struct {
	name  string   // of the bearer that is silent; "": all are
	all   *silence // of a bearer: that of the gateway
	fixed bool     // by the configuration: no order ends it
	on    bool     // by the operator's order
	// spent: the bearer's octets of the day are used up; lifted: a message goes beyond them.
	spent, lifted bool
	told          bool // to the edge, that the bearer is silent
	until         time.Time
	left          time.Duration // that must pass after from; only with until
	from          time.Duration // a time of clocks
	fresh         bool          // ordered after the clocks were last heard: left and from are known when they are heard again
	kept          time.Duration // the time of clocks at the last record in the journal
	windows
	clocks
}

// quiet says that nothing may be transmitted.
func (s *silence) quiet() bool { return s.spent && !s.lifted || s.byOrder() }

// byOrder is quiet by an order, a window or the configuration.
func (s *silence) byOrder() bool { return s.itself() || s.all != nil && s.all.quiet() }

// itself is quiet by this silence alone.
func (s *silence) itself() bool { return s.fixed || s.on }

// tell tells the edge of a silence that has begun on a bearer.
func (s *silence) tell(b *bearer, out *api.Output) {
	if on := s.byOrder(); on != s.told {
		if s.told = on; on {
			out.Silent = append(out.Silent, b.index)
		}
	}
}

// key is the silence's key in bucketSilence.
func (s *silence) key() []byte {
	if s.name != "" {
		return []byte(onBearer + s.name)
	}
	return []byte("self")
}

// says is fields of the log, with the bearer's name before them.
func (s *silence) says(attrs ...any) []any {
	if s.name != "" {
		return append([]any{"bearer", s.name}, attrs...)
	}
	return attrs
}

// keepEvery is how often the journal records how much of a silence has passed: a loss of power may add as much to it.
const keepEvery = time.Minute

// clocks are what the node knows of the time that has passed in this run.
type clocks struct {
	began time.Time // of the first Step, by the wall clock
	heard bool
	last  api.Clock
	at    time.Time // the Step that brought last
}

// ran is how long this run has lasted, at least, by the clock that nobody sets.
func (c *clocks) ran(now time.Time) time.Duration {
	if c.heard {
		return c.last.Ran
	}
	return now.Sub(c.began)
}

// wall is what the wall clock says.
func (c *clocks) wall(now time.Time) time.Time {
	if c.heard {
		return c.began.Add(c.last.Ran + c.last.Set)
	}
	return now
}

// reckoned is what the wall clock says, with the time that has passed since the clocks were last heard.
func (c *clocks) reckoned(now time.Time) time.Time {
	if c.heard {
		return c.wall(now).Add(now.Sub(c.at))
	}
	return now
}

// hear takes what the clocks say now.
func (s *silence) hear(now time.Time, c api.Clock) {
	before := s.wall(now)
	s.heard, s.last, s.at = true, c, now
	if wall := s.wall(now); wall.Before(before) {
		s.windows.setBack(wall)
	}
	if s.fresh {
		s.left, s.from, s.fresh = s.until.Sub(s.wall(now)), c.Ran, false
	}
}

// order begins or changes a silence.
func (s *silence) order(now time.Time, until time.Time) {
	s.on, s.until = true, until
	s.left, s.from, s.fresh = 0, 0, false
	if !until.IsZero() {
		s.left, s.from, s.fresh = until.Sub(s.wall(now)), s.ran(now), s.heard
	}
}

// remaining is how long the silence still lasts; only with until.
func (s *silence) remaining(now time.Time) time.Duration {
	return max(s.owed(now), s.until.Sub(s.wall(now)))
}

// owed is how much of the time that lay ahead has not passed yet.
func (s *silence) owed(now time.Time) time.Duration {
	if s.fresh {
		return s.left
	}
	return s.left - (s.ran(now) - s.from)
}

// over says that the silence has reached its end.
func (s *silence) over(now time.Time) bool {
	return s.on && !s.until.IsZero() && s.remaining(now) <= 0
}

// due is when a silence may be over; zero: it has no end.
func (s *silence) due(now time.Time) time.Time {
	switch {
	case !s.on || s.until.IsZero():
		return s.windows.due(s, now)
	case s.fresh:
		return now
	case s.heard: // the clocks are heard when this is due, and not with every event
		return s.at.Add(s.remaining(now))
	}
	return now.Add(s.remaining(now))
}

// begin starts a run: sinceLast is how long ago the last one began, 0 where nobody knows. late is by how much the
// silence then lasts longer than the wall clock would have it.
func (s *silence) begin(now time.Time, sinceLast time.Duration) (late time.Duration) {
	s.clocks = clocks{began: now}
	if !s.on || s.until.IsZero() {
		return 0
	}
	if s.from >= 0 { // noted by a run, which had lasted so long then
		s.left -= max(sinceLast-s.from, 0)
	} else { // by version 0.1, which did not say
		s.left = s.until.Sub(now)
	}
	s.from = 0
	return s.left - s.until.Sub(now)
}

// ends is when an order of silence is over; zero: there is none, or it has no end that is known.
func (s *silence) ends(now time.Time) (at time.Time) {
	if s.on && !s.fixed && !s.until.IsZero() {
		at = now.Add(s.remaining(now))
	}
	return at
}

// wire is the end of the silence as a frame has it.
func (s *silence) wire() uint32 {
	if s.until.IsZero() {
		return 0
	}
	return uint32(s.until.Unix())
}

// append writes the journal's record: on, the end, how much is owed, and how long this run has lasted.
func (s *silence) append(b []byte, now time.Time) []byte {
	on := byte(0)
	if s.on {
		on = 1
	}
	ms := uint64(0)
	if !s.until.IsZero() {
		ms = uint64(s.until.UnixMilli())
	}
	s.kept = s.ran(now)
	b = binary.BigEndian.AppendUint64(append(b, on), ms)
	b = binary.BigEndian.AppendUint64(b, uint64(max(s.owed(now), 0).Milliseconds()))
	return binary.BigEndian.AppendUint64(b, uint64(s.kept.Milliseconds()))
}

// silentUntilOrdered is the record of a silence without an end, in the form of version 0.1.
var silentUntilOrdered = []byte{1, 0, 0, 0, 0, 0, 0, 0, 0}

func parseSilence(b []byte) (s silence, err error) {
	if len(b) != 9 && len(b) != 25 {
		return silence{}, mail.ErrRecord
	}
	s.on, s.from = b[0] != 0, -1
	if ms := binary.BigEndian.Uint64(b[1:]); ms != 0 {
		s.until = time.UnixMilli(int64(ms)).UTC()
	}
	if len(b) == 25 {
		const most = uint64(1<<63-1) / uint64(time.Millisecond)
		left, ran := binary.BigEndian.Uint64(b[9:]), binary.BigEndian.Uint64(b[17:])
		if left > most || ran > most {
			return silence{}, mail.ErrRecord
		}
		s.left, s.from = time.Duration(left)*time.Millisecond, time.Duration(ran)*time.Millisecond
	}
	return s, nil
}

// silenceRoad is the part of the gateway that a silence needs.
type silenceRoad interface {
	journal
	log
}

// apply obeys the operator. Ordered again, it only changes the end.
func (s *silence) apply(g silenceRoad, bearers []*bearer, now time.Time, ev api.Silence) {
	switch {
	case !ev.On && s.fixed:
		g.Note("warn", "an order to end the silence was refused: the configuration says node.silent = true")
		return
	case ev.On && !ev.Until.IsZero() && !ev.Until.After(s.wall(now)):
		g.Note("warn", "silence refused: the end given is in the past", "until", ev.Until)
		return
	}
	s.ordered(ev, s.reckoned(now))
	s.change(g, bearers, now, ev)
}

// change begins, prolongs or ends a silence.
func (s *silence) change(g silenceRoad, bearers []*bearer, now time.Time, ev api.Silence) {
	was := s.itself()
	quiet := make([]bool, len(bearers))
	for i, b := range bearers {
		quiet[i] = b.silence.quiet()
	}
	s.order(now, ev.Until)
	if !ev.On {
		s.on, s.until = false, time.Time{}
	}
	g.Record(bucketSilence, s.key(), s.append(nil, now))
	for i, b := range bearers {
		if ev.On && !was && ev.Announce && !quiet[i] && !b.modem.Down {
			b.Announce(now, frame.Silence{Until: s.wire()})
		}
		for _, c := range b.Carriers {
			c.Silence(now, b.mute())
		}
	}
	switch {
	case ev.On && !was:
		g.Note("info", "silence begins: the gateway transmits nothing", s.says("until", ev.Until, "announced", ev.Announce)...)
	case was && !s.itself():
		g.Note("info", "silence ends", s.says()...)
	}
}

// window begins the silence of a window.
func (s *silence) window(g silenceRoad, bearers []*bearer, now time.Time) {
	if ev, silent := s.windows.begin(s, now); silent {
		s.change(g, bearers, now, ev)
	}
}

// step ends a silence that is over, and keeps account of one that is not.
func (s *silence) step(g silenceRoad, bearers []*bearer, now time.Time) {
	s.window(g, bearers, now)
	if s.over(now) {
		s.change(g, bearers, now, api.Silence{})
	} else if s.on && !s.until.IsZero() && s.ran(now)-s.kept >= keepEvery {
		g.Record(bucketSilence, s.key(), s.append(nil, now))
	}
}

// resume goes on with the silence that the journal or the configuration asks for.
func (s *silence) resume(g silenceRoad, cfg *Config, now time.Time) {
	if late := s.begin(now, cfg.SinceLast); late > keepEvery {
		g.Note("warn", "the silence lasts longer than ordered: the gateway cannot tell how long the node was off, and a wall clock alone ends no silence",
			"until", s.until, "not_before", now.Add(s.left).UTC())
	}
	s.set(cfg.Windows.On(s.name), now)
	if ev, silent := s.windows.begin(s, now); silent {
		s.order(now, ev.Until)
		g.Note("info", "silence begins: the gateway transmits nothing", s.says("until", ev.Until, "announced", false)...)
	}
	if s.on {
		g.Record(bucketSilence, s.key(), s.append(nil, now))
	}
}

// peerSilent: the peer hears us and will not answer.
func (g *Gateway) peerSilent(now time.Time, p *leg, f frame.Silence) {
	for _, c := range p.bearer.Carriers {
		c.PeerSilent(now, p.Peer, true)
	}
	var until time.Time // zero: it did not say
	if f.Until != 0 {
		until = time.Unix(int64(f.Until), 0).UTC()
	}
	p.Handshake.Due, p.silentUntil = time.Time{}, until
	g.rollups.silent(now, p.ID, until)
	g.RecordPeer(p.Peer)
	g.Note("info", "a peer goes silent; each message for it goes out once and waits for its acknowledgement", append(p.named(), "until", until)...)
}

// status says how long the silence lasts, and adds up what is owed to the peers.
func (s *silence) status(now time.Time, bearers []*bearer) api.SilenceStatus {
	speaks := func(b *bearer) bool { return b.Relay == nil && !b.silence.quiet() } // what other gateways pass on goes to them over another bearer
	row := api.SilenceStatus{On: s.itself(), Fixed: s.fixed, Quiet: s.quiet() || s.all == nil && !slices.ContainsFunc(bearers, speaks)}
	if !s.until.IsZero() && !s.fixed {
		row.Until = s.until.UTC().Format(time.RFC3339)
		row.LeftS = s.remaining(now).Seconds()
	}
	if at := s.list.Next(s.reckoned(now)); !at.IsZero() && !s.fixed {
		row.Next = at.Format(time.RFC3339)
	}
	for _, b := range bearers {
		for _, c := range b.Carriers {
			o := c.Owed(now)
			row.Acks += o.Acks
			row.Messages += o.Messages
			row.Items += o.Items
			row.Octets += o.Octets
			row.Datagrams += o.Datagrams
			row.AirtimeS += o.Airtime.Seconds()
		}
	}
	return row
}

// windows are the operator's times of silence, by the wall clock. An order counts until a window begins, and a window counts
// until an order.
type windows struct {
	list   calendar.Windows
	look   time.Time // when one may begin next, by the wall clock; zero: none does
	lifted time.Time // an order has ended the silence of a window that lasts until then
}

// set takes other windows.
func (w *windows) set(list calendar.Windows, wall time.Time) {
	w.list, w.look, w.lifted = list, wall, time.Time{}
}

// setBack looks at the windows again from now on, because the wall clock was set back to an earlier time. An order that has ended a
// window's silence stands if that window still holds.
func (w *windows) setBack(wall time.Time) {
	w.look = wall
	if until, _, holds := w.list.At(wall); !holds || !until.Equal(w.lifted) {
		w.lifted = time.Time{}
	}
}

// begin looks whether a window holds, and makes the silence last as long; true: that is longer than before.
func (w *windows) begin(s *silence, now time.Time) (ev api.Silence, silent bool) {
	wall := s.reckoned(now)
	if w.look.IsZero() || wall.Before(w.look) {
		return ev, false
	}
	until, announce, holds := w.list.At(wall)
	w.look = w.list.Next(wall)
	if !holds || !until.After(w.lifted) || s.on && (s.until.IsZero() || !until.After(s.until)) {
		return ev, false
	}
	return api.Silence{On: true, Until: until, Announce: announce}, true
}

// ordered notes an order: one that ends the silence of a window ends all of that window.
func (w *windows) ordered(ev api.Silence, wall time.Time) {
	w.lifted = (time.Time{})
	if ev.On {
		return
	}
	if until, _, holds := w.list.At(wall); holds {
		w.lifted = until
	}
}

// due is when a window may begin, as a time of Steps.
func (w *windows) due(s *silence, now time.Time) time.Time {
	if w.look.IsZero() {
		return time.Time{}
	}
	return due.Latest(now, now.Add(w.look.Sub(s.reckoned(now))))
}
