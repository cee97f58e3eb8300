package gateway

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/direct"
	"aldis/internal/link/envelope"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// Direct sessions between this node and one that is behind address translation as this one is: docs/decisions/direct.md.

// sessions are the direct sessions of a bearer. The zero value has none and takes none.
type sessions struct {
	b       *bearer
	table   *direct.Table        // nil: the bearer takes no sessions
	kept    map[uint16]time.Time // since when; until the first Step, also those that were being opened: zero
	opening map[uint16]*opening  // messages take none of these legs, since nobody knows yet whether they get there
	began   time.Time            // this run
}

// opening is a session that is being opened.
type opening struct {
	to     netip.AddrPort // where the peer is, as the relay says; invalid: it has not said yet
	tries  int            // HELLOs that went there
	at     time.Time      // when the next goes, or the opening has failed
	doubts bool           // the peer was heard, and has been asked whether it hears this node
}

const (
	// bucketDirect of the journal: peer -> since when there is a session with it, in seconds since 1970 (4 octets); 0: it is being opened.
	bucketDirect = "direct"
	// introducedIn is how long a relay has for its word, and introduceEvery the least between two words of a relay for one peer.
	introducedIn, introduceEvery = time.Minute, 30 * time.Second
	// greetTries is how many HELLOs go to an address that a relay has named, while nothing comes from there. The time between them doubles
	// after each second one.
	greetTries = 6
	greetEvery = time.Second
	// silentKeepalives is how many keepalives of a peer may be missing before its session is over.
	silentKeepalives = 3
	// openCost is about what it takes to open a session: words of both ends and the relay, and HELLOs, half of them in vain.
	openCost = 1500
)

// newSessions is for a bearer whose datagrams go to each peer on their own. Without keepalives no address translation stays open.
func newSessions(b *bearer, limit int) sessions {
	s := sessions{b: b, kept: map[uint16]time.Time{}, opening: map[uint16]*opening{}}
	if limit > 0 && b.Keepalive > 0 && unshared(b) {
		beats := int((direct.Round + b.Keepalive - 1) / b.Keepalive)
		s.table = direct.New(direct.Config{Limit: limit, Keep: 2 * beats * (profile.IPUDPOctets + seal.OverheadShort), Open: openCost})
	}
	return s
}

// unshared says that a bearer has an address of each peer, to which datagrams need no connection.
func unshared(b *bearer) bool { return b.Relay == nil && len(b.Channels) == 0 && !b.lines.needed }

// leg is a peer's leg on the bearer; nil: there is none, or no session can be on it.
func (s *sessions) leg(id uint16) *leg {
	if p := s.b.road.g.byID[id]; p != nil {
		if l := p.legs[s.b.index]; l != nil && !l.Gone && !l.Configured().IsValid() {
			return l
		}
	}
	return nil
}

// relayed counts octets of a message that went between this node and a peer over a relay: on the first bearer where a session could be.
func relayed(g *Gateway, now time.Time, id uint16, octets int) {
	for _, b := range g.bearers {
		if s := &b.direct; s.table != nil && s.leg(id) != nil && (s.table.State(id) != direct.None || !s.leg(id).goes()) {
			s.table.Carried(now, id, octets)
			return
		}
	}
}

// carried counts octets of a message that went on the leg, if that is a session.
func carried(l *leg, now time.Time, octets int) {
	if s := &l.bearer.direct; !s.kept[l.ID].IsZero() {
		s.table.Carried(now, l.ID, octets)
	}
}

// start goes on with the sessions of the last run.
func (s *sessions) start(now time.Time) {
	s.began = now
	for _, id := range slices.Sorted(maps.Keys(s.kept)) {
		switch l := s.leg(id); {
		case l == nil:
			s.leave(id)
		case s.table == nil || s.kept[id].IsZero() || !l.Addr.IsValid():
			s.close(l)
			l.Paths.Forget() // it may be learned
		default:
			s.table.Opened(s.kept[id], id)
		}
	}
}

// restore takes a record of bucketDirect.
func (s *sessions) restore(key, value []byte) error {
	if len(key) != 2 || len(value) != 4 {
		return mail.ErrRecord
	}
	since := time.Time{}
	if n := binary.BigEndian.Uint32(value); n != 0 {
		since = time.Unix(int64(n), 0).UTC()
	}
	s.kept[binary.BigEndian.Uint16(key)] = since
	return nil
}

// record makes durable since when there is a session with a peer; 0: one is being opened.
func (s *sessions) record(id uint16, since uint32) {
	s.b.road.Record(bucketDirect, peerKey(id, nil), binary.BigEndian.AppendUint32(nil, since))
}

// leave forgets a peer with which no session can be any more.
func (s *sessions) leave(id uint16) {
	delete(s.opening, id)
	delete(s.kept, id)
	s.b.road.Record(bucketDirect, peerKey(id, nil), nil)
	if s.table != nil {
		s.table.Leave(id)
	}
}

