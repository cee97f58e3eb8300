package gateway

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"aldis/internal/due"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// bucketRoster holds the rosters that this node goes by: serial -> roster, at most seal.MaxEpochs of them. A second one of a serial
// has its digest behind that. Under the serial 0,
// which no roster has, is that of the one that is sealed with for all: a start goes on with it, so that who was taken out since the
// ones before it reads no more.
const (
	bucketRoster = "roster"
	usedOctets   = 4
)

// rollover is the way from one roster to the next: docs/decisions/rollover.md.
type rollover struct{ g *Gateway }

// choose puts the newest roster first that names this node, of the configuration's and the journal's.
func (k *keys) choose(self uint16, kept []*roster.Roster) error {
	list := append([]*roster.Roster{k.trust.Roster}, kept...)
	slices.SortStableFunc(list, func(a, b *roster.Roster) int { return int(int64(b.Serial) - int64(a.Serial)) })
	seen := map[[8]byte]bool{}
	list = slices.DeleteFunc(list, func(r *roster.Roster) bool {
		d := r.Digest()
		again := seen[d]
		seen[d] = true
		return again
	})
	for len(list) > 0 {
		if _, err := list[0].Epoch(self, k.trust.Own); err == nil {
			break
		}
		list = list[1:]
	}
	if len(list) == 0 {
		return seal.ErrNotMember
	}
	serial := list[0].Serial
	list = slices.DeleteFunc(list, func(r *roster.Roster) bool { // beside one that does
		_, err := r.Epoch(self, k.trust.Own)
		return err != nil && r.Serial == serial
	})
	k.rosters = list[:min(len(list), seal.MaxEpochs)]
	if !slices.ContainsFunc(k.rosters, func(r *roster.Roster) bool { return r.Serial == k.use }) {
		k.use = k.rosters[len(k.rosters)-1].Serial // until it is known that all can follow
	}
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
		k.common, k.mark = roster.Common(k.alike()), roster.Mark(k.alike())
	}
	return err
}

// alike is the rosters of the newest serial: one, or those that an authority has signed with one serial by a slip.
func (k *keys) alike() []*roster.Roster { return roster.Newest(k.rosters) }

// differs says that a peer goes by another roster of the newest serial, or does not know all of them that are known here.
func (k *keys) differs(its shelf) bool {
	return its.newest == k.common.Serial && its.mark != k.mark && (its.mark != 0 || len(k.alike()) > 1)
}

// newest is the roster that this node goes by; nil: all share a key.
func (k *keys) newest() *roster.Roster { return k.common }

// restore reads a roster from the journal. One that nobody has signed is as good as none.
func (k *keys) restore(trust *Trust, value []byte) error {
	if len(value) == usedOctets {
		k.use = binary.BigEndian.Uint32(value)
		return nil
	}
	r, err := roster.Parse(value)
	if err != nil || trust == nil {
		return err
	}
	if r.Net == trust.Roster.Net && r.Verify(trust.Authority) == nil {
		k.kept = append(k.kept, r)
	}
	return nil
}

// said is what a HELLO says of the rosters.
func (k *keys) said() uint16 {
	var s shelf
	for _, r := range slices.Backward(k.rosters) {
		s = s.with(r.Serial)
	}
	return s.word()
}

// behind says that a peer has said that it lacks the roster that is sealed with for all: it was given none since, or was off the
// air when it was told, or has forgotten it for newer ones.
func (k *keys) behind(peer uint16) bool {
	s, ok := k.known[peer]
	return ok && (!s.has(k.use) || k.use == k.common.Serial && k.differs(s))
}

// mayLack says that a peer is to be greeted by itself: it is behind, or does not answer what is for all, and nobody knows which
// rosters it keeps. Between two nodes the roster does not matter.
func (o rollover) mayLack(peer uint16) bool {
	k := &o.g.keys
	return k.behind(peer) || k.common != nil && k.common.Serial > 1 && o.g.byID[peer].Met.Tries() >= deafTries
}

// deafTries is how many greetings in a row a peer may leave without an answer before it gets one of its own.
const deafTries = 3

