package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"aldis/internal/link/compact"
	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
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
	g.recordSeal(p)
	p.count.DatagramsReceived++
	p.ledger.add(received, kindHeader, profile.IPUDPOctets+seal.OverheadShort)
	if info.Long {
		p.ledger.add(received, kindKey, seal.OverheadLong-seal.OverheadShort)
		if !p.owesHello {
			p.owesHello = true
			p.helloDue = earlier(p.helloDue, now.Add(g.cfg.Profile.AckDelay))
		}
	}
	if info.NewBoot {
		p.knowsUs = false
		g.note("info", "a peer has started", "peer", p.Name, "boot", info.Boot.Number)
	}
	if info.Newest && p.addr != d.Addr {
		if p.lastHeard.IsZero() {
			g.note("info", "heard from a peer", "peer", p.Name, "address", d.Addr)
		} else {
			g.note("info", "a peer has moved", "peer", p.Name, "from", p.addr, "to", d.Addr)
		}
		p.addr = d.Addr
		g.recordPeer(p)
	}
	if p.sender.Dead() && !p.lastHeard.IsZero() {
		g.note("info", "the link to a peer is back", "peer", p.Name, "silent_for", now.Sub(p.lastHeard).Round(time.Second))
	}
	if p.sender.IsListening() {
		g.note("info", "a peer has ended its silence", "peer", p.Name)
		g.mulPeerSilent(now, p, false)
	}
	p.lastHeard = now
	p.sender.Heard(now)
	for len(body) > 0 {
		f, rest, err := frame.Parse(body)
		if err != nil {
			g.stats.Dropped["malformed"]++
			g.note("warn", "an authentic datagram has a malformed frame: does the peer run another version?",
				"peer", p.Name, "error", err)
			return
		}
		g.receiveFrame(now, p, f, len(body)-len(rest), info.Newest)
		body = rest
	}
	if info.NewBoot { // its receipts, if it has any to give, were in this datagram
		p.sender.Again()
	}
}

