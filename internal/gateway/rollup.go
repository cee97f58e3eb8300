package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
	"aldis/internal/link/rollup"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// Records of each gateway about itself, one a period, on their way to the headquarters: docs/decisions/rollup.md.

// FleetConfig says whether this node makes records of the roll-up, and where they go.
type FleetConfig struct {
	Period time.Duration // 0: it makes none, and takes none
	To     []uint16      // the headquarters, then peers that are nearer to it than this node; none: this node is the headquarters
	// Version of this program: major and minor, an octet each.
	Version uint16
}

// bucketRollup of the journal: origin -> its last record (rollup.Held.Keep), at the headquarters.
const bucketRollup = "fleet"

const (
	// gather is the part of a period in which a node collects records of others before it passes them on.
	gather = 16
	// rollupTries is how often a batch goes without a receipt, ever more rarely, and repeatMost the part of a period that the node waits for
	// one, at most.
	rollupTries, repeatMost = 8, 8
	// noWay is how soon a node looks again for a way to its parent.
	noWay = 10 * time.Second
)

// rollups is this node's part in the roll-up.
type rollups struct {
	g      *Gateway
	table  *rollup.Table // nil: it takes no part
	spoken uint32        // records made in this run
	next   time.Time     // when this node's next record is due
	pends  bool          // the record is due, and goes with the next batch to the parent
	at     time.Time     // when something goes to the parent; zero: nothing waits
	since  time.Time     // since when that waits for the air
	way    *leg          // to the parent, as far as there is one
	parent uint16        // of the last batch
	last   uint8         // number of the last batch
	flies  flying
	owed   []owedReceipt
}

// flying is a batch that the parent has not acknowledged; number 0: there is none.
type flying struct {
	number uint8
	tries  int
	leg    *leg
	again  time.Time
}

type owedReceipt struct {
	leg    *leg
	number uint8
	at     time.Time // it goes earlier with any datagram there
}

var errRollupRoster = errors.New("[fleet] needs link.roster: with one key for all every member could speak in another's name")

func newRollups(g *Gateway) (*rollups, error) {
	r, c := &rollups{g: g}, g.cfg.Fleet
	if c.Period == 0 {
		return r, nil
	}
	if g.cfg.Trust == nil {
		return nil, fmt.Errorf("gateway: %w", errRollupRoster)
	}
	r.table = rollup.New(rollup.Config{Self: g.cfg.ID, Period: c.Period, Proves: r.proves})
	return r, nil
}

// root says that this node is the headquarters.
func (r *rollups) root() bool { return len(r.g.cfg.Fleet.To) == 0 }

const rollupPurpose = "aldis fleet record 1"

// key is the key by which an origin proves its records to the headquarters.
func (r *rollups) key(origin, root uint16) (seal.EndKey, bool) {
	return r.g.keys.End(origin, root, []byte(rollupPurpose))
}

// proves says whether a record is from its origin, as far as this node can tell.
func (r *rollups) proves(origin uint16, text, proof []byte) rollup.Proof {
	if _, ok := r.g.keys.Public(origin); !ok {
		return rollup.Stranger
	}
	if !r.root() {
		return rollup.Unknown
	}
	if k, ok := r.key(origin, r.g.cfg.ID); ok && k.Proves(proof, 0, nil, text) {
		return rollup.Proven
	}
	return rollup.Forged
}

// step lets time pass.
func (r *rollups) step(now time.Time) {
	if r.table == nil {
		return
	}
	period := r.g.cfg.Fleet.Period
	if r.next.IsZero() {
		r.next = now.Add(period / gather) // once the first peers have met
	}
	if due.Reached(now, r.next) {
		r.turn(now)
	}
	if r.flies.number != 0 && !r.flies.leg.goes() {
		r.flies, r.at = flying{}, now
	}
	if due.Reached(now, r.at) && r.flies.number == 0 {
		if r.way = r.leg(); r.way == nil {
			r.at = now.Add(noWay)
		}
	}
}

// turn is the beginning of a period: wall clocks that are right have all gateways begin together, so that a parent passes on the records of its
// children in one datagram. Where clocks are wrong, it takes more datagrams.
func (r *rollups) turn(now time.Time) {
	g, period := r.g, r.g.cfg.Fleet.Period
	wall := g.silence.wall(now)
	slot := time.Duration(uint16(uint32(g.cfg.ID)*2654435769>>16)) * (period / gather) >> 16
	r.next = now.Add(wall.Truncate(period).Add(period + slot).Sub(wall))
	for _, id := range r.table.Forget(func(id uint16) bool { _, ok := g.keys.Public(id); return ok }) {
		g.Record(bucketRollup, binary.BigEndian.AppendUint16(nil, id), nil)
	}
	if r.root() {
		r.speak(now, 0)
		return
	}
	r.pends = true
	wait := now
	if r.table.Passes() {
		wait = now.Add(period / gather)
	}
	r.at = due.Earliest(r.at, wait)
}

