package group

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"aldis/internal/due"
	"aldis/internal/gateway/mail"
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

// Config is what a carrier is made of.
type Config struct {
	Self    uint16
	Profile profile.Profile
	Timing  custody.Config // timers of the link
	Group   netip.AddrPort // of the members; invalid: each gets a copy
	Rand    *rand.Rand     // of P_Mul's random delays
	Peers   []*mail.Peer   // by id
	Road    mail.Road
	Store   *mail.Store
	Replica *replica.Replica
	Coder   *compact.Coder
	Air     *mail.Air
	Ledger  *mail.Ledger           // of what goes to the group
	Behind  func(peer uint16) bool // it cannot read what goes to the group, for its roster is an older one
	Proofs  int                    // octets that may stand behind the frames of a datagram to the group
}

// Carrier is the messages over P_Mul.
type Carrier struct {
	Config
	engine       pmul.Config
	sender       *pmul.Sender
	receiver     *pmul.Receiver
	dues         [2]time.Time // of sender and receiver
	peers        map[uint16]*mail.Peer
	silent       map[uint16]bool // peers that have announced their silence
	orders       map[uint16]*order
	audience     *mail.Audience
	ref          uint64
	answer       pmul.Accepted // of the Submit being stepped
	out          map[pmul.MessageID]*mail.Message
	highest      map[pmul.MessageID]uint16 // of out: the highest fragment that was on the air in this run
	telling      int                       // own messages with state that have not ended
	ended        endedMessages
	acknowledged time.Time // when acknowledgements left alone last
	refused      time.Time // when the log last said so
}

const (
	lifetime = 24 * time.Hour
	telling  = 4 // messages with state under way
	// companyTurns is how many turns of others acknowledgements wait for company: own messages that wait for theirs.
	companyTurns = 4

	members pmul.GroupAddr = 1

	// The frame's head, and what several PDUs in one datagram may come to beyond the engine's estimate.
	margin = frame.NORMOverhead + 7

	bucketFlow = "mul-flow" // number -> peers that know it, flow
)

// New starts the carrier; its engines find their records in the journal.
func New(cfg Config, records []mail.Record) (*Carrier, error) {
	c := &Carrier{Config: cfg, peers: map[uint16]*mail.Peer{}, silent: map[uint16]bool{}, orders: map[uint16]*order{}, out: map[pmul.MessageID]*mail.Message{},
		highest:  map[pmul.MessageID]uint16{},
		audience: mail.NewAudience(cfg.Road, mail.Policy{Alike: true, Bucket: bucketFlow})}
	c.engine = pmul.ConfigFor(cfg.Profile, pmul.NodeID(cfg.Self), pmul.Compact, seal.OverheadLong+cfg.Proofs, cfg.Rand)
	c.engine.DatagramOctets -= margin
	c.engine.AckHold = cfg.Profile.AckDelay / 2 // for something to ride on: docs/decisions/pmul-carrier.md
	c.engine.Group = members
	c.engine.Hears = cfg.Profile.Shared && cfg.Group.IsValid() && len(cfg.Peers) > 1 // of two, one has nobody to wait for but the other
	c.engine.AckGroup = cfg.Group.IsValid()                                          // else a datagram to all is a copy to each
	for _, p := range cfg.Peers {
		c.engine.Peers = append(c.engine.Peers, pmul.NodeID(p.ID))
		c.peers[p.ID] = p
		c.orders[p.ID] = &order{early: mail.Early{Peer: p.ID, Road: cfg.Road}}
	}
	var journal []pmul.Record
	for _, r := range records {
		if strings.HasPrefix(r.Bucket, "pmul-") {
			journal = append(journal, pmul.Record{Bucket: r.Bucket, Key: r.Key, Value: r.Value})
		}
	}
	var err error
	if c.sender, err = pmul.NewSender(c.engine, journal); err != nil {
		return nil, err
	}
	c.receiver, err = pmul.NewReceiver(c.engine, journal)
	return c, err
}

// attempt is what custody calls a message of the engine.
func attempt(id pmul.MessageID) mail.Attempt {
	return mail.Attempt{Lane: mail.Group, Number: uint64(id)}
}

// Start begins to wait for what is missing before what came early; the gateway says next who is silent.
func (c *Carrier) Start(now time.Time) {
	for _, o := range c.orders {
		o.early.Restart(now)
		o.begun = o.highest()
	}
}

