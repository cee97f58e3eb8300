package carriernet

import (
	"encoding/binary"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// heard is a node's record of a peer: the number of its present start, and which of its datagrams have come.
type heard struct {
	incarnation uint32
	counter     uint32    // the highest counter
	window      [8]uint64 // for the counters below it, the bits of those that came
}

const windowOf = 8 * 64

// note notes a datagram; false: it came before, or it is so late that nobody knows.
func (h *heard) note(counter uint32) bool {
	for h.counter < counter {
		h.counter++
		h.window[h.counter%windowOf/64] &^= 1 << (h.counter % 64)
	}
	word, bit := &h.window[counter%windowOf/64], uint64(1)<<(counter%64)
	if h.counter-counter >= windowOf || *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// receive takes a datagram from the link, as internal/gateway takes one that is authentic.
func (n *Node) receive(now time.Time, data []byte) {
	d, incarnation := unwrap(data)
	p, h := n.Peer(d.From), n.heard[d.From]
	switch {
	case p == nil || incarnation < h.incarnation:
		n.Drop("stale_boot")
		return
	case incarnation > h.incarnation && !d.Long: // the key to open it is not known
		n.Drop("unknown_boot")
		p.Handshake.Owe(now)
		return
	}
	newIncarnation := incarnation > h.incarnation
	if newIncarnation {
		h = heard{incarnation: incarnation}
	}
	newest := newIncarnation || d.Counter > h.counter
	if !h.note(d.Counter) {
		n.Drop("replay")
		return
	}
	n.heard[d.From] = h
	n.durable = append(n.durable, func() { n.disk.heard[d.From] = h })
	n.heardFrom(now, p, d, newIncarnation, newest)
	p.Stamp = mail.Stamp{Incarnation: incarnation, Counter: d.Counter}
	for body := d.Body; len(body) > 0; {
		f, rest, err := frame.Parse(body)
		if err != nil {
			n.Drop("malformed")
			return
		}
		n.receiveFrame(now, p, f, len(body)-len(rest), newest)
		body = rest
	}
	n.beginAnew(now, p)
	if newIncarnation {
		p.Link.Restarted()
	}
}

// heardFrom notes that a peer is alive, and its address.
func (n *Node) heardFrom(now time.Time, p *mail.Peer, d Datagram, newIncarnation, newest bool) {
	p.Counts.DatagramsReceived++
	n.Bearer.Air.Heard(now, &n.Bearer.Profile, d.Octets)
	for _, c := range n.Bearer.Channels {
		c.OnAir(now, p, d.Octets)
	}
	if d.Long && !p.Handshake.Owed && !(d.To == 0 && p.Link.Together()) {
		p.Handshake.Owe(now.Add(n.Bearer.Profile.AckDelay))
	}
	if newIncarnation {
		p.Handshake.KnowsUs, p.Handshake.Started = false, true
		for _, c := range n.Bearer.Channels {
			c.Started(p)
		}
	}
	if newest && p.Heard(now, Address(d.From), newIncarnation) {
		p.Link.RecordPaths()
	}
	if p.Link.Listening() {
		for _, c := range n.Bearer.Carriers {
			c.PeerSilent(now, p, false)
		}
	}
	p.LastHeard = now
	p.Link.Heard(now)
}

func (n *Node) receiveFrame(now time.Time, p *mail.Peer, f frame.Frame, octets int, newest bool) {
	switch f := f.(type) {
	case frame.Hello:
		n.hello(now, p, f, newest)
		return
	case frame.Greeting:
		if h, _, ok := f.For(n.ID); ok {
			n.hello(now, p, h, newest)
		}
		p.Link.Greeting(now, f)
		return
	case frame.Silence:
		for _, c := range n.Bearer.Carriers {
			c.PeerSilent(now, p, true)
		}
		p.Handshake.Due = time.Time{}
		n.RecordPeer(p)
		return
	}
	for _, c := range n.Bearer.Carriers {
		if c.Receive(now, p, f, octets, newest) {
			return
		}
	}
	n.Drop("no carrier")
}

// hello learns from a HELLO which nodes a peer knows, and whether its store or its numbers are new.
func (n *Node) hello(now time.Time, p *mail.Peer, h frame.Hello, newest bool) {
	met, incarnation := &p.Handshake, n.heard[p.ID].incarnation
	switch {
	case met.Store != h.Store && met.Store != 0:
		met.Store, met.InStream = h.Store, h.Stream
		n.newNumbers(now, p)
		n.newStore(now, p)
	case met.Store != h.Store:
		met.Store, met.InStream, met.Compared = h.Store, h.Stream, incarnation
		n.RecordPeer(p)
	case met.InStream != h.Stream && newest:
		met.InStream = h.Stream
		n.newNumbers(now, p)
	}
	if h.Model != met.Model || h.Segments != met.Segments || h.Ahead != met.Ahead {
		met.Model, met.Segments, met.Ahead = h.Model, h.Segments, h.Ahead
		n.RecordPeer(p)
	}
	if h.Forgot != met.PeerForgot {
		met.PeerForgot = h.Forgot
		for _, c := range n.Bearer.Carriers {
			c.Unlearn(p)
		}
		n.RecordPeer(p)
	}
	met.Answered(now, h, n.Incarnation)
	met.Placed = met.Placed || newest
	if !newest {
		return
	}
	p.Link.Compare(now, h, incarnation)
	for _, c := range n.Bearer.Channels {
		c.Compare(now, p, h)
	}
}

// newNumbers handles a peer that counts its messages from 1 again.
func (n *Node) newNumbers(now time.Time, p *mail.Peer) {
	p.Handshake.Compared, p.Handshake.Refused = n.heard[p.ID].incarnation, mail.Taken
	for _, c := range n.Bearer.Carriers {
		c.NewNumbers(now, p)
	}
	p.Handshake.Era++
	p.Reader.Forget()
	n.durable = append(n.durable, func() { delete(n.Far, p.ID) })
	n.RecordPeer(p)
}

// newStore handles a peer that has lost all messages sent to it. Those that it has not acknowledged go again.
func (n *Node) newStore(now time.Time, p *mail.Peer) {
	var again []*mail.Entry
	for _, c := range n.Bearer.Carriers {
		again = append(again, c.NewStore(p)...)
	}
	for _, e := range again {
		if e.Content.Payload != nil {
			n.Bearer.Carrier().Accept(now, []*mail.Peer{p}, e.Content, e.Kind)
		}
	}
	n.Replica.Forget(p.ID)
	n.durable = append(n.durable, func() { delete(n.disk.held, p.ID) })
	n.RecordPeer(p)
}

// beginAnew begins a new stream when the peer has said that the one before is void.
func (n *Node) beginAnew(now time.Time, p *mail.Peer) {
	met := &p.Handshake
	if met.Reissued == mail.Taken {
		return
	}
	if met.Reissued == mail.Void {
		n.Note("warn", "the data of this node was put back to an older copy")
	}
	met.Reissued, met.Ending, met.KnowsUs = mail.Taken, false, false
	n.newStore(now, p)
	met.Owe(now)
	n.RecordPeer(p)
}

// OpenSlice reads a message of a peer in the peer's turn, as far as this turn has room.
func (n *Node) OpenSlice(now time.Time, p *mail.Peer, at mail.TransmissionID, body []byte) error {
	work := n.coder.Work()
	m, err := p.Reader.Read(&n.coder, at, body, p.Turn.Left())
	p.Turn.Spent(n.coder.Work()-work, m.Octets())
	if err != nil {
		return err
	}
	n.durable = append(n.durable, func() { n.read(now, p.ID, at, m) })
	for _, c := range n.Bearer.Channels {
		c.Resend(now, p, m.Again)
	}
	return nil
}

// read takes the payload and the items of a message, now that it is durable.
func (n *Node) read(now time.Time, from uint16, at mail.TransmissionID, m envelope.Message) {
	if m.Payload != nil {
		n.Got = append(n.Got, Arrival{now, from, at, m.Payload})
	}
	for _, it := range m.Items {
		if n.Far == nil {
			n.Far = map[uint16]map[string]site.Item{}
		}
		if n.Far[from] == nil {
			n.Far[from] = map[string]site.Item{}
		}
		n.Far[from][it.Key()] = it
		if it.Gone {
			delete(n.Far[from], it.Key())
		}
	}
}

// model identifies the compaction model in a HELLO.
func model() uint16 {
	h := compact.ModelHash()
	return binary.BigEndian.Uint16(h[:])
}