// speak makes this node's record anew.
func (r *rollups) speak(now time.Time, parent uint16) {
	g := r.g
	r.pends = false
	r.spoken++
	rec := rollup.Record{Origin: g.cfg.ID, Serial: g.cfg.Incarnation.Number + r.spoken, Parent: parent, Version: g.cfg.Fleet.Version}
	for _, p := range g.peers {
		best := p.best(nil)
		for l := range legsTo(p) {
			if l != best && !l.leads() {
				continue
			}
			for _, row := range l.Box.Backlog() {
				rec.Waiting[row.Rank] += row.Messages
				if !row.Oldest.IsZero() {
					rec.Oldest = max(rec.Oldest, now.Sub(row.Oldest))
				}
			}
		}
	}
	for _, b := range g.bearers {
		if b.Relay != nil {
			continue
		}
		rec.Bearers++
		if !b.mute() && slices.ContainsFunc(g.peers, func(p *peer) bool { l := p.legs[b.index]; return l != nil && l.goes() && !l.LastHeard.IsZero() }) {
			rec.Up++
		}
	}
	rec.Silent = r.silence(now)
	root := g.cfg.ID
	if !r.root() {
		root = g.cfg.Fleet.To[0]
	}
	k, _ := r.key(g.cfg.ID, root)
	r.table.Own(now, rec, k.Tag(nil, rollup.ProofOctets, 0, nil, rollup.Append(nil, &rec)))
}

// silence is how long this node will transmit nothing, from now or from before its next record on.
func (r *rollups) silence(now time.Time) time.Duration {
	s := &r.g.silence
	wall := s.wall(now)
	switch end := s.ends(now); {
	case s.on && end.IsZero():
		return rollup.Endless
	case s.on:
		return end.Sub(now)
	}
	if begins := s.list.Next(wall); !begins.IsZero() && begins.Sub(wall) < r.g.cfg.Fleet.Period && !s.fixed {
		if end, _, _ := s.list.At(begins); end.After(wall) {
			return end.Sub(wall)
		}
	}
	return 0
}

// leg is the way to the parent: the first of the configured ones that answers, else the gateway that passes on messages for the
// headquarters. nil: there is none now.
func (r *rollups) leg() *leg {
	g := r.g
	for _, id := range g.cfg.Fleet.To {
		if p := g.byID[id]; p != nil && p.answers() {
			return p.direct()
		}
	}
	if hop, up := nextHop(g, g.cfg.Fleet.To[0]); up && g.byID[hop] != nil {
		return g.byID[hop].direct()
	}
	return nil
}

// direct is the cheapest leg on which a peer itself answers; nil: none.
func (p *peer) direct() (best *leg) {
	for l := range legsTo(p) {
		if l.bearer.Relay == nil && l.goes() && l.Reachable() && (best == nil || dear(l.bearer, best.bearer) < 0) {
			best = l
		}
	}
	return best
}

// pump sends what is ready on a bearer that may speak.
func (r *rollups) pump(now time.Time, b *bearer) {
	if r.table == nil {
		return
	}
	for len(r.owed) > 0 {
		i := slices.IndexFunc(r.owed, func(o owedReceipt) bool { return o.leg.bearer == b && !r.ready(now, o.leg, o.at).After(now) })
		if i < 0 {
			break
		}
		o := r.owed[i]
		if r.owed = slices.Delete(r.owed, i, i+1); o.leg.Reachable() {
			r.send(now, o.leg, frame.Append(nil, frame.Rolled{Number: o.number}, true))
		}
	}
	if at := r.goes(now); at.IsZero() || at.After(now) || r.carrier().bearer != b {
		return
	}
	l := r.carrier()
	switch {
	case !b.sharesGroup() && !l.met():
		l.want(now)
		r.at = now.Add(noWay)
	case r.flies.tries >= rollupTries: // its records go with the next batch
		r.flies, r.at = flying{}, due.Earliest(r.at, r.next)
	default:
		if body := r.batch(now, l, b.groupRoom()-frame.RollupOverhead); body != nil {
			r.send(now, l, frame.Append(nil, frame.Rollup{Number: r.flies.number, Body: body}, true))
		} else if !r.at.IsZero() {
			r.at = due.Latest(r.at, now.Add(noWay))
		}
	}
}

// carrier is the leg of the next batch.
func (r *rollups) carrier() *leg {
	if r.flies.number != 0 {
		return r.flies.leg
	}
	return r.way
}

