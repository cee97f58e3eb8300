package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/hearing"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// receive takes a datagram; one that does not count may still be answered.
func (g *Gateway) receive(now time.Time, d api.Datagram) {
	b := g.bearers[d.Bearer]
	if seal.IsIntroduction(d.Data) {
		if g.link.touched = b.keys.Introduced(now, d); g.link.touched {
			g.part(now)
		}
		return
	}
	if sealed, again := seal.Original(d.Data); again {
		g.again(now, b, d, sealed)
		return
	}
	o := b.keys.Open(now, d, b.silence.byOrder())
	info, body := o.Info, o.Body
	var p *leg
	if known := g.byID[o.From]; known != nil {
		p = known.legs[b.index]
	}
	if !o.Taken {
		g.link.touched = !o.Idle
		if p != nil {
			g.answer(now, p, &o)
		}
		return
	}
	p.Counts.DatagramsReceived++
	p.bearer.Air.Heard(now, &p.bearer.Profile, len(d.Data))
	for _, c := range p.bearer.Channels {
		c.OnAir(now, p.Peer, len(d.Data))
	}
	if b.Others != nil {
		b.Others.Overhear(g.groups.repeatable(b, d.Data, info))
	}
	p.Ledger.Head(mail.Received, info.Long)
	p.Ledger.Add(mail.Received, mail.Key, info.Proofs)
	if info.Long && !p.Handshake.Owed && !(info.Group && p.Link.Together()) { // a greeting says itself who is to answer
		p.Handshake.Owe(now.Add(p.bearer.Profile.AckDelay))
	}
	if info.NewIncarnation {
		p.Handshake.KnowsUs, p.Handshake.Started = false, true
		for _, c := range p.bearer.Channels {
			c.Started(p.Peer)
		}
		g.Note("info", "a peer has started", append(p.named(), "incarnation", info.Incarnation.Number)...)
	}
	first := p.Enrolled && p.LastHeard.IsZero() // it has answered at the address where it was believed to be
	if before := p.Addr; info.Newest && !p.bearer.lines.needed && (p.Heard(now, d.Addr, info.NewIncarnation) || first) {
		if p.LastHeard.IsZero() {
			g.Note("info", "a peer was heard for the first time since the start", append(p.named(), "address", d.Addr)...)
		} else {
			g.Note("info", "a peer has moved", append(p.named(), "from", before, "to", d.Addr)...)
		}
		p.Link.RecordPaths()
	}
	if p.Link.Dead() && p.link.word == linkSilent && !p.LastHeard.IsZero() {
		g.Note("info", "the link to a peer is back", append(p.named(), "silent_for", now.Sub(p.LastHeard).Round(time.Second))...)
	}
	if p.Link.Listening() {
		g.Note("info", "a peer has ended its silence", p.named()...)
		for _, c := range p.bearer.Carriers {
			c.PeerSilent(now, p.Peer, false)
		}
	}
	p.LastHeard = now
	p.Link.Heard(now)
	p.Stamp = mail.Stamp{Incarnation: info.Incarnation.Number, Counter: info.Counter}
	for len(body) > 0 {
		f, rest, err := frame.Parse(body)
		if err != nil {
			g.Drop("malformed")
			g.Note("warn", "an authentic datagram has a malformed frame; it is dropped. Does the peer run another version?",
				"peer", p.Name, "error", err)
			return
		}
		g.receiveFrame(now, p, f, len(body)-len(rest), info.Newest)
		body = rest
	}
	g.beginAnew(now, p)
	if o.Again { // its acknowledgements, if it has any to give, were in this datagram
		p.Link.Restarted()
	}
}

// again takes a datagram of a peer that another node has transmitted again, for the P_Mul frames in it.
func (g *Gateway) again(now time.Time, b *bearer, d api.Datagram, sealed []byte) {
	from, body, known, err := b.keys.OpenAgain(sealed)
	if g.link.touched = err == nil && b.Others != nil && g.byID[from] != nil && g.byID[from].legs[b.index] != nil; !g.link.touched {
		g.Drop("again")
		return
	}
	b.Air.Heard(now, &b.Profile, len(d.Data))
	for _, p := range g.peers {
		if by := p.legs[b.index]; by != nil && by.Addr == d.Addr {
			for _, c := range b.Channels {
				c.OnAir(now, by.Peer, len(d.Data))
			}
		}
	}
	p := g.byID[from].legs[b.index]
	for len(body) > 0 {
		f, rest, err := frame.Parse(body)
		if err != nil {
			g.Drop("malformed")
			return
		}
		if f, ok := f.(frame.PMul); ok {
			p.Ledger.Came(len(body) - len(rest))
			p.Ledger.Named(mail.Repair, len(body)-len(rest))
			b.Others.Again(now, p.Peer, sealed, f, known)
		}
		body = rest
	}
}