// Silence and PeerSilent tell the engines who is silent.
func (c *Carrier) Silence(now time.Time, on bool) {
	if on {
		c.Air.Needless()
	}
	c.stepSender(now, pmul.EMCON{Silent: on})
	c.stepReceiver(now, pmul.EMCON{Silent: on})
}

func (c *Carrier) PeerSilent(now time.Time, p *mail.Peer, on bool) {
	c.silent[p.ID] = on
	c.stepSender(now, pmul.PeerEMCON{Node: pmul.NodeID(p.ID), Silent: on})
}

// Announce tells the group in one datagram that this node goes silent.
func (c *Carrier) Announce(now time.Time, f frame.Silence) bool {
	if c.Group.IsValid() {
		c.post(now, seal.Group, c.Group, true, frame.Append(nil, f, true), pmul.Packet{}, c.Ledger)
	}
	return c.Group.IsValid()
}

// Step lets time pass in the engines, and tells the peers what changed here.
func (c *Carrier) Step(now time.Time) {
	if due.Reached(now, c.dues[0]) {
		c.stepSender(now, nil)
	}
	if due.Reached(now, c.dues[1]) {
		c.stepReceiver(now, nil)
	}
	for _, p := range c.Peers {
		o := c.orders[p.ID]
		if due.Reached(now, o.early.Due(c.patience())) {
			c.skip(now, p, o)
		}
		if o.put && p.Turn.Room(now) {
			c.drain(now, p, o)
		}
	}
	for c.telling < telling && c.tell(now) {
	}
}

// Pump repeats on idle air; the engine sends in its own time.
func (c *Carrier) Pump(now time.Time) { c.Air.Idle(now, &c.Profile, c.Profile.Up.RateBps, c.Road) }

// Due is when an engine wants a Step, or a gap has been waited for long enough.
func (c *Carrier) Due(_ time.Time, silent bool) time.Time {
	at := due.Earliest(c.dues[0], c.dues[1])
	if !silent {
		at = due.Earliest(at, c.Air.Due())
	}
	for _, p := range c.Peers {
		o := c.orders[p.ID]
		at = due.Earliest(at, o.early.Due(c.patience()))
		if o.put {
			at = due.Earliest(at, p.Turn.Due())
		}
	}
	return at
}

// tell submits one message with state: what one peer lacks, to it and to all others that lack exactly the same.
func (c *Carrier) tell(now time.Time) bool {
	for _, p := range c.Peers {
		if p.Met.Store == 0 || p.Gone { // never heard: it may not exist
			continue
		}
		items := c.Replica.Next(now, p.ID, 8)
		if len(items) == 0 {
			continue
		}
		to := []*mail.Peer{p}
		for _, q := range c.Peers {
			if q != p && q.Met.Store != 0 && !q.Gone && sameItems(items, c.Replica.Next(now, q.ID, 8)) {
				to = append(to, q)
			}
		}
		return len(c.Accept(now, to, envelope.Message{Items: items}, mail.KindOf(items))) == 0
	}
	return false
}

func sameItems(a, b []site.Item) bool {
	return slices.EqualFunc(a, b, func(x, y site.Item) bool {
		return x.Gone == y.Gone && x.Expires.Equal(y.Expires) && replica.HashOf(x) == replica.HashOf(y)
	})
}

// Accept hands a message to P_Mul for all these peers at once. Where it is refused, the log says why.
func (c *Carrier) Accept(now time.Time, to []*mail.Peer, content envelope.Message, kind mail.Kind) (refused []*mail.Peer) {
	m, err := c.Store.New(content, kind)
	old := c.older(m, to)
	var body []byte
	if err == nil {
		body, err = c.encode(now, to, m, old)
	}
	if err != nil {
		c.Road.Note("warn", "a message cannot be encoded and was refused", "error", err)
		return to
	}
	expires, priority := now.Add(lifetime), priorityOf(m)
	if pl := content.Payload; pl != nil {
		expires = due.Earliest(expires, pl.Expires)
	}
	packed := slices.Clone(body)
	c.ref++
	c.answer = pmul.Accepted{}
	s := &submission{Message: m, to: to, old: old}
	if old != nil {
		id := numberOf(old, to)
		c.step(now, pmul.Replace{Ref: c.ref, Message: id, Payload: packed, Expires: expires}, s)
		c.stepSender(now, pmul.Hold{Message: id}) // what is held is the older text
	} else {
		nodes := make([]pmul.NodeID, len(to))
		for i, p := range to {
			nodes[i] = pmul.NodeID(p.ID)
		}
		c.step(now, pmul.Submit{Ref: c.ref, Payload: packed, To: nodes, Expires: expires, Priority: priority}, s)
	}
	if c.answer.Ref != c.ref || c.answer.Err != nil {
		if now.Sub(c.refused) > time.Minute {
			c.refused = now
			c.Road.Note("warn", "a message was refused by P_Mul", "error", c.answer.Err)
		}
		return to
	}
	return nil
}