// goes is when something may go to the parent; zero: nothing does.
func (r *rollups) goes(now time.Time) (at time.Time) {
	at = r.at
	if r.flies.number != 0 {
		at = r.flies.again
	}
	l := r.carrier()
	if at.IsZero() || l == nil || l.bearer.mute() {
		return time.Time{}
	}
	return r.ready(now, l, at)
}

// ready is when something may go on a leg: on a shared channel where others speak in P_Mul it waits a while for them to finish.
func (r *rollups) ready(now time.Time, l *leg, at time.Time) time.Time {
	air, _ := l.Link.Air()
	if at = due.Latest(at, air.Free); at.After(now) {
		return at
	}
	if r.since.IsZero() {
		r.since = now
	}
	hold := l.bearer.Profile.MaxHold
	if heard := r.g.groups.heard[l.bearer.index]; l.bearer.sharesGroup() && !heard.IsZero() && now.Sub(heard) < hold {
		if quiet := due.Earliest(air.Quiet(), r.since.Add(hold)); quiet.After(now) {
			return quiet
		}
	}
	return at
}

// batch has the records that go to the parent now, this node's own included; nil: there are none.
func (r *rollups) batch(now time.Time, l *leg, room int) []byte {
	if l.ID != r.parent {
		r.parent = l.ID
		r.table.Anew(now)
	}
	if r.pends {
		r.speak(now, l.ID)
	}
	if r.flies.number == 0 {
		if r.last++; r.last == 0 {
			r.last = 1
		}
		r.flies = flying{number: r.last, leg: l}
	}
	body := r.table.Batch(now, l.ID, r.flies.number, room)
	r.at, r.since = r.table.Next(now, l.ID), time.Time{}
	if body == nil {
		r.flies = flying{}
		return nil
	}
	r.flies.again = now.Add(min(2*l.bearer.Common.Timing.RoundTrip<<r.flies.tries, r.g.cfg.Fleet.Period/repeatMost))
	r.flies.tries++
	return body
}

// send puts frames to a peer on the air, and those that ride on them.
func (r *rollups) send(now time.Time, l *leg, frames []byte) bool {
	b, long := l.bearer, !l.Handshake.KnowsUs
	data, ok := b.road.Seal(l.ID, long, frames)
	if !ok {
		return false
	}
	l.Ledger.Head(mail.Sent, long)
	l.Ledger.Add(mail.Sent, mail.State, len(frames))
	l.Counts.DatagramsSent++
	l.LastSent = now
	air, rate := l.Link.Air()
	air.Sent(now, &b.Profile, len(data), rate)
	for _, c := range b.Channels {
		c.Spoke(now, len(data))
	}
	b.road.Send(l.Addr, data)
	return true
}

// ride puts receipts and batches for a peer before the frames of a datagram that goes there anyway.
func (r *rollups) ride(now time.Time, b *bearer, to uint16, frames []byte) []byte {
	if r.table == nil || frame.Greets(frames) || to == seal.Group {
		return frames
	}
	p := r.g.byID[to]
	if p == nil || p.legs[b.index] == nil { // a reload has just taken it out
		return frames
	}
	l := p.legs[b.index]
	add := func(f frame.Frame) {
		before := len(frames)
		frames = append(frame.Append(nil, f, false), frames...)
		l.Ledger.Add(mail.Sent, mail.State, len(frames)-before)
	}
	r.owed = slices.DeleteFunc(r.owed, func(o owedReceipt) bool {
		if o.leg != l || len(frames)+frame.RolledOctets > b.groupRoom() {
			return false
		}
		add(frame.Rolled{Number: o.number})
		return true
	})
	if r.flies.number == 0 && !r.at.IsZero() && l == r.leg() {
		if body := r.batch(now, l, b.groupRoom()-len(frames)-frame.RollupOverhead); body != nil {
			add(frame.Rollup{Number: r.flies.number, Body: body})
		}
	}
	return frames
}

// receive takes a frame of a neighbour; false: it is not one of the roll-up.
func (r *rollups) receive(now time.Time, l *leg, f frame.Frame, octets int) bool {
	switch f := f.(type) {
	case frame.Rollup:
		if r.table == nil {
			r.g.Drop("fleet_unknown")
			break
		}
		r.take(now, l, f)
	case frame.Rolled:
		if r.table != nil && f.Number == r.flies.number && l.ID == r.flies.leg.ID {
			r.table.Acked(f.Number)
			r.flies = flying{}
		}
	default:
		return false
	}
	l.Ledger.Add(mail.Received, mail.State, octets)
	return true
}

