package unicast

import (
	"cmp"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/custody"
	"aldis/internal/link/elide"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/link/segment"
)

// Config is what a carrier is made of.
type Config struct {
	mail.Common
	Incarnation uint32         // number of this start
	Shore       bool           // each peer's terminal has a leg of its own, and the profile is theirs
	Keepalive   *time.Duration // of the bearer, live
	// Messages: new messages and the site's state go by this carrier. Otherwise it has HELLOs, acknowledgements, probes and the
	// messages that were under way.
	Messages bool
	Lacks    func(peer uint16) bool           // it may lack this start's half of their common key, which HELLOs say
	Far      func(peer uint16) bool           // the short form may not reach it; nil: it does
	Beside   func(peer uint16) []frame.Beside // acknowledgements for its messages on other bearers; nil: there are no such bearers
	Late     bool                             // a start greets a peer only when one of the two has something to say
	// TakesOver: this start probably goes on where another machine stopped. It asks for answers at once, and on a shared channel for
	// short ones.
	TakesOver bool
}

// Carrier exchanges datagrams with each peer.
type Carrier struct {
	shared
	order []*peerLink // by id
	links map[uint16]*peerLink
	away  map[uint16]*peerLink // of peers that have left in this run
	turn  int                  // whose turn it is among peers that share the air
}

// shared is what the carrier and the lines to its peers share.
type shared struct {
	Config
	Greeting GroupGreeting
	work     work
	talk     talk // of a terminal: to all peers
	norm     normState
	silent   bool // this node asks for no HELLO
}

// peerLink is the conversation with one peer.
type peerLink struct {
	*mail.Peer
	of        *shared
	sender    *custody.Sender
	receiver  *custody.Receiver
	passed    passages
	history   *mail.SharedHistory
	reordered mail.ReorderBuffer
	starts    starts
	parted    uint64         // number of the first message that could not be read for want of its history, until it comes again; 0: none
	answers   []uint8        // probes to be answered
	announce  *frame.Silence // it has to be told that we go silent
	given     givenOf
	asked     asked
	readyAt   time.Time
	air       mail.Air
	talk      talk
	news      news
	late      time.Time // when this machine was late last
	refused   time.Time // when the log last said that a message was refused
	long      long
	cut       cut
	joiner    segment.Joiner
	held      int // octets that the link to the peer holds
	question  question
}

// New makes a carrier for peers that know nothing yet.
func New(cfg Config) (*Carrier, error) {
	c := &Carrier{shared: shared{Config: cfg, work: newWork()}, links: map[uint16]*peerLink{}}
	c.Greeting = newRoll(c)
	for _, p := range cfg.Peers {
		l, err := newLine(c, p)
		if err != nil {
			return nil, err
		}
		c.links[p.ID] = l
		c.order = append(c.order, l)
	}
	return c, nil
}

// newLine is the line to a peer that knows nothing yet.
func newLine(c *Carrier, p *mail.Peer) (l *peerLink, err error) {
	cfg := &c.Config
	l = &peerLink{Peer: p, of: &c.shared, reordered: mail.ReorderBuffer{Peer: p.ID, Services: cfg.Services}, long: long{under: map[uint64]*object{}},
		sender:   custody.NewSender(timing(cfg, p), [frame.Queues]uint64{1, 1}),
		receiver: custody.NewReceiver(cfg.Timing, [frame.Queues]uint64{}),
		history:  mail.NewAudience(cfg.Services, mail.Policy{Ordered: true, Bucket: bucketFlow, Prefix: peerKey(p.ID)})}
	l.long.wire, err = elide.NewSession(elide.Config{Self: cfg.Self, Peer: p.ID, Segment: cfg.Profile.SegmentOctets, GRTT: cfg.Profile.GRTT})
	if err != nil {
		return nil, err
	}
	p.Link = l
	_, rate := l.Air()
	l.held = int(cfg.Timing.Prompt.Seconds() * float64(rate) / 8)
	if rate == 0 { // no bound: a window of full datagrams
		l.held = cfg.Profile.Window * cfg.Profile.Filled()
	}
	return l, nil
}

// Join adds a peer while the carrier works, also one that has left. libnorm begins anew with all peers, as after a failure: long
// messages that are under way go again.
func (c *Carrier) Join(now time.Time, p *mail.Peer) error {
	l := c.away[p.ID]
	if l == nil {
		var err error
		if l, err = newLine(c, p); err != nil {
			return err
		}
	}
	delete(c.away, p.ID)
	c.links[p.ID] = l
	at, _ := slices.BinarySearchFunc(c.order, p.ID, func(l *peerLink, id uint16) int { return cmp.Compare(l.ID, id) })
	c.order = slices.Insert(c.order, at, l)
	c.begin(now, l)
	c.norm.up = false
	c.startNorm(now)
	return nil
}

