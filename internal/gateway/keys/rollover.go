package keys

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// BucketRoster of the journal holds the rosters that this node goes by: serial -> roster, at most seal.MaxEpochs of them. A second
// roster with one serial has its digest behind the serial. Serial 0, which no roster has, leads to the serial of the roster that seals
// datagrams for all: a start goes on with that one, so that a node that it took out does not read again.
const (
	BucketRoster = "roster"
	usedOctets   = 4
)

// Rosters are those that this node and its peers go by, and the way from one to the next. Without Trust there are none.
type Rosters struct {
	cfg   Config
	ring  *seal.Keyring         // of the rosters
	rekey []func(*seal.Keyring) // told of each ring after the first
	peers []*lag                // by id
	known map[uint16]*lag       // also peers that have left in this run

	list     []*roster.Roster // the newest first, of that serial perhaps several; nil: all share a key
	common   *roster.Roster   // the nodes that those of the newest serial all name: this node goes by these; nil: all share a key
	mark     uint16           // roster.Mark of those of the newest serial
	kept     []*roster.Roster // of the journal, before choose
	use      uint32           // serial of the roster that seals datagrams for all
	retry    time.Time        // no peer is told before
	spread   bool             // the next Tell tells all peers that lack the newest
	refusals int
	refusal  string
	given    uint32 // serial of the roster that an operator gave to this node, which tells it to all peers
	intro    introductions
}

// lag is what is known of the rosters of a peer.
type lag struct {
	*mail.Peer           // to be read
	gone       bool      // the roster does not name it any more
	noted      time.Time // when the log last said that it goes by another roster of one serial
	lagging
}

// lagging is forgotten when a peer leaves.
type lagging struct {
	keeps   rosterHistory // those that it keeps; its newest is 0: not known
	told    uint32        // serial of the one that it is being told; 0: none
	lags    time.Time     // since when it is known to go by an older one than this node; zero: it is not
	again   time.Time     // when one that was told is told again at the earliest
	denied  time.Time     // when it has last said that it goes by an older one
	changed uint32        // serial of the roster that it was told as a change of an older one
}

// choose puts the newest roster first that names this node, of the configuration's and the journal's.
func (o *Rosters) choose() error {
	trust := o.cfg.Trust
	list := append([]*roster.Roster{trust.Roster}, o.kept...)
	slices.SortStableFunc(list, func(a, b *roster.Roster) int { return int(int64(b.Serial) - int64(a.Serial)) })
	seen := map[[8]byte]bool{}
	list = slices.DeleteFunc(list, func(r *roster.Roster) bool {
		d := r.Digest()
		again := seen[d]
		seen[d] = true
		return again
	})
	for len(list) > 0 {
		if _, err := list[0].Epoch(o.cfg.ID, trust.Own); err == nil {
			break
		}
		list = list[1:]
	}
	if len(list) == 0 {
		return seal.ErrNotMember
	}
	serial := list[0].Serial
	list = slices.DeleteFunc(list, func(r *roster.Roster) bool { // has the newest serial too, but does not name this node
		_, err := r.Epoch(o.cfg.ID, trust.Own)
		return err != nil && r.Serial == serial
	})
	o.list = list[:min(len(list), seal.MaxEpochs)]
	if !slices.ContainsFunc(o.list, func(r *roster.Roster) bool { return r.Serial == o.use }) {
		o.use = o.list[len(o.list)-1].Serial // until it is known that all can follow
	}
	if len(o.list) == 1 || o.list[0].Serial == trust.Roster.Serial {
		o.use = o.list[0].Serial // every node was given it by hand
	}
	return o.turnKeys()
}

// turnKeys makes the keys of the rosters.
func (o *Rosters) turnKeys() error {
	ring, err := roster.Ring(o.cfg.ID, o.cfg.Trust.Own, o.list...)
	if err != nil {
		return err
	}
	o.ring = ring.Using(o.use)
	o.common, o.mark = roster.Common(o.alike()), roster.Mark(o.alike())
	for _, rekey := range o.rekey {
		rekey(o.ring)
	}
	if told := o.cfg.Trust.Members; told != nil {
		told(o.common)
	}
	return nil
}