// seals makes a roster the one that is sealed with for all.
func (o rollover) seals(serial uint32) {
	o.g.keys.use = serial
	o.g.Record(bucketRoster, binary.BigEndian.AppendUint32(nil, 0), binary.BigEndian.AppendUint32(nil, serial))
}

// take decides about a roster that came from an operator or a peer. The error says why it is not taken.
func (o rollover) take(now time.Time, r *roster.Roster, from string) error {
	k := &o.g.keys
	if k.trust == nil {
		return fmt.Errorf("all gateways of this net share a key: there are no rosters")
	}
	if err := r.Verify(k.trust.Authority); err != nil {
		return err
	}
	for _, is := range k.alike() {
		if err := r.Follows(is); err != nil {
			return err
		}
	}
	old := k.newest()
	if err := o.enter(0, r, binary.BigEndian.AppendUint32(nil, r.Serial), from); err != nil {
		return err
	}
	o.seals(max(k.use, k.rosters[len(k.rosters)-1].Serial))
	c := r.ChangeFrom(old)
	o.g.Note("info", "a newer roster is in force", "serial", r.Serial, "from", from, "added", c.Added, "gone", c.Gone, "rekeyed", c.Rekeyed)
	if err := o.rekey(); err != nil {
		return err
	}
	k.lags = map[uint16]time.Time{} // who gave it tells the others
	o.part(now)
	return nil
}

// contest takes a roster beside those of its serial that are known here: until there is one with a higher serial, this node goes by
// what all of them name.
func (o rollover) contest(now time.Time, r *roster.Roster, from string) error {
	k := &o.g.keys
	n := len(k.alike())
	if n == seal.MaxEpochs-1 {
		return fmt.Errorf("%w: %d of this serial are known already", roster.ErrDiffers, n)
	}
	if err := o.enter(n, r, secondKey(r), from); err != nil {
		return err
	}
	if err := o.rekey(); err != nil {
		return err
	}
	k.told, k.lags = map[uint16]uint32{}, map[uint16]time.Time{}
	for _, p := range o.g.peers {
		k.lags[p.ID] = now
		p.Met.Owe(now) // it says that there are two
	}
	o.disputed(from)
	o.part(now)
	return nil
}

// disputed says that several rosters have one serial.
func (o rollover) disputed(from string) {
	r := o.g.keys.newest()
	if r == nil || len(o.g.keys.alike()) == 1 {
		return
	}
	var digests []string
	for _, one := range o.g.keys.alike() {
		digests = append(digests, one.Fingerprint())
	}
	o.g.Note("error", "the authority has signed two different rosters with one serial: until there is one with a higher serial, only nodes that both name are heard and spoken to",
		"serial", r.Serial, "digests", digests, "from", from)
}

func secondKey(r *roster.Roster) []byte {
	d := r.Digest()
	return append(binary.BigEndian.AppendUint32(nil, r.Serial), d[:]...)
}

// enter puts a roster that names this node at a place among those that it goes by, and into the journal.
func (o rollover) enter(at int, r *roster.Roster, key []byte, from string) error {
	k := &o.g.keys
	if _, err := r.Epoch(o.g.cfg.ID, k.trust.Own); err != nil {
		o.g.Note("error", "a newer roster does not name this node with its key: its peers will not hear it any more, and it goes on with the older one",
			"serial", r.Serial, "from", from)
		return err
	}
	k.rosters = slices.Insert(slices.Clone(k.rosters), at, r)
	for _, gone := range k.rosters[min(len(k.rosters), seal.MaxEpochs):] {
		o.g.Record(bucketRoster, binary.BigEndian.AppendUint32(nil, gone.Serial), nil)
		o.g.Record(bucketRoster, secondKey(gone), nil)
	}
	k.rosters = k.rosters[:min(len(k.rosters), seal.MaxEpochs)]
	o.g.Record(bucketRoster, key, r.Append(nil))
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
		o.refuse(now, p)
		p.far.clear()
		o.g.siteLost(now, p.ID)
		o.g.Note("warn", "the roster does not name a peer any more: it is not heard, and what waited for it is refused", "peer", p.Name, "id", p.ID)
	}
}

