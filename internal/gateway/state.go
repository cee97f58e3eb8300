package gateway

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/link/replica"
	"aldis/internal/site"
)

// openState applies a peer's news of its site, and answers its questions about ours.
func (g *Gateway) openState(now time.Time, l *leg, m envelope.Message) {
	p := l.of
	if len(m.Items) > 0 {
		l.Opened = mail.KindOf(m.Items)
	}
	for _, it := range m.Items {
		if envelope.Asks(it) {
			g.queries.inCustody(p.ID, it)
		}
	}
	g.farItems(now, p, m.Items)
	if len(m.Renew) > 0 {
		l.Opened = mail.State
		g.renew(now, p, m.Renew)
	}
	for _, h := range m.Void {
		if key, ok := p.far.keys()[h]; ok {
			it := p.far.items[key]
			p.far.drop(key)
			g.farItem(now, p.ID, it.Withdrawal(), true)
		}
	}
	if m.Roster != nil {
		l.Opened = mail.Key
		for _, id := range g.keys.Rosters.Arrived(now, p.ID, m.Roster) {
			g.byID[id].Handshake.Owe(now)
		}
		g.part(now)
	}
	if len(m.Lost) > 0 {
		l.Opened = mail.State
		p.ends.lost(now, m.Lost)
	}
	if m.Direct != nil {
		l.Opened = mail.State
		hearDirect(g, now, p, m.Direct)
	}
	if m.Asks {
		void, changes := g.replica.Mend(now, p.ID, m.Have)
		for _, h := range changes {
			g.Record(copyRecord(p.ID, h))
		}
		if len(void) > 0 {
			g.submit(now, p.Peer, envelope.Message{Void: void}, mail.State)
		}
	}
}

// farItems applies a peer's items.
func (g *Gateway) farItems(now time.Time, p *peer, items []site.Item) {
	for _, it := range items {
		if !it.Expires.IsZero() && !now.Before(it.Expires) {
			it = it.Withdrawal() // it expired on its way
		}
		if !it.Gone {
			p.far.keep(it)
		} else if !p.far.drop(it.Key()) {
			continue
		}
		g.farItem(now, p.ID, it, true)
	}
}

// submit hands the peer's carrier a message for it alone; false: it was refused, and the caller keeps it or accounts for it.
// Refused questions to a peer, and refused answers, come up again with the digest of a later HELLO.
func (g *Gateway) submit(now time.Time, p *mail.Peer, content envelope.Message, kind mail.Kind) bool {
	return len(accept(g, now, []*peer{g.byID[p.ID]}, content, kind)) == 0
}

// encodeItem is an item as the journal has it.
func encodeItem(it site.Item) ([]byte, error) {
	return envelope.Append(nil, envelope.Message{Items: []site.Item{it}}, 0, true)
}

func parseItem(value []byte) (site.Item, error) {
	m, _, _, err := envelope.Parse(value, nil)
	if err != nil || len(m.Items) != 1 {
		return site.Item{}, errors.Join(mail.ErrRecord, err)
	}
	return m.Items[0], nil
}

// ask asks a peer for the items that we lack of its site.
func (g *Gateway) ask(now time.Time, p *peer) {
	have, _ := p.far.have(now)
	g.Note("info", "this node's copy of a peer's state is incomplete; the gateway asks for the rest", "peer", p.Name, "held", len(have))
	g.submit(now, p.Peer, envelope.Message{Asks: true, Have: have}, mail.State)
}

