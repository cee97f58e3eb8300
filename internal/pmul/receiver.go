package pmul

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// ReceiverStats count since the start.
type ReceiverStats struct {
	Delivered, AcksSent, AckEntries int
	Duplicates                      int // Data_PDUs that were known
	Orphans                         int // Data_PDUs before their Address_PDU
	Strangers                       int // PDUs of nodes that are not known
	Twin                            int // PDUs with our own Source_ID
	Changed                         int // Address_PDUs that differ from the first of their message
	Conflict                        int // Data_PDUs with other octets under a known number
	Illegal                         int // values that make no sense, or not for this message
	Expired                         int // messages that came too late, or stayed incomplete too long
	Discarded                       int // by their sender
	Full                            int // refused at a limit
	PassedBy                        int // FEC and Extra kinds, and PDUs for senders
}

// Receiver is the receiving half of a node: all messages of all senders.
type Receiver struct {
	cfg     Config
	silent  bool
	in      map[Key]*incoming
	orphans map[Key]*orphan
	done    map[Key]*finished
	owing   map[Key]*finished // those with ackAt
	use     map[NodeID]*usage
	groups  map[GroupAddr]map[Key]time.Time // joined: for which messages, and until when
	octets  int                             // of fragments held
	loose   int                             // Data_PDUs in orphans
	sweepAt time.Time
	company time.Time // until then acknowledgements of complete messages wait
	lately  lately    // nil: acknowledgements are not repeated
	stats   ReceiverStats
	out     Output
}

// usage is how much of the limits one Source_ID has.
type usage struct {
	incoming, octets, orphans, remembered int
	spaced                                int       // how many messages in a row came like those of a train
	came                                  time.Time // when a short message of it was last complete
	sequence                              uint32    // highest Message_Sequence_Number of complete messages; 0: unknown
}

// incoming is a message begun and not complete.
type incoming struct {
	key       Key
	priority  uint8
	total     uint16
	expiry    time.Time
	until     time.Time // how long it is waited for; zero after a restart, until the first sweep
	sequence  uint32
	nodes     int // destinations named together with this node
	fragments map[uint16][]byte
	parity    map[uint16][]byte // shards by index
	coding
	batch    bool
	opened   opening // of a batch
	free     bool    // as in Message
	behind   uint32
	last     int // octets of the last fragment, as in the Plan; 0: unknown
	octets   int
	reported uint16    // highest number of the last missing list
	top      uint16    // highest number that came
	gapsTo   uint16    // gaps below it have been reported
	nackAt   time.Time // an Ack_PDU with a missing list is due
	idleAt   time.Time // PDUs that should follow have not come
	asked    int       // missing lists since the last fragment came
	atOnce   bool      // its sender waits for this node's answer
	askAt    time.Time // ACK_PDU_TIME
}

// coding is the state of a coded message's turns.
type coding struct {
	coded bool
	rank  int // this node's place among the destinations named
	extra int // shards of the first pass
	left  int // fragments and shards that follow in the turn under way
}

// finished is a message that was delivered.
type finished struct {
	coding
	key    Key
	nodes  int
	total  uint16 // 0: it came in a batch, and its Address_PDU has not come
	forget time.Time
	ackAt  time.Time // zero: none is due
	train  bool      // it was one of a train
	most   time.Time // ackAt is put off no later
	sent   time.Time // when an Ack last went
	owed   bool      // the node was silent when it was due; in the journal
	// elsewhere: it has come another way, and its Message_Sequence_Number is not known; in the journal
	elsewhere bool
}

// NewReceiver starts from the records of an earlier one; it skips records of other buckets.
func NewReceiver(cfg Config, journal []Record) (*Receiver, error) {
	r := &Receiver{cfg: cfg, in: map[Key]*incoming{}, orphans: map[Key]*orphan{}, done: map[Key]*finished{}, owing: map[Key]*finished{},
		use: map[NodeID]*usage{}, groups: map[GroupAddr]map[Key]time.Time{}}
	if cfg.Hears {
		r.lately = lately{}
	}
	if err := r.restore(journal); err != nil {
		return nil, err
	}
	return r, nil
}

// Stats copies the counters.
func (r *Receiver) Stats() ReceiverStats { return r.stats }

// Silent tells whether the node is under EMCON.
func (r *Receiver) Silent() bool { return r.silent }

