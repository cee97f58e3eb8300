package jxtabridge

import (
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge/reliable"
	"aldis/internal/site"
)

// layer is a reliability layer of JXSE: its formats, its terms, and its counters in Stats.
type layer struct {
	name               string // begins the reasons in Stats.Refused
	service            string
	namespace, ack     string // of its elements; ack is the name of an acknowledgement
	mimeBlock, mimeAck string
	signed             bool   // a block is a message, which a signed peer wants signed (ghosts 6.4)
	mark               string // names the element that marks a repeated block; empty: none does
	terms              reliable.Terms
	counts             *Traffic
}

// Traffic counts the traffic of conversations with local peers.
type Traffic struct {
	Blocks     uint64 // of local peers, carried
	Duplicates uint64 // blocks of local peers that the gateway already had
	Acks       uint64 // of local peers, kept here
	Delivered  uint64 // blocks of far peers that a local one has acknowledged
	Repeats    uint64 // blocks sent to a local peer again
	OctetsOut  uint64 // of blocks of local peers
	OctetsIn   uint64 // of blocks that local peers have acknowledged
}

// conversation is a reliable connection between a peer of this site (the edge) and a peer of another site; the gateway answers
// in the name of the latter. Each block crosses the link once; the far gateway delivers it with the same number (ghosts 6.4, 7).
type conversation struct {
	reliable.Conversation[upward]
	layer                *layer
	group, local, remote string
	to                   string // parameter of the messages to the edge
	tally                Traffic
}

// upward is a block of the edge in the form in which it crosses the link.
type upward struct {
	head     byte           // of a stream's payload
	elements []jxta.Element // of the payload, behind its head
	octets   int
	closes   bool
}

// gave counts a block that was given to the link.
func (c *conversation) gave(octets int) {
	c.Give(octets)
	for _, t := range c.counts() {
		t.Blocks++
		t.OctetsOut += uint64(octets)
	}
}

func (c *conversation) counts() [2]*Traffic { return [...]*Traffic{c.layer.counts, &c.tally} }

// conversations are the streams, or the secure pipes, towards their edges.
type conversations struct {
	*step
	outlets *outlets
	ghosts  *ghosts
	all     map[*conversation]struct{}
	wakeAt  time.Time // when the first conversation has something to do
}

func newConversations(s *step, o *outlets, g *ghosts) *conversations {
	return &conversations{step: s, outlets: o, ghosts: g, all: map[*conversation]struct{}{}}
}

// begin starts a conversation, with no block on its way.
func (cs *conversations) begin(c *conversation, l *layer, s reliable.State) {
	c.layer, c.Conversation = l, reliable.New[upward](&l.terms, s, c.to != "" || l.service == svcTransport)
	cs.all[c] = struct{}{}
}

// full tells whether there are too many conversations, of all, of one peer or of one host, to begin another.
func (cs *conversations) full(local string) bool {
	all, own, near := 0, 0, 0
	host := cs.hostOf(local)
	for c := range cs.all {
		if c.Ended() {
			continue
		}
		all++
		if c.local == local {
			own++
		}
		if host != "" && cs.hostOf(c.local) == host {
			near++
		}
	}
	most := cs.cfg.MaxStreams
	return all >= most || own >= max(1, most/4) || near >= max(1, most/2)
}

// hostOf is the host of a peer; "": it is not known.
func (cs *conversations) hostOf(local string) string {
	if p := cs.outlets.peers[local]; p != nil {
		return p.identity.host
	}
	return ""
}

const conversationBlocks = 4096 // for one edge, far more than a gateway that obeys headHold sends

// streamLayers are the layers of sockets and BiDi pipes (wire 8.6). A BiDi edge of 2.7 hands two blocks to two threads, and its
// listener may see the second first (ghosts 6.4): it gets one block at a time, at a distance. A socket's reader sorts them.
func streamLayers(s *step) (all [2]layer) {
	soft := reliable.Room{Octets: s.cfg.StreamOctets, Blocks: s.cfg.StreamBlocks}
	all[streamSocket] = layer{
		name: "stream", service: svcPipe, namespace: nsRel, ack: relAck, mimeBlock: mimeBlock, mimeAck: mimeAck,
		terms: reliable.Terms{
			Window: 16, Repeats: 1, Reorder: streamReorder, AckKept: true, Soft: soft,
			Hard:   reliable.Room{Octets: soft.Octets + streamHardPlus, Blocks: 4 * soft.Blocks},
			Near:   reliable.Room{Octets: maxStreamOctets, Blocks: conversationBlocks},
			GiveUp: streamGiveUp, Closing: streamAccept, Patient: true},
		counts: &s.stats.Stream}
	bidi := all[streamSocket]
	bidi.signed, bidi.terms.Window, bidi.terms.Last = true, 1, closeBlock()
	bidi.terms.Pace = func(waiting int) time.Duration { // the edge acknowledges a block before its listener has it
		if waiting < shortBacklog {
			return 4 * s.cfg.Pace
		}
		return s.cfg.Pace
	}
	all[streamBiDi] = bidi
	return all
}

// tlsLayer is the layer of secure pipes. A repeat sends all blocks: the edge does not acknowledge the first again if it has it.
func tlsLayer(s *step) layer {
	return layer{
		name: "tls", service: svcTransport, namespace: nsTLS, ack: tlsAck, mimeBlock: mimeTLSBlock, mimeAck: mimeTLSAck, mark: "MARKRetr",
		terms: reliable.Terms{
			Window: 16, Reorder: tlsReorder,
			Hard:   reliable.Room{Octets: s.cfg.StreamOctets, Blocks: s.cfg.StreamBlocks},
			Near:   reliable.Room{Octets: tlsQueue, Blocks: conversationBlocks},
			GiveUp: tlsGiveUp},
		counts: &s.stats.Secure}
}