// alike is the rosters of the newest serial: one, or those that an authority has signed with one serial by a slip.
func (o *Rosters) alike() []*roster.Roster { return roster.Newest(o.list) }

func (o *Rosters) digests() (list []string) {
	for _, one := range o.alike() {
		list = append(list, one.Fingerprint())
	}
	return list
}

// differs says that a peer goes by another roster of the newest serial, or does not know all of them that are known here.
func (o *Rosters) differs(its rosterHistory) bool {
	return its.newest == o.common.Serial && its.mark != o.mark && (its.mark != 0 || len(o.alike()) > 1)
}

func newRosters(cfg Config) *Rosters { return &Rosters{cfg: cfg, known: map[uint16]*lag{}} }

func (o *Rosters) join(p *mail.Peer) {
	m := o.known[p.ID]
	if m == nil {
		m = &lag{Peer: p}
		o.known[p.ID] = m
	}
	at, _ := slices.BinarySearchFunc(o.peers, p.ID, func(q *lag, id uint16) int { return cmp.Compare(q.ID, id) })
	o.peers = slices.Insert(o.peers, at, m)
}

// leave forgets which rosters a peer has.
func (o *Rosters) leave(id uint16) {
	m := o.known[id]
	m.lagging = lagging{}
	o.peers = slices.DeleteFunc(o.peers, func(is *lag) bool { return is == m })
}

// Restore reads a record of BucketRoster, before Begin. A roster that nobody has signed is as good as none.
func (o *Rosters) Restore(value []byte) error {
	if len(value) == usedOctets {
		o.use = binary.BigEndian.Uint32(value)
		return nil
	}
	trust := o.cfg.Trust
	r, err := roster.Parse(value)
	if err != nil || trust == nil {
		return err
	}
	if r.Network == trust.Roster.Network && r.Verify(trust.Authority) == nil {
		o.kept = append(o.kept, r)
	}
	return nil
}

// Resume notes that a message with a roster, in these octets, is under way to a peer since an earlier run.
func (o *Rosters) Resume(id uint16, octets []byte) {
	if told, _, err := roster.SerialOf(octets); err == nil {
		m := o.known[id]
		m.told = max(told, m.told)
	}
}

// said is the word in a HELLO that says which rosters this node keeps.
func (o *Rosters) said() uint16 {
	var s rosterHistory
	for _, r := range slices.Backward(o.list) {
		s = s.with(r.Serial)
	}
	return s.word()
}

// Behind says that a peer has said that it lacks the roster that seals datagrams for all: it was given none since, or was off the
// air when it was told, or has forgotten it for newer ones.
func (o *Rosters) Behind(id uint16) bool {
	s := o.known[id].keeps
	if n, _ := o.Node(id); s.newest == 0 && n.Since > o.use { // it came with a later roster
		return true
	}
	return s.newest != 0 && (!s.has(o.use) || o.use == o.common.Serial && o.differs(s))
}

// MayLack says that a peer is to be greeted by itself: it is behind, or does not answer greetings for all, and nobody knows which
// rosters it keeps. Between two nodes the roster does not matter.
func (o *Rosters) MayLack(id uint16) bool {
	return o.Behind(id) || o.common != nil && o.common.Serial > 1 && o.known[id].Handshake.Tries() >= deafTries
}

// deafTries is how many greetings in a row a peer may leave without an answer before it gets one of its own.
const deafTries = 3

// Names says that a peer may be spoken to and heard: the rosters of the newest serial all name it, or all share a key.
func (o *Rosters) Names(id uint16) bool { return !o.known[id].gone }

// seals makes a roster the one that seals datagrams for all.
func (o *Rosters) seals(serial uint32) {
	o.use = serial
	o.cfg.Services.Record(BucketRoster, serialKey(0), serialKey(serial))
}

// Node is a node of the newest roster; false: the roster does not name it, or there is no roster.
func (o *Rosters) Node(id uint16) (roster.Node, bool) {
	if o.common == nil {
		return roster.Node{}, false
	}
	return o.common.Node(id)
}

