package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"aldis/internal/link/compact"
	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/replica"
	"aldis/internal/link/seal"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// mul is the P_Mul carrier: with it every message, state included, is one P_Mul message to all that it is for. Its
// Ack_PDUs are the receipts of custody; HELLO stays with each peer's own datagrams. P_Mul itself knows no order; the
// Message_Sequence_Number puts messages of one sender into it (mulorder.go).
type mul struct {
	cfg      pmul.Config
	sender   *pmul.Sender
	receiver *pmul.Receiver
	dues     [2]time.Time // of sender and receiver
	out      map[pmul.MessageID]*mulMessage
	flows    map[envelope.Flow]*mulFlow
	nextFlow uint32
	ref      uint64
	answer   pmul.Accepted // of the Submit being stepped
	telling  int           // own messages with state that have not ended
	ledger   ledger        // of what went to the group
	kinds    map[pmul.MessageID]ledgerKind
	ended    endedMessages
	latest   map[string]pmul.MessageID // by what they supersede
}

// mulMessage is a message of ours that has not ended for everybody.
type mulMessage struct {
	content envelope.Message
	flow    envelope.Flow // that it defines
	to      map[uint16]bool
	octets  int // as journalled
}

// waitingFor counts what a peer has not acknowledged, and its octets.
func (m *mul) waitingFor(peer uint16) (messages, octets int) {
	for _, msg := range m.out {
		if msg.to[peer] {
			messages++
			octets += msg.octets
		}
	}
	return messages, octets
}

// mulFlow is a number that all peers read alike. Messages may overtake each other, so it is spelt out until everybody
// concerned has acknowledged a message that did so.
type mulFlow struct {
	number uint32
	known  map[uint16]bool
	sent   []*mulSent // in this run, the newest last
}

const (
	mulLane     = 2 // in tokens: beside the lanes of custody
	mulLifetime = 24 * time.Hour
	mulTelling  = 4 // messages with state under way

	mulGroup pmul.GroupAddr = 1

	// The frame's head, and what several PDUs in one datagram may come to beyond the engine's estimate.
	mulMargin = frame.NORMOverhead + 7

	bucketMulOut  = "mul-out"  // Message_ID -> peers, flow's number or 0, envelope in full
	bucketMulFlow = "mul-flow" // number -> peers that know it, flow
)

// newMul starts the carrier from the journal where the profile asks for it.
func (g *Gateway) newMul(records []Record) error {
	if g.cfg.Profile.Transport != profile.PMul {
		return nil
	}
	rng := g.cfg.Rand
	if rng == nil {
		rng = rand.New(rand.NewPCG(uint64(g.cfg.ID), uint64(g.cfg.Boot.Number)))
	}
	m := &mul{out: map[pmul.MessageID]*mulMessage{}, flows: map[envelope.Flow]*mulFlow{}, nextFlow: 1, kinds: map[pmul.MessageID]ledgerKind{}, latest: map[string]pmul.MessageID{}}
	m.cfg = pmul.ConfigFor(g.cfg.Profile, pmul.NodeID(g.cfg.ID), pmul.Compact, seal.OverheadLong, rng)
	m.cfg.DatagramOctets -= mulMargin
	m.cfg.AckHold = g.cfg.Profile.AckDelay / 2 // for something to ride on: docs/decisions/pmul-carrier.md
	m.cfg.Group = mulGroup
	m.cfg.AckGroup = g.cfg.Group.IsValid() // else a datagram to all is a copy to each
	for _, p := range g.peers {
		m.cfg.Peers = append(m.cfg.Peers, pmul.NodeID(p.ID))
	}
	var journal []pmul.Record
	for _, r := range records {
		if strings.HasPrefix(r.Bucket, "pmul-") {
			journal = append(journal, pmul.Record{Bucket: r.Bucket, Key: r.Key, Value: r.Value})
		}
	}
	var err error
	if m.sender, err = pmul.NewSender(m.cfg, journal); err != nil {
		return err
	}
	if m.receiver, err = pmul.NewReceiver(m.cfg, journal); err != nil {
		return err
	}
	g.mul = m
	for _, r := range records {
		switch r.Bucket {
		case bucketMulFlow:
			err = errors.Join(err, m.restoreFlow(r))
		case bucketMulOut:
			err = errors.Join(err, g.restoreMulOut(r))
		case bucketMulNext, bucketMulEarly:
			err = errors.Join(err, g.restoreOrder(r))
		}
	}
	return err
}

func (m *mul) due() time.Time { return earlier(m.dues[0], m.dues[1]) }