// blockNumber is the number of a block, which is its element's name; 0: it has none.
func blockNumber(e *jxta.Element) uint32 {
	n, err := strconv.ParseUint(e.Name, 10, 31)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// edgeBlock takes a block of the edge: in order, once, acknowledged at once, and given to the gateway in the same Step,
// so that an acknowledged block is durable. It reports whether carry was called.
func (cs *conversations) edgeBlock(c *conversation, in inbound, e *jxta.Element, read func([]byte) (upward, error), carry func(upward) bool) bool {
	n := blockNumber(e)
	place := c.Classify(n)
	if place == reliable.Early && c.EarlyOctets(func(up upward) int { return up.octets })+len(e.Data) > cs.cfg.StreamOctets {
		place = reliable.Full // the edge sends it again
	}
	switch place {
	case reliable.Wrong:
		cs.complain(in.conn, c.layer.name+"_block", errJump)
		return false
	case reliable.Taken, reliable.Kept:
		c.layer.counts.Duplicates++
		cs.settle(c, c.Duplicate(place))
		return false
	case reliable.Over:
		return false
	case reliable.Full:
		cs.stats.Refused[c.layer.name+"_full"]++
		return false // without an acknowledgement the edge keeps the block
	}
	up, err := read(e.Data)
	if err != nil {
		cs.complain(in.conn, c.layer.name+"_block", err)
		return false
	}
	cs.settle(c, c.Accept(n, up, carry))
	return place == reliable.Next
}

// ackNumber is the highest block that the edge has. Selective acknowledgements are ignored: the edge sorts early blocks
// itself.
func (cs *conversations) ackNumber(l *layer, in inbound, data []byte) (n uint32, ok bool) {
	if len(data) < 4 || len(data)%4 != 0 {
		cs.complain(in.conn, l.name+"_ack", nil)
		return 0, false
	}
	l.counts.Acks++
	return binary.BigEndian.Uint32(data), true
}

// settle carries out a conversation's output towards its edge.
func (cs *conversations) settle(c *conversation, out reliable.Output) {
	for _, b := range out.Freed {
		for _, t := range c.counts() {
			t.Delivered++
			t.OctetsIn += uint64(len(b.Data))
		}
		cs.done(b.Token)
	}
	for _, s := range out.Send {
		cs.send(c, s)
	}
	cs.wakeBy(c.Deadline())
}

// send hands the edge a block or an acknowledgement, as the ghost.
func (cs *conversations) send(c *conversation, s reliable.Send) {
	p, l := cs.outlets.peers[c.local], c.layer
	if s.Number == 0 {
		cs.toEdge(c, jxta.Element{Namespace: l.namespace, Name: l.ack, Type: l.mimeAck, Data: s.Data})
		return
	}
	if l.signed && p != nil && p.signed {
		signed, err := jxta.SignMessage(slices.Clone(s.Data), cs.cfg.Identity.Key, cs.cfg.Identity.Cert, jxta.URN(c.remote))
		if err != nil {
			cs.note("error", "a stream block cannot be signed for a local peer", "peer", p.id, "error", err)
		} else {
			s.Data = signed
		}
	}
	elements := []jxta.Element{{Namespace: l.namespace, Name: strconv.FormatUint(uint64(s.Number), 10), Type: l.mimeBlock, Data: s.Data}}
	if s.Again {
		for _, t := range c.counts() {
			t.Repeats++
		}
		if l.mark != "" {
			elements = append(elements, jxta.Element{Namespace: l.namespace, Name: l.mark, Type: mimeText, Data: []byte("TLSRET")})
		}
	}
	cs.toEdge(c, elements...)
}

// toEdge sends to the edge as the ghost, unless the edge is gone.
func (cs *conversations) toEdge(c *conversation, elements ...jxta.Element) {
	p := cs.outlets.peers[c.local]
	if p == nil {
		return
	}
	say := cs.ghosts.routedAnyGroup
	if c.layer.service == svcTransport && len(p.leases) == 0 { // a secure pipe may outlive the lease
		say = cs.ghosts.routed
		if len(p.conns) == 0 {
			return
		}
	}
	m := say(p, c.remote, c.group, c.layer.service, c.to, elements)
	m.confirms = elements[0].Name == c.layer.ack
	cs.outlets.enqueue(p, m)
}

// here tells whether a peer has a connection.
func (cs *conversations) here(peer string) bool {
	p := cs.outlets.peers[peer]
	return p != nil && len(p.conns) > 0
}

// edgeIsBack sends a peer that has dialled in again the blocks that it may have lost.
func (cs *conversations) edgeIsBack(p *peer) {
	for c := range cs.all {
		if c.local == p.id {
			c.Back(cs.now)
			cs.wakeBy(c.Deadline())
		}
	}
}

// wakeBy asks to be woken for a conversation.
func (cs *conversations) wakeBy(at time.Time) {
	cs.wakeAt = due.Earliest(cs.wakeAt, at)
	cs.until(at)
}

// due reports whether a conversation may be due. The caller then asks each of them, and each sets its next time.
func (cs *conversations) due() bool {
	if !due.Reached(cs.now, cs.wakeAt) {
		return false
	}
	cs.wakeAt = time.Time{}
	return true
}

// lose ends far messages that the edge has not acknowledged and will not.
func (cs *conversations) lose(why site.Why, c *conversation, tokens []uint64) {
	for _, t := range tokens {
		undelivered(cs.step, t, why, c.local)
	}
}

// drop finishes far messages that nobody here waits for any more.
func (cs *conversations) drop(tokens []uint64) { cs.out.Done = append(cs.out.Done, tokens...) }