// Incoming is a message that is not complete.
type Incoming struct {
	Key
	Has, Fragments int
}

// Incoming lists the messages that are not complete, ordered by Source_ID and Message_ID.
func (r *Receiver) Incoming() (list []Incoming) {
	for _, key := range sortedKeys(r.in) {
		m := r.in[key]
		list = append(list, Incoming{key, len(m.fragments), int(m.total)})
	}
	return list
}

// Step brings the receiver to now and applies ev.
func (r *Receiver) Step(now time.Time, ev Event) Output {
	r.out = Output{}
	if r.sweepAt.IsZero() || due.Reached(now, r.sweepAt) {
		r.sweep(now)
	}
	switch ev := ev.(type) {
	case AddressPDU:
		if r.admit(ev.Source) {
			r.talks(now, ev.Source)
			r.address(now, ev)
		}
	case DataPDU:
		if r.admit(ev.Source) {
			r.talks(now, ev.Source)
			r.data(now, ev)
		}
	case ParityPDU:
		if r.admit(ev.Source) {
			r.talks(now, ev.Source)
			r.parity(now, ev)
		}
	case AckPDU:
		if !r.cfg.plans() {
			r.stats.PassedBy++
		}
		r.overhear(now, ev)
	case DiscardPDU:
		if r.admit(ev.Source) {
			r.discard(Key{ev.Source, ev.Message})
		}
	case AnnouncePDU:
		if r.admit(ev.Source) {
			r.announce(now, ev)
		}
	case ReleasePDU:
		if r.admit(ev.Source) {
			r.leave(ev.Group, Key{ev.Source, ev.Message})
		}
	case EMCON:
		r.emcon(now, ev.Silent)
	case Ride:
		r.ride(now, ev.Octets)
	case Recite:
		recite(now, r, ev.Source)
	case Elsewhere:
		elsewhere(r, now, ev.Key)
	case PDU:
		r.stats.PassedBy++
	}
	if !r.silent {
		if _, ride := ev.(Ride); !ride { // what did not fit goes by itself, in the next Step
			r.acknowledge(now)
		}
		r.deadline()
	}
	return r.out
}

// admit counts PDUs of nodes that should not send any.
func (r *Receiver) admit(source NodeID) bool {
	switch {
	case source == r.cfg.Self:
		r.stats.Twin++
		return false
	case !r.cfg.knows(source):
		r.stats.Strangers++
		return false
	}
	return true
}

func (r *Receiver) used(n NodeID) *usage {
	u := r.use[n]
	if u == nil {
		u = &usage{}
		r.use[n] = u
	}
	return u
}

// share is how much of a limit one Source_ID may have: a quarter, or twice its part if the nodes are known.
func (r *Receiver) share(limit int) int {
	if n := len(r.cfg.Peers); n > 0 {
		return min(limit, 2*limit/n)
	}
	return limit / 4
}

// fits tells whether so many more octets of a source can be held.
func (r *Receiver) fits(u *usage, octets int) bool {
	most := r.cfg.Limits.IncomingOctets
	return r.octets+octets <= most && u.octets+octets <= r.share(most)
}

// hold adds octets to the accounts; a negative number takes them off.
func (r *Receiver) hold(u *usage, octets int) {
	u.octets += octets
	r.octets += octets
}

// data takes a Data_PDU (p-mul 7).
func (r *Receiver) data(now time.Time, p DataPDU) {
	key := Key{p.Source, p.Message}
	if f := r.done[key]; f != nil {
		r.stats.Duplicates++
		if r.planned(f.coded) {
			r.turnOf(now, f, f.after(p.Number, f.total), true)
		} else {
			r.putOff(now, f)
		}
		return
	}
	if m := r.in[key]; m != nil {
		m.left = m.after(p.Number, m.total)
		r.fragment(now, m, p.Number, p.Fragment)
		return
	}
	r.orphaned(now, key, false, p.Number, p.Fragment)
}

