package gateway

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/replica"
	"aldis/internal/site"
)

// stateKeyOf is the name under which the replica knows a message.
func stateKeyOf(m *message, id custody.ID) uint64 {
	if m.seq != 0 {
		return waitingState | m.seq
	}
	return stateKey(id)
}

// openState applies what a peer says of its site, and what it asks of ours.
func (g *Gateway) openState(now time.Time, p *peer, m envelope.Message) {
	if len(m.Items) > 0 {
		p.count.lastKind = kindOf(m.Items)
	}
	for _, it := range m.Items {
		key := it.Key()
		if !it.Expires.IsZero() && !now.Before(it.Expires) {
			it = it.Withdrawal() // it died on its way
		}
		if it.Gone {
			if _, had := p.far[key]; !had {
				continue
			}
			delete(p.far, key)
			g.record(bucketFar, peerKey(p.ID, []byte(key)), nil)
		} else {
			p.far[key] = it
			p.farEnds.Add(it.Expires, key)
			g.recordFar(p, key, it)
		}
		g.farItem(now, p.ID, it, true)
	}
	g.renew(now, p, m.Renew)
	for _, h := range m.Void {
		for key, it := range p.far {
			if replica.HashOf(it) == h {
				delete(p.far, key)
				g.record(bucketFar, peerKey(p.ID, []byte(key)), nil)
				g.farItem(now, p.ID, it.Withdrawal(), true)
				break
			}
		}
	}
	if m.Asks {
		void, changes := g.replica.Mend(now, p.ID, m.Have)
		for _, h := range changes {
			g.recordHeld(p, h.Key, h.Gone, h.Version)
		}
		if len(void) > 0 {
			g.enqueue(p, &message{content: envelope.Message{Void: void}, kind: kindState})
		}
	}
}

func (g *Gateway) recordFar(p *peer, key string, it site.Item) {
	value, err := encodeItem(it)
	if err != nil { // it came in an envelope
		panic("gateway: " + err.Error())
	}
	g.record(bucketFar, peerKey(p.ID, []byte(key)), value)
}

// encodeItem is an item as the journal has it.
func encodeItem(it site.Item) ([]byte, error) {
	return envelope.Append(nil, envelope.Message{Items: []site.Item{it}}, 0, true)
}

func parseItem(value []byte) (site.Item, error) {
	m, _, _, err := envelope.Parse(value, nil)
	if err != nil || len(m.Items) != 1 {
		return site.Item{}, errors.Join(errRecord, err)
	}
	return m.Items[0], nil
}

// compare holds the peer's digest against what we have of its site, and asks for a repair when they differ.
func (g *Gateway) compare(now time.Time, p *peer, digest uint32) {
	if digest == 0 || p.asking() {
		return
	}
	have, d := g.have(now, p)
	if d.Sum() == digest {
		return
	}
	g.ask(p, have)
}

// have is what we hold of a peer's site.
func (g *Gateway) have(now time.Time, p *peer) (have []envelope.Hash, d *replica.Digest) {
	d = replica.NewDigest()
	for _, it := range p.far {
		if it.Expires.IsZero() || now.Before(it.Expires) {
			h := replica.HashOf(it)
			have = append(have, h)
			d.Add(h)
		}
	}
	slices.SortFunc(have, func(a, b envelope.Hash) int { return bytes.Compare(a[:], b[:]) })
	return have, d
}

// ask asks a peer for what we lack of its site.
func (g *Gateway) ask(p *peer, have []envelope.Hash) {
	g.note("info", "our copy of a peer's state differs: asking for what is missing", "peer", p.Name, "held", len(have))
	g.enqueue(p, &message{content: envelope.Message{Asks: true, Have: have}, kind: kindState})
}
