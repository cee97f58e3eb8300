package gateway

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"aldis/internal/due"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// bucketRoster holds the rosters that this node goes by: serial -> roster, at most seal.MaxEpochs of them.
const bucketRoster = "roster"

// rollover is the way from one roster to the next: docs/decisions/rollover.md.
type rollover struct{ g *Gateway }

// choose puts the newest roster first that names this node, of the configuration's and the journal's.
func (k *keys) choose(self uint16, kept []*roster.Roster) error {
	list := append([]*roster.Roster{k.trust.Roster}, kept...)
	slices.SortStableFunc(list, func(a, b *roster.Roster) int { return int(int64(b.Serial) - int64(a.Serial)) })
	list = slices.CompactFunc(list, func(a, b *roster.Roster) bool { return a.Serial == b.Serial })
	for len(list) > 0 {
		if _, err := list[0].Epoch(self, k.trust.Own); err == nil {
			break
		}
		list = list[1:]
	}
	if len(list) == 0 {
		return seal.ErrNotMember
	}
	k.rosters = list[:min(len(list), seal.MaxEpochs)]
	k.use = k.rosters[len(k.rosters)-1].Serial // until it is known that all can follow
	if len(k.rosters) == 1 || k.rosters[0].Serial == k.trust.Roster.Serial {
		k.use = k.rosters[0].Serial // every node was given it by hand
	}
	return k.rekey(self)
}

// rekey makes the keys of the rosters.
func (k *keys) rekey(self uint16) error {
	ring, err := roster.Ring(self, k.trust.Own, k.rosters...)
	if err == nil {
		k.ring = ring.Using(k.use)
	}
	return err
}

// newest is the roster that this node goes by; nil: all share a key.
func (k *keys) newest() *roster.Roster {
	if len(k.rosters) == 0 {
		return nil
	}
	return k.rosters[0]
}

// restore reads a roster from the journal. One that nobody has signed is as good as none.
func (k *keys) restore(trust *Trust, value []byte) error {
	r, err := roster.Parse(value)
	if err != nil || trust == nil {
		return err
	}
	if r.Net == trust.Roster.Net && r.Verify(trust.Authority) == nil {
		k.kept = append(k.kept, r)
	}
	return nil
}

// said is what a HELLO says of the roster.
func (k *keys) said() uint16 {
	if r := k.newest(); r != nil {
		return uint16(r.Serial)
	}
	return 0
}

// behind says that a peer has said that it goes by a roster before the one that is sealed with for all.
func (k *keys) behind(peer uint16) bool {
	serial, ok := k.known[peer]
	return ok && serial < k.use
}

// take decides about a roster that came from an operator or a peer. The error says why it is not taken.
func (o rollover) take(now time.Time, r *roster.Roster, from string) error {
	k := &o.g.keys
	if k.trust == nil {
		return fmt.Errorf("all gateways of this net share a key: there are no rosters")
	}
	old := k.newest()
	if err := r.Verify(k.trust.Authority); err != nil {
		return err
	}
	if err := r.Follows(old); err != nil {
		return err
	}
	if _, err := r.Epoch(o.g.cfg.ID, k.trust.Own); err != nil {
		o.g.Note("error", "a newer roster does not name this node with its key: its peers will not hear it any more, and it goes on with the older one",
			"serial", r.Serial, "from", from)
		return err
	}
	k.rosters = append([]*roster.Roster{r}, k.rosters...)
	for _, gone := range k.rosters[min(len(k.rosters), seal.MaxEpochs):] {
		o.g.Record(bucketRoster, binary.BigEndian.AppendUint32(nil, gone.Serial), nil)
	}
	k.rosters = k.rosters[:min(len(k.rosters), seal.MaxEpochs)]
	k.use = max(k.use, k.rosters[len(k.rosters)-1].Serial)
	o.g.Record(bucketRoster, binary.BigEndian.AppendUint32(nil, r.Serial), r.Append(nil))
	c := r.ChangeFrom(old)
	o.g.Note("info", "a newer roster is in force", "serial", r.Serial, "from", from, "added", c.Added, "gone", c.Gone, "rekeyed", c.Rekeyed)
	if err := o.rekey(); err != nil {
		return err
	}
	k.lags = map[uint16]time.Time{} // who gave it tells the others
	o.part(now)
	return nil
}