// take takes a batch.
func (r *rollups) take(now time.Time, l *leg, f frame.Rollup) {
	got := r.table.Take(now, l.ID, f.Body)
	for _, reason := range got.Dropped {
		if reason != rollup.Old {
			r.g.Drop(reason)
		}
	}
	r.owed = slices.DeleteFunc(r.owed, func(o owedReceipt) bool { return o.leg == l })
	r.owed = append(r.owed, owedReceipt{l, f.Number, now.Add(min(l.bearer.Profile.AckDelay, l.bearer.Common.Timing.RoundTrip/2))})
	for _, h := range got.New {
		if r.root() {
			r.g.Record(bucketRollup, binary.BigEndian.AppendUint16(nil, h.Origin), h.Keep(r.g.silence.wall(now).Sub(now)))
		}
	}
	if len(got.New) > 0 && !r.root() {
		r.at = due.Earliest(r.at, now.Add(r.g.cfg.Fleet.Period/gather))
	}
}

// silent: a peer has told this node that it will transmit nothing until then; zero: it did not say until when.
func (r *rollups) silent(now time.Time, id uint16, until time.Time) {
	if r.table != nil && r.table.Silent(id, until) && !r.root() {
		r.at = due.Earliest(r.at, now.Add(r.g.cfg.Fleet.Period/gather))
	}
}

// restore takes a record of the journal.
func (r *rollups) restore(value []byte) error {
	if r.table == nil {
		return nil
	}
	return r.table.Restore(value)
}

// due is when step or pump has something to do; zero: never.
func (r *rollups) due(now time.Time) (at time.Time) {
	if r.table == nil {
		return at
	}
	at = r.next
	if r.flies.number == 0 && r.way == nil {
		at = due.Earliest(at, r.at)
	}
	at = due.Earliest(at, r.goes(now))
	for _, o := range r.owed {
		if !o.leg.bearer.mute() {
			at = due.Earliest(at, r.ready(now, o.leg, o.at))
		}
	}
	return at
}

// report adds the roll-up to a status.
func (r *rollups) report(now time.Time, s *api.Status) {
	if r.table == nil {
		return
	}
	g := r.g
	f := &api.FleetStatus{PeriodS: g.cfg.Fleet.Period.Seconds(), Headquarters: r.root()}
	rows := r.table.Rows(now)
	total := rollup.Total(now, rows)
	f.Sum = api.FleetSum{Gateways: total.Gateways, Waiting: byPrecedence(total.Waiting), Bearers: total.Bearers, Up: total.Up, Silent: total.Silent}
	if total.Waiting != [rollup.Ranks]int{} {
		f.Sum.Oldest = r.wall(now, now.Add(-total.Oldest))
	}
	seen := map[uint16]bool{}
	for i := range rows {
		f.Gateways = append(f.Gateways, r.row(now, &rows[i]))
		seen[rows[i].Origin] = true
	}
	if r.root() {
		for _, p := range g.peers {
			if !seen[p.ID] && !p.Gone {
				f.Gateways = append(f.Gateways, api.FleetRow{ID: p.ID, Site: p.Name, State: "unheard", Waiting: map[string]int{}})
			}
		}
		slices.SortFunc(f.Gateways, func(a, b api.FleetRow) int { return int(a.ID) - int(b.ID) })
	}
	s.Fleet = f
}

func (r *rollups) row(now time.Time, h *rollup.Held) api.FleetRow {
	g := r.g
	row := api.FleetRow{ID: h.Origin, Site: g.siteName(h.Origin), Parent: g.siteName(h.Parent), State: string(h.State(now, g.cfg.Fleet.Period)), Proven: h.Proven,
		Bearers: h.Bearers, Up: h.Up, Version: fmt.Sprintf("%d.%d", h.Version>>8, h.Version&0xff), Waiting: byPrecedence(h.Waiting)}
	if h.Origin == g.cfg.ID {
		row.Site = g.cfg.Name
	}
	if h.Parent == g.cfg.ID {
		row.Parent = g.cfg.Name
	}
	row.Read, row.AgeS = r.wall(now, h.Read), now.Sub(h.Read).Round(time.Second).Seconds()
	if h.Waiting != [rollup.Ranks]int{} {
		row.Oldest = r.wall(now, h.Read.Add(-h.Oldest))
	}
	if h.SilentUntil.After(now) && !rollup.Forever(h.SilentUntil) {
		row.SilentUntil = r.wall(now, h.SilentUntil).Truncate(time.Minute)
	}
	return row
}

// byPrecedence names the counts that are not 0.
func byPrecedence(counts [rollup.Ranks]int) map[string]int {
	list := map[string]int{}
	for rank, n := range counts {
		if n > 0 {
			list[site.Precedences[rank]] = n
		}
	}
	return list
}

// wall is a time as the wall clock has it, in whole seconds.
func (r *rollups) wall(now, t time.Time) time.Time {
	return t.Add(r.g.silence.wall(now).Sub(now)).UTC().Truncate(time.Second)
}