// News is a message to a peer about items that it lacks or holds in another version, and the items as it will hold them. Where it holds
// the documents and only lifetimes have changed, those go in six octets each; otherwise new items go first. A withdrawn item goes as the
// hash of the version that the peer holds: it has acknowledged that version, because a change waits for the one before.
func (g *Gateway) News(now time.Time, p *mail.Peer, items []site.Item) (m envelope.Message, told []site.Item) {
	var renewed []site.Item
	var renewals []envelope.Renewal
	for _, it := range items {
		held, has := g.replica.Holds(p.ID, it.Key())
		expires := it.Expires.Truncate(time.Minute)
		if has && !it.Gone && !it.Expires.IsZero() && !held.Expires.IsZero() && held.Hash == replica.HashOf(it) &&
			held.Expires.After(now) && expires.After(held.Expires) && expires.Sub(now) <= envelope.RenewalMost {
			it.Expires = expires
			renewed = append(renewed, it)
			renewals = append(renewals, envelope.RenewalOf(held.Hash, expires))
			continue
		}
		if told = append(told, it); it.Gone && has && it.Adapter != site.JXTA {
			m.Void = append(m.Void, held.Hash)
		} else {
			m.Items = append(m.Items, it)
		}
	}
	if len(told) > 0 {
		return m, told
	}
	return envelope.Message{Renew: renewals}, renewed
}

// renew lets items of a peer live longer, and asks for those that are not here.
func (g *Gateway) renew(now time.Time, p *peer, list []envelope.Renewal) {
	keys := p.far.keys()
	lacking := false
	for _, r := range list {
		key, ok := keys[r.Hash]
		if !ok {
			lacking = true
			continue
		}
		it := p.far.items[key]
		if expires := r.Expires(now); !it.Expires.IsZero() && expires.After(it.Expires) {
			it.Expires = expires
			p.far.keep(it)
			g.farItem(now, p.ID, it, true)
		}
	}
	if lacking && !p.asks() {
		g.ask(now, p)
	}
}

// farCopy is our copy of the items of a peer's site, also in the journal.
type farCopy struct {
	peer     uint16
	services journal
	items    map[string]site.Item
	ends     replica.Calendar
}

func newFarCopy(peer uint16, services journal) farCopy {
	return farCopy{peer: peer, services: services, items: map[string]site.Item{}}
}

// put keeps an item that the journal has.
func (f *farCopy) put(it site.Item) {
	key := it.Key()
	f.items[key] = it
	f.ends.Add(it.Expires, key)
}

// keep is put for an item that the journal does not have.
func (f *farCopy) keep(it site.Item) {
	value, err := encodeItem(it)
	if err != nil { // no envelope has such an item
		return
	}
	f.put(it)
	f.services.Record(bucketFar, peerKey(f.peer, []byte(it.Key())), value)
}

// drop forgets an item; false: there was none.
func (f *farCopy) drop(key string) bool {
	if _, had := f.items[key]; !had {
		return false
	}
	delete(f.items, key)
	f.services.Record(bucketFar, peerKey(f.peer, []byte(key)), nil)
	return true
}

// clear forgets all.
func (f *farCopy) clear() {
	for key := range f.items {
		f.drop(key)
	}
}

// purge forgets expired items, at most so many; more: there may be more.
func (f *farCopy) purge(now time.Time, most int) (more bool) {
	due := f.ends.Due(now, most)
	for _, key := range due {
		switch it, known := f.items[key]; {
		case !known || it.Expires.IsZero():
		case !now.Before(it.Expires):
			f.drop(key)
		case it.Expires.Sub(now) < time.Minute:
			f.ends.Add(it.Expires, key)
		}
	}
	return len(due) == most
}

// have lists the items that have not expired, as a question to the peer does, and makes a digest of them.
func (f *farCopy) have(now time.Time) (have []envelope.Hash, d *replica.Digest) {
	d = replica.NewDigest()
	for _, it := range f.items {
		if it.Expires.IsZero() || now.Before(it.Expires) {
			h := replica.HashOf(it)
			have = append(have, h)
			d.Add(h)
		}
	}
	slices.SortFunc(have, func(a, b envelope.Hash) int { return bytes.Compare(a[:], b[:]) })
	return have, d
}

// differs says whether the peer's digest differs from that of the copy.
func (f *farCopy) differs(now time.Time, digest uint32) bool {
	_, d := f.have(now)
	return d.Sum() != digest
}

// keys are the names of items by their hashes.
func (f *farCopy) keys() map[envelope.Hash]string {
	keys := map[envelope.Hash]string{}
	for key, it := range f.items {
		keys[replica.HashOf(it)] = key
	}
	return keys
}