func serialKey(serial uint32) []byte { return binary.BigEndian.AppendUint32(nil, serial) }

// Give takes the roster of an operator. From then on Names may have changed for some peers.
func (o *Rosters) Give(r *roster.Roster) {
	if err := o.take(r, "an operator"); err != nil {
		o.refusals, o.refusal = o.refusals+1, err.Error()
		o.cfg.Services.Note("warn", "a roster was rejected; nothing has changed", "error", err)
		return
	}
	o.given, o.spread = r.Serial, true
}

// take decides about a roster that came from an operator or a peer. The error says why it is not taken.
func (o *Rosters) take(r *roster.Roster, from string) error {
	if o.cfg.Trust == nil {
		return fmt.Errorf("all gateways of this network share a key: there are no rosters")
	}
	if err := r.Verify(o.cfg.Trust.Authority); err != nil {
		return err
	}
	for _, is := range o.alike() {
		if err := r.Follows(is); err != nil {
			return err
		}
	}
	old := o.common
	if err := o.enter(0, r, serialKey(r.Serial), from); err != nil {
		return err
	}
	o.seals(max(o.use, o.list[len(o.list)-1].Serial))
	c := r.ChangeFrom(old)
	o.cfg.Services.Note("info", "a newer roster is in force", "serial", r.Serial, "from", from, "added", c.Added, "gone", c.Gone, "rekeyed", c.Rekeyed)
	if err := o.turnKeys(); err != nil {
		return err
	}
	for _, m := range o.known { // the peer that gave it tells the others
		m.lags = time.Time{}
	}
	o.part()
	return nil
}

// contest takes a roster besides those of its serial that are known here: until there is one with a higher serial, this node goes by
// the nodes that all of them name.
func (o *Rosters) contest(now time.Time, r *roster.Roster, from string) error {
	n := len(o.alike())
	if n == seal.MaxEpochs-1 {
		return fmt.Errorf("%w: %d of this serial are known already", roster.ErrDiffers, n)
	}
	if err := o.enter(n, r, secondKey(r), from); err != nil {
		return err
	}
	if err := o.turnKeys(); err != nil {
		return err
	}
	for _, m := range o.known {
		m.told, m.lags = 0, time.Time{}
	}
	for _, m := range o.peers {
		m.lags = now
	}
	o.disputed(from)
	o.part()
	return nil
}

// disputed says that several rosters have one serial.
func (o *Rosters) disputed(from string) {
	if r := o.common; r != nil && len(o.alike()) > 1 {
		o.cfg.Services.Note("error", "the authority signed two rosters with one serial; only nodes in both are heard until a roster with a higher serial comes",
			"serial", r.Serial, "digests", o.digests(), "from", from)
	}
}

func secondKey(r *roster.Roster) []byte {
	d := r.Digest()
	return append(serialKey(r.Serial), d[:]...)
}

// enter puts a roster that names this node at a place among those that it goes by, and into the journal.
func (o *Rosters) enter(at int, r *roster.Roster, key []byte, from string) error {
	if _, err := r.Epoch(o.cfg.ID, o.cfg.Trust.Own); err != nil {
		o.cfg.Services.Note("error", "a newer roster does not name this node with its key; the gateway keeps the older one, and peers will stop hearing it",
			"serial", r.Serial, "from", from)
		return err
	}
	o.list = slices.Insert(slices.Clone(o.list), at, r)
	for _, gone := range o.list[min(len(o.list), seal.MaxEpochs):] {
		if !slices.ContainsFunc(o.list[:seal.MaxEpochs], func(r *roster.Roster) bool { return r.Serial == gone.Serial }) { // else it is that one's record
			o.cfg.Services.Record(BucketRoster, serialKey(gone.Serial), nil)
		}
		o.cfg.Services.Record(BucketRoster, secondKey(gone), nil)
	}
	o.list = o.list[:min(len(o.list), seal.MaxEpochs)]
	o.cfg.Services.Record(BucketRoster, key, r.Append(nil))
	return nil
}