// receiveFrame takes a frame of a datagram; newest says that none with a higher counter came before it.
func (g *Gateway) receiveFrame(now time.Time, p *leg, f frame.Frame, octets int, newest bool) {
	switch f := f.(type) {
	case frame.Hello:
		p.Ledger.Add(mail.Received, mail.Key, octets)
		g.greeted(now, p, f, newest)
		if f.HeardIncarnation != 0 {
			g.groups.hearing.Greets(now, p.bearer.index, p.started(), []hearing.Name{{ID: g.cfg.ID, Start: f.HeardIncarnation}}, false)
		}
		return
	case frame.Greeting:
		p.Ledger.Add(mail.Received, mail.Key, octets)
		if h, _, ok := f.For(g.cfg.ID); ok {
			g.greeted(now, p, h, newest)
		}
		p.Link.Greeting(now, f)
		g.keys.Rosters.Heard(p.ID, f)
		g.groups.greeted(now, p, f)
		return
	case frame.LinkProbe:
		p.bearer.linkProbes.receive(now, p, f, octets)
		return
	case frame.Beside:
		p.Ledger.Add(mail.Received, mail.Ack, octets)
		if l := p.of.at(f.Bearer); l != nil {
			for _, c := range l.bearer.Handovers {
				c.Acked(now, l.Peer, f)
			}
		}
		return
	case frame.Silence:
		p.Ledger.Add(mail.Received, mail.Ack, octets)
		g.peerSilent(now, p, f)
		return
	}
	if g.groups.receive(now, p, f, octets) || g.queries.receive(now, p, f, octets) || g.rollups.receive(now, p, f, octets) {
		return
	}
	for _, c := range p.bearer.Carriers {
		if c.Receive(now, p.Peer, f, octets, newest) {
			return
		}
	}
	g.Drop("p_mul") // it goes another way here
}

// greeted learns whom the peer knows, and whether its store or its numbers are new.
func (g *Gateway) greeted(now time.Time, p *leg, h frame.Hello, newest bool) {
	keys := p.bearer.keys
	keys.Hear(now, p.ID, h)
	met := &p.Handshake
	switch {
	case met.Store != h.Store && met.Store != 0:
		g.Note("warn", "a peer has lost its store; the gateway sends it everything it needs again", "peer", p.Name)
		met.Store, met.InStream = h.Store, h.Stream
		g.newNumbers(now, p)
		g.newStore(now, p, true)
	case met.Store != h.Store:
		if met.InStream != 0 && met.InStream != h.Stream { // a message from another bearer has named another stream
			g.newNumbers(now, p)
		}
		met.Store, met.InStream, met.Compared = h.Store, h.Stream, keys.Incarnation(p.ID)
		g.RecordPeer(p.Peer)
	case met.InStream != h.Stream && newest:
		met.InStream = h.Stream
		g.newNumbers(now, p)
	}
	if h.Model != met.Model {
		met.Model = h.Model
		if met.Model != modelOf() {
			g.Note("warn", "a peer has another compaction model; messages for it are only deflated until both run the same version", "peer", p.Name)
		}
		g.RecordPeer(p.Peer)
	}
	if g.coders.differs(p.Peer, h.Corpus) {
		g.Note("info", "a peer lacks this node's corpus; messages for it are coded with the built-in model", "peer", p.Name, "has_another", h.Corpus != 0)
	}
	met.Corpus = h.Corpus
	if h.Forgot != met.PeerForgot {
		met.PeerForgot = h.Forgot
		if times := p.of.forgets.noteForgotten(now); times > mostForgets {
			g.Note("warn", "a peer reports again and again that it cannot read messages of this node", "peer", p.Name, "times", times)
		}
		for _, c := range p.bearer.Carriers {
			c.Unlearn(p.Peer)
		}
		g.RecordPeer(p.Peer)
	}
	if h.Segments != met.Segments || h.Ahead != met.Ahead {
		met.Segments, met.Ahead = h.Segments, h.Ahead
		g.RecordPeer(p.Peer)
	}
	met.Answered(now, h, g.cfg.Incarnation.Number)
	met.Placed = met.Placed || newest
	if newest {
		news := keys.Agree(p.ID, h)
		if g.cfg.TakesOver && !keys.Lacks(p.ID) { // any next datagram of this node shows that it has the peer's key
			news = false
		}
		if news && !met.Owed {
			met.Owe(now.Add(p.bearer.Profile.AckDelay))
		}
		p.Link.Compare(now, h, keys.Incarnation(p.ID))
		for _, c := range p.bearer.Channels {
			c.Compare(now, p.Peer, h)
		}
	}
	if h.Digest != 0 && !p.of.asks() && p.of.far.differs(now, h.Digest) {
		g.ask(now, p.of)
	}
}

// forgets counts how often a peer has said that it cannot read messages of this node.
type forgets struct {
	times int
	since time.Time
}

// mostForgets is how often it may say so in a minute, before the log reports it.
const mostForgets = 10

// noteForgotten counts one. times is how many there were in a minute that is over; 0: it is not.
func (f *forgets) noteForgotten(now time.Time) (times int) {
	f.times++
	if now.Sub(f.since) < time.Minute {
		return 0
	}
	times = f.times
	f.times, f.since = 0, now
	return times
}

