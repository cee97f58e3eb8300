package gateway

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
	"aldis/internal/link/probe"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// LinkProbeOrder is the operator's order to measure the link to a peer with so many octets of both directions.
type LinkProbeOrder struct {
	Ref    uint64 // with which Status.LinkProbe answers
	Peer   uint16
	Bearer string // its name; "": the first
	Budget int
}

// GatewayEvent marks LinkProbeOrder as an event of the gateway.
func (LinkProbeOrder) GatewayEvent() {}

// linkProbes measures the link to a peer when the operator orders it, and answers the link probes of peers. It sends only when no
// message waits and the air is free, and never while this node is silent.
type linkProbes struct {
	b           *bearer
	services    mail.Services
	quiet       func() bool // this node is silent there
	shore       bool        // this end of the link is ashore
	incarnation uint8       // the low octet of this start's number
	last        api.LinkProbeStatus
	asker       *probe.Asker // nil: none runs
	peer        *leg         // of asker
	id          uint8
	before      uint64 // datagrams on the bearer before it began
	own         uint64 // datagrams of the link probe
	far         map[uint16]*probe.Answerer
}

// legs are the peers that the bearer reaches.
func (s *linkProbes) legs() iter.Seq[*leg] {
	return func(yield func(*leg) bool) {
		for l := range legsOf(s.b.road.g) {
			if l.bearer == s.b && !yield(l) {
				return
			}
		}
	}
}

// peerOf is the leg of the peer with this id; nil: there is none.
func (s *linkProbes) peerOf(id uint16) *leg {
	for l := range s.legs() {
		if l.ID == id {
			return l
		}
	}
	return nil
}

// order gives an order to the bearer that it names.
func (o LinkProbeOrder) order(g *Gateway, now time.Time) {
	s := g.bearers[0].linkProbes
	for _, b := range g.bearers {
		if o.Bearer != "" && b.name.Name == o.Bearer {
			s = b.linkProbes
		}
	}
	if g.probing == nil || g.probing.asker == nil {
		g.probing = s
	}
	s.apply(now, o, g.probing)
}

// linkProbeOverhead is how many octets a datagram of a link probe has besides its word.
const linkProbeOverhead = profile.IPUDPOctets + seal.OverheadShort + frame.LinkProbeOverhead

// LinkProbePlan is the plan of a link probe, for one end of it.
func LinkProbePlan(p profile.Profile, shore bool, budget int) (probe.Plan, error) {
	return probe.For(p, p.Sending(shore).RateBps, linkProbeOverhead, budget)
}

// apply begins a link probe, or says why not. one has the link probe that runs, if any does.
func (s *linkProbes) apply(now time.Time, o LinkProbeOrder, one *linkProbes) {
	p := s.peerOf(o.Peer)
	refuse := func(text string) {
		if one.asker == nil { // the status keeps a probe that runs
			s.last = api.LinkProbeStatus{Ref: o.Ref, State: api.LinkProbeRefused, Text: text, Budget: o.Budget}
			if p != nil {
				s.last.Peer = p.Name
			}
		}
		s.services.Note("warn", "a link probe was refused", "why", text)
	}
	plan, err := LinkProbePlan(s.b.Profile, s.shore, o.Budget)
	switch {
	case one.asker != nil:
		refuse("a link probe to " + one.peer.Name + " runs")
	case o.Bearer != "" && o.Bearer != s.b.name.Name, s.b.Relay != nil:
		refuse(fmt.Sprintf("this gateway has no [[link]] called %q", o.Bearer))
	case p == nil:
		refuse(fmt.Sprintf("no [[link.peer]] of this [[link]] has the id %d", o.Peer))
	case err != nil:
		refuse(err.Error())
	case s.quiet():
		refuse("this gateway is silent")
	case p.Handshake.Unmet:
		p.Handshake.Owe(now)
		refuse(p.Name + " was never heard; it is asked now")
	case linkWord(p) != linkUp || !p.Handshake.KnowsUs:
		refuse("the link to " + p.Name + " is not up")
	default:
		s.id++
		s.peer, s.asker = p, probe.NewAsker(now, s.id^s.incarnation, plan)
		s.before, s.own = s.b.billed.datagrams, 0
		s.last = api.LinkProbeStatus{Ref: o.Ref, Peer: p.Name, Bearer: p.Bearer.Name, State: api.LinkProbeRuns, Budget: o.Budget}
		s.services.Note("info", "a link probe begins", "peer", p.Name, "bearer", bearerName(p), "budget_octets", o.Budget)
	}
}

// status is the last link probe; nil: none was ordered.
func (s *linkProbes) status() *api.LinkProbeStatus {
	if s == nil || s.last.State == "" {
		return nil
	}
	last := s.last
	if s.asker != nil {
		last.Sent, last.Received = s.asker.Octets()
	}
	return &last
}

// receive takes a word of a peer.
func (s *linkProbes) receive(now time.Time, p *leg, f frame.LinkProbe, octets int) {
	p.Ledger.Add(mail.Received, mail.LinkProbe, octets)
	w, err := probe.Parse(f.Body)
	if err != nil {
		s.services.Drop("link_probe")
		return
	}
	all := linkProbeOverhead - frame.LinkProbeOverhead + octets
	switch w.Op {
	case probe.Back, probe.Report, probe.Refuse:
		if p == s.peer && s.asker != nil && s.asker.Receive(now, w, all) {
			s.own++
			return
		}
		s.services.Drop("link_probe")
	default:
		s.answerer(p).Receive(now, w, all)
	}
}