// refuse ends what waits for a peer that is gone.
func (o rollover) refuse(now time.Time, p *peer) {
	for _, c := range p.bearer.Channels {
		c.Gone(now, p.Peer)
	}
	for _, c := range p.bearer.Carriers {
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
func (o rollover) hear(now time.Time, p *peer, said, mark uint16) {
	k := &o.g.keys
	r := k.newest()
	if r == nil {
		return
	}
	its, ok := parseShelf(said, r.Serial)
	if !ok {
		return
	}
	its.mark = mark
	o.knows(p, its)
	if !o.lacks(p) {
		return
	}
	if its.newest == r.Serial && len(k.alike()) == 1 && o.g.door.visits[p.ID].may(now, "roster", sayAgain) {
		o.g.Note("error", "a peer goes by another roster than this node, and both have one serial: it is asked for its own, and until there is one with a higher serial only nodes that both name are heard and spoken to",
			"peer", p.Name, "serial", r.Serial, "digest_here", r.Fingerprint())
	}
	k.denied[p.ID] = now
	if _, lags := k.lags[p.ID]; !lags {
		k.lags[p.ID] = due.Latest(now, k.again[p.ID])
	}
}

// knows notes which rosters a peer keeps.
func (o rollover) knows(p *peer, its shelf) {
	k := &o.g.keys
	if k.known[p.ID] = its; !o.lacks(p) {
		delete(k.lags, p.ID)
	}
}

// turn is how long each member of a shared channel leaves it to those before it to tell one that lags: all have heard its greeting.
const turn = 10 * time.Minute

// turnOfTwo is the same where two rosters have one serial: whoever has been taken out is still heard by some.
const turnOfTwo = time.Minute

// wait is how long this node leaves it to others to tell p.
func (o rollover) wait(p *peer) time.Duration {
	if o.g.keys.given == o.g.keys.newest().Serial || !p.bearer.Common.Group.IsValid() {
		return 0
	}
	before := 1
	for _, q := range o.g.peers {
		if q != p && !q.Gone && q.ID < o.g.cfg.ID {
			before++
		}
	}
	if len(o.g.keys.alike()) > 1 {
		return time.Duration(before) * turnOfTwo
	}
	return time.Duration(before) * turn
}

// used notes that a peer has sealed for all with an epoch: it has the roster, and knows that all can follow.
func (o rollover) used(p *peer, epoch uint32) {
	k := &o.g.keys
	if epoch == 0 || k.trust == nil {
		return
	}
	if its := k.known[p.ID]; !its.has(epoch) {
		o.knows(p, its.with(epoch))
	}
	if epoch > k.use {
		o.seals(epoch)
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
		if !o.lacks(p) {
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
		o.seals(r.Serial)
		o.rekey()
		o.g.Note("info", "what is for all is sealed by the new roster from now on", "serial", r.Serial)
	}
}

// lacks says that a peer is not known to have the newest roster.
func (o rollover) lacks(p *peer) bool {
	k := &o.g.keys
	its := k.known[p.ID]
	return !p.Gone && (its.newest < k.newest().Serial || k.differs(its))
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
		if p := o.g.byID[id]; k.told[id] != r.Serial && o.lacks(p) {
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
		c := o.g.byID[p.ID].bearer.Carrier()
		if byCarrier[c] == nil {
			order = append(order, c)
		}
		byCarrier[c] = append(byCarrier[c], p)
	}
	for _, c := range order {
		if several := o.g.keys.alike(); len(several) > 1 {
			for _, one := range several {
				o.give(now, c, byCarrier[c], one, one.Append(nil))
			}
			continue
		}
		base, have, others := o.split(byCarrier[c])
		if len(have) > 0 {
			o.give(now, c, have, r, r.AppendDelta(nil, base))
		}
		if len(others) > 0 {
			o.give(now, c, others, r, r.Append(nil))
		}
	}
}

// split finds the peers that are known to have some older roster which this node has too, and of these rosters one that all of
// them have: what is new is told them as a change of it. The others get the whole, and so does who was told of a change and has it
// not after all.
func (o rollover) split(to []*mail.Peer) (base *roster.Roster, have, others []*mail.Peer) {
	k := &o.g.keys
	for _, p := range to {
		at := slices.IndexFunc(k.rosters, func(r *roster.Roster) bool { return k.known[p.ID].has(r.Serial) })
		if at <= 0 || k.changed[p.ID] == k.rosters[0].Serial {
			others = append(others, p)
			continue
		}
		have = append(have, p)
		if base == nil || k.rosters[at].Serial < base.Serial {
			base = k.rosters[at]
		}
	}
	have = slices.DeleteFunc(have, func(p *mail.Peer) bool {
		lacks := !k.known[p.ID].has(base.Serial)
		if lacks {
			others = append(others, p)
		}
		return lacks
	})
	for _, p := range have {
		k.changed[p.ID] = k.rosters[0].Serial
	}
	return base, have, others
}

// give tells peers a roster in these octets.
func (o rollover) give(now time.Time, c mail.Carrier, to []*mail.Peer, r *roster.Roster, octets []byte) {
	for _, refused := range c.Accept(now, to, envelope.Message{Roster: octets}, mail.Key) {
		delete(o.g.keys.told, refused.ID)
		delete(o.g.keys.changed, refused.ID)
		o.g.keys.lags[refused.ID] = now
		o.g.keys.retry = now.Add(time.Minute)
		o.g.Note("warn", "a roster cannot be given to a peer now", "peer", refused.Name, "serial", r.Serial)
	}
}

// read is the roster of a peer's message: the whole, or what it changes of one that is here.
func (o rollover) read(b []byte) (*roster.Roster, error) {
	serial, base, err := roster.SerialOf(b)
	if err != nil || base == 0 {
		return roster.Parse(b)
	}
	k := &o.g.keys
	for _, r := range k.rosters {
		if r.Serial == serial && bytes.HasSuffix(b, r.Signature[:]) {
			return r, nil
		}
	}
	for _, r := range k.rosters { // several may have one serial: what the authority has signed says which is meant
		if r.Serial != base {
			continue
		}
		next, err := roster.Apply(r, b)
		if err == nil && next.Verify(k.trust.Authority) == nil {
			return next, nil
		}
	}
	return roster.Apply(nil, b)
}

// has says that this very roster is known here.
func (o rollover) has(r *roster.Roster) bool {
	return slices.ContainsFunc(o.g.keys.rosters, func(is *roster.Roster) bool { return is.Digest() == r.Digest() })
}

// arrived takes the roster of a peer's message.
func (o rollover) arrived(now time.Time, p *peer, b []byte) {
	r, err := o.read(b)
	if err == nil {
		err = o.take(now, r, p.Name)
	}
	switch {
	case errors.Is(err, roster.ErrDiffers) && !o.has(r):
		err = o.contest(now, r, p.Name)
	case errors.Is(err, roster.ErrOld), errors.Is(err, roster.ErrDiffers):
		err = nil
	}
	if err != nil {
		o.g.Drop("roster")
		p.Met.Owe(now) // it says by which this node goes
		o.g.Note("warn", "a roster from a peer is not taken", "peer", p.Name, "error", err)
		return
	}
	o.knows(p, o.g.keys.known[p.ID].with(r.Serial))
}

// ended follows what became of a message with a roster.
func (o rollover) ended(e *mail.Entry, fate mail.Fate) {
	serial, base, err := roster.SerialOf(e.Content.Roster)
	if err != nil {
		return
	}
	k := &o.g.keys
	switch {
	case fate == mail.Delivered: // it is told again when it says an older one after all: it was put back
		if k.told[e.Peer.ID] == serial {
			delete(k.told, e.Peer.ID)
		}
		if base == 0 { // a change that comes to nothing is followed by the whole at once
			k.again[e.Peer.ID] = o.g.now.Add(turn)
		}
		if k.denied[e.Peer.ID].Equal(o.g.now) { // the datagram with the receipt says that it came to nothing
			k.lags[e.Peer.ID] = due.Latest(o.g.now, k.again[e.Peer.ID])
			return
		}
		its := k.known[e.Peer.ID].with(serial)
		if its.newest == k.newest().Serial {
			its.mark = k.mark // if it knows another one too, it says so
		}
		o.knows(o.g.byID[e.Peer.ID], its)
	case k.told[e.Peer.ID] == serial: // it is told again
		delete(k.told, e.Peer.ID)
		if o.lacks(o.g.byID[e.Peer.ID]) && serial == k.newest().Serial {
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