// fragment stores a fragment and sets when an Ack_PDU is due.
func (r *Receiver) fragment(now time.Time, m *incoming, n uint16, b []byte) {
	if n > m.total {
		r.stats.Illegal++
		return
	}
	old, known := m.fragments[n]
	if known {
		r.stats.Duplicates++
		if !bytes.Equal(old, b) {
			r.stats.Conflict++
			return
		}
	} else {
		u := r.used(m.key.Source)
		if !r.fits(u, len(b)) {
			r.stats.Full++
			return
		}
		b = append([]byte{}, b...)
		m.fragments[n] = b
		m.octets += len(b)
		r.hold(u, len(b))
		if len(m.fragments) == int(m.total) || r.recovered(m) {
			r.complete(now, m, n)
			return
		}
		r.out.record(bucketFragment, fragmentKey(m.key, n), b)
		if m.batch && !unpack(r, now, m) {
			r.drop(m)
			return
		}
	}
	if r.planned(m.coded) {
		r.follow(now, m, m.left)
		return
	}
	if known && m.asked > 0 && n != m.reported { // it was repeated for other nodes: this node's list waits for its turn, or its fragments follow
		m.askAt = due.Latest(m.askAt, now.Add(r.ackInterval(m)))
	} else {
		m.asked, m.askAt, m.nackAt = 0, time.Time{}, time.Time{}
	}
	after := 0 // missing fragments that may follow: senders go through a message in order
	for i := int(n) + 1; i <= int(m.total) && after < idleMost; i++ {
		if _, have := m.fragments[uint16(i)]; !have {
			after++
		}
	}
	m.idleAt = now.Add(r.cfg.idle(after) + r.jitter(m.nodes))
	if gap := n > m.top+1 && n > m.gapsTo+1; gap && r.cfg.ownReturn() && m.nackAt.IsZero() {
		m.nackAt = now.Add(r.jitter(m.nodes))
	}
	m.top = max(m.top, n)
	// n is the last fragment of this round that could come. A known one is repeated for other nodes, and this node's may
	// follow out of order.
	if after == 0 && (!known || m.reported == 0) || n == m.reported {
		m.nackAt = now.Add(r.cfg.reorderWait() + r.jitter(m.nodes))
	}
}

// jitter is the random delay against ack implosion.
func (r *Receiver) jitter(nodes int) time.Duration {
	if bound := int64(r.cfg.spread(nodes)); bound > 0 && r.cfg.Rand != nil {
		return time.Duration(r.cfg.Rand.Int64N(bound))
	}
	return 0
}

// complete joins the fragments. The message is durable before its Ack_PDU leaves: Deliver and Records precede Send.
func (r *Receiver) complete(now time.Time, m *incoming, last uint16) {
	readable := true
	if m.batch {
		readable = unpack(r, now, m)
	} else {
		payload := make([]byte, 0, m.octets)
		for n := 1; n <= int(m.total); n++ {
			payload = append(payload, m.fragments[uint16(n)]...)
		}
		r.out.Deliver = append(r.out.Deliver, Message{m.key, m.priority, m.expiry, m.sequence, payload, m.free, m.behind})
		r.stats.Delivered++
	}
	delete(m.fragments, last) // it is not in the journal
	r.drop(m)
	if !readable {
		return
	}
	f := remember(r, now, m.key, m.expiry)
	f.coding, f.nodes, f.total, f.owed = m.coding, m.nodes, m.total, r.silent
	r.out.record(bucketDone, keyOctets(f.key), f.encode())
	if r.lately != nil {
		r.lately.add(m.key)
	}
	if r.silent {
		return
	}
	u := r.used(m.key.Source)
	late := m.sequence <= u.sequence // it was repeated, and the sender waits for this node's answer
	gap := r.gap(m)
	if m.batch {
		u.sequence = max(u.sequence, m.opened.last.Sequence)
	}
	if r.planned(m.coded) {
		r.owing[f.key] = f
		r.turnOf(now, f, m.left, true)
		return
	}
	if u.spaced++; m.total > 1 || !r.cfg.inTrain(now.Sub(u.came), 1) {
		u.spaced = 0
	}
	wait := r.cfg.completeWait(m.nodes, m.total)
	switch {
	case m.reported > 0 || m.gapsTo > 0 || m.atOnce: // this node asked for the fragments that came now: the sender waits for its answer
		wait = 0
	case amidLong(r, m.key.Source):
		if wait = 0; !gap {
			wait, f.train = amidHolds*r.trainWait(m.nodes), true
		}
	case (gap || late) && r.inBurst(m.key.Source):
		wait = min(wait, r.cfg.pause())
	case gap:
		wait = 0
	case !late && u.spaced >= trainFrom && oneTalks(now, r, m.key.Source):
		wait, f.train = r.trainWait(m.nodes), true
		r.putOffTrain(now.Add(wait), m.key.Source)
	}
	u.came = now
	r.owe(now, f, m.nodes, wait)
}

