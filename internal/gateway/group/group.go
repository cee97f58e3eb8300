package group

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// Config is what a carrier is made of.
type Config struct {
	mail.Common
	Rand   *rand.Rand                             // of P_Mul's random delays
	Holds  func(*site.Message) bool               // an order holds messages like this new one
	Met    func(now time.Time, p *mail.Peer) bool // the peer and this node have heard each other's present starts
	Proven func() int                             // octets of proofs that a datagram to the group has now
}

// Carrier carries messages over P_Mul.
type Carrier struct {
	Config
	engine       pmul.Config
	sender       *pmul.Sender
	receiver     *pmul.Receiver
	rate         *pmul.Rate   // of a shared channel; nil: it is not heard
	heard        int          // octets on the air of the datagram that is being taken
	dues         [2]time.Time // of sender and receiver
	peers        map[uint16]*mail.Peer
	silent       map[uint16]bool // peers that have announced their silence
	orders       map[uint16]*order
	leaving      *mail.Peer // the peer whose messages are being ended
	history      *mail.SharedHistory
	ref          uint64
	answer       pmul.Accepted // of the Submit being stepped
	out          map[pmul.MessageID]*mail.Message
	highest      map[pmul.MessageID]uint16 // of out: the highest fragment that was on the air in this run
	turn         int                       // place in Peers of the peer that is told of state first
	telling      int                       // own messages with state that have not ended
	ended        endedMessages
	Others       *Others   // messages of others
	repeats      int       // of a datagram with a whole message, on idle air
	used         time.Time // when P_Mul last spoke, or a peer was heard
	loud         time.Time // when a peer last said more than acknowledgements
	acknowledged time.Time // when acknowledgements left alone last
	refused      time.Time // when the log last said that a message was refused
}

const (
	lifetime = 24 * time.Hour
	telling  = 4 // messages with state that may be under way
	// companyTurns is for how many turns of others acknowledgements wait for own messages to go with.
	companyTurns = 4

	// burstCopies is how often a message of a local peer goes again on idle air where losses come in bursts. On hf-2400 one message in
	// nine is lost to one of four receivers, and six of ten of its copies are lost again: with two copies one message of 20 is still
	// missing somewhere, with one copy two.
	burstCopies = 2

	// fewReceivers is up to how many receivers burstCopies is enough.
	fewReceivers = 4
	// ackMost is the most octets of a datagram that counts as acknowledgements alone.
	ackMost = 100

	members pmul.GroupAddr = 1

	// margin is the octets of the frame's head, and those by which several PDUs in one datagram may exceed the engine's estimate.
	margin = frame.NORMOverhead + 7

	bucketFlow = "mul-flow" // number -> peers that know it, flow
)