// submission is a message that the engine is being given, for whom, and the one whose place it takes.
type submission struct {
	*mail.Message
	to  []*mail.Peer
	old *mail.Message
}

// older is the message that m takes the place of: one of which nothing has been on the air.
func (c *Carrier) older(m *mail.Message, to []*mail.Peer) *mail.Message {
	if m == nil {
		return nil
	}
	old := c.audience.Older(m, to)
	if old == nil || !c.sender.Waits(numberOf(old, to)) {
		return nil
	}
	return old
}

func numberOf(m *mail.Message, to []*mail.Peer) pmul.MessageID {
	return pmul.MessageID(m.For(to[0].ID).At.Number)
}

// encode is the envelope of m as it crosses the link, valid until the coder's next use. m notes whether its flow is spelt out.
func (c *Carrier) encode(now time.Time, to []*mail.Peer, m, old *mail.Message) ([]byte, error) {
	texts := c.Road.Texts(to...)
	f := c.audience.Flow(m.Content.Payload)
	if f == nil {
		return envelope.Packed(c.Coder, m.Content, 0, false, texts)
	}
	var err error
	if m.Full, err = envelope.Append(nil, m.Content, f.Number, true); err != nil { // by its number, as version 0.1 counts it
		return nil, err
	}
	id := c.sender.Next(now)
	if old != nil {
		id = numberOf(old, to)
	}
	m.Spelt = c.audience.Spells(f, uint64(id), to...)
	c.audience.Encode(texts, f, uint64(id), to...)
	return envelope.Packed(c.Coder, m.Content, f.Number, m.Spelt, texts)
}

// keep takes a message that the engine has accepted into custody, before anything of it is sent.
func (c *Carrier) keep(s *submission, id pmul.MessageID) {
	if s.old != nil {
		c.audience.Unsent(uint64(id), s.old.Content.Payload)
		for _, p := range s.to {
			c.Store.End(s.old.For(p.ID), mail.Superseded)
		}
	}
	for _, p := range s.to {
		c.Store.Start(p, s.Message, attempt(id), c.audience)
		c.Replica.Sent(p.ID, s.ID, s.Content.Items)
	}
	if f := c.audience.Flow(s.Content.Payload); f != nil {
		c.audience.Sent(f, uint64(id), s.Message)
	}
	c.audience.Newest(s.Message)
	c.hold(s.Message, id)
}

func (c *Carrier) hold(m *mail.Message, id pmul.MessageID) {
	c.out[id] = m
	if m.Content.Payload == nil {
		c.telling++
	}
}

func (c *Carrier) stepSender(now time.Time, ev pmul.Event) { c.step(now, ev, nil) }

// step steps the sender; s is the message that a Submit or Replace is about.
func (c *Carrier) step(now time.Time, ev pmul.Event, s *submission) {
	out := c.sender.Step(now, ev)
	for _, a := range out.Accepted {
		c.answer = a
		if a.Err == nil && s != nil {
			c.keep(s, a.Message)
		}
	}
	c.dues[0] = out.Deadline
	c.obey(now, out)
}

func (c *Carrier) stepReceiver(now time.Time, ev pmul.Event) {
	if c.engine.Hears && c.sender.Queued() {
		c.receiver.Company(c.acknowledged.Add(companyTurns * c.Profile.MaxHold))
	}
	out := c.receiver.Step(now, ev)
	c.dues[1] = out.Deadline
	before := c.Air.Free
	c.obey(now, out)
	if c.engine.Hears && len(out.Send) > 0 {
		c.acknowledged = now
		c.stepSender(now, pmul.Busy{By: c.engine.Self, Air: c.Air.Free.Sub(due.Latest(before, now))})
	}
}