// refuse counts what could not be opened, and says what an operator should know of it, at most once a minute and peer.
func (g *Gateway) refuse(now time.Time, from uint16, d Datagram, err error) {
	reason := dropReason(err)
	g.stats.Dropped[reason]++
	p := g.byID[from]
	if p == nil && !errors.Is(err, seal.ErrOwnID) {
		return
	}
	last := &g.stats.complain
	name := g.cfg.Name
	if p != nil {
		last, name = &p.complain, p.Name
	}
	if now.Sub(*last) < time.Minute {
		return
	}
	switch {
	case errors.Is(err, seal.ErrUnknownBoot):
		// It does not know that we have lost what we knew of it: tell it where its address is known.
		p.owesHello = true
		p.helloDue = earlier(p.helloDue, now)
	case errors.Is(err, seal.ErrOwnID):
		g.note("error", "two nodes with one id: another node of this net sends with our id; give one of them another",
			"id", g.cfg.ID, "address", d.Addr)
	case errors.Is(err, seal.ErrStaleBoot) && now.Sub(p.stale) > time.Minute:
		p.stale = now // one may have been late on its way; a second node sends more
		return
	case errors.Is(err, seal.ErrTwin), errors.Is(err, seal.ErrStaleBoot):
		g.note("error", "two nodes with one id, or one that was put back to an old copy of its data: what the older one sends is dropped",
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
		p.ledger.add(received, kindKey, octets)
		g.hello(now, p, f)
	case frame.Receipt:
		p.ledger.add(received, kindAck, octets)
		g.receipt(now, p, f)
	case frame.Probe:
		p.ledger.add(received, kindAck, octets)
		p.receiver.Probed(now)
		if len(p.answers) < 4 {
			p.answers = append(p.answers, f.ID)
		}
	case frame.Answer:
		p.ledger.add(received, kindAck, octets)
		p.sender.Answer(now, f.ID)
	case frame.Data:
		g.receiveData(now, p, f, octets, newest)
	case frame.Silence:
		p.ledger.add(received, kindAck, octets)
		g.peerSilent(p, f)
	case frame.PMul:
		g.receiveMul(now, p, f.Body, octets)
	case frame.NORM:
		g.receiveNORM(now, p, f.Body, octets)
	}
}

func (g *Gateway) receipt(now time.Time, p *peer, r frame.Receipt) {
	for _, id := range p.sender.Receipt(now, r) {
		g.acked(now, p, id)
	}
}

// receiveData takes a message of the direct lane. Numbers cut to 8 bits are understood in the order in which they were
// sent: what comes in behind something newer counts as lost.
func (g *Gateway) receiveData(now time.Time, p *peer, f frame.Data, octets int, newest bool) {
	if f.Rides {
		p.ledger.add(received, kindAck, 1)
		octets--
		if newest {
			g.receipt(now, p, frame.Receipt{Lane: frame.Direct, Cumulative: p.sender.Widen(frame.Direct, f.Cumulative)})
		}
	}
	if f.Short {
		if !newest {
			g.stats.Dropped["late"]++
			p.ledger.add(received, kindRepair, octets)
			return
		}
		f.Number = p.receiver.Widen(frame.Direct, uint8(f.Number))
	}
	kind := kindPayload
	id, fresh := p.receiver.Accept(now, frame.Direct, f.Number, f.Prompt)
	switch fresh {
	case custody.New:
		g.arrived(now, p, id, slices.Clone(f.Body))
		kind = p.count.lastKind
	case custody.Duplicate:
		p.count.Duplicates++
		kind = kindRepair
	case custody.Beyond:
		g.stats.Dropped["beyond_window"]++
	}
	p.ledger.add(received, kind, octets)
}

// hello learns whom the peer knows, and whether its store or its numbers are new.
func (g *Gateway) hello(now time.Time, p *peer, h frame.Hello) {
	switch {
	case p.store != h.Store && p.store != 0:
		g.note("warn", "a peer has lost its store: everything it needs is sent anew", "peer", p.Name)
		p.store, p.inStream = h.Store, h.Stream
		g.resetReceiving(now, p)
		g.resetSending(p)
	case p.store != h.Store:
		p.store, p.inStream = h.Store, h.Stream
		g.recordPeer(p)
	case p.inStream != h.Stream:
		p.inStream = h.Stream
		g.resetReceiving(now, p)
	}
	if h.Model != p.model {
		p.model = h.Model
		if p.model != modelOf() {
			g.note("warn", "a peer has another compaction model: what is for it is only deflated until it runs the same version", "peer", p.Name)
		}
		g.recordPeer(p)
	}
	if h.Forgot != p.heForgot {
		p.heForgot = h.Forgot
		p.sentBefore, p.learnFrom = envelope.Histories{}, p.sender.Next(frame.Direct)
		g.mulUnlearn(p)
		g.recordPeer(p)
	}
	knew := p.knowsUs
	p.knowsUs = h.HeardBoot == g.cfg.Boot.Number && h.HeardStream == p.stream
	if p.knowsUs {
		p.helloTries = 0
		if !p.owesHello {
			p.helloDue = time.Time{}
		}
	} else if knew {
		p.helloDue = earlier(p.helloDue, now)
	}
	g.compare(now, p, h.Digest)
}

// resetReceiving: the peer counts its messages from 1 again.
func (g *Gateway) resetReceiving(now time.Time, p *peer) {
	for id := range p.held {
		g.record(bucketEarly, idKey(p.ID, id), nil)
	}
	for number := range p.inFlows {
		g.record(bucketInFlow, flowKey(p.ID, number), nil)
	}
	g.forgetBefore(p)
	p.held = map[custody.ID][]byte{}
	p.inFlows = map[uint32]envelope.Flow{}
	p.receiver = custody.NewReceiver(g.custody, [frame.Lanes]uint64{})
	p.normwire.Forget()
	g.forgetOrder(p)
	for key := range p.far {
		g.record(bucketFar, peerKey(p.ID, []byte(key)), nil)
	}
	p.far = map[string]site.Item{}
	g.recordPeer(p)
	g.slowLost(p.ID)
	g.siteLost(now, p.ID)
}

// resetSending: the peer knows nothing of what we sent. What it has not acknowledged goes again under new numbers.
func (g *Gateway) resetSending(p *peer) {
	var again []*message
	for lane := range frame.Lane(frame.Lanes) {
		for _, id := range p.underWayIn(lane) {
			g.record(bucketOut, idKey(p.ID, id), nil)
			again = append(again, p.underWay[id])
		}
		for _, m := range p.waiting[lane] {
			g.record(bucketWaiting, seqKey(p.ID, m.seq), nil)
			again = append(again, m)
		}
	}
	for _, f := range p.flows {
		g.record(bucketFlow, flowKey(p.ID, f.number), nil)
	}
	g.resetBulk(p)
	p.stream++
	p.sender = custody.NewSender(g.custody, [frame.Lanes]uint64{1, 1})
	p.flows, p.nextFlow = map[envelope.Flow]*flow{}, 1
	p.sentBefore, p.settled, p.learnFrom = envelope.Histories{}, map[uint64]*message{}, 1
	g.mulForget(p)
	p.waiting, p.underWay, p.octets = [frame.Lanes][]*message{}, map[custody.ID]*message{}, 0
	p.latest, p.expiry = map[string]*message{}, time.Time{}
	for _, m := range again {
		if m.content.Payload != nil { // state is told afresh
			g.enqueue(p, &message{content: m.content, kind: m.kind})
		}
	}
	g.replica.Forget(p.ID)
	g.recordPeer(p)
}

// acked: the peer has a message of ours in its store.
func (g *Gateway) acked(now time.Time, p *peer, id custody.ID) {
	m := p.underWay[id]
	if m == nil {
		return
	}
	delete(p.underWay, id)
	p.octets -= len(m.full)
	g.record(bucketOut, idKey(p.ID, id), nil)
	if m.content.Payload != nil {
		p.count.Delivered++
		g.ended(m.content.Payload, false)
		defer g.tellFates(now)
	}
	for _, h := range g.replica.Acked(p.ID, stateKeyOf(m, id)) {
		g.recordHeld(p, h.Key, h.Gone, h.Version)
	}
	g.bulkAcked(p, id)
	g.settle(p, id, m)
}

// arrived keeps a message that is new and delivers what is in order now.
func (g *Gateway) arrived(now time.Time, p *peer, id custody.ID, body []byte) {
	p.held[id] = body
	p.count.lastKind = kindPayload
	if next, ok := p.receiver.Next(id.Lane); !ok || next != id {
		g.record(bucketEarly, idKey(p.ID, id), body)
	}
	for next, ok := p.receiver.Next(id.Lane); ok; next, ok = p.receiver.Next(id.Lane) {
		h := p.held[next]
		delete(p.held, next)
		if next != id {
			g.record(bucketEarly, idKey(p.ID, next), nil)
		}
		err := g.open(now, p, next, h)
		if errors.Is(err, compact.ErrModel) || errors.Is(err, compact.ErrHistory) {
			// Coded with what we do not have: its sender learns that from our HELLO, and codes it otherwise.
			p.receiver.Reject(now, next)
			p.owesHello, p.helloDue = true, earlier(p.helloDue, now)
			if errors.Is(err, compact.ErrHistory) {
				p.forgot++
				g.forgetBefore(p)
			}
			g.note("info", "a message coded with another model is asked for again", "peer", p.Name, "number", next.Number, "error", err)
			break
		}
		p.receiver.Advance(id.Lane)
		if err != nil {
			p.count.Unreadable++
			g.note("error", "a message of a peer cannot be read and is dropped: does it run another version?",
				"peer", p.Name, "number", next.Number, "error", err)
		}
	}
	g.recordPeer(p)
}

// open reads a message in its turn.
func (g *Gateway) open(now time.Time, p *peer, id custody.ID, body []byte) error {
	lookup := func(number uint32) (envelope.Flow, bool) {
		f, ok := p.inFlows[number]
		return f, ok
	}
	texts := &envelope.Texts{Coder: &g.coder}
	if id.Lane == frame.Direct || id.Lane == mulLane {
		texts.Decode = p.gotBefore.Decode(&g.coder, id.Number)
	}
	m, number, defined, err := envelope.ParseCoded(body, lookup, texts)
	if err != nil {
		return err
	}
	switch {
	case m.Payload == nil:
	case id.Lane == frame.Direct:
		g.learn(p, number, id.Number, m.Payload)
	case id.Lane == mulLane:
		g.learnLate(p, number, id.Number, m.Payload)
	}
	if defined != "" && number != 0 && p.inFlows[number] != defined {
		if len(p.inFlows) >= maxFlows {
			return fmt.Errorf("%w: more than %d flows", envelope.ErrLimit, maxFlows)
		}
		p.inFlows[number] = defined
		g.record(bucketInFlow, flowKey(p.ID, number), []byte(defined))
	}
	if m.Payload != nil && !g.mayArrive(now, p.ID, m.Payload) {
		g.stats.Dropped["filter"]++
		return nil
	}
	if m.Payload != nil {
		m.Payload.ID = messageID(p, id)
		full, err := envelope.Append(nil, m, 0, true)
		if err != nil {
			return err
		}
		t := token(p.ID, id)
		g.record(bucketDeliver, tokenKey(t), full)
		p.count.Received++
		p.count.Pending++
		p.count.lastKind = kindPayload
		g.deliver(now, site.FarMessage{Site: p.ID, Token: t, Message: *m.Payload})
	}
	g.openState(now, p, m)
	g.mulAgain(now, p, m.Again)
	return nil
}

// maxFlows bounds what a peer may make us remember: combinations of group, pipe, sender and shape of message.
const maxFlows = 1 << 16

// messageID is a UUID's text that names a message of a peer the same whenever it is delivered.
func messageID(p *peer, id custody.ID) string {
	b := []byte("aldis message")
	b = binary.BigEndian.AppendUint16(b, p.ID)
	b = binary.BigEndian.AppendUint32(b, p.store)
	b = append(b, p.inStream, byte(id.Lane))
	b = binary.BigEndian.AppendUint64(b, id.Number)
	h := sha256.Sum256(b)
	h[6] = h[6]&0x0f | 0x80 // version 8, variant 10 (RFC 9562)
	h[8] = h[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