// gap tells whether a message before this one never came, by the Message_Sequence_Number. The sender, whose messages go out
// in order, sees it by the message that an Ack at once leaves out.
func (r *Receiver) gap(m *incoming) bool {
	u := r.used(m.key.Source)
	last := u.sequence
	u.sequence = max(last, m.sequence)
	if last == 0 || m.sequence <= last+1 || r.cfg.Coding != Compact || r.cfg.Reorder {
		return false
	}
	for key, o := range r.in {
		if key.Source == m.key.Source && o.sequence > last && o.sequence < m.sequence {
			return false
		}
	}
	return true
}

// drop forgets an incomplete message.
func (r *Receiver) drop(m *incoming) {
	u := r.used(m.key.Source)
	u.incoming--
	r.hold(u, -m.octets)
	delete(r.in, m.key)
	r.out.record(bucketIncoming, keyOctets(m.key), nil)
	for _, n := range slices.Sorted(maps.Keys(m.fragments)) {
		r.out.record(bucketFragment, fragmentKey(m.key, n), nil)
	}
	for _, i := range slices.Sorted(maps.Keys(m.parity)) {
		r.out.record(bucketParity, fragmentKey(m.key, i), nil)
	}
}

func (r *Receiver) discard(key Key) {
	r.dropOrphans(key)
	if m := r.in[key]; m != nil {
		r.stats.Discarded++
		r.drop(m)
		r.unjoin(key)
	}
}

// emcon begins or ends silence (p-mul 7).
func (r *Receiver) emcon(now time.Time, silent bool) {
	if r.silent == silent {
		return
	}
	r.silent = silent
	if silent {
		r.out.record(bucketNode, []byte(keySilentReceiver), []byte{1})
		for _, key := range sortedKeys(r.owing) {
			f := r.owing[key]
			f.ackAt = time.Time{}
			delete(r.owing, key)
			r.owe(now, f, f.nodes, 0)
		}
		return
	}
	r.out.record(bucketNode, []byte(keySilentReceiver), nil)
	at := now.Add(r.jitter(8)) // the same moment for all, so that they share few Ack_PDUs
	for key, f := range r.done {
		if f.owed {
			f.ackAt = at
			r.owing[key] = f
		}
	}
	for _, m := range r.in {
		m.nackAt, m.idleAt = at, time.Time{}
	}
}

// sweep forgets messages whose time is over. It needs no deadline, since it sends nothing.
func (r *Receiver) sweep(now time.Time) {
	if r.sweepAt.IsZero() {
		r.wakeUp(now)
	}
	r.sweepAt = now.Add(time.Minute)
	for _, key := range sortedKeys(r.in) {
		if m := r.in[key]; now.After(m.until) {
			r.stats.Expired++
			r.drop(m)
			r.unjoin(key)
		}
	}
	for _, key := range sortedKeys(r.orphans) {
		if o := r.orphans[key]; due.Reached(now, o.until) {
			r.loosen(key, o)
		}
	}
	var old []Key
	for key, f := range r.done {
		if due.Reached(now, f.forget) {
			old = append(old, key)
		}
	}
	slices.SortFunc(old, Key.compare)
	r.forget(old)
	for _, g := range slices.Sorted(maps.Keys(r.groups)) {
		for _, key := range sortedKeys(r.groups[g]) {
			if !now.Before(r.groups[g][key]) {
				r.leave(g, key)
			}
		}
	}
	for n, u := range r.use {
		if *u == (usage{sequence: u.sequence, came: u.came, spaced: u.spaced}) {
			delete(r.use, n)
		}
	}
}

func (r *Receiver) deadline() {
	for _, f := range r.owing {
		r.out.wake(due.Latest(f.ackAt, r.company))
	}
	for _, m := range r.in {
		at := due.Earliest(m.nackAt, due.Earliest(m.idleAt, m.askAt))
		if r.planned(m.coded) && !at.IsZero() {
			at = due.Latest(at, r.company)
		}
		r.out.wake(at)
	}
}

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Source, o.Source), cmp.Compare(k.Message, o.Message))
}

func sortedKeys[V any](m map[Key]V) []Key {
	return slices.SortedFunc(maps.Keys(m), Key.compare)
}