// Heard counts a datagram of a peer, of so many octets above UDP, as air that is used.
func (c *Carrier) Heard(now time.Time, p *mail.Peer, octets int) {
	if c.engine.Hears {
		c.stepSender(now, pmul.Busy{By: pmul.NodeID(p.ID), Air: profile.Airtime(profile.IPUDPOctets+octets+c.Profile.FrameOverhead, c.Profile.Up.RateBps)})
	}
}

// obey does what an engine wants done.
func (c *Carrier) obey(now time.Time, out pmul.Output) {
	for _, r := range out.Records {
		c.Road.Record(r.Bucket, r.Key, r.Value)
	}
	for _, f := range out.Fates {
		c.fate(now, f)
	}
	for _, d := range out.Deliver {
		if p := c.peers[uint16(d.Source)]; p != nil && len(d.Payload) > 0 {
			c.inOrder(now, p, c.orders[p.ID], d)
		}
	}
	for _, packet := range out.Send {
		c.send(now, packet)
	}
}

// fate: a message of ours has ended for one peer.
func (c *Carrier) fate(now time.Time, f pmul.Fate) {
	p, m := c.peers[uint16(f.To)], c.out[f.Message]
	if p == nil || m == nil || m.For(p.ID) == nil {
		return
	}
	if f.State == pmul.Delivered {
		c.audience.Holds(p, uint64(f.Message), m, 0)
		c.ended.of(f.Message, p.ID).delivered = true
		c.acked(p, f.Sequence)
		c.Store.End(m.For(p.ID), mail.Delivered)
	} else if f.State == pmul.Withdrawn {
		c.Store.End(m.For(p.ID), mail.Withdrawn)
	} else {
		c.Store.End(m.For(p.ID), mail.Expired)
		c.Road.Note("warn", "a message has not reached a peer", "peer", p.Name, "message", f.Message, "state", f.State)
	}
	c.settle(now, f.Message, m)
}

// settle forgets a message that has ended for all, but for what it said.
func (c *Carrier) settle(now time.Time, id pmul.MessageID, m *mail.Message) {
	if !m.Ended() {
		return
	}
	if m.Content.Payload == nil {
		c.telling--
	}
	c.ended.add(id, m.Content.Payload)
	delete(c.out, id)
	delete(c.highest, id)
	if len(c.out) == 0 {
		c.Air.Needless()
	}
	c.Road.TellFates(now)
}

// open reads a message in its turn. P_Mul has acknowledged it: one that was coded after what is not here any more, or
// with another model, is asked for again.
func (c *Carrier) open(now time.Time, p *mail.Peer, message pmul.MessageID, payload []byte) {
	err := c.Road.Open(now, p, attempt(message), payload)
	switch {
	case err == nil:
	case errors.Is(err, compact.ErrHistory), errors.Is(err, compact.ErrModel), errors.Is(err, envelope.ErrUnknownFlow):
		c.Road.Note("info", "a message refers to history that we do not have: it is asked for again", "peer", p.Name, "message", message, "error", err)
		p.Met.Owe(now)
		if errors.Is(err, compact.ErrHistory) {
			p.Met.Forgot++
			c.Road.RecordPeer(p)
		}
		c.Accept(now, []*mail.Peer{p}, envelope.Message{Again: []uint32{uint32(message)}}, mail.State)
	default:
		p.Counts.Unreadable++
		c.Road.Unread(now, p, attempt(message))
		c.Road.Note("error", "a message of a peer cannot be read and is dropped: does it run another version?",
			"peer", p.Name, "message", message, "error", err)
	}
}

// Again sends messages to a peer that has acknowledged them and cannot read them: to it alone and coded by themselves.
func (c *Carrier) Again(now time.Time, p *mail.Peer, numbers []uint32) {
	for _, number := range numbers {
		c.again(now, p, pmul.MessageID(number))
	}
}

