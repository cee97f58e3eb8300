package gateway

import (
	"encoding/binary"
	"time"

	"aldis/internal/due"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// silence is EMCON of this node: it transmits nothing at all, receives, keeps and delivers to its own LAN. What it owes
// goes when the silence ends, in as few datagrams as it fits into.
type silence struct {
	on    bool
	until time.Time // zero: until the operator ends it
}

// wire is the end of the silence as a frame has it.
func (s silence) wire() uint32 {
	if s.until.IsZero() {
		return 0
	}
	return uint32(s.until.Unix())
}

func (s silence) append(b []byte) []byte {
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
		return silence{}, mail.ErrRecord
	}
	s := silence{on: b[0] != 0}
	if ms := binary.BigEndian.Uint64(b[1:]); ms != 0 {
		s.until = time.UnixMilli(int64(ms)).UTC()
	}
	return s, nil
}

// setSilence obeys the operator. Ordered again, it only changes the end.
func (g *Gateway) setSilence(now time.Time, ev Silence) {
	if ev.On && !ev.Until.IsZero() && !ev.Until.After(now) {
		g.Note("warn", "silence refused: its end is in the past", "until", ev.Until)
		return
	}
	was := g.silence
	g.silence = silence{on: ev.On, until: ev.Until}
	if !ev.On {
		g.silence.until = time.Time{}
	}
	g.Record(bucketSilence, []byte("self"), g.silence.append(nil))
	for _, b := range g.bearers {
		if ev.On && !was.on && ev.Announce {
			b.announce(now, frame.Silence{Until: g.silence.wire()})
		}
		for _, c := range b.carriers {
			c.Silence(now, ev.On)
		}
	}
	switch {
	case ev.On && !was.on:
		g.Note("info", "silence begins: nothing is transmitted", "until", ev.Until, "announced", ev.Announce)
	case !ev.On && was.on:
		g.Note("info", "silence ends")
	}
}

func (g *Gateway) endSilence(now time.Time) {
	if g.silence.on && due.Reached(now, g.silence.until) {
		g.setSilence(now, Silence{})
	}
}

// peerSilent: the peer hears us and will not answer.
func (g *Gateway) peerSilent(now time.Time, p *peer, f frame.Silence) {
	for _, c := range p.bearer.carriers {
		c.PeerSilent(now, p.Peer, true)
	}
	var until time.Time // zero: it did not say
	if f.Until != 0 {
		until = time.Unix(int64(f.Until), 0).UTC()
	}
	p.Met.Due = time.Time{}
	g.RecordPeer(p.Peer)
	g.Note("info", "a peer goes silent: each message for it goes out once and waits for the receipt", "peer", p.Name, "until", until)
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
	for _, b := range g.bearers {
		for _, c := range b.carriers {
			o := c.Owed(now)
			s.Receipts += o.Receipts
			s.Messages += o.Messages
			s.Items += o.Items
			s.Octets += o.Octets
			s.Datagrams += o.Datagrams
			s.AirtimeS += o.Airtime.Seconds()
		}
	}
	return s
}
