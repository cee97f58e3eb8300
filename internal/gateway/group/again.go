package group

import (
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/pmul"
)

// This node repeats a message in custody that it has heard, where the origin of the message has fallen silent and a recipient is not known
// to have it. The message goes as the origin has sealed it, so the recipient takes it as the origin's, and once:
// docs/decisions/custody-again.md.

// Others has the messages of other nodes that this node has heard.
type Others struct {
	c      *Carrier
	sealed []byte // the datagram to all that is being taken; nil: it is not kept
	second bool   // another node than its origin has transmitted it
	held   map[pmul.Key]*overheard
	octets int
	spoke  map[pmul.NodeID]time.Time // when somebody last spoke for an origin
	// answered is when this node last acknowledged messages that had come before.
	answered time.Time
}

// overheard has the parts of another node's message that this node has.
type overheard struct {
	key       pmul.Key
	datagrams []datagram
	parts     map[uint32]bool      // that they have: fragments by number, parity by index above them
	wanted    map[uint32]bool      // parts that recipients have asked for since the last try
	lacks     map[pmul.NodeID]bool // recipients that are not known to have it; nil: its recipients are not known
	named     time.Time            // when its origin last spoke of it
	until     time.Time
	chance    float64   // 0 to 1: the node with the lowest speaks first
	at        time.Time // when it goes again; zero: as soon as its origin is silent
	last      time.Time // when it last went again
	tries     int
	next      int // of datagrams, of the try under way
}

type datagram struct {
	sealed []byte
	parts  []uint32
}

const (
	mostOverheard = 256 << 10 // octets of datagrams
	// blindTries is how often a message goes again for recipients that are not heard meanwhile: they may hear and have nothing to say.
	blindTries = 3
	// seldomAgain is the longest time between two tries.
	seldomAgain = time.Hour
	// doneAfter is after what time an origin that is still heard and speaks of a message no more is taken to have ended it.
	doneAfter = 30 * time.Minute

	parityParts = 1 << 16
	addressPart = 2 * parityParts
)

// Overhear says which datagram to all is being taken, nil: none, so that its messages can go again.
func (o *Others) Overhear(sealed []byte) { o.sealed = sealed }

// absence is after what time an origin counts as silent.
func (o *Others) absence() time.Duration {
	return 2 * (4*o.c.Timing.RoundTrip + 3*o.c.Profile.AckDelay)
}

// overhear takes what a datagram says of messages of others, and of the nodes that have them.
func (o *Others) overhear(now time.Time, from pmul.NodeID, pdus []pmul.PDU) {
	for _, pdu := range pdus {
		switch pdu := pdu.(type) {
		case pmul.AckPDU:
			for _, e := range pdu.Entries {
				if h := o.held[pmul.Key{Source: e.Source, Message: e.Message}]; h != nil && len(e.Missing) == 0 {
					o.has(h, from)
				} else if h != nil {
					o.asked(now, h, e)
				}
			}
		case pmul.DiscardPDU:
			if h := o.held[pmul.Key{Source: from, Message: pdu.Message}]; h != nil && pdu.Source == from {
				o.drop(h)
			}
		case pmul.AddressPDU:
			if pdu.Source == from {
				o.address(now, pdu)
			}
		case pmul.DataPDU:
			o.part(now, o.of(now, pmul.Key{Source: from, Message: pdu.Message}), uint32(pdu.Number))
		case pmul.ParityPDU:
			o.part(now, o.of(now, pmul.Key{Source: from, Message: pdu.Message}), parityParts+uint32(pdu.Index))
		}
	}
	for o.octets > mostOverheard {
		o.squeeze()
	}
}

// of has the parts of a message that this node has; nil: it has none, and the datagram that is being taken is not kept.
func (o *Others) of(now time.Time, key pmul.Key) *overheard {
	h := o.held[key]
	if h != nil || o.sealed == nil {
		return h
	}
	if o.held == nil {
		o.held = map[pmul.Key]*overheard{}
	}
	h = &overheard{key: key, chance: o.c.Rand.Float64(), parts: map[uint32]bool{}, until: now.Add(lifetime)}
	o.held[key] = h
	return h
}

// address takes the recipients of a message. Its origin names again the recipients that it asks, so all that are named may lack it.
func (o *Others) address(now time.Time, p pmul.AddressPDU) {
	key := pmul.Key{Source: p.Source, Message: p.Message}
	rest := slices.DeleteFunc(slices.Clone(p.Destinations), func(d pmul.Destination) bool { return d.Node == o.c.engine.Self })
	if o.held[key] == nil && len(rest) == 0 {
		return
	}
	h := o.of(now, key)
	if h == nil {
		return
	}
	if h.lacks == nil {
		h.lacks = map[pmul.NodeID]bool{}
	}
	for _, d := range rest {
		h.lacks[d.Node] = true
	}
	if len(h.lacks) == 0 {
		o.drop(h)
		return
	}
	h.until = due.Earliest(h.until, due.Latest(p.Expiry, now))
	part := uint32(addressPart)
	if p.Plan != nil { // without one, parity is of no use
		part++
	}
	o.part(now, h, part)
}