// rekey seals and opens by the rosters.
func (o rollover) rekey() error {
	k := &o.g.keys
	if err := k.rekey(o.g.cfg.ID); err != nil {
		return err
	}
	k.sealer.Rekey(k.ring)
	k.opener.Rekey(k.ring)
	return nil
}

// part ends what is under way to and from peers that the roster does not name, and begins with those that it names again.
func (o rollover) part(now time.Time) {
	r := o.g.keys.newest()
	if r == nil {
		return
	}
	for _, p := range o.g.peers {
		_, named := r.Node(p.ID)
		if p.Gone == !named {
			continue
		}
		if p.Gone = !named; named {
			p.Met.Owe(now)
			continue
		}
		delete(o.g.keys.known, p.ID)
		delete(o.g.keys.lags, p.ID)
		o.refuse(p)
		p.far.clear()
		o.g.siteLost(now, p.ID)
		o.g.Note("warn", "the roster does not name a peer any more: it is not heard, and what waited for it is refused", "peer", p.Name, "id", p.ID)
	}
}

// refuse ends what waits for a peer that is gone.
func (o rollover) refuse(p *peer) {
	for _, c := range p.bearer.carriers {
		for _, e := range c.NewStore(p.Peer) {
			if payload := e.Content.Payload; payload != nil {
				p.Counts.Withdrawn++
				o.g.faces.ended(payload, true)
			} else {
				p.ends.back(o.g.now, e.Content.Lost)
			}
		}
	}
	o.g.replica.Forget(p.ID)
	o.g.RecordPeer(p.Peer)
}

// hear notes what a peer's HELLO says of its roster.
func (o rollover) hear(now time.Time, p *peer, said uint16) {
	k := &o.g.keys
	r := k.newest()
	if r == nil || said == 0 {
		return
	}
	o.knows(p, uint32(max(0, int64(r.Serial)+int64(int16(said-uint16(r.Serial))))))
	if _, lags := k.lags[p.ID]; !lags && k.known[p.ID] < r.Serial {
		k.lags[p.ID] = due.Latest(now, k.again[p.ID])
	}
}

// knows notes the serial that a peer goes by.
func (o rollover) knows(p *peer, serial uint32) {
	k := &o.g.keys
	if k.known[p.ID] = serial; serial >= k.newest().Serial {
		delete(k.lags, p.ID)
	}
}

// turn is how long each member of a shared channel leaves it to those before it to tell one that lags: all have heard its greeting.
const turn = 10 * time.Minute

// wait is how long this node leaves it to others to tell p.
func (o rollover) wait(p *peer) time.Duration {
	if o.g.keys.given == o.g.keys.newest().Serial || p.bearer.several == nil || !p.bearer.group.IsValid() {
		return 0
	}
	before := 1
	for _, q := range o.g.peers {
		if q != p && !q.Gone && q.ID < o.g.cfg.ID {
			before++
		}
	}
	return time.Duration(before) * turn
}

// used notes that a peer has sealed for all with an epoch: it has the roster, and knows that all can follow.
func (o rollover) used(p *peer, epoch uint32) {
	k := &o.g.keys
	if epoch == 0 || k.trust == nil {
		return
	}
	if epoch > k.known[p.ID] {
		o.knows(p, epoch)
	}
	if epoch > k.use {
		k.use = epoch
		o.rekey()
	}
}