func appendPeers(b []byte, peers map[uint16]bool) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(peers)))
	for _, id := range slices.Sorted(maps.Keys(peers)) {
		b = binary.BigEndian.AppendUint16(b, id)
	}
	return b
}

func cutPeers(b []byte) (peers map[uint16]bool, rest []byte, ok bool) {
	if len(b) < 2 || len(b) < 2+2*int(binary.BigEndian.Uint16(b)) {
		return nil, nil, false
	}
	peers = map[uint16]bool{}
	n := int(binary.BigEndian.Uint16(b))
	for i := range n {
		peers[binary.BigEndian.Uint16(b[2+2*i:])] = true
	}
	return peers, b[2+2*n:], true
}

func (m *mul) restoreFlow(r Record) error {
	known, flow, ok := cutPeers(r.Value)
	if !ok || len(r.Key) != 4 {
		return fmt.Errorf("%w: %s %x", errRecord, r.Bucket, r.Key)
	}
	number := binary.BigEndian.Uint32(r.Key)
	m.flows[envelope.Flow(flow)] = &mulFlow{number: number, known: known}
	m.nextFlow = max(m.nextFlow, number+1)
	return nil
}

func (g *Gateway) restoreMulOut(r Record) error {
	to, rest, ok := cutPeers(r.Value)
	if !ok || len(r.Key) != 4 || len(rest) < 1 {
		return fmt.Errorf("%w: %s %x", errRecord, r.Bucket, r.Key)
	}
	content, _, defined, err := envelope.Parse(rest[1:], nil)
	if err != nil {
		return fmt.Errorf("%w: %s %x: %v", errRecord, r.Bucket, r.Key, err)
	}
	id := pmul.MessageID(binary.BigEndian.Uint32(r.Key))
	m := &mulMessage{content: content, to: to, octets: len(rest) - 1}
	if rest[0] != 0 {
		m.flow = defined
	}
	g.mul.keep(id, m)
	if content.Payload != nil {
		g.remark(content.Payload)
		g.mul.newest(id, content.Payload)
	}
	for peer := range to {
		g.replica.Sent(peer, mulKey(id), content.Items)
	}
	return nil
}

func (m *mul) keep(id pmul.MessageID, msg *mulMessage) {
	m.out[id] = msg
	m.kinds[id] = kindPayload
	if msg.content.Payload == nil {
		m.telling++
		m.kinds[id] = kindOf(msg.content.Items)
	}
}

// mulKey names a message to the replica.
func mulKey(id pmul.MessageID) uint64 { return 1<<59 | uint64(id) }

// startMul is the first Step: the engines hear whether this node is silent, and go on where they were.
func (g *Gateway) startMul(now time.Time) {
	if g.mul == nil {
		return
	}
	g.mulSilent(now, g.silence.on)
	for _, p := range g.peers {
		if p.sender.IsListening() {
			g.mulPeerSilent(now, p, true)
		}
	}
}

func (g *Gateway) mulSilent(now time.Time, silent bool) {
	if g.mul != nil {
		g.mulSender(now, pmul.EMCON{Silent: silent})
		g.mulReceiver(now, pmul.EMCON{Silent: silent})
	}
}

func (g *Gateway) mulPeerSilent(now time.Time, p *peer, silent bool) {
	if g.mul != nil {
		g.mulSender(now, pmul.PeerEMCON{Node: pmul.NodeID(p.ID), Silent: silent})
	}
}

// mulForget: the peer has a new store and knows no number of ours.
func (g *Gateway) mulForget(p *peer) {
	if g.mul == nil {
		return
	}
	g.mulUnlearn(p)
	for _, name := range slices.Sorted(maps.Keys(g.mul.flows)) {
		if f := g.mul.flows[name]; f.known[p.ID] {
			delete(f.known, p.ID)
			g.recordMulFlow(name, f)
		}
	}
}

func (g *Gateway) recordMulFlow(name envelope.Flow, f *mulFlow) {
	g.record(bucketMulFlow, binary.BigEndian.AppendUint32(nil, f.number), append(appendPeers(nil, f.known), name...))
}

// stepMul lets time pass in the engines, and tells the peers what changed here.
func (g *Gateway) stepMul(now time.Time) {
	m := g.mul
	if m == nil {
		return
	}
	if !m.dues[0].IsZero() && !now.Before(m.dues[0]) {
		g.mulSender(now, nil)
	}
	if !m.dues[1].IsZero() && !now.Before(m.dues[1]) {
		g.mulReceiver(now, nil)
	}
	for _, p := range g.peers {
		if due := p.order.due(g.mulPatience()); !due.IsZero() && !now.Before(due) {
			g.mulSkip(now, p)
		}
	}
	for m.telling < mulTelling && g.tell(now) {
	}
}