// Leave removes a peer while the carrier works. The messages held for it are cancelled, with why as the reason in their lives. The
// peer's numbers stay for when it joins again.
func (c *Carrier) Leave(now time.Time, p *mail.Peer, why string) {
	for _, e := range p.Box.UnderWay(frame.Bulk) {
		c.bulkAcked(c.links[p.ID], e.At)
	}
	c.Store.Cancel(p, why)
	c.NewStore(p)
	if c.away == nil {
		c.away = map[uint16]*peerLink{}
	}
	c.away[p.ID] = c.links[p.ID]
	c.away[p.ID].question = question{}
	delete(c.links, p.ID)
	c.order = slices.DeleteFunc(c.order, func(l *peerLink) bool { return l.ID == p.ID })
	c.norm.up = c.norm.up && len(c.order) == 0 // with nobody left it stays as it is
	c.startNorm(now)
}

// begin greets the peer, if it is to be greeted now. Acknowledgements that were owed when we stopped are owed now.
func (c *Carrier) begin(now time.Time, l *peerLink) {
	l.beginStart()
	if l.Handshake.Unmet = c.Late || c.greetsLate(l) || l.Absent(); !l.Handshake.Unmet {
		l.Handshake.Due = now
	}
	readdressed(l)
	if l.receiver.Cumulative(frame.Direct)+l.receiver.Cumulative(frame.Bulk) > 0 {
		l.receiver.Probed(now)
	}
}

// Silence drops the copies that wait for idle air: they would be late when the silence ends.
func (c *Carrier) Silence(_ time.Time, on bool) {
	c.silent = on
	if !on {
		return
	}
	for _, l := range c.order {
		air, _ := l.Air()
		air.Needless()
	}
}

// PeerSilent says that a peer hears us and will not answer: messages without an acknowledgement go once more. The silence ends with the
// first datagram of the peer.
func (c *Carrier) PeerSilent(_ time.Time, p *mail.Peer, silent bool) {
	if l := c.links[p.ID]; silent && !l.sender.IsListening() {
		l.sender.Listening()
		l.sender.ResendAll()
	}
}

// Orders are those of the Store.
func (c *Carrier) Orders() mail.Orders { return c.Store.Orders() }

// Start greets the peers.
func (c *Carrier) Start(now time.Time) {
	for _, l := range c.order {
		c.begin(now, l)
	}
	c.Greeting.begin(now)
	c.startNorm(now)
}

// Step starts the child of libnorm when its time has come, and reads the messages for which earlier turns had no room.
func (c *Carrier) Step(now time.Time) {
	if due.Reached(now, c.norm.startAt) {
		c.startNorm(now)
	}
	for _, l := range c.order {
		for queue := range frame.Queue(frame.Queues) {
			if _, ok := l.receiver.Next(queue); ok && l.Turn.Room(now) {
				c.read(now, l, queue, mail.TransmissionID{})
				l.Record()
			}
		}
		l.readAhead(now)
	}
}

// Pump sends the datagrams that are ready and have air.
func (c *Carrier) Pump(now time.Time) {
	for range c.order {
		l := c.order[c.work.turn%len(c.order)]
		if l.Reachable() && !l.sender.Dead() && c.work.step(l, now) {
			break // it goes on with this one
		}
		c.work.turn++
		if !c.work.slices.Room(now) {
			break
		}
	}
	c.Greeting.pump(now)
	for sent := true; sent; {
		sent = false
		for i := range c.order {
			l := c.order[(c.turn+i)%len(c.order)]
			air, _ := l.Air()
			// A message that waits for the air waits for company meanwhile.
			if !l.Reachable() || !c.bundled(now, l) || now.Before(air.Free) || !c.compose(now, l) {
				continue
			}
			c.turn = (c.turn + i + 1) % len(c.order)
			sent = true
			break
		}
	}
	for _, l := range c.order {
		if air, rate := l.Air(); l.readyAt.IsZero() {
			air.Idle(now, c.Profile, rate, c.Services)
		}
	}
	noteIdle(c)
}

// bundled says whether something for a peer is ready and has waited long enough for company.
func (c *Carrier) bundled(now time.Time, l *peerLink) bool {
	if ready, _ := c.ready(now, l); !ready {
		l.readyAt = time.Time{}
		return false
	}
	if l.readyAt.IsZero() {
		l.readyAt = now
	}
	return !now.Before(l.readyAt.Add(c.Profile.Bundle))
}

