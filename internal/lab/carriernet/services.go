package carriernet

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/replica"
	"aldis/internal/site"
)

// A Node is the mail.Services of its carriers.

// Record changes the journal, together with all other changes of this Step.
func (n *Node) Record(bucket string, key, value []byte) {
	n.records = append(n.records, api.Record{Bucket: bucket, Key: key, Value: value})
}

// RecordPeer makes a peer's numbers durable.
func (n *Node) RecordPeer(p *mail.Peer) { p.Link.Record() }

// Note writes to the operator's log.
func (n *Node) Note(level, text string, attrs ...any) {
	at := n.network.Now.Sub(Epoch).Seconds()
	n.network.Notes = append(n.network.Notes, fmt.Sprintf("%8.3f %s %s: %s %v", at, n.Name, level, text, attrs))
}

// Drop counts a datagram or packet that was discarded.
func (n *Node) Drop(reason string) {
	if n.Drops == nil {
		n.Drops = map[string]int{}
	}
	n.Drops[reason]++
}

// Open reads a message in its peer's turn.
func (n *Node) Open(now time.Time, p *mail.Peer, at mail.TransmissionID, body []byte) error {
	for {
		if err := n.OpenSlice(now, p, at, body); !errors.Is(err, compact.ErrUnfinished) {
			return err
		}
	}
}

// Unread notes a message of a peer that is acknowledged and cannot be read.
func (n *Node) Unread(_ time.Time, _ *mail.Peer, at mail.TransmissionID) {
	n.Unreadable = append(n.Unreadable, at)
}

// Gone notes a message of this node that a peer cannot read and that no node has any more.
func (n *Node) Gone(_ time.Time, _ *mail.Peer, at mail.TransmissionID) {
	n.Lacked = append(n.Lacked, at)
}

// TellFates does nothing, because ended notes fates as they come.
func (n *Node) TellFates(time.Time) {}

// ended is called once for each message and recipient.
func (n *Node) ended(e *mail.Entry, fate mail.Fate) {
	if fate == mail.Reissued {
		return
	}
	if fate == mail.Delivered {
		held := n.Replica.Acked(e.Peer.ID, e.ID)
		n.durable = append(n.durable, func() { n.hold(e.Peer.ID, held) })
	} else {
		n.Replica.Unsent(e.Peer.ID, e.ID)
	}
	end := Ending{n.now, e.Peer.ID, e.Content.Payload, fate}
	n.durable = append(n.durable, func() { n.Ended = append(n.Ended, end) })
}

// hold notes the items of this node's site that a peer holds.
func (n *Node) hold(peer uint16, changes []replica.Held) {
	if n.disk.held[peer] == nil {
		n.disk.held[peer] = map[string]replica.Version{}
	}
	for _, h := range changes {
		n.disk.held[peer][h.Key] = h.Version
		if h.Gone {
			delete(n.disk.held[peer], h.Key)
		}
	}
}

// Hello is the present content of a HELLO to a peer.
func (n *Node) Hello(now time.Time, p *mail.Peer) frame.Hello {
	h := frame.Hello{Store: n.store, Stream: p.Handshake.Stream, HeardIncarnation: n.heard[p.ID].incarnation, HeardStream: p.Handshake.InStream,
		Digest: n.Replica.Digest(now, p.ID), Model: model(), Forgot: p.Handshake.Forgot & 0x7f}
	p.Link.Hello(&h)
	for _, c := range n.Bearer.Channels {
		c.Hello(p, &h)
	}
	h.Segments = h.Segments && !n.network.cfg.Old
	return h
}

// Texts returns codes for peers that have our model.
func (n *Node) Texts(to ...*mail.Peer) *envelope.Texts {
	if n.network.cfg.Plain {
		return nil
	}
	for _, p := range to {
		if p.Handshake.Model != model() {
			return nil
		}
	}
	return &envelope.Texts{Coder: &n.coder, Rules: compact.DefaultRules}
}

// News is a message with items that a peer lacks.
func (n *Node) News(_ time.Time, _ *mail.Peer, items []site.Item) (envelope.Message, []site.Item) {
	return envelope.Message{Items: items}, items
}

// Seal makes a datagram of frames.
func (n *Node) Seal(to uint16, long bool, frames []byte) ([]byte, bool) {
	n.counter++
	return wrap(to, n.ID, n.Incarnation, n.counter, long, frames), true
}

// Send puts a datagram on the air.
func (n *Node) Send(to netip.AddrPort, data []byte) { n.onAir = append(n.onAir, outgoing{to, data}) }

// Norm orders the child that runs libnorm to do something.
func (n *Node) Norm(order api.NormCommand) { n.orders = append(n.orders, order) }