// step lets time pass. A silent node opens no session and keeps none: its peers would wait for its keepalives.
func (s *sessions) step(now time.Time) {
	if s.table == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(s.opening)) {
		s.advance(now, id)
	}
	for _, id := range slices.Sorted(maps.Keys(s.kept)) {
		switch l := s.leg(id); {
		case l == nil: // the peer has left, or has an address of its own now
			s.leave(id)
		case s.b.mute(), l.Link.Listening():
			s.table.Ended(id)
			s.over(l, "one of the two is silent")
		case l.Link.Dead(), due.Reached(now, s.silent(l)), !l.Addr.IsValid():
			s.table.Failed(now, id)
			s.over(l, "the peer does not answer there")
		}
	}
	if s.b.mute() || !due.Reached(now, s.table.Due()) {
		return
	}
	open, end := s.table.Step(now)
	if l := s.leg(end); l != nil {
		s.tellOver(now, l)
	}
	if l := s.leg(open); l != nil && !l.goes() {
		s.ask(now, l)
	} else if open != 0 {
		s.table.Leave(open)
	}
}

// silent is when a session is over whose peer says nothing until then; zero: never.
func (s *sessions) silent(l *leg) time.Time {
	if s.b.Keepalive == 0 {
		return time.Time{}
	}
	return due.Latest(due.Latest(l.LastHeard, s.began), s.kept[l.ID]).Add(silentKeepalives*s.b.Keepalive + s.b.Common.Timing.RoundTrip)
}

// due is when step or pump has something to do; zero: never.
func (s *sessions) due() (at time.Time) {
	if s.table == nil || s.b.mute() {
		return at
	}
	at = s.table.Due()
	for _, o := range s.opening {
		at = due.Earliest(at, o.at)
	}
	for id := range s.kept {
		if l := s.leg(id); l != nil {
			at = due.Earliest(at, s.silent(l))
		}
	}
	return at
}

// ask asks a relay that both reach on this bearer to introduce the two.
func (s *sessions) ask(now time.Time, l *leg) {
	g := s.b.road.g
	hop, up := nextHop(g, l.ID)
	if up && hop != l.ID && g.byID[hop].legs[s.b.index].goes() &&
		g.submit(now, g.byID[hop].Peer, envelope.Message{Direct: &envelope.Direct{Bearer: s.b.name.Mark, Peer: l.ID}}, mail.State) {
		s.opens(l, &opening{at: now.Add(introducedIn)})
		return
	}
	s.table.Failed(now, l.ID)
}

// introduce is the relay's part: it tells two peers where each of them is, on a bearer where it hears both.
func introduce(g *Gateway, now time.Time, from *peer, d *envelope.Direct) {
	to := g.byID[d.Peer]
	if !g.cfg.Relay || to == nil || to == from {
		g.Drop("direct_refused")
		return
	}
	a, b := from.at(d.Bearer), to.at(d.Bearer)
	if !introducible(a) || !introducible(b) {
		g.Drop("direct_refused")
		return
	}
	if last, known := g.passed.asked[from.ID]; known && now.Sub(last) < introduceEvery {
		g.Drop("direct_often")
		return
	}
	if g.passed.asked == nil {
		g.passed.asked, g.passed.told = map[uint16]time.Time{}, map[uint16]time.Time{}
	}
	g.passed.asked[from.ID] = now
	for _, two := range [][2]*leg{{a, b}, {b, a}} {
		g.passed.told[two[0].ID] = now
		g.passed.release(g, now, two[0].ID, now.Add(holdFor))
		g.submit(now, two[0].of.Peer, envelope.Message{Direct: &envelope.Direct{Bearer: d.Bearer, Peer: two[1].ID, Addr: two[1].Addr}}, mail.State)
	}
	g.Note("info", "two peers are introduced to each other for a direct session", "peer", from.Name, "to", to.Name, "bearer", bearerName(a))
}

// introducible says that a relay knows where a peer is on a leg.
func introducible(l *leg) bool {
	return l != nil && unshared(l.bearer) && l.goes() && !l.LastHeard.IsZero() && l.Addr.IsValid()
}

// hearDirect takes a word about a session: of the other end, or of a relay.
func hearDirect(g *Gateway, now time.Time, from *peer, d *envelope.Direct) {
	if d.Peer != 0 && !d.Addr.IsValid() {
		introduce(g, now, from, d)
		return
	}
	of := from
	if d.Peer != 0 {
		of = g.byID[d.Peer]
	}
	var l *leg
	if of != nil {
		l = of.at(d.Bearer)
	}
	if l == nil || l.bearer.direct.table == nil || l.bearer.direct.leg(of.ID) == nil || l.bearer.mute() {
		g.Drop("direct_refused")
		return
	}
	s := &l.bearer.direct
	if d.Peer != 0 {
		s.introduced(now, from, l, d.Addr)
		return
	}
	if _, kept := s.kept[of.ID]; kept {
		s.over(l, "the peer has ended it")
	} else if s.opening[of.ID] != nil {
		s.close(l)
	}
	s.table.Ended(of.ID)
}