// part keeps the datagram that is being taken, if it has a part of a message that no kept datagram has.
func (o *Others) part(now time.Time, h *overheard, part uint32) {
	if h == nil || o.sealed == nil {
		return
	}
	if !o.second {
		h.named, h.at, h.next, h.tries = now, time.Time{}, 0, 0
	}
	if h.parts[part] {
		return
	}
	h.parts[part] = true
	n := len(h.datagrams)
	if n == 0 || &h.datagrams[n-1].sealed[0] != &o.sealed[0] {
		h.datagrams = append(h.datagrams, datagram{sealed: o.sealed})
		o.octets += len(o.sealed)
		n++
	}
	h.datagrams[n-1].parts = append(h.datagrams[n-1].parts, part)
}

// asked takes the parts of a message that a recipient lacks: if the origin is silent, they go again soon.
func (o *Others) asked(now time.Time, h *overheard, e pmul.AckEntry) {
	if origin := o.c.peers[uint16(h.key.Source)]; origin == nil || now.Before(o.silentAt(origin)) || h.next > 0 {
		return
	}
	if h.wanted == nil {
		h.wanted = map[uint32]bool{}
	}
	for _, r := range e.Missing {
		for n := uint32(r.From); n <= uint32(r.To) && h.parts[n]; n++ {
			h.wanted[n] = true
		}
	}
	if len(h.wanted) > 0 {
		h.at = due.Earliest(h.at, now.Add(time.Duration(h.chance*float64(o.absence()/4))))
	}
}

// goes says that a datagram is part of a try.
func (h *overheard) goes(d *datagram) bool {
	for _, part := range d.parts {
		if len(h.wanted) == 0 || h.wanted[part] {
			return true
		}
	}
	return false
}

// has notes that a node has a message.
func (o *Others) has(h *overheard, n pmul.NodeID) {
	if delete(h.lacks, n); h.lacks != nil && len(h.lacks) == 0 {
		o.drop(h)
	}
}

func (o *Others) drop(h *overheard) {
	for _, d := range h.datagrams {
		o.octets -= len(d.sealed)
	}
	delete(o.held, h.key)
}

// squeeze drops the oldest message of the origin that takes most.
func (o *Others) squeeze() {
	octets := map[pmul.NodeID]int{}
	for key, h := range o.held {
		for _, d := range h.datagrams {
			octets[key.Source] += len(d.sealed)
		}
	}
	var oldest *overheard
	for _, h := range o.held {
		if oldest == nil || octets[h.key.Source] > octets[oldest.key.Source] ||
			octets[h.key.Source] == octets[oldest.key.Source] && h.before(oldest) {
			oldest = h
		}
	}
	o.drop(oldest)
}

func (h *overheard) before(other *overheard) bool {
	if !h.named.Equal(other.named) {
		return h.named.Before(other.named)
	}
	return h.key.Source < other.key.Source || h.key.Source == other.key.Source && h.key.Message < other.key.Message
}

// forget drops the messages of a node; all: from now on that node lacks no messages of others either.
func (o *Others) forget(n pmul.NodeID, all bool) {
	for key, h := range o.held {
		if key.Source == n {
			o.drop(h)
		} else if all {
			o.has(h, n)
		}
	}
}

// again is when a message goes again; zero: not as far as is known.
func (o *Others) again(h *overheard) time.Time {
	if h.next > 0 {
		return h.at
	}
	if h.lacks == nil || o.c.peers[uint16(h.key.Source)] == nil {
		return time.Time{}
	}
	if h.tries >= blindTries && !o.heardSince(h) {
		return time.Time{}
	}
	wait := time.Duration(h.chance * float64(o.absence()/2))
	if !pmul.Knows(o.c.receiver, h.key) { // others may have all of it
		wait += o.absence()
	}
	return due.Latest(h.at, o.silentAt(o.c.peers[uint16(h.key.Source)]).Add(wait))
}

// silentAt is when a peer that says nothing more counts as silent: it would have repeated the missing parts by then.
func (o *Others) silentAt(p *mail.Peer) time.Time { return p.LastHeard.Add(o.absence()) }

// over says that nobody waits for a message any more, as far as this node knows.
func (o *Others) over(now time.Time, h *overheard) bool {
	origin := o.c.peers[uint16(h.key.Source)]
	return origin == nil || now.After(h.until) || origin.LastHeard.Sub(h.named) > doneAfter
}

// heardSince says that a recipient was heard since the last try.
func (o *Others) heardSince(h *overheard) bool {
	for n := range h.lacks {
		if p := o.c.peers[uint16(n)]; p != nil && p.LastHeard.After(h.last) {
			return true
		}
	}
	return false
}