// New starts the carrier; its engines find their records in the journal.
func New(cfg Config, records []api.Record) (*Carrier, error) {
	c := &Carrier{Config: cfg, peers: map[uint16]*mail.Peer{}, silent: map[uint16]bool{}, orders: map[uint16]*order{}, out: map[pmul.MessageID]*mail.Message{},
		highest: map[pmul.MessageID]uint16{},
		history: mail.NewAudience(cfg.Services, mail.Policy{Alike: true, Bucket: bucketFlow})}
	c.Others = &Others{c: c}
	c.engine = pmul.ConfigFor(*cfg.Profile, pmul.NodeID(cfg.Self), pmul.Compact, seal.OverheadLong+cfg.Proofs, cfg.Rand)
	c.engine.DatagramOctets -= margin
	c.engine.LargeOctets -= margin
	c.engine.AckHold = cfg.Profile.AckDelay / 2 // for something to ride on: docs/decisions/pmul-carrier.md
	c.engine.Group = members
	c.engine.Hears = cfg.Profile.Shared && cfg.Group.IsValid()
	c.engine.AckGroup = cfg.Group.IsValid() // else a datagram to all is a copy to each
	c.repeats = 1
	if c.engine.Burst > 1 { // the first copy is often lost with the message
		c.repeats = burstCopies
	}
	for _, p := range cfg.Peers {
		c.engine.Peers = append(c.engine.Peers, pmul.NodeID(p.ID))
		know(c, p)
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
	if c.engine.RateBps > 0 && c.engine.Hears {
		c.rate = pmul.NewRate(c.engine.RateBps, c.engine.Jitter)
	}
	c.receiver, err = pmul.NewReceiver(c.engine, journal)
	return c, err
}

// attempt is the name that custody has for a message of the engine.
func attempt(id pmul.MessageID) mail.TransmissionID {
	return mail.TransmissionID{Queue: mail.Group, Number: uint64(id)}
}

// Start begins to wait for the messages that are missing before those that came early; the gateway says next who is silent.
func (c *Carrier) Start(now time.Time) {
	for _, p := range c.Peers {
		o := c.orders[p.ID]
		o.early.Restart(now)
		o.begun = o.highest()
		if p.Box.UnderWayOctets() > 0 {
			waitsFor(c, now, p)
		}
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

// PeerSilent tells the sender that a peer keeps radio silence, or no longer does. Only the gateway's Step calls it.
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

// Event: no process works for P_Mul.
func (c *Carrier) Event(time.Time, api.Event) {}

// Settle does nothing: acknowledgements of P_Mul wait for their turn on the shared channel.
func (c *Carrier) Settle(time.Time) {}

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
		if due.Reached(now, missed(c, p)) {
			o.since = now
			p.Link.Doubt()
		}
		if due.Reached(now, o.early.Due(c.patience())) {
			c.skip(now, p, o)
		}
		if o.put && p.Turn.Room(now) {
			c.drain(now, p, o)
		}
	}
	c.SubmitState(now)
}

// SubmitState tells the peers what changed here.
func (c *Carrier) SubmitState(now time.Time) {
	for awaited(c) < telling && c.submitOneState(now) {
	}
}

// awaited counts the own messages with state that a peer lacks and is expected to acknowledge. Those that only silent peers lack hold up nobody.
func awaited(c *Carrier) (n int) {
	if c.telling < telling {
		return c.telling
	}
	for _, m := range c.out {
		if m.Content.Payload == nil && slices.ContainsFunc(c.Peers, func(p *mail.Peer) bool { return m.On(p) != nil && c.sender.Answers(pmul.NodeID(p.ID)) }) {
			n++
		}
	}
	return n
}

// Pump repeats on idle air; the engine sends in its own time.
func (c *Carrier) Pump(now time.Time) {
	c.Air.Idle(now, c.Profile, c.rateBps(), c.Services)
	c.Others.pump(now)
}

// rateBps is the rate of the channel as far as it is known.
func (c *Carrier) rateBps() int {
	if bps := *c.ModemBps; bps > 0 {
		return bps
	}
	return c.Air.Gauge.Pace(c.Profile.Up.RateBps)
}

// Due is when an engine wants a Step, or a gap has been waited for long enough.
func (c *Carrier) Due(_ time.Time, silent bool) time.Time {
	at := due.Earliest(c.dues[0], c.dues[1])
	if !silent {
		_, again := c.Others.nextAgain()
		at = due.Earliest(at, due.Earliest(c.Air.Due(), again))
	}
	for _, p := range c.Peers {
		o := c.orders[p.ID]
		at = due.Earliest(at, missed(c, p))
		at = due.Earliest(at, o.early.Due(c.patience()))
		if o.put {
			at = due.Earliest(at, p.Turn.Due())
		}
	}
	return at
}

func (c *Carrier) stepSender(now time.Time, ev pmul.Event) { c.step(now, ev, nil) }

// step steps the sender; s is the message that a Submit or Replace is about.
func (c *Carrier) step(now time.Time, ev pmul.Event, s *submission) {
	c.sender.Batch(!slices.ContainsFunc(c.Peers, func(p *mail.Peer) bool { return !p.Gone && !p.Absent() && !p.Handshake.Ahead }))
	out := c.sender.Step(now, ev)
	for _, a := range out.Accepted {
		c.answer = a
		if a.Err == nil && s != nil {
			c.keep(s, a.Message)
		}
	}
	c.dues[0] = out.Deadline
	c.apply(now, out)
}

func (c *Carrier) stepReceiver(now time.Time, ev pmul.Event) {
	if by := pmul.TurnBy(now, c.sender); !by.IsZero() { // acknowledgements ride on the datagrams that go then
		c.receiver.Company(by)
	} else if c.engine.Hears && c.sender.Queued() {
		c.receiver.Company(c.acknowledged.Add(companyTurns * c.Profile.MaxHold))
	}
	out := c.receiver.Step(now, ev)
	c.dues[1] = out.Deadline
	before := c.Air.Free
	c.apply(now, out)
	if c.engine.Hears && len(out.Send) > 0 {
		c.acknowledged = now
		c.stepSender(now, pmul.Busy{By: c.engine.Self, Air: c.Air.Free.Sub(due.Latest(before, now))})
	}
}

// OnAir counts a datagram of a peer, of so many octets above UDP, as air that is used.
func (c *Carrier) OnAir(now time.Time, p *mail.Peer, octets int) {
	c.used, c.heard = now, profile.IPUDPOctets+octets+c.Profile.FrameOverhead
	if octets > ackMost {
		c.loud = now
	}
	if c.engine.Hears {
		c.stepSender(now, pmul.Busy{By: pmul.NodeID(p.ID), Air: profile.Airtime(c.heard, c.rateBps())})
	}
}

// Spoke counts a datagram of this node that is none of P_Mul.
func (c *Carrier) Spoke(now time.Time, octets int) {
	c.used = now
	if c.engine.Hears {
		air := profile.Airtime(profile.IPUDPOctets+octets+c.Profile.FrameOverhead, c.rateBps())
		c.stepSender(now, pmul.Busy{By: c.engine.Self, Air: air})
	}
}

// apply does what an engine wants done.
func (c *Carrier) apply(now time.Time, out pmul.Output) {
	for _, r := range out.Records {
		c.Services.Record(r.Bucket, r.Key, r.Value)
	}
	for _, f := range out.Fates {
		c.fate(now, f)
	}
	for _, o := range out.Odd {
		if c.peers[uint16(o.Node)] == nil { // it has left
			continue
		}
		switch name := c.peers[uint16(o.Node)].Name; o.What {
		case pmul.TakesAllTurns:
			c.Services.Note("warn", "a peer takes turn after turn of the channel while this node waits for one; its turns are not heeded for half an hour", "peer", name)
		case pmul.AcknowledgesUnsent:
			c.Services.Note("warn", "a peer acknowledges messages that this node has not sent; they are sent all the same", "peer", name)
		}
	}
	for _, d := range out.Deliver {
		if p := c.peers[uint16(d.Source)]; p != nil {
			c.inOrder(now, p, c.orders[p.ID], d)
		}
	}
	for _, packet := range out.Send {
		c.send(now, packet)
	}
}

// open reads a message in its turn. P_Mul has acknowledged it: one that was coded after messages that are not here any more,
// or with another model, is asked for again.
func (c *Carrier) open(now time.Time, p *mail.Peer, message pmul.MessageID, payload []byte) {
	err := c.Services.Open(now, p, attempt(message), payload)
	switch {
	case err == nil:
	case errors.Is(err, compact.ErrHistory), errors.Is(err, compact.ErrModel), errors.Is(err, envelope.ErrUnknownFlow):
		c.Services.Note("info", "a P_Mul message refers to history that this node lacks; the gateway asks for it again", "peer", p.Name, "message", message, "error", err)
		p.Handshake.Owe(now)
		if errors.Is(err, compact.ErrHistory) {
			p.Handshake.Misread()
			c.Services.RecordPeer(p)
		}
		c.Accept(now, []*mail.Peer{p}, envelope.Message{Again: []uint32{uint32(message)}}, mail.State)
	default:
		p.Counts.Unreadable++
		c.Services.Unread(now, p, attempt(message))
		c.Services.Note("error", "a message of a peer cannot be read; it is dropped. Does the peer run another version?",
			"peer", p.Name, "message", message, "error", err)
	}
}

// Receive gives the engines a frame of a peer.
func (c *Carrier) Receive(now time.Time, p *mail.Peer, f frame.Frame, octets int, _ bool) bool {
	body, ok := f.(frame.PMul)
	if !ok {
		return false
	}
	pdus, err := pmul.ParseCompact(body.Body, pmul.NodeID(p.ID), pmul.NodeID(c.Self))
	if err != nil || slices.ContainsFunc(pdus, func(pdu pmul.PDU) bool { return pmul.SourceOf(pdu) != pmul.NodeID(p.ID) }) { // a member speaks in its own name only
		c.Services.Drop("p_mul")
		return true
	}
	learnRate(c, now, p, pdus)
	kind := mail.Payload
	messages := slices.ContainsFunc(pdus, hasData)
	if messages {
		p.Ledger.Came(octets)
	}
	for _, pdu := range pdus { // whose turn it is counts before an acknowledgement that is owed could break it
		switch pdu := pdu.(type) {
		case pmul.TurnPDU:
			c.stepSender(now, pdu)
		case pmul.AddressPDU:
			if pdu.Priority > 0 { // the turns let more of these in
				c.stepSender(now, pdu)
			}
		}
	}
	for _, pdu := range pdus {
		switch pdu := pdu.(type) {
		case pmul.TurnPDU:
		case pmul.AckPDU:
			kind = mail.Ack
			c.stepSender(now, pdu)
			c.stepReceiver(now, pdu) // a node that lacks no more than another keeps still
		case pmul.RequestPDU, pmul.RejectPDU:
			c.stepSender(now, pdu)
		default:
			c.stepReceiver(now, pdu)
		}
	}
	c.Others.overhear(now, pmul.NodeID(p.ID), pdus)
	if messages {
		p.Ledger.Named(kind, octets)
	} else {
		p.Ledger.Add(mail.Received, kind, octets)
	}
	return true
}

// hasData says whether a PDU has octets of messages.
func hasData(pdu pmul.PDU) bool {
	switch pdu.(type) {
	case pmul.DataPDU, pmul.ParityPDU:
		return true
	}
	return false
}

// learnRate learns the rate of the channel from the datagram that is being taken.
func learnRate(c *Carrier, now time.Time, p *mail.Peer, pdus []pmul.PDU) {
	octets := c.heard
	c.heard = 0
	if c.rate == nil || octets == 0 || !c.rate.Heard(now, pmul.NodeID(p.ID), octets, pdus) {
		return
	}
	c.Air.Gauge.Learn(now, c.rate.Bps(), c.Profile.Up.RateBps)
	pmul.Pace(now, c.sender, c.receiver, c.rate.Bps())
}

// NewStore: the peer has forgotten the messages that it has acknowledged; the engine goes on with the others.
func (c *Carrier) NewStore(p *mail.Peer) []*mail.Entry {
	c.history.Forget(p)
	c.orders[p.ID].forget(c, p)
	return nil
}

// Gone ends the messages that wait for a peer that the roster does not name any more.
func (c *Carrier) Gone(now time.Time, p *mail.Peer) {
	c.stepSender(now, pmul.Gone{Node: pmul.NodeID(p.ID)})
	c.Others.forget(pmul.NodeID(p.ID), true)
}

// Unlearn codes no more messages after those that the peer has forgotten.
func (c *Carrier) Unlearn(p *mail.Peer) { c.history.Unlearn(p, 0) }

// Resume goes on with a message that the engine has as well.
func (c *Carrier) Resume(r mail.Restored, p *mail.Peer) bool {
	if r.At.Queue != mail.Group {
		return false
	}
	id := pmul.MessageID(r.At.Number)
	if state, ok := c.sender.Fate(id, pmul.NodeID(p.ID)); r.Fresh && !(ok && state == pmul.Waiting) {
		return true // version 0.1 kept recipients too for whom it had ended
	}
	e := c.Store.Resume(r, p, mail.Group, c.history)
	e.Gone = pmul.AiredOf(c.sender, id).Begun
	if !e.Gone {
		c.Store.Lives.State(e.ID, p.ID, e.Stands())
	}
	if c.out[id] == nil {
		c.hold(e.Message, id)
	}
	c.history.Newest(e.Message)
	c.Replica.Sent(p.ID, e.ID, e.Content.Items)
	return true
}

// Owed counts the acknowledgements that the receiver owes. Messages for the peers stay with the engine, which has not sent them for good.
func (c *Carrier) Owed(now time.Time) (o mail.Owed) {
	o.Acks, o.Datagrams, o.Octets = c.receiver.Owed(now)
	o.Octets += o.Datagrams * (profile.IPUDPOctets + seal.OverheadShort)
	o.Airtime = profile.Airtime(o.Octets, c.rateBps())
	return o
}

// Report adds the octets that went to the group, and how much the receiver had to drop.
func (c *Carrier) Report(s *api.Status) {
	for kind, octets := range c.Ledger.All[mail.Sent] {
		s.Ledger = append(s.Ledger, api.LedgerRow{Direction: "sent", Peer: "group", Kind: mail.Kind(kind).String(), Octets: octets})
	}
	r := c.receiver.Stats()
	for reason, n := range map[string]int{"p_mul_full": r.Full, "p_mul_illegal": r.Illegal, "p_mul_changed": r.Changed, "p_mul_conflict": r.Conflict} {
		if n > 0 {
			s.Dropped[reason] = uint64(n)
		}
	}
}
