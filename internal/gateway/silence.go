package gateway

import (
	"encoding/binary"
	"time"

	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/pmul"
)

// silence is EMCON of this node: it transmits nothing at all, receives, keeps and delivers to its own LAN. What it owes
// goes when the silence ends, in as few datagrams as it fits into.
type silence struct {
	on    bool
	until time.Time // zero: until the operator ends it
}

// setSilence obeys the operator. Ordered again, it only changes the end.
func (g *Gateway) setSilence(now time.Time, ev Silence) {
	if ev.On && !ev.Until.IsZero() && !ev.Until.After(now) {
		g.note("warn", "a silence that ends before it begins was not begun", "until", ev.Until)
		return
	}
	was := g.silence
	g.silence = silence{on: ev.On, until: ev.Until}
	if !ev.On {
		g.silence.until = time.Time{}
	}
	g.record(bucketSilence, []byte("self"), appendSilence(nil, g.silence))
	if ev.On && !was.on && ev.Announce {
		g.announceSilence(now)
	}
	g.mulSilent(now, ev.On)
	switch {
	case ev.On && !was.on:
		g.note("info", "silence begins: nothing is transmitted", "until", ev.Until, "announced", ev.Announce)
	case !ev.On && was.on:
		g.note("info", "silence ends")
	}
}

// announceSilence tells the peers in one datagram for the group or for each, whatever the air is doing: the order is to
// be quiet now.
func (g *Gateway) announceSilence(now time.Time) {
	if g.mul != nil && g.cfg.Group.IsValid() {
		body := frame.Append(nil, frame.Silence{Until: g.silence.wire()}, true)
		g.mulPost(now, seal.Group, g.cfg.Group, true, body, pmul.Packet{}, &g.mul.ledger)
		return
	}
	for _, p := range g.peers {
		if p.addr.IsValid() {
			p.announce = true
			g.compose(now, p)
		}
	}
}

func (g *Gateway) endSilence(now time.Time) {
	if g.silence.on && !g.silence.until.IsZero() && !now.Before(g.silence.until) {
		g.setSilence(now, Silence{})
	}
}

// wire is the end of the silence as a frame has it.
func (s silence) wire() uint32 {
	if s.until.IsZero() {
		return 0
	}
	return uint32(s.until.Unix())
}

// peerSilent: the peer hears us and will not answer.
func (g *Gateway) peerSilent(p *peer, f frame.Silence) {
	p.sender.Listening()
	g.mulPeerSilent(g.now, p, true)
	var until time.Time // zero: it did not say
	if f.Until != 0 {
		until = time.Unix(int64(f.Until), 0).UTC()
	}
	p.helloDue = time.Time{}
	g.recordPeer(p)
	g.note("info", "a peer goes silent: what is for it goes out once and waits for its receipts", "peer", p.Name, "until", until)
}

func appendSilence(b []byte, s silence) []byte {
	on := byte(0)
	if s.on {
		on = 1
	}
	ms := uint64(0)
	if !s.until.IsZero() {
		ms = uint64(s.until.UnixMilli())
	}
	return binary.BigEndian.AppendUint64(append(b, on), ms)
}

func parseSilence(b []byte) (silence, error) {
	if len(b) != 9 {
		return silence{}, errRecord
	}
	s := silence{on: b[0] != 0}
	if ms := binary.BigEndian.Uint64(b[1:]); ms != 0 {
		s.until = time.UnixMilli(int64(ms)).UTC()
	}
	return s, nil
}

// SilenceStatus is this node's EMCON and what will go out when it ends.
type SilenceStatus struct {
	On        bool    `json:"on"`
	Until     string  `json:"until,omitempty"` // RFC 3339; empty: until told otherwise
	Receipts  int     `json:"receipts_owed"`   // peers that wait for receipts
	Messages  int     `json:"messages"`        // that wait or may have to go again
	Items     int     `json:"items"`           // of this site that some peer has not, each peer counted
	Octets    int     `json:"octets"`          // IP octets, about: before deflating
	AirtimeS  float64 `json:"airtime_s"`
	Datagrams int     `json:"datagrams"`
}

// forecast adds up what is owed to the peers.
func (g *Gateway) forecast(now time.Time) SilenceStatus {
	s := SilenceStatus{On: g.silence.on}
	if !g.silence.until.IsZero() {
		s.Until = g.silence.until.UTC().Format(time.RFC3339)
	}
	room := g.cfg.Profile.DatagramOctets - directReserve
	if g.mul != nil {
		acks, datagrams, octets := g.mul.receiver.Owed(now)
		s.Receipts, s.Datagrams, s.Octets = acks, datagrams, octets+datagrams*(profile.IPUDPOctets+seal.OverheadShort)
		s.AirtimeS = profile.Airtime(s.Octets, g.cfg.Profile.Up.RateBps).Seconds()
	}
	for _, p := range g.peers {
		octets, n := 0, 0
		if receipts := p.receiver.Receipts(); len(receipts) > 0 {
			s.Receipts++
			for _, r := range receipts {
				octets += size(r)
			}
		}
		for _, waiting := range p.waiting {
			n += len(waiting)
		}
		n += len(p.underWay)
		items := g.replica.Next(now, p.ID, 1<<16)
		for _, it := range items {
			octets += 40 + len(it.Doc)/4 // what the dictionary usually makes of it
		}
		s.Messages += n
		s.Items += len(items)
		if octets += p.octets; octets == 0 {
			continue
		}
		datagrams := octets/room + 1
		s.Datagrams += datagrams
		octets += datagrams * (profile.IPUDPOctets + seal.OverheadShort)
		s.Octets += octets
		_, rate := g.airOf(p)
		s.AirtimeS += profile.Airtime(octets, rate).Seconds()
	}
	return s
}