// tell submits one message with state: what one peer lacks, to it and to all others that lack exactly the same.
func (g *Gateway) tell(now time.Time) bool {
	for _, p := range g.peers {
		if p.store == 0 { // never heard: it may not exist
			continue
		}
		items := g.replica.Next(now, p.ID, 8)
		if len(items) == 0 {
			continue
		}
		to := []*peer{p}
		for _, q := range g.peers {
			if q != p && q.store != 0 && sameItems(items, g.replica.Next(now, q.ID, 8)) {
				to = append(to, q)
			}
		}
		return g.submit(now, to, envelope.Message{Items: items}, kindOf(items))
	}
	return false
}

func sameItems(a, b []site.Item) bool {
	return slices.EqualFunc(a, b, func(x, y site.Item) bool {
		return x.Gone == y.Gone && x.Expires.Equal(y.Expires) && replica.HashOf(x) == replica.HashOf(y)
	})
}

// submitPayload takes a payload into custody for several sites at once.
func (g *Gateway) submitPayload(now time.Time, sites []uint16, payload *site.Message) {
	var to []*peer
	for _, siteID := range sites {
		if p := g.byID[siteID]; p != nil {
			to = append(to, p)
		}
	}
	if len(to) == 0 {
		return
	}
	ok := g.submit(now, to, envelope.Message{Payload: payload}, kindPayload)
	for _, p := range to {
		if ok {
			p.count.Accepted++
		} else {
			p.count.Refused++
			g.ended(payload, true)
		}
	}
}

// submit hands a message to P_Mul. False: it was refused, which is counted and noted.
func (g *Gateway) submit(now time.Time, to []*peer, content envelope.Message, kind ledgerKind) bool {
	m := g.mul
	msg := &mulMessage{content: content, to: map[uint16]bool{}}
	nodes := make([]pmul.NodeID, len(to))
	number, define := uint32(0), false
	var name envelope.Flow
	if content.Payload != nil {
		name = envelope.FlowOf(content.Payload)
	}
	for i, p := range to {
		nodes[i] = pmul.NodeID(p.ID)
		msg.to[p.ID] = true
	}
	if name != "" {
		f := m.flows[name]
		if f == nil {
			f = &mulFlow{number: m.nextFlow, known: map[uint16]bool{}}
			m.nextFlow++
			m.flows[name] = f
			g.recordMulFlow(name, f)
		}
		number = f.number
		for _, p := range to {
			define = define || !f.known[p.ID]
		}
		if define {
			msg.flow = name
		}
	}
	full, err := envelope.Append(nil, content, number, true)
	texts := g.texts(to...)
	older, old := g.mulOlder(msg)
	if f := m.flows[name]; f != nil {
		id := m.sender.Next(now)
		if old != nil {
			id = older
		}
		g.learned(texts, f, id, to)
	}
	var body []byte
	if err == nil {
		body, err = envelope.AppendCoded(nil, content, number, define, texts)
	}
	if err != nil {
		g.note("warn", "a message cannot be encoded and was refused", "error", err)
		return false
	}
	msg.octets = len(full)
	m.ref++
	m.answer = pmul.Accepted{}
	expires, priority := now.Add(mulLifetime), uint8(0)
	if pl := content.Payload; pl != nil {
		if !pl.Expires.IsZero() {
			expires = earlier(expires, pl.Expires)
		}
		priority = uint8(max(0, site.Precedence(pl.Precedence).Rank()-routine)) // deferred goes as routine: 0 is the least
	}
	packed := slices.Clone(envelope.Pack(&g.coder, body))
	if old != nil {
		g.mulSender(now, pmul.Replace{Ref: m.ref, Message: older, Payload: packed, Expires: expires}, msg)
	} else {
		g.mulSender(now, pmul.Submit{Ref: m.ref, Payload: packed, To: nodes, Expires: expires, Priority: priority}, msg)
	}
	if m.answer.Ref != m.ref || m.answer.Err != nil {
		if now.Sub(g.stats.complain) > time.Minute {
			g.stats.complain = now
			g.note("warn", "a message was refused by P_Mul", "error", m.answer.Err)
		}
		return false
	}
	if old != nil {
		if f := m.flows[envelope.FlowOf(old.content.Payload)]; f != nil {
			f.unlearnable(older)
		}
		g.ended(old.content.Payload, true)
		for _, p := range to {
			p.count.Superseded++
		}
	}
	if f := m.flows[name]; f != nil {
		f.learnable(m.answer.Message, msg.to, content.Payload)
	}
	m.newest(m.answer.Message, content.Payload)
	flag := byte(0)
	if msg.flow != "" {
		flag = 1
	}
	g.record(bucketMulOut, mulOutKey(m.answer.Message), append(append(appendPeers(nil, msg.to), flag), full...))
	for _, p := range to {
		g.replica.Sent(p.ID, mulKey(m.answer.Message), content.Items)
	}
	return true
}