// introduced takes the address of a peer from a relay. It counts only from a gateway that passes on messages between the two.
func (s *sessions) introduced(now time.Time, relay *peer, l *leg, at netip.AddrPort) {
	g, ip := s.b.road.g, at.Addr()
	if !passesOn(g, relay.ID, l.of) || !ip.IsGlobalUnicast() || at.Port() == 0 {
		g.Drop("direct_refused")
		return
	}
	o := s.opening[l.ID]
	if o == nil {
		take, end := s.table.Asked(now, l.ID)
		if e := s.leg(end); e != nil {
			s.tellOver(now, e)
		}
		if !take {
			if g.Drop("direct_full"); !l.goes() {
				s.close(l) // what the peer sends all the same opens no session
			}
			return
		}
		o = &opening{}
		s.opens(l, o)
	}
	if !o.to.IsValid() {
		o.to, o.at = at, now
	}
}

// passesOn says whether messages between this node and a peer go over that gateway, as configured or learned.
func passesOn(g *Gateway, relay uint16, p *peer) bool {
	if slices.Contains(viaOf(g, p), relay) {
		return true
	}
	over := g.bearers[len(g.bearers)-1].Relay
	if over == nil {
		return false
	}
	hop, _ := over.Hop(p.ID)
	return hop == relay
}

// advance goes on with an opening: it has succeeded when the peer has answered a probe, which shows that each hears the other.
func (s *sessions) advance(now time.Time, id uint16) {
	o, l := s.opening[id], s.leg(id)
	switch {
	case l == nil:
		s.leave(id)
	case s.b.mute():
		s.table.Ended(id)
		s.close(l)
	case l.Addr.IsValid() && l.Proven():
		delete(s.opening, id)
		s.kept[id] = now
		s.table.Opened(now, id)
		s.record(id, uint32(now.Unix()))
		s.b.road.Note("info", "a direct session with a peer is open; its messages need no relay", append(l.named(), "address", l.Addr)...)
	case l.Addr.IsValid() && !o.doubts:
		o.doubts = true
		l.Link.Doubt()
	case due.Reached(now, o.at) && (!o.to.IsValid() || o.tries >= greetTries):
		grey := s.table.Failed(now, id)
		s.close(l)
		s.b.road.Note("info", "no direct session with a peer could be opened; its messages go over the relay", append(l.named(), "introduced", o.to.IsValid(), "again_after", grey.UTC().Round(time.Second))...)
	}
}

// pump sends the HELLOs that open address translations: the first may be lost there, until the peer has sent one too. A peer that was heard
// is asked once more instead, since the first question or its answer may be lost.
func (s *sessions) pump(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(s.opening)) {
		o, l := s.opening[id], s.leg(id)
		if l == nil || !o.to.IsValid() || o.tries >= greetTries || !due.Reached(now, o.at) {
			continue
		}
		o.at = now.Add(max(greetEvery, s.b.Common.Timing.RoundTrip) << (o.tries / 2))
		if o.tries++; l.Addr.IsValid() { // it was heard, and HELLOs go by themselves
			l.Link.Doubt()
		} else {
			l.Link.Greet(now, o.to, s.b.road.Hello(now, l.Peer))
		}
	}
}

// opens makes a leg ready for a session: messages take it once that is open.
func (s *sessions) opens(l *leg, o *opening) {
	s.close(l)
	s.opening[l.ID] = o
	l.Paths.Forget()
	s.record(l.ID, 0)
}

// close makes a leg one without an address again, which learns none.
func (s *sessions) close(l *leg) {
	delete(s.opening, l.ID)
	delete(s.kept, l.ID)
	mail.Shut(&l.Paths)
	l.Link.RecordPaths()
	l.LastHeard, l.Handshake.KnowsUs = time.Time{}, false
	s.b.road.Record(bucketDirect, peerKey(l.ID, nil), nil)
}

// over ends a session at this end.
func (s *sessions) over(l *leg, why string) {
	s.close(l)
	s.b.road.Note("info", "the direct session with a peer is over; its messages go over the relay", append(l.named(), "why", why)...)
}

// tellOver ends a session, and tells the peer.
func (s *sessions) tellOver(now time.Time, l *leg) {
	s.over(l, "others need it more, or little was said")
	s.b.road.g.submit(now, l.of.Peer, envelope.Message{Direct: &envelope.Direct{Bearer: s.b.name.Mark}}, mail.State)
}

// status describes the sessions; nil: the bearer takes none.
func (s *sessions) status() *api.DirectStatus {
	if s.table == nil {
		return nil
	}
	row := &api.DirectStatus{Limit: s.table.Limit}
	for _, r := range s.table.Rows() {
		name := s.b.road.g.siteName(r.ID)
		switch {
		case r.State == direct.Kept:
			row.Sessions = append(row.Sessions, api.DirectSession{Peer: name, Since: r.Since.UTC().Round(0), Spared: r.Spared})
		case r.State == direct.Opening:
			row.Opening = append(row.Opening, name)
		default:
			row.Greylist = append(row.Greylist, api.DirectGrey{Peer: name, Until: r.Grey.UTC().Round(time.Second), Failures: r.Fails})
		}
	}
	return row
}