// ready says whether something could go to a peer now, and if not when that may change by itself (zero: it will not).
func (c *Carrier) ready(now time.Time, l *peerLink) (bool, time.Time) {
	var wake time.Time
	at := func(t time.Time) bool {
		if due.Reached(now, t) {
			return true
		}
		wake = due.Earliest(wake, t)
		return false
	}
	if l.sender.ProbeDue(now) || len(l.answers) > 0 || !c.Greeting.greets(l) && at(l.Handshake.Due) || at(l.receiver.Due()) {
		return true, time.Time{}
	}
	if !l.sender.Dead() && !l.Handshake.Ending && (l.Handshake.Unmet || !c.holds(l)) {
		switch {
		case len(l.sender.Lost(now)) > 0, len(l.long.out) > 0,
			l.first(frame.Direct) != nil && !c.work.learning(l), l.cut.ready(l), l.cut.nextLong(l) != nil && c.work.toCode(l) == nil:
			return true, time.Time{}
		case l.roomForNews() && len(c.Replica.Next(now, l.ID, 1)) > 0 && tells(l):
			may, when := c.mayTell(now, l)
			if may || at(when) {
				return true, time.Time{}
			}
		}
		if at(c.bulkDeadline(l)) {
			return true, time.Time{}
		}
	}
	at(l.sender.Deadline())
	if *c.Keepalive > 0 && at(l.LastSent.Add(*c.Keepalive)) {
		return true, time.Time{}
	}
	return false, wake
}

// Due is when a datagram is ready or the child of libnorm starts.
func (c *Carrier) Due(now time.Time, silent bool) time.Time {
	at := c.norm.startAt
	for _, l := range c.order {
		for queue := range frame.Queue(frame.Queues) {
			if _, ok := l.receiver.Next(queue); ok {
				at = due.Earliest(at, l.Turn.Due())
			}
		}
		if _, ok := l.ahead(); ok {
			at = due.Earliest(at, l.Turn.Due())
		}
	}
	if silent {
		return at
	}
	at = due.Earliest(at, c.Greeting.due())
	for _, l := range c.order {
		if !l.Reachable() {
			continue
		}
		air, _ := l.Air()
		at = due.Earliest(at, c.work.due(l))
		if l.readyAt.IsZero() {
			at = due.Earliest(at, air.Due())
		}
		ready, wake := c.ready(now, l)
		if ready {
			wake = due.Latest(air.Free, l.readyAt.Add(c.Profile.Bundle))
			if !wake.After(now) { // nothing came of it this time
				wake = now.Add(time.Second)
			}
		}
		at = due.Earliest(at, wake)
	}
	return at
}

// Announce tells every peer in one datagram that this node goes silent.
func (c *Carrier) Announce(now time.Time, f frame.Silence) bool {
	for _, l := range c.order {
		if l.Reachable() && !l.Handshake.Unmet { // a peer that has not met this node takes nothing from it
			l.announce = &f
			c.compose(now, l)
		}
	}
	return true
}

// Settle sends every acknowledgement that is owed.
func (c *Carrier) Settle(now time.Time) {
	for _, l := range c.order {
		if l.Reachable() && len(l.receiver.Acks()) > 0 {
			l.receiver.Probed(now)
			c.compose(now, l)
		}
	}
}

// Owed adds up the acknowledgements, messages and items that are owed to the peers.
func (c *Carrier) Owed(now time.Time) (o mail.Owed) {
	room := c.Profile.Filled() - directReserve
	for _, l := range c.order {
		octets := 0
		if acks := l.receiver.Acks(); len(acks) > 0 {
			o.Acks++
			for _, r := range acks {
				octets += size(r)
			}
		}
		waiting, underWay, held := l.Box.Held(frame.Direct, frame.Bulk)
		items := c.Replica.Next(now, l.ID, 1<<16)
		for _, it := range items {
			octets += 40 + len(it.Doc)/4 // its usual length as coded with the dictionary
		}
		o.Messages += waiting + underWay
		o.Items += len(items)
		octets += held
		if octets == 0 {
			continue
		}
		datagrams := octets/room + 1
		o.Datagrams += datagrams
		octets += datagrams * (profile.IPUDPOctets + seal.OverheadShort)
		o.Octets += octets
		_, rate := l.Air()
		o.Airtime += profile.Airtime(octets, rate)
	}
	return o
}

// Report describes the child that runs libnorm.
func (c *Carrier) Report(s *api.Status) {
	s.NORM = api.NormStatus{Up: c.norm.up, Generation: c.norm.generation, Failures: c.norm.failures}
}
