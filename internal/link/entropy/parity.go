package entropy

import (
	"crypto/subtle"
	"encoding/binary"
	"math/bits"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// Parity on shared channels. Where losses are reported, an origin says after each block of its messages the exclusive or of
// what it has signed of them. A node that lacks one message of the block restores it from the others.

// The first octet of parts of a frame.
const (
	kindParity = 0 << 5 // with the number of messages: uvarint octets of the rest, tag (2), low 16 bits of the first number (2), hops (1), sum
	kindPlace  = 1 << 5 // with the place of the next message in a block, from 1; the part has no more octets
)

// Bounds of a block.
const (
	blockMost  = 4 // messages
	blockLeast = 3 // of those for which a parity goes
	blockTrips = 3 // round trips in which they are said
)

// coding is which messages of this node have a parity, on one port.
type coding struct {
	top   uint64 // the last that was said
	lost  uint64 // which of it and those before were requested: bit 0 is the last
	on    bool
	block *block // that is said now; nil: none
}

// block is messages of this node, said one after the other on a port, each in a frame of its own.
type block struct {
	parity
	until time.Time // when the parity goes at the latest
}

// parity is the sum of the messages of a block.
type parity struct {
	tag   Tag
	first Name
	count byte
	hops  uint8 // of each message
	sum   []byte
}

// sumNames is the bit of the octets in a sum which says that a message names something for later ones.
const sumNames = 1 << 15

// mix adds what an origin has signed of a message to a sum: lifetime (1), octets of the body and sumNames (2), body.
func mix(sum []byte, it *Item) []byte {
	octets := uint16(len(it.Body))
	if it.Names {
		octets |= sumNames
	}
	b := append(binary.BigEndian.AppendUint16([]byte{it.Life}, octets), it.Body...)
	sum = append(sum, make([]byte, max(len(b)-len(sum), 0))...)
	subtle.XORBytes(sum, sum, b)
	return sum
}

// lose notes that a message of this node was requested.
func (c *coding) lose(number uint64) {
	if number <= c.top {
		c.lost |= 1 << (c.top - number) // 0 beyond 63
	}
}

// place notes that a message is said now. A message of this node that is the first of its frame it adds to a block, and
// appends its place there to the frame.
func (e *Engine) place(now time.Time, p *port, w *want, frame []byte) []byte {
	it, t := e.groups[w.tag].origins[w.name.Origin].items[w.name.Number], p.talk(e, now, w.tag)
	it.spoken = now
	if !p.crowded() || w.repair || it.Origin != e.cfg.Self || it.Number <= t.top {
		return frame
	}
	t.lost, t.top = t.lost<<(it.Number-t.top), it.Number
	b := t.block
	if b != nil && (b.first.Number+uint64(b.count) != it.Number || b.count == blockMost || b.hops != it.Hops) {
		b = nil
	}
	// Parities are worth their octets if three of the last 16 messages were requested, or one of the last 48 since then: behind
	// parities only those are requested that these could not restore.
	t.on = bits.OnesCount16(uint16(t.lost)) >= 3 || t.on && t.lost<<16 != 0
	if t.block = b; !t.on || it.Hops < 2 || len(frame) > 0 {
		return frame
	}
	if b == nil {
		b = &block{parity: parity{tag: w.tag, first: it.Name, hops: it.Hops}, until: now.Add(blockTrips * p.Trip)}
		t.block = b
	}
	b.sum = mix(b.sum, it)
	if b.count++; b.count == blockMost {
		b.until = now
	}
	p.flows(e, now, t)
	return append(frame, kindPlace|b.count)
}

// close queues the parity of a block that is full, or has taken its time.
func (p *port) close(now time.Time, t *talk) {
	if t.block == nil || !due.Reached(now, t.block.until) {
		return
	}
	if t.block.count >= blockLeast {
		p.put(want{kind: sayParity, tag: t.block.tag, at: now, block: t.block, repair: true})
	}
	t.block = nil
}

// promise notes that a message is in a block of its origin, whose parity is to come. What is missing of an earlier block is
// requested: its parity was lost.
func (e *Engine) promise(now time.Time, p *port, g *group, it *Item, place byte) {
	o, first := g.origins[it.Origin], it.Number-uint64(place)+1
	if place == 0 || uint64(place) > it.Number {
		return
	}
	if p.flows(e, now, p.talk(e, now, g.tag)); first <= o.block {
		return
	}
	if now.Before(o.due) {
		g.hasten(o.block, Name{it.Origin, first}, now.Add(e.jitter(p.Trip)))
	}
	o.block, o.due = first, now.Add((blockTrips+1)*p.Trip)
}

// comes says that the neighbours of a shared channel may get a message without being given it: it was said less than a
// round trip ago, or a parity is to come.
func (p *port) comes(now time.Time, g *group, n Name) bool {
	o, b := g.origins[n.Origin], p.talks[g.tag].block
	own := b != nil && n.Origin == b.first.Origin && n.Number >= b.first.Number
	return p.Shared && (own || now.Sub(o.items[n.Number].spoken) < p.Trip || !o.promised(now, n.Number).IsZero())
}

// hasten makes requests that wait for a parity go at a time, those of a block from its first number to before another.
func (g *group) hasten(first uint64, before Name, at time.Time) {
	for n, a := range g.asks {
		if n.Origin == before.Origin && a.tries == 0 && uint16(n.Number)-uint16(first) < uint16(before.Number)-uint16(first) {
			a.at = due.Earliest(a.at, at)
		}
	}
}

// flows puts off the next digest, for four intervals at the most: gaps show while messages come one after the other.
func (p *port) flows(e *Engine, now time.Time, t *talk) {
	if at := now.Add(p.base() + e.jitter(p.spread(p.base()/4))); at.Sub(t.last) < 4*p.base() {
		t.at = at
	}
}

// promised is when the parity of a message is here at the latest; zero: none is to come.
func (o *origin) promised(now time.Time, number uint64) (at time.Time) {
	if o != nil && number >= o.block && now.Before(o.due) {
		at = o.due
	}
	return at
}

// coded takes the parity of the block that an origin said last. If this node lacks more than one message, it requests all
// others.
func (e *Engine) coded(now time.Time, p *port, from uint16, c parity) []Item {
	g := e.groups[c.tag]
	if g == nil || g.origins[from] == nil || g.origins[from].block == 0 || uint16(g.origins[from].block) != uint16(c.first.Number) || e.ignored(now, from) {
		e.drop("group_parity")
		return nil
	}
	o, soon := g.origins[from], now.Add(e.jitter(p.Trip))
	c.first = Name{from, o.block}
	if o.parity != nil && o.parity.first != c.first { // what it was kept for has not come
		g.hasten(o.parity.first.Number, c.first, soon)
	}
	o.parity = &c
	if lacks := o.lacks(&c); len(lacks) > 1 {
		last := lacks[len(lacks)-1]
		o.due = now.Add(p.patience(len(lacks)))
		e.ask(now, now, p, g, from, lacks, true)
		g.hasten(o.block, last, soon)
		if a := g.asks[last.key()]; a != nil && a.tries == 0 {
			a.at = o.due
		}
	}
	o.due = time.Time{}
	return e.restore(now, p, g, from)
}

// lacks are the messages of a block that were not received.
func (o *origin) lacks(c *parity) (names []Name) {
	for n := c.first; n.Number < c.first.Number+uint64(c.count); n.Number++ {
		if !o.received(n.Number) {
			names = append(names, n)
		}
	}
	return names
}

// restore returns the message that is the only one missing of the last block of an origin.
func (e *Engine) restore(now time.Time, p *port, g *group, id uint16) []Item {
	o := g.origins[id]
	c := o.parity
	if c == nil {
		return nil
	}
	lacks := o.lacks(c)
	if len(lacks) > 1 {
		return nil
	}
	o.parity = nil
	if len(lacks) == 0 {
		return nil
	}
	sum, age := c.sum, time.Duration(0)
	for n := c.first; n.Number < c.first.Number+uint64(c.count); n.Number++ {
		it := o.items[n.Number]
		if it == nil && n != lacks[0] { // it was dropped
			return nil
		}
		if it != nil {
			sum, age = mix(sum, it), max(age, LifeOf(young(it.Life, it.Hops+1))-it.Expires.Sub(now))
		}
	}
	octets := int(binary.BigEndian.Uint16(sum[1:]) &^ sumNames)
	if octets > min(len(sum)-3, MostBody) {
		e.drop("group_parity")
		return nil
	}
	it := Item{Tag: c.tag, Name: lacks[0], Life: sum[0], Hops: c.hops, Names: sum[1]&(sumNames>>8) != 0, Body: sum[3 : 3+octets]}
	it.Expires = now.Add(LifeOf(young(it.Life, it.Hops)) - age - blockTrips*p.Trip) // it may be the oldest
	if !e.heard(now, p, id, it, 0) {
		return nil
	}
	return []Item{it}
}

// append writes a parity.
func (c *parity) append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, kindParity|c.count), uint64(5+len(c.sum)))
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, uint16(c.tag)), uint16(c.first.Number))
	return append(append(b, c.hops), c.sum...)
}

// parseParity reads a parity without its first octet; of its first number it has the low 16 bits.
func parseParity(count byte, b []byte) (c parity, rest []byte, err error) {
	n, b, err := uvarint(b, 5+3+MostBody)
	if err != nil || len(b) < int(n) || n < 5+3 {
		return c, nil, ErrFormat
	}
	return parity{tag: Tag(binary.BigEndian.Uint16(b)), first: Name{Number: uint64(binary.BigEndian.Uint16(b[2:]))}, count: count, hops: max(1, min(b[4], MostHops)), sum: slices.Clone(b[5:n])}, b[n:], nil
}