func (c *Carrier) again(now time.Time, p *mail.Peer, asked pmul.MessageID) {
	id := c.ended.latest(asked, p.ID)
	payload := c.ended.payloads[id]
	m := c.out[id]
	if m != nil { // its receipt may still be on its way
		if id != asked && m.For(p.ID) != nil {
			return // so is what goes in its place
		}
		payload = m.Content.Payload
	}
	if payload == nil {
		c.Road.Gone(now, p, attempt(id))
		c.Road.Note("error", "a peer asks for a message that we no longer keep", "peer", p.Name, "message", id)
		return
	}
	c.audience.Misread(p, payload)
	repair := *payload
	repair.Token = 0                                      // it has been reported
	if c.ended.take(id, p.ID) && p.Counts.Delivered > 0 { // it was not
		p.Counts.Delivered--
	}
	if len(c.Accept(now, []*mail.Peer{p}, envelope.Message{Payload: &repair}, mail.Repair)) == 0 {
		c.ended.of(id, p.ID).repair = c.answer.Message
	}
	if m != nil && m.For(p.ID) != nil {
		c.repaired(p, m.ID)
		c.Store.End(m.For(p.ID), mail.Anew)
		c.settle(now, id, m)
	}
}

// send seals a datagram of P_Mul: to one peer, to the group, or to every peer where there is no group's address.
func (c *Carrier) send(now time.Time, packet pmul.Packet) {
	if c.engine.Hears && packet.To != 0 && !c.Behind(uint16(packet.To)) { // who shares the channel has to know that it is in use
		packet.To, packet.Group = 0, members
	}
	if packet.To == 0 {
		packet = c.ride(now, packet)
	}
	b, err := c.engine.Encode(nil, packet)
	if err != nil {
		c.Road.Note("error", "a P_Mul packet cannot be written", "error", err)
		return
	}
	body := frame.Append(nil, frame.PMul{Body: b}, true)
	to := c.Peers
	switch {
	case packet.To != 0:
		to = nil
		if p := c.peers[uint16(packet.To)]; p != nil {
			to = []*mail.Peer{p}
		}
	case c.Group.IsValid():
		long := slices.ContainsFunc(c.Peers, func(p *mail.Peer) bool { return !p.Met.KnowsUs })
		c.post(now, seal.Group, c.Group, long, body, packet, c.Ledger)
		c.copies(now, packet, body)
		return
	}
	for _, p := range to {
		if p.Addr.IsValid() {
			c.post(now, p.ID, p.Addr, !p.Met.KnowsUs, body, packet, &p.Ledger)
			p.Counts.DatagramsSent++
			p.LastSent = now
		}
	}
}

// ride puts receipts that are owed into a datagram that goes to all anyway.
func (c *Carrier) ride(now time.Time, packet pmul.Packet) pmul.Packet {
	b, err := c.engine.Encode(nil, packet)
	if err != nil || len(b) >= c.engine.DatagramOctets {
		return packet
	}
	out := c.receiver.Step(now, pmul.Ride{Octets: c.engine.DatagramOctets - len(b)})
	c.dues[1] = out.Deadline
	for _, r := range out.Records {
		c.Road.Record(r.Bucket, r.Key, r.Value)
	}
	if len(out.Ride) > 0 {
		c.acknowledged = now
	}
	packet.PDUs = append(out.Ride, packet.PDUs...)
	return packet
}

func (c *Carrier) post(now time.Time, to uint16, addr netip.AddrPort, long bool, body []byte, packet pmul.Packet, l *mail.Ledger) {
	data, ok := c.Road.Seal(to, long, body)
	if !ok {
		return
	}
	c.aired(to, packet.PDUs)
	l.Head(mail.Sent, long)
	l.Add(mail.Sent, c.kindOf(packet.PDUs), len(body))
	l.Add(mail.Sent, mail.Key, len(data)-seal.Overhead(long)-len(body))
	c.Air.Took(now, &c.Profile, len(data), c.Profile.Up.RateBps)
	if whole(packet.PDUs) {
		c.Air.Again(&c.Profile, addr, data, c.peers[to], l, long, c.forSilent(packet.PDUs))
	}
	c.Road.Send(addr, data)
}

// forSilent says that a datagram is for a peer that has announced its silence, among others.
func (c *Carrier) forSilent(pdus []pmul.PDU) bool {
	return slices.ContainsFunc(pdus, func(pdu pmul.PDU) bool {
		a, _ := pdu.(pmul.AddressPDU)
		return slices.ContainsFunc(a.Destinations, func(d pmul.Destination) bool { return c.silent[uint16(d.Node)] })
	})
}

