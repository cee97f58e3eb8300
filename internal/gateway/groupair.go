package gateway

import (
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/entropy"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// When groups take the air, and how much of it.

// pump sends what is ready on a bearer that may speak.
func (gs *groups) pump(now time.Time, b *bearer) {
	if gs.engine == nil || b.Relay != nil {
		return
	}
	for i := range gs.ports {
		p := &gs.ports[i]
		for p.b == b && !gs.ready(now, p).After(now) {
			s, ok := gs.engine.Next(now, p.ID, b.groupRoom()-frame.OpenOverhead)
			if !ok || !gs.send(now, p, s) {
				break
			}
		}
	}
}

// never is a time that does not come.
var never = time.Unix(1<<40, 0)

// groupTurn is how long an open message lets messages in custody go first, at most: else those that cannot go hold up those that can.
const groupTurn = 10 * time.Second

// ready is when a message or digest of a port may go: messages in custody take turns with it, datagram by datagram, and on a shared channel where others
// speak P_Mul it waits a while for them to finish.
func (gs *groups) ready(now time.Time, p *groupPort) time.Time {
	at := gs.engine.Waiting(p.ID)
	if at.IsZero() {
		p.since = time.Time{}
		return never
	}
	if !p.Shared && !p.leg.Handshake.KnowsUs {
		return due.Latest(at, now.Add(time.Second))
	}
	air, _ := p.leg.Link.Air()
	at = due.Latest(at, air.Free)
	if at.After(now) {
		return at
	}
	if p.since.IsZero() {
		p.since = now
	}
	hold := p.b.Profile.MaxHold
	if heard := gs.heard[p.b.index]; p.Shared && !heard.IsZero() && now.Sub(heard) < hold {
		if quiet := due.Earliest(air.Quiet(), p.since.Add(hold)); quiet.After(now) {
			return quiet
		}
	}
	if p.b.linkProbes.waits(p.leg) && air.Octets() == p.after && now.Sub(p.since) < groupTurn {
		return now.Add(linkProbeAgain)
	}
	return at
}

// send puts a frame of a port on the air.
func (gs *groups) send(now time.Time, p *groupPort, s entropy.Say) bool {
	to, addr, ledger := uint16(seal.Group), p.b.Common.Group, p.b.Common.Ledger
	long := slices.ContainsFunc(p.Peers, func(id uint16) bool { return !gs.g.byID[id].legs[p.b.index].Handshake.KnowsUs })
	l := p.leg
	if s.To != 0 {
		l = gs.g.byID[s.To].legs[p.b.index]
		to, addr, ledger, long = s.To, l.Addr, &l.Ledger, !l.Handshake.KnowsUs
		if !l.Reachable() {
			return true // the digests tell it
		}
	}
	kind := mail.Payload
	var f frame.Frame = frame.Open{Body: s.Body}
	if s.Body == nil {
		kind, f = mail.State, frame.Digest{Tag: uint16(s.Tag), Hash: s.Hash, Fresh: s.Fresh}
	}
	body := gs.beside(now, p, s, f)
	data, ok := p.b.road.Seal(to, long, body)
	if !ok {
		return false
	}
	ledger.Head(mail.Sent, long)
	whose := sharesOf(s)
	ledger.Charge(mail.Sent, mail.Repair, whose.Scaled(s.Repairs))
	ledger.Charge(mail.Sent, kind, whose.Scaled(len(body)-s.Repairs))
	ledger.Add(mail.Sent, mail.Key, len(data)-seal.Overhead(long)-len(body))
	if s.To != 0 {
		l.Counts.DatagramsSent++
		l.LastSent = now
	}
	air, rate := l.Link.Air()
	air.Sent(now, &p.b.Profile, len(data), rate)
	for _, c := range p.b.Channels {
		c.Spoke(now, len(data))
	}
	p.b.road.Send(addr, data)
	p.after, p.since = air.Octets(), time.Time{}
	return true
}

// sharesOf divides a frame among the adapters of its messages. Those of an earlier run, and those that cannot be read here, are the gateway's.
func sharesOf(s entropy.Say) (whose mail.Shares) {
	for about, octets := range s.About {
		if about == 0 {
			whose.GiveTo(nil, octets)
		} else {
			whose.Give(site.Adapter(about-1), octets)
		}
	}
	return whose
}

// beside is a frame, with the digests by which this node leaves groups on the same port.
func (gs *groups) beside(now time.Time, p *groupPort, s entropy.Say, f frame.Frame) []byte {
	var more []byte
	for s.Body != nil && (s.To == 0 || !p.Shared) && len(s.Body)+frame.OpenOverhead+len(more)+2*frame.DigestOctets <= p.b.groupRoom() {
		d, ok := gs.engine.Along(now, p.ID)
		if !ok {
			break
		}
		more = frame.Append(more, frame.Digest{Tag: uint16(d.Tag), Hash: d.Hash, Fresh: d.Fresh}, false)
	}
	return frame.Append(more, f, true)
}

// ride puts digests before the frames of a datagram that goes anyway, where all its receivers are in the group.
func (gs *groups) ride(now time.Time, b *bearer, to uint16, frames []byte) []byte {
	if gs.engine == nil || frame.Greets(frames) {
		return frames
	}
	for _, p := range gs.ports {
		if p.b != b || (to == seal.Group) != p.Shared || !p.Shared && p.Peers[0] != to {
			continue
		}
		for len(frames)+frame.DigestOctets <= b.groupRoom() {
			s, ok := gs.engine.Ride(now, p.ID)
			if !ok {
				break
			}
			frames = append(frame.Append(nil, frame.Digest{Tag: uint16(s.Tag), Hash: s.Hash}, false), frames...)
		}
	}
	return frames
}

// due is when step or pump has something to do; zero: never.
func (gs *groups) due(now time.Time) (at time.Time) {
	if gs.engine == nil {
		return at
	}
	at = due.Earliest(gs.engine.Due(), gs.secrets.due())
	for i := range gs.ports {
		p := &gs.ports[i]
		if p.b.mute() {
			continue
		}
		if ready := gs.ready(now, p); ready != never {
			at = due.Earliest(at, due.Latest(ready, now.Add(linkProbeAgain)))
		}
	}
	return at
}