// part forgets what is known of peers that the roster does not name any more.
func (o *Rosters) part() {
	r := o.common
	if r == nil {
		return
	}
	for _, m := range o.peers {
		_, named := r.Node(m.ID)
		if m.gone == !named {
			continue
		}
		m.gone = !named
		if m.gone {
			m.keeps, m.lags = rosterHistory{}, time.Time{}
		}
	}
}

// hear notes what a peer's HELLO says of its rosters.
func (o *Rosters) hear(now time.Time, id uint16, h frame.Hello) {
	m, r := o.known[id], o.common
	if r == nil {
		return
	}
	its, ok := parseShelf(h.Roster, r.Serial)
	if !ok {
		return
	}
	its.mark = h.Mark
	o.knows(m, its)
	if !o.lacks(m) {
		return
	}
	if its.newest == r.Serial && len(o.alike()) == 1 && (m.noted.IsZero() || now.Sub(m.noted) >= sayAgain) {
		m.noted = now
		o.cfg.Services.Note("error", "a peer has another roster with the same serial; the gateway asks for it. Only nodes in both are heard until a higher serial comes",
			"peer", m.Name, "serial", r.Serial, "digest_here", r.Fingerprint())
	}
	m.denied = now
	if m.lags.IsZero() {
		m.lags = due.Latest(now, m.again)
	}
}

// knows notes which rosters a peer keeps.
func (o *Rosters) knows(m *lag, its rosterHistory) {
	m.keeps = its
	if !o.lacks(m) {
		m.lags = time.Time{}
	}
}

// turn is how long each member of a shared channel leaves it to those before it to tell a peer that lags: all have heard its greeting.
const turn = 10 * time.Minute

// turnOfTwo is the turn where two rosters have one serial: a node that has been taken out is still heard by some.
const turnOfTwo = time.Minute

// wait is how long this node leaves it to others to tell a peer.
func (o *Rosters) wait(m *lag) time.Duration {
	if o.given == o.common.Serial || !o.cfg.Shared {
		return 0
	}
	before := 1
	for _, q := range o.peers {
		if q != m && !q.gone && q.ID < o.cfg.ID {
			before++
		}
	}
	if len(o.alike()) > 1 {
		return time.Duration(before) * turnOfTwo
	}
	return time.Duration(before) * turn
}

// used notes that a peer has sealed for all with an epoch: it has the roster, and knows that all can follow.
func (o *Rosters) used(id uint16, epoch uint32) {
	m := o.known[id]
	if epoch == 0 || o.cfg.Trust == nil {
		return
	}
	if !m.keeps.has(epoch) {
		o.knows(m, m.keeps.with(epoch))
	}
	if n, _ := o.Node(id); epoch > o.use && n.Since <= o.use { // a node that came later has no other roster
		o.seals(epoch)
		o.turnKeys()
	}
}

// Heard takes from a greeting of a peer which others that peer has heard. Where the peer is new, those have the roster that names it, for
// else they could not have answered.
func (o *Rosters) Heard(id uint16, f frame.Greeting) {
	n, _ := o.Node(id)
	for _, of := range f.Members {
		if m := o.known[of.ID]; m != nil && of.HeardIncarnation != 0 && m.keeps.newest != 0 && m.keeps.newest < n.Since {
			o.knows(m, m.keeps.with(n.Since))
		}
	}
}

// lacks says that a peer is not known to have the newest roster.
func (o *Rosters) lacks(m *lag) bool {
	return !m.gone && (m.keeps.newest < o.common.Serial || o.differs(m.keeps))
}

// Telling is a roster that some peers are to be told, as a message of its own. Refused takes the peers for which there is no room.
type Telling struct {
	To     []*mail.Peer
	Octets []byte
	serial uint32
}

