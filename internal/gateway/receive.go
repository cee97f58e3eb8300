package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// receive opens a datagram; what is not authentic is counted and gone.
func (g *Gateway) receive(now time.Time, d Datagram) {
	from, body, info, err := g.opener.Open(d.Data)
	if err != nil {
		g.refuse(now, from, d, err)
		return
	}
	p := g.byID[from]
	state := g.opener.State(from) // it keeps replays out
	g.Record(bucketSeal, peerKey(from, nil), state.Append(nil))
	p.Counts.DatagramsReceived++
	p.Ledger.Head(mail.Received, info.Long)
	if info.Long && !p.Met.Owed {
		p.Met.Owe(now.Add(g.cfg.Profile.AckDelay))
	}
	if info.NewBoot {
		p.Met.KnowsUs = false
		g.Note("info", "a peer has started", "peer", p.Name, "boot", info.Boot.Number)
	}
	if info.Newest && p.Addr != d.Addr {
		if p.LastHeard.IsZero() {
			g.Note("info", "heard from a peer", "peer", p.Name, "address", d.Addr)
		} else {
			g.Note("info", "a peer has moved", "peer", p.Name, "from", p.Addr, "to", d.Addr)
		}
		p.Addr = d.Addr
		g.RecordPeer(p.Peer)
	}
	lines := p.bearer.lines
	if lines.Dead(p.Peer) && !p.LastHeard.IsZero() {
		g.Note("info", "the link to a peer is back", "peer", p.Name, "silent_for", now.Sub(p.LastHeard).Round(time.Second))
	}
	if lines.Listening(p.Peer) {
		g.Note("info", "a peer has ended its silence", "peer", p.Name)
		for _, c := range p.bearer.carriers {
			c.PeerSilent(now, p.Peer, false)
		}
	}
	p.LastHeard = now
	lines.Heard(now, p.Peer)
	for len(body) > 0 {
		f, rest, err := frame.Parse(body)
		if err != nil {
			g.Drop("malformed")
			g.Note("warn", "an authentic datagram has a malformed frame: does the peer run another version?",
				"peer", p.Name, "error", err)
			return
		}
		g.receiveFrame(now, p, f, len(body)-len(rest), info.Newest)
		body = rest
	}
	g.beginAnew(now, p)
	if info.NewBoot { // its receipts, if it has any to give, were in this datagram
		lines.Restarted(p.Peer)
	}
}

// refuse counts what could not be opened, and says what an operator should know of it, at most once a minute and peer.
func (g *Gateway) refuse(now time.Time, from uint16, d Datagram, err error) {
	reason := dropReason(err)
	g.Drop(reason)
	p := g.byID[from]
	if p == nil && !errors.Is(err, seal.ErrOwnID) {
		return
	}
	last := &g.complained
	name := g.cfg.Name
	if p != nil {
		last, name = &p.complained, p.Name
	}
	if now.Sub(*last) < time.Minute {
		return
	}
	switch {
	case errors.Is(err, seal.ErrUnknownBoot):
		// It does not know that we have lost what we knew of it: tell it where its address is known.
		p.Met.Owe(now)
	case errors.Is(err, seal.ErrOwnID):
		g.Note("error", "two nodes with one id: another node of this net sends with our id; give one of them another",
			"id", g.cfg.ID, "address", d.Addr)
	case errors.Is(err, seal.ErrStaleBoot) && now.Sub(p.stale) > time.Minute:
		p.stale = now // one may have been late on its way; a second node sends more
		return
	case errors.Is(err, seal.ErrTwin), errors.Is(err, seal.ErrStaleBoot):
		g.Note("error", "two nodes with one id, or one that was put back to an old copy of its data: what the older one sends is dropped",
			"id", from, "peer", name, "address", d.Addr)
	default:
		return
	}
	*last = now
}

func dropReason(err error) string {
	for reason, e := range map[string]error{
		"short": seal.ErrShort, "version": seal.ErrVersion, "unknown_peer": seal.ErrUnknownPeer,
		"unknown_boot": seal.ErrUnknownBoot, "stale_boot": seal.ErrStaleBoot, "twin": seal.ErrTwin,
		"own_id": seal.ErrOwnID, "replay": seal.ErrReplay, "too_old": seal.ErrTooOld,
	} {
		if errors.Is(err, e) {
			return reason
		}
	}
	return "not_authentic"
}

// receiveFrame takes a frame of a datagram; newest says that none with a higher counter came before it.
func (g *Gateway) receiveFrame(now time.Time, p *peer, f frame.Frame, octets int, newest bool) {
	switch f := f.(type) {
	case frame.Hello:
		p.Ledger.Add(mail.Received, mail.Key, octets)
		g.hello(now, p, f, newest)
		return
	case frame.Silence:
		p.Ledger.Add(mail.Received, mail.Ack, octets)
		g.peerSilent(now, p, f)
		return
	}
	for _, c := range p.bearer.carriers {
		if c.Receive(now, p.Peer, f, octets, newest) {
			return
		}
	}
	g.Drop("p_mul") // it goes another way here
}