// newNumbers: the peer counts its messages from 1 again.
func (g *Gateway) newNumbers(now time.Time, p *leg) {
	p.bearer.keys.Close(p.ID)
	p.Handshake.Compared, p.Handshake.Refused = p.bearer.keys.Incarnation(p.ID), mail.Taken
	for _, c := range p.bearer.Carriers {
		c.NewNumbers(now, p.Peer)
	}
	p.Handshake.Era++
	p.forgetEmptied()
	p.Reader.Forget()
	p.of.far.clear()
	g.RecordPeer(p.Peer)
	g.crossing.limited.lost(p.ID)
	g.siteLost(now, p.ID)
}

// newStore: the peer knows nothing of our messages. Those that it has not acknowledged go again under new numbers. lostStore: the peer
// does not know its own messages either, so that notices name none of them any more.
func (g *Gateway) newStore(now time.Time, p *leg, lostStore bool) {
	var again []*mail.Entry
	for _, c := range p.bearer.Carriers {
		again = append(again, c.NewStore(p.Peer)...)
	}
	lost := 0
	for _, e := range again {
		content := e.Content
		if lostStore {
			content.Lost = nameless(content.Lost)
		}
		payload := content.Payload
		if payload == nil && len(content.Lost) == 0 || g.submit(now, p.Peer, content, e.Kind) { // other state is sent afresh
			continue
		}
		if payload == nil {
			p.of.ends.back(now, content.Lost)
			continue
		}
		p.Counts.Cancelled++
		g.adapters.ended(payload, site.Cancelled)
		lost++
	}
	if lost > 0 {
		g.Note("warn", "messages were cancelled: a peer lost its store, and its queue has no room to send them all again", "peer", p.Name, "given_up", lost)
	}
	g.replica.Forget(p.ID)
	g.RecordPeer(p.Peer)
}

// modelOf is the mark of the compaction model in a HELLO.
func modelOf() uint16 {
	h := compact.ModelHash()
	return binary.BigEndian.Uint16(h[:])
}

// Texts codes for peers that have our model; nil for others, whose messages are only deflated.
func (g *Gateway) Texts(to ...*mail.Peer) *envelope.Texts {
	for _, p := range to {
		if p.Handshake.Model != modelOf() {
			return nil
		}
	}
	return &envelope.Texts{Coder: g.coders.to(to...), Rules: g.cfg.Rules}
}

// Open reads a message in its turn and hands it to its adapter, or takes it as news of the peer's site.
func (g *Gateway) Open(now time.Time, from *mail.Peer, at mail.TransmissionID, body []byte) error {
	for {
		if err := g.OpenSlice(now, from, at, body); !errors.Is(err, compact.ErrUnfinished) {
			return err
		}
	}
}

// OpenSlice is Open, as far as this turn of the loop has room for the model's work.
func (g *Gateway) OpenSlice(now time.Time, from *mail.Peer, at mail.TransmissionID, body []byte) error {
	p := legOf(g, from)
	coder := g.coders.of(p.Peer)
	work := coder.Work()
	m, err := p.Reader.Read(coder, at, body, p.Turn.Left())
	octets := m.Octets()
	if errors.Is(err, envelope.ErrLimit) {
		octets = envelope.MostExpanded(len(body))
		g.Drop("beyond_limit")
	}
	p.Turn.Spent(coder.Work()-work, octets)
	if err != nil {
		return err
	}
	if len(m.Moved) > 0 {
		if m, err = moved(g, p.of, m); err != nil {
			return err
		}
	}
	p.Ledger.Read(&m, len(body))
	if m.Payload != nil && m.Payload.Adapter == site.Relay {
		p.Opened = mail.Payload
		passOn(g, now, p, m.Payload)
		return nil
	}
	if m.Payload != nil {
		carried(p, now, len(body))
	}
	if m.Payload != nil && !g.cfg.Filter.Empty() && !g.crossing.carries(now, site.In, p.ID, g.adapters.describe(m.Payload)) {
		g.Drop("filter")
		return nil
	}
	if m.Payload != nil {
		far, err := p.of.ends.keep(now, from, m, at)
		if err != nil {
			return err
		}
		p.Opened = mail.Payload
		g.deliver(now, far)
	}
	p.empty(m, at)
	g.openState(now, p, m)
	for _, c := range p.bearer.Channels {
		c.Resend(now, from, m.Again)
	}
	return nil
}

// messageID is a UUID's text that names a message of a peer the same whenever it is delivered.
func messageID(peer uint16, o origin) string {
	b := []byte("aldis message")
	b = binary.BigEndian.AppendUint16(b, peer)
	b = binary.BigEndian.AppendUint32(b, o.store)
	b = append(b, o.stream, byte(o.at.Queue))
	b = binary.BigEndian.AppendUint64(b, o.at.Number)
	if o.era != 0 { // version 0.1 had none
		b = binary.BigEndian.AppendUint16(b, o.era)
	}
	b = append(b, o.bearer...)
	h := sha256.Sum256(b)
	h[6] = h[6]&0x0f | 0x80 // version 8, variant 10 (RFC 9562)
	h[8] = h[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