// whole says that a datagram has a message with all of it: one fragment and the Address_PDU before it.
func whole(pdus []pmul.PDU) bool {
	for i, pdu := range pdus {
		data, ok := pdu.(pmul.DataPDU)
		if ok && slices.ContainsFunc(pdus[:i], func(before pmul.PDU) bool {
			a, ok := before.(pmul.AddressPDU)
			return ok && a.Message == data.Message && a.Total == 1
		}) {
			return true
		}
	}
	return false
}

// kindOf is what a datagram is charged to: what its message is, or acknowledgement.
func (c *Carrier) kindOf(pdus []pmul.PDU) mail.Kind {
	of := func(id pmul.MessageID) mail.Kind {
		if m := c.out[id]; m != nil && m.Content.Payload == nil {
			return mail.KindOf(m.Content.Items)
		}
		return mail.Payload
	}
	for _, pdu := range pdus {
		switch pdu := pdu.(type) {
		case pmul.DataPDU:
			return of(pdu.Message)
		case pmul.AddressPDU:
			return of(pdu.Message)
		case pmul.ParityPDU:
			return mail.Repair
		}
	}
	return mail.Ack
}

// Receive gives the engines what a peer sent.
func (c *Carrier) Receive(now time.Time, p *mail.Peer, f frame.Frame, octets int, _ bool) bool {
	body, ok := f.(frame.PMul)
	if !ok {
		return false
	}
	pdus, err := pmul.ParseCompact(body.Body, pmul.NodeID(p.ID), pmul.NodeID(c.Self))
	if err != nil {
		c.Road.Drop("p_mul")
		return true
	}
	kind := mail.Payload
	for _, pdu := range pdus {
		switch pdu := pdu.(type) {
		case pmul.AckPDU:
			kind = mail.Ack
			c.stepSender(now, pdu)
			c.stepReceiver(now, pdu) // who lacks no more than another keeps still
		case pmul.RequestPDU, pmul.RejectPDU:
			c.stepSender(now, pdu)
		default:
			c.stepReceiver(now, pdu)
		}
	}
	p.Ledger.Add(mail.Received, kind, octets)
	return true
}

// NewStore: what the peer has acknowledged it knows no more; what it has not, the engine goes on with.
func (c *Carrier) NewStore(p *mail.Peer) []*mail.Entry {
	c.audience.Forget(p)
	c.orders[p.ID].forget(c, p)
	return nil
}

// Unlearn codes nothing after what the peer has forgotten.
func (c *Carrier) Unlearn(p *mail.Peer) { c.audience.Unlearn(p, 0) }

// Resume goes on with a message that the engine has as well.
func (c *Carrier) Resume(r mail.Restored, p *mail.Peer) bool {
	if r.At.Lane != mail.Group {
		return false
	}
	id := pmul.MessageID(r.At.Number)
	if state, ok := c.sender.Fate(id, pmul.NodeID(p.ID)); r.Fresh && !(ok && state == pmul.Waiting) {
		return true // version 0.1 kept those too for whom it had ended
	}
	e := c.Store.Resume(r, p, mail.Group, c.audience)
	if e.Gone = pmul.AiredOf(c.sender, id).Begun; !e.Gone {
		c.Store.Lives.State(e.ID, p.ID, e.Stands())
	}
	if c.out[id] == nil {
		c.hold(e.Message, id)
	}
	c.audience.Newest(e.Message)
	c.Replica.Sent(p.ID, e.ID, e.Content.Items)
	return true
}

// Owed is what the receiver owes; what is for the peers the engine has not sent for good.
func (c *Carrier) Owed(now time.Time) (o mail.Owed) {
	o.Receipts, o.Datagrams, o.Octets = c.receiver.Owed(now)
	o.Octets += o.Datagrams * (profile.IPUDPOctets + seal.OverheadShort)
	o.Airtime = profile.Airtime(o.Octets, c.Profile.Up.RateBps)
	return o
}

// Report adds what went to the group, and what the receiver had to drop.
func (c *Carrier) Report(dropped map[string]uint64, ledger func(who string, kind mail.Kind, octets uint64)) {
	for kind, octets := range c.Ledger[mail.Sent] {
		ledger("group", mail.Kind(kind), octets)
	}
	r := c.receiver.Stats()
	for reason, n := range map[string]int{"p_mul_full": r.Full, "p_mul_illegal": r.Illegal, "p_mul_changed": r.Changed, "p_mul_conflict": r.Conflict} {
		if n > 0 {
			dropped[reason] = uint64(n)
		}
	}
}