// step tells those the newest roster that are known to have an older one, and begins to seal with it when it is time.
func (o rollover) step(now time.Time) {
	k := &o.g.keys
	r := k.newest()
	if r == nil {
		return
	}
	var to []*mail.Peer
	all := true
	for _, p := range o.g.peers {
		if p.Gone || k.known[p.ID] >= r.Serial {
			continue
		}
		all = false
		since, lags := k.lags[p.ID]
		if k.told[p.ID] != r.Serial && (k.spread || lags && !now.Before(since.Add(o.wait(p)))) {
			to = append(to, p.Peer)
		}
	}
	k.spread = false
	if len(to) > 0 && !now.Before(k.retry) {
		o.tell(now, r, to)
	}
	if k.use < r.Serial && (r.At.IsZero() && all || !r.At.IsZero() && !now.Before(r.At)) {
		k.use = r.Serial
		o.rekey()
		o.g.Note("info", "what is for all is sealed by the new roster from now on", "serial", r.Serial)
	}
}

// due is when step has something to do by itself.
func (o rollover) due(now time.Time) (at time.Time) {
	k := &o.g.keys
	r := k.newest()
	if r == nil {
		return at
	}
	if k.use < r.Serial {
		at = r.At
	}
	for id, since := range k.lags {
		if p := o.g.byID[id]; k.told[id] != r.Serial && !p.Gone {
			at = due.Earliest(at, due.Latest(k.retry, since.Add(o.wait(p))))
		}
	}
	return at
}

func (o rollover) tell(now time.Time, r *roster.Roster, to []*mail.Peer) {
	byCarrier := map[mail.Carrier][]*mail.Peer{}
	var order []mail.Carrier
	for _, p := range to {
		o.g.keys.told[p.ID] = r.Serial
		c := o.g.byID[p.ID].bearer.carrier()
		if byCarrier[c] == nil {
			order = append(order, c)
		}
		byCarrier[c] = append(byCarrier[c], p)
	}
	for _, c := range order {
		for _, refused := range c.Accept(now, byCarrier[c], envelope.Message{Roster: r.Append(nil)}, mail.Key) {
			delete(o.g.keys.told, refused.ID)
			o.g.keys.lags[refused.ID] = now
			o.g.keys.retry = now.Add(time.Minute)
			o.g.Note("warn", "a roster cannot be given to a peer now", "peer", refused.Name, "serial", r.Serial)
		}
	}
}

// arrived takes the roster of a peer's message.
func (o rollover) arrived(now time.Time, p *peer, b []byte) {
	r, err := roster.Parse(b)
	if err == nil {
		if newest := o.g.keys.newest(); newest != nil && r.Serial <= newest.Serial && r.Verify(o.g.keys.trust.Authority) == nil {
			o.knows(p, max(r.Serial, o.g.keys.known[p.ID]))
			return
		}
		err = o.take(now, r, p.Name)
	}
	if err != nil {
		o.g.Drop("roster")
		o.g.Note("warn", "a roster from a peer is not taken", "peer", p.Name, "error", err)
		return
	}
	o.knows(p, r.Serial)
}

// ended follows what became of a message with a roster.
func (o rollover) ended(e *mail.Entry, fate mail.Fate) {
	r, err := roster.Parse(e.Content.Roster)
	if err != nil {
		return
	}
	k := &o.g.keys
	switch {
	case fate == mail.Delivered: // it is told again when it says an older one after all: it was put back
		if k.told[e.Peer.ID] == r.Serial {
			delete(k.told, e.Peer.ID)
		}
		k.again[e.Peer.ID] = o.g.now.Add(turn)
		o.knows(o.g.byID[e.Peer.ID], max(r.Serial, k.known[e.Peer.ID]))
	case k.told[e.Peer.ID] == r.Serial: // it is told again
		delete(k.told, e.Peer.ID)
		if k.known[e.Peer.ID] < r.Serial && r.Serial == k.newest().Serial {
			k.lags[e.Peer.ID] = o.g.now
		}
	}
}

// obey takes the roster of an operator.
func (ev NewRoster) obey(g *Gateway, now time.Time) {
	if err := (rollover{g}).take(now, ev.Roster, "an operator"); err != nil {
		g.keys.refusals, g.keys.refusal = g.keys.refusals+1, err.Error()
		g.Note("warn", "a roster is not taken", "error", err)
		return
	}
	g.keys.given, g.keys.spread = ev.Roster.Serial, true
}