// Tell returns the rosters that peers of one carrier are to be told now: peers selects them, and of these it tells the ones that are
// known to have an older roster than the newest. It is called in each turn, before Turn.
func (o *Rosters) Tell(now time.Time, peers func(*mail.Peer) bool) (list []Telling) {
	r := o.common
	if r == nil || now.Before(o.retry) {
		return nil
	}
	var to []*lag
	for _, m := range o.peers {
		if peers(m.Peer) && o.lacks(m) && !m.Absent() && m.told != r.Serial && (o.spread || !m.lags.IsZero() && !now.Before(m.lags.Add(o.wait(m)))) {
			m.told = r.Serial
			to = append(to, m)
		}
	}
	if len(to) == 0 {
		return nil
	}
	if several := o.alike(); len(several) > 1 {
		for _, one := range several {
			list = append(list, telling(to, one, one.Append(nil)))
		}
		return list
	}
	divide := o.split
	if r.Dated() {
		divide = o.divide
	}
	base, have, others := divide(to)
	if len(have) > 0 {
		list = append(list, telling(have, r, r.AppendDelta(nil, base)))
	}
	if len(others) > 0 {
		list = append(list, telling(others, r, r.Append(nil)))
	}
	return list
}

func telling(to []*lag, r *roster.Roster, octets []byte) Telling {
	t := Telling{Octets: octets, serial: r.Serial}
	for _, m := range to {
		t.To = append(t.To, m.Peer)
	}
	return t
}

// split finds the peers that are known to have some older roster which this node has too, and of these rosters one that all of
// them have: the newest is told to them as a change of it. The others get the whole, and so does a peer that was told a change and
// does not have that older roster after all.
func (o *Rosters) split(to []*lag) (base *roster.Roster, have, others []*lag) {
	for _, m := range to {
		at := slices.IndexFunc(o.list, func(r *roster.Roster) bool { return m.keeps.has(r.Serial) })
		if at <= 0 || m.changed == o.list[0].Serial {
			others = append(others, m)
			continue
		}
		have = append(have, m)
		if base == nil || o.list[at].Serial < base.Serial {
			base = o.list[at]
		}
	}
	have = slices.DeleteFunc(have, func(m *lag) bool {
		lacks := !m.keeps.has(base.Serial)
		if lacks {
			others = append(others, m)
		}
		return lacks
	})
	for _, m := range have {
		m.changed = o.list[0].Serial
	}
	return base, have, others
}

// divide is split for rosters of the second form, of which a change serves all that have any roster from one serial on.
func (o *Rosters) divide(to []*lag) (base *roster.Roster, have, others []*lag) {
	serial, from := o.list[0].Serial, uint32(0)
	for _, m := range to {
		if its := m.keeps.newest; its == 0 || its >= serial || m.changed == serial {
			others = append(others, m)
			continue
		} else if from == 0 || its < from {
			from = its
		}
		m.changed, have = serial, append(have, m)
	}
	return &roster.Roster{Serial: from}, have, others
}

// Refused notes the peers for which there was no room.
func (o *Rosters) Refused(now time.Time, t Telling, by []*mail.Peer) {
	for _, p := range by {
		m := o.known[p.ID]
		m.told, m.changed, m.lags = 0, 0, now
		o.retry = now.Add(time.Minute)
		o.cfg.Services.Note("warn", "a roster cannot be sent to a peer now; the gateway tries again", "peer", p.Name, "serial", t.serial)
	}
}

// Turn begins to seal datagrams for all with the newest roster when it is time. Where there are no such datagrams, it waits for nobody.
func (o *Rosters) Turn(now time.Time) {
	r := o.common
	if r == nil {
		return
	}
	o.spread = false
	all := !o.cfg.Shared || !slices.ContainsFunc(o.peers, func(m *lag) bool { return o.lacks(m) && !m.Absent() })
	if o.use < r.Serial && (r.At.IsZero() && all || !r.At.IsZero() && !now.Before(r.At)) {
		o.seals(r.Serial)
		o.turnKeys()
		o.cfg.Services.Note("info", "group datagrams are sealed by the new roster from now on", "serial", r.Serial)
	}
}

// due is when Tell or Turn has something to do by itself.
func (o *Rosters) due() (at time.Time) {
	r := o.common
	if r == nil {
		return at
	}
	if o.use < r.Serial {
		at = r.At
	}
	for _, m := range o.peers {
		if !m.lags.IsZero() && m.told != r.Serial && o.lacks(m) {
			at = due.Earliest(at, due.Latest(o.retry, m.lags.Add(o.wait(m))))
		}
	}
	return at
}