func mulOutKey(id pmul.MessageID) []byte { return binary.BigEndian.AppendUint32(nil, uint32(id)) }

// mulSender steps the sender; submitted is the message that a Submit is about.
func (g *Gateway) mulSender(now time.Time, ev pmul.Event, submitted ...*mulMessage) {
	out := g.mul.sender.Step(now, ev)
	for _, a := range out.Accepted {
		g.mul.answer = a
		if a.Err == nil && len(submitted) == 1 {
			g.mul.keep(a.Message, submitted[0])
		}
	}
	g.mul.dues[0] = out.Deadline
	g.mulOutput(now, out)
}

func (g *Gateway) mulReceiver(now time.Time, ev pmul.Event) {
	out := g.mul.receiver.Step(now, ev)
	g.mul.dues[1] = out.Deadline
	g.mulOutput(now, out)
}

func (g *Gateway) mulOutput(now time.Time, out pmul.Output) {
	for _, r := range out.Records {
		g.record(r.Bucket, r.Key, r.Value)
	}
	for _, f := range out.Fates {
		g.mulFate(now, f)
	}
	for _, d := range out.Deliver {
		g.mulDeliver(now, d)
	}
	for _, packet := range out.Send {
		g.mulSend(now, packet)
	}
}

// mulFate: a message of ours has ended for one peer.
func (g *Gateway) mulFate(now time.Time, f pmul.Fate) {
	p, m := g.byID[uint16(f.To)], g.mul.out[f.Message]
	if p == nil || m == nil || !m.to[p.ID] {
		return
	}
	delete(m.to, p.ID)
	if f.State == pmul.Delivered {
		if fl := g.mul.flows[m.flow]; m.flow != "" && fl != nil && !fl.known[p.ID] {
			fl.known[p.ID] = true
			g.recordMulFlow(m.flow, fl)
		}
		if m.content.Payload != nil {
			if fl := g.mul.flows[envelope.FlowOf(m.content.Payload)]; fl != nil {
				fl.acknowledged(f.Message, p.ID)
			}
		}
		for _, h := range g.replica.Acked(p.ID, mulKey(f.Message)) {
			g.recordHeld(p, h.Key, h.Gone, h.Version)
		}
		if m.content.Payload != nil {
			p.count.Delivered++
			g.ended(m.content.Payload, false)
		}
	} else {
		g.ended(m.content.Payload, true)
		g.replica.Unsent(p.ID, mulKey(f.Message))
		p.count.Expired++
		g.note("warn", "a message has not reached a peer", "peer", p.Name, "message", f.Message, "state", f.State)
	}
	if len(m.to) > 0 {
		return
	}
	if m.content.Payload == nil {
		g.mul.telling--
	}
	defer g.tellFates(now)
	g.mul.ended.add(f.Message, m.content.Payload)
	g.mul.noLonger(f.Message, m.content.Payload)
	delete(g.mul.out, f.Message)
	delete(g.mul.kinds, f.Message)
	g.record(bucketMulOut, mulOutKey(f.Message), nil)
}

// mulDeliver opens a message that is complete.
func (g *Gateway) mulDeliver(now time.Time, d pmul.Message) {
	p := g.byID[uint16(d.Source)]
	if p == nil || len(d.Payload) == 0 {
		return
	}
	g.mulInOrder(now, p, d)
}

// mulOpen reads a message in its turn. P_Mul has acknowledged it: one that was coded after what is not here any more, or
// with another model, is asked for again.
func (g *Gateway) mulOpen(now time.Time, p *peer, message pmul.MessageID, payload []byte) {
	err := g.open(now, p, custody.ID{Lane: mulLane, Number: uint64(message)}, payload)
	switch {
	case err == nil:
	case errors.Is(err, compact.ErrHistory), errors.Is(err, compact.ErrModel), errors.Is(err, envelope.ErrUnknownFlow):
		g.note("info", "a message coded after others that are not here is asked for again", "peer", p.Name, "message", message, "error", err)
		p.owesHello, p.helloDue = true, earlier(p.helloDue, now)
		if errors.Is(err, compact.ErrHistory) {
			p.forgot++
			g.recordPeer(p)
		}
		g.submit(now, []*peer{p}, envelope.Message{Again: []uint32{uint32(message)}}, kindState)
	default:
		p.count.Unreadable++
		g.note("error", "a message of a peer cannot be read and is dropped: does it run another version?",
			"peer", p.Name, "message", message, "error", err)
	}
}