// hello learns whom the peer knows, and whether its store or its numbers are new.
func (g *Gateway) hello(now time.Time, p *peer, h frame.Hello, newest bool) {
	met := &p.Met
	switch {
	case met.Store != h.Store && met.Store != 0:
		g.Note("warn", "a peer has lost its store: everything it needs is sent anew", "peer", p.Name)
		met.Store, met.InStream = h.Store, h.Stream
		g.newNumbers(now, p)
		g.newStore(now, p)
	case met.Store != h.Store:
		met.Store, met.InStream, met.Compared = h.Store, h.Stream, g.opener.State(p.ID).Boot
		g.RecordPeer(p.Peer)
	case met.InStream != h.Stream && newest:
		met.InStream = h.Stream
		g.newNumbers(now, p)
	}
	if h.Model != met.Model {
		met.Model = h.Model
		if met.Model != modelOf() {
			g.Note("warn", "a peer has another compaction model: what is for it is only deflated until it runs the same version", "peer", p.Name)
		}
		g.RecordPeer(p.Peer)
	}
	if h.Forgot != met.HeForgot {
		met.HeForgot = h.Forgot
		for _, c := range p.bearer.carriers {
			c.Unlearn(p.Peer)
		}
		g.RecordPeer(p.Peer)
	}
	met.Answered(now, h, g.cfg.Boot.Number)
	if newest {
		g.heed(now, p, h)
	}
	g.compare(now, p, h.Digest)
}

// newNumbers: the peer counts its messages from 1 again.
func (g *Gateway) newNumbers(now time.Time, p *peer) {
	p.Met.Compared, p.Met.Refused = g.opener.State(p.ID).Boot, mail.Taken
	p.Met.Era++
	p.Reader.Forget()
	for _, c := range p.bearer.carriers {
		c.NewNumbers(p.Peer)
	}
	p.far.clear()
	g.RecordPeer(p.Peer)
	g.limited.lost(p.ID)
	g.siteLost(now, p.ID)
}

// newStore: the peer knows nothing of what we sent. What it has not acknowledged goes again under new numbers.
func (g *Gateway) newStore(now time.Time, p *peer) {
	var again []*mail.Entry
	for _, c := range p.bearer.carriers {
		again = append(again, c.NewStore(p.Peer)...)
	}
	for _, e := range again {
		if e.Content.Payload != nil { // state is told afresh
			g.submit(now, p, e.Content, e.Kind)
		}
	}
	g.replica.Forget(p.ID)
	g.RecordPeer(p.Peer)
}

// modelOf is what a HELLO says of the compaction model.
func modelOf() uint16 {
	h := compact.ModelHash()
	return binary.BigEndian.Uint16(h[:])
}

// Hello is what a HELLO to a peer says now.
func (g *Gateway) Hello(now time.Time, p *mail.Peer) frame.Hello {
	h := frame.Hello{Store: g.cfg.Store, Stream: p.Met.Stream, HeardBoot: g.opener.State(p.ID).Boot,
		HeardStream: p.Met.InStream, Digest: g.replica.Digest(now, p.ID), Model: modelOf(), Forgot: p.Met.Forgot}
	g.byID[p.ID].bearer.lines.Numbers(p).Tell(&h)
	return h
}

// Texts codes for peers that have our model; nil for others, who get what deflate makes of it.
func (g *Gateway) Texts(to ...*mail.Peer) *envelope.Texts {
	for _, p := range to {
		if p.Met.Model != modelOf() {
			return nil
		}
	}
	return &envelope.Texts{Coder: &g.coder, Rules: g.cfg.Rules}
}

// Open reads a message in its turn and hands it to its face, or takes it as news of the peer's site.
func (g *Gateway) Open(now time.Time, from *mail.Peer, at mail.Attempt, body []byte) error {
	p := g.byID[from.ID]
	m, err := p.Reader.Read(&g.coder, at, body)
	if err != nil {
		return err
	}
	if m.Payload != nil && !g.mayArrive(now, p.ID, m.Payload) {
		g.Drop("filter")
		return nil
	}
	if m.Payload != nil {
		m.Payload.ID = messageID(p, token(p, at))
		full, err := envelope.Append(nil, m, 0, true)
		if err != nil {
			return err
		}
		t := token(p, at)
		g.Record(bucketDeliver, tokenKey(t), full)
		p.Counts.Received++
		p.Counts.Pending++
		p.Opened = mail.Payload
		g.deliver(now, site.FarMessage{Site: p.ID, Token: t, Message: *m.Payload})
	}
	g.openState(now, p, m)
	for _, c := range p.bearer.carriers {
		c.Again(now, from, m.Again)
	}
	return nil
}

// messageID is a UUID's text that names a message of a peer the same whenever it is delivered.
func messageID(p *peer, token uint64) string {
	b := []byte("aldis message")
	b = binary.BigEndian.AppendUint32(b, p.Met.Store)
	b = append(b, p.Met.InStream)
	b = binary.BigEndian.AppendUint64(b, token)
	h := sha256.Sum256(b)
	h[6] = h[6]&0x0f | 0x80 // version 8, variant 10 (RFC 9562)
	h[8] = h[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