func (s *linkProbes) answerer(p *leg) *probe.Answerer {
	a := s.far[p.ID]
	if a == nil {
		a = probe.NewAnswerer(s.b.Profile, s.b.Profile.Sending(s.shore).RateBps, linkProbeOverhead)
		s.far[p.ID] = a
	}
	return a
}

// pump sends what is ready. It is not called while this node is silent.
func (s *linkProbes) pump(now time.Time) {
	for p := range s.legs() {
		for a := s.far[p.ID]; a != nil && s.may(now, p, a.Streams()); {
			w, octets, ok := a.Next(now)
			if !ok || !s.send(now, p, w, octets) {
				break
			}
			a.Sent(now, octets)
		}
	}
	if s.asker == nil {
		return
	}
	for s.may(now, s.peer, s.asker.Streams()) {
		w, octets, ok := s.asker.Next(now)
		if !ok {
			break
		}
		if !s.send(now, s.peer, w, octets) {
			s.asker.Fail(errors.New("nothing more can be sealed in this start"))
			break
		}
		s.asker.Sent(now, octets)
		s.own++
	}
	s.ended(now)
}

// hush: this node is silent. It forgets the answers that it owes to link probes, because they would come too late.
func (s *linkProbes) hush(now time.Time) {
	for _, a := range s.far {
		a.Drop()
	}
	if s.asker != nil {
		s.ended(now)
	}
}

// left: a peer was taken out of the configuration.
func (s *linkProbes) left(now time.Time, p *leg) {
	delete(s.far, p.ID)
	if s.asker != nil && s.peer == p {
		s.asker.Fail(errors.New("the peer was taken out of the configuration"))
		s.ended(now)
	}
}

// ended says what became of a link probe that is over.
func (s *linkProbes) ended(now time.Time) {
	switch word := linkWord(s.peer); {
	case s.quiet():
		s.asker.Fail(errors.New("this gateway was ordered to be silent"))
	case word != linkUp:
		s.asker.Fail(errors.New("the link to " + s.peer.Name + " is " + word))
	}
	if !s.asker.Over() {
		return
	}
	s.last.Sent, s.last.Received = s.asker.Octets()
	s.last.Others = s.b.billed.datagrams - s.before - s.own
	if err := s.asker.Err(); err != nil {
		s.last.State, s.last.Text = api.LinkProbeFailed, err.Error()
		s.services.Note("warn", "a link probe has failed", "peer", s.peer.Name, "why", err)
	} else {
		s.last.State, s.last.Packets = api.LinkProbeDone, s.asker.Packets()
		s.services.Note("info", "a link probe is done", "peer", s.peer.Name, "sent_octets", s.last.Sent, "received_octets", s.last.Received)
	}
	s.asker, s.peer = nil, nil
}

// may says whether a word of a link probe may go to a peer now: any message goes before it.
func (s *linkProbes) may(now time.Time, p *leg, streams bool) bool {
	if !p.Reachable() || !p.Handshake.KnowsUs || p.Link.Dead() || p.Link.Listening() {
		return false
	}
	if air, _ := p.Link.Air(); !streams && now.Before(air.Free) {
		return false
	}
	return !s.waits(p)
}

// waits says whether a message waits that would go over the same air.
func (s *linkProbes) waits(p *leg) bool {
	for other := range s.legs() {
		if other != p && s.shore {
			continue
		}
		if other.Box.Waiting(frame.Direct, frame.Bulk) > 0 || other.Box.Flying(mail.Group) > 0 {
			return true
		}
	}
	return false
}

// send puts a word on the air.
func (s *linkProbes) send(now time.Time, p *leg, w probe.Word, octets int) bool {
	body := probe.Append(nil, w, octets-linkProbeOverhead)
	data, ok := s.services.Seal(p.ID, false, frame.Append(nil, frame.LinkProbe{Body: body}, true))
	if !ok {
		return false
	}
	p.Ledger.Add(mail.Sent, mail.LinkProbe, len(body)+frame.LinkProbeOverhead)
	p.Ledger.Head(mail.Sent, false)
	p.Counts.DatagramsSent++
	p.LastSent = now
	air, rate := p.Link.Air()
	air.Sent(now, &s.b.Profile, len(data), rate)
	s.services.Send(p.Addr, data)
	return true
}

// due is when pump has something to do; zero: not by itself.
func (s *linkProbes) due(now time.Time) (at time.Time) {
	if s.quiet() {
		return at
	}
	for id, a := range s.far {
		if next := a.Due(now); !next.IsZero() {
			at = due.Earliest(at, s.ready(now, s.peerOf(id), next, a.Streams()))
		}
	}
	if s.asker != nil {
		at = due.Earliest(at, s.ready(now, s.peer, s.asker.Due(), s.asker.Streams()))
	}
	return at
}

// ready is when a word that is due at a time may go. If a message holds it up, it is tried again when that has gone, or after a while.
func (s *linkProbes) ready(now time.Time, p *leg, at time.Time, streams bool) time.Time {
	if air, _ := p.Link.Air(); !streams {
		at = due.Latest(at, air.Free)
	}
	if !at.After(now) {
		at = now.Add(linkProbeAgain)
	}
	return at
}

// linkProbeAgain is after how long a link probe looks again, if it had something to send and was not allowed to.
const linkProbeAgain = 50 * time.Millisecond