// read is the roster of a peer's message, which has the whole, or a change of one that is here.
func (o *Rosters) read(b []byte) (*roster.Roster, error) {
	serial, base, err := roster.SerialOf(b)
	if err != nil || base == 0 {
		return roster.Parse(b)
	}
	for _, r := range o.list {
		if r.Serial == serial && bytes.HasSuffix(b, r.Signature[:]) {
			return r, nil
		}
	}
	for _, r := range o.list { // several may have one serial: the authority's signature says which is meant
		if r.Serial < base || r.Serial >= serial {
			continue
		}
		next, err := roster.Apply(r, b)
		if err == nil && next.Verify(o.cfg.Trust.Authority) == nil {
			return next, nil
		}
	}
	return roster.Apply(nil, b)
}

// has says that this very roster is known here.
func (o *Rosters) has(r *roster.Roster) bool {
	return slices.ContainsFunc(o.list, func(is *roster.Roster) bool { return is.Digest() == r.Digest() })
}

// Arrived takes the roster of a peer's message, and returns the peers that are owed a HELLO now, which says by which roster this node
// goes. From then on Names may have changed for some peers.
func (o *Rosters) Arrived(now time.Time, id uint16, octets []byte) (owed []uint16) {
	m := o.known[id]
	r, err := o.read(octets)
	if err == nil {
		err = o.take(r, m.Name)
	}
	switch {
	case errors.Is(err, roster.ErrDiffers) && !o.has(r):
		if err = o.contest(now, r, m.Name); err == nil { // there are two
			for _, q := range o.peers {
				owed = append(owed, q.ID)
			}
		}
	case errors.Is(err, roster.ErrOld), errors.Is(err, roster.ErrDiffers):
		err = nil
	}
	if err != nil {
		o.cfg.Services.Drop("roster")
		o.cfg.Services.Note("warn", "a roster from a peer was rejected", "peer", m.Name, "error", err)
		return []uint16{id}
	}
	o.knows(m, m.keeps.with(r.Serial))
	return owed
}

// Ended follows what became of a message with a roster to a peer.
func (o *Rosters) Ended(now time.Time, id uint16, octets []byte, delivered bool) {
	serial, base, err := roster.SerialOf(octets)
	if err != nil {
		return
	}
	m := o.known[id]
	switch {
	case delivered: // it is told again if it says an older one after all: then it was put back
		if m.told == serial {
			m.told = 0
		}
		if base == 0 { // a change that comes to nothing is followed by the whole at once
			m.again = now.Add(turn)
		}
		if m.denied.Equal(now) { // the datagram with the acknowledgement says that it came to nothing
			m.lags = due.Latest(now, m.again)
			return
		}
		its := m.keeps.with(serial)
		if its.newest == o.common.Serial {
			its.mark = o.mark // if it knows another one too, it says so
		}
		o.knows(m, its)
	case m.told == serial: // it is told again
		m.told = 0
		if o.lacks(m) && serial == o.common.Serial {
			m.lags = now
		}
	}
}

// describe adds to a status what the rosters say.
func (o *Rosters) describe(s *api.Status) {
	r := o.common
	if r == nil {
		return
	}
	s.Roster = &api.RosterStatus{Network: r.Network, Serial: r.Serial, Sealing: o.use, Made: r.Made, At: r.At, Refusals: o.refusals, Refusal: o.refusal,
		Authority: o.cfg.Trust.Authority.Fingerprint(), AuthorityKey: roster.AuthorityPublic(o.cfg.Trust.Authority),
		Digests: o.digests(), Differs: len(o.alike()) > 1}
	for i := range s.Peers {
		p := &s.Peers[i]
		m := o.known[p.ID]
		if n, ok := r.Node(p.ID); ok {
			p.Key = n.Public.Fingerprint()
		}
		p.Roster, p.RosterDiffers = m.keeps.newest, !m.gone && o.differs(m.keeps)
		s.Roster.Differs = s.Roster.Differs || p.RosterDiffers
	}
}