// nextAgain is the message of another that goes again first, and when; nil: none does.
func (o *Others) nextAgain() (first *overheard, at time.Time) {
	for _, h := range o.held { // in any order
		t := o.again(h)
		if !t.IsZero() && (first == nil || t.Before(at) || t.Equal(at) && h.before(first)) {
			first, at = h, t
		}
	}
	if first != nil {
		at = due.Latest(at, due.Latest(o.c.Air.Free, due.Earliest(o.c.Air.Quiet(), at.Add(o.absence()))))
	}
	return first, at
}

// pump repeats a datagram of another node's message, if one is due.
func (o *Others) pump(now time.Time) {
	h, at := o.nextAgain()
	if h == nil || at.After(now) {
		return
	}
	if o.over(now, h) {
		o.drop(h)
		return
	}
	for !h.goes(&h.datagrams[h.next]) {
		h.next++
	}
	data := seal.Again(h.datagrams[h.next].sealed)
	long := seal.IsLong(data)
	o.c.Ledger.Head(mail.Sent, long)
	o.c.Ledger.Add(mail.Sent, mail.Repair, len(data)-seal.Overhead(long))
	o.c.Air.Sent(now, o.c.Profile, len(data), o.c.rateBps())
	o.c.Services.Send(o.c.Group, data)
	o.c.Spoke(now, len(data))
	o.speaks(now, h.key.Source)
	for h.next++; h.next < len(h.datagrams); h.next++ {
		if h.goes(&h.datagrams[h.next]) {
			h.at = o.c.Air.Free
			return
		}
	}
	o.rest(now, h)
}

// rest lets a message that has gone again wait for its acknowledgements, longer each time.
func (o *Others) rest(now time.Time, h *overheard) {
	wait := min(o.absence()<<min(h.tries, 16), seldomAgain)
	h.tries++
	h.next, h.last, h.wanted = 0, now, nil
	h.at = now.Add(wait + time.Duration(o.c.Rand.Int64N(int64(wait/2))))
}

// speaks notes that somebody speaks for an origin. Nodes that hear it begin to say which messages of the origin they have, so its other
// messages wait for that.
func (o *Others) speaks(now time.Time, origin pmul.NodeID) (first bool) {
	if o.spoke == nil {
		o.spoke = map[pmul.NodeID]time.Time{}
	}
	wait := o.absence() / 8
	if first = now.Sub(o.spoke[origin]) > o.absence(); first {
		wait *= 2
	}
	for key, h := range o.held {
		if key.Source == origin && h.next == 0 {
			h.at = due.Latest(h.at, now.Add(wait))
		}
	}
	o.spoke[origin] = now
	return first
}

// aloud says that acknowledgements for a node go to all: others speak for it.
func (o *Others) aloud(now time.Time, origin uint16) bool {
	at, spoke := o.spoke[pmul.NodeID(origin)]
	return spoke && now.Sub(at) < seldomAgain
}

// Again takes a datagram of a peer that another node transmits; known: it has come from the peer before. Then its messages are
// acknowledged again where they are complete, and not read: a message that was forgotten would be read twice.
func (o *Others) Again(now time.Time, p *mail.Peer, sealed []byte, f frame.PMul, known bool) {
	pdus, err := pmul.ParseCompact(f.Body, pmul.NodeID(p.ID), pmul.NodeID(o.c.Self))
	if err != nil {
		o.c.Services.Drop("p_mul")
		return
	}
	first := o.speaks(now, pmul.NodeID(p.ID))
	if known && !first && now.Sub(o.answered) < o.absence()/8 { // anybody who has recorded it can send it
		return
	}
	if known || first {
		o.answered = now
		o.c.stepReceiver(now, pmul.Recite{Source: pmul.NodeID(p.ID)})
	}
	var its []pmul.PDU
	var keys []pmul.Key
	for _, pdu := range pdus {
		var key pmul.Key
		switch pdu := pdu.(type) {
		case pmul.AddressPDU:
			key = pmul.Key{Source: pdu.Source, Message: pdu.Message}
		case pmul.DataPDU:
			key = pmul.Key{Source: pdu.Source, Message: pdu.Message}
		case pmul.ParityPDU:
			key = pmul.Key{Source: pdu.Source, Message: pdu.Message}
		default:
			continue
		}
		if key.Source != pmul.NodeID(p.ID) {
			continue
		}
		if its = append(its, pdu); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		if _, address := pdu.(pmul.AddressPDU); !known || address && pmul.Knows(o.c.receiver, key) {
			o.c.stepReceiver(now, pdu)
		}
	}
	if !known {
		o.sealed, o.second = sealed, true
		o.overhear(now, pmul.NodeID(p.ID), its)
		o.sealed, o.second = nil, false
	}
	for _, key := range keys { // the other nodes that have it keep still
		if h := o.held[key]; h != nil && h.next == 0 {
			o.rest(now, h)
		}
	}
}