// mulSend seals a datagram of P_Mul: to one peer, to the group, or to every peer where there is no group's address.
func (g *Gateway) mulSend(now time.Time, packet pmul.Packet) {
	if packet.To == 0 {
		packet = g.mulRide(now, packet)
	}
	b, err := g.mul.cfg.Encode(nil, packet)
	if err != nil {
		g.note("error", "a P_Mul packet cannot be written", "error", err)
		return
	}
	body := frame.Append(nil, frame.PMul{Body: b}, true)
	to := g.peers
	switch {
	case packet.To != 0:
		to = nil
		if p := g.byID[uint16(packet.To)]; p != nil {
			to = []*peer{p}
		}
	case g.cfg.Group.IsValid():
		long := false
		for _, p := range g.peers {
			long = long || !p.knowsUs
		}
		g.mulPost(now, seal.Group, g.cfg.Group, long, body, packet, &g.mul.ledger)
		return
	}
	for _, p := range to {
		if p.addr.IsValid() {
			g.mulPost(now, p.ID, p.addr, !p.knowsUs, body, packet, &p.ledger)
			p.count.DatagramsSent++
			p.lastSent = now
		}
	}
}

// mulRide puts receipts that are owed into a datagram that goes to all anyway.
func (g *Gateway) mulRide(now time.Time, packet pmul.Packet) pmul.Packet {
	b, err := g.mul.cfg.Encode(nil, packet)
	if err != nil || len(b) >= g.mul.cfg.DatagramOctets {
		return packet
	}
	out := g.mul.receiver.Step(now, pmul.Ride{Octets: g.mul.cfg.DatagramOctets - len(b)})
	g.mul.dues[1] = out.Deadline
	for _, r := range out.Records {
		g.record(r.Bucket, r.Key, r.Value)
	}
	packet.PDUs = append(out.Ride, packet.PDUs...)
	return packet
}

func (g *Gateway) mulPost(now time.Time, to uint16, addr netip.AddrPort, long bool, body []byte, packet pmul.Packet, l *ledger) {
	data, err := g.sealer.Seal(nil, to, long, body)
	if err != nil {
		g.note("error", "this start has sealed all the datagrams it may: restart the gateway")
		return
	}
	l.add(sent, kindHeader, profile.IPUDPOctets+seal.OverheadShort)
	l.add(sent, g.mulKind(packet.PDUs), len(body))
	if long {
		l.add(sent, kindKey, seal.OverheadLong-seal.OverheadShort)
	}
	g.air.free = later(g.air.free, now).Add(profile.Airtime(profile.IPUDPOctets+len(data)+g.cfg.Profile.FrameOverhead, g.cfg.Profile.Up.RateBps))
	g.out.Datagrams = append(g.out.Datagrams, Datagram{Addr: addr, Data: data})
}

// mulKind is what a datagram is charged to: what its message is, or acknowledgement.
func (g *Gateway) mulKind(pdus []pmul.PDU) ledgerKind {
	for _, pdu := range pdus {
		switch pdu := pdu.(type) {
		case pmul.DataPDU:
			return g.mul.kinds[pdu.Message]
		case pmul.AddressPDU:
			return g.mul.kinds[pdu.Message]
		case pmul.ParityPDU:
			return kindRepair
		}
	}
	return kindAck
}

// receiveMul gives a datagram of a peer to the engines.
func (g *Gateway) receiveMul(now time.Time, p *peer, body []byte, octets int) {
	if g.mul == nil {
		g.stats.Dropped["p_mul"]++
		return
	}
	pdus, err := pmul.ParseCompact(body, pmul.NodeID(p.ID), pmul.NodeID(g.cfg.ID))
	if err != nil {
		g.stats.Dropped["p_mul"]++
		return
	}
	kind := kindPayload
	for _, pdu := range pdus {
		switch pdu := pdu.(type) {
		case pmul.AckPDU:
			kind = kindAck
			g.mulSender(now, pdu)
		case pmul.RequestPDU, pmul.RejectPDU:
			g.mulSender(now, pdu)
		default:
			g.mulReceiver(now, pdu)
		}
	}
	p.ledger.add(received, kind, octets)
}
