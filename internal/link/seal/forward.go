package seal

import (
	"encoding/binary"
	"time"
)

// Forward is the keys that this start of a node shares with one start of each peer. They come from ephemeral X25519 pairs,
// whose public halves ride on HELLOs. The keys are only in memory and are wiped, so that an attacker who takes both nodes'
// keys later cannot open datagrams sealed with them: docs/decisions/forward-secrecy.md. A nil Forward has none. It belongs
// to the goroutine of its Sealer and its Opener.
type Forward struct {
	self        uint16
	incarnation Incarnation
	ring        *Keyring
	chance      func(*[keyLen]byte)
	now         time.Time
	due         time.Time // when a key is wiped next; zero: none is to be wiped
	vaults      []vault
	peers       map[uint16]*agreement
}

const (
	// forwardEvery is how long two nodes that talk use one key. By this node's clock the other may change to the next key
	// well before that.
	forwardEvery = time.Hour
	// forwardLate is how long a datagram may be under way after its sender has changed to the next key.
	forwardLate = 10 * time.Minute
	// forwardGone is how long a datagram can be recognised as from a node that the roster does not name any more.
	forwardGone = 24 * time.Hour
	// forwardMost is the most peers with which a start has agreements, as many as a roster names.
	forwardMost = 256
)

// vault is the secrets of an agreement. An all-zero key is absent or wiped.
type vault struct {
	own     [keyLen]byte // private half of this node's ephemeral pair
	base    [keyLen]byte // of the step in use
	in, out [keyLen]byte // of this step: the key that the peer seals with, and this node's
	before  [keyLen]byte // in of the last step
	next    [keyLen]byte // base of the next step
	nextIn  [keyLen]byte
	past    [keyLen]byte // in of the last agreement
}

// agreement is the agreement between this start of a node and one start of a peer.
type agreement struct {
	*vault
	id          uint16
	public      [keyLen]byte // of own
	theirs      [keyLen]byte // zero: not heard
	incarnation Incarnation  // the peer's start that has sent theirs
	agreed      bool         // base, in and out are set
	has         bool         // the peer is known to have public
	both        bool         // the peer has sealed with the key
	since       time.Time    // since when it has sealed with the key of this step; zero: not yet
	silent      bool         // the peer may start anew without being able to say so
	step        uint64
	began       time.Time // of the step
	until       time.Time // when before is wiped; zero: not yet
	// pastIncarnation is the start that past belongs to, and pastUntil is when past is wiped. pastGone: the roster did not
	// name the peer any more.
	pastIncarnation Incarnation
	pastUntil       time.Time
	pastGone        bool
}

// NewForward begins without agreements. chance fills 32 octets with unpredictable random octets. hold receives the memory
// of all secrets; it may be nil.
func NewForward(ring *Keyring, self uint16, incarnation Incarnation, chance func(*[keyLen]byte), hold func(octets []byte)) *Forward {
	start()
	f := &Forward{self: self, incarnation: incarnation, ring: ring, chance: chance, vaults: make([]vault, forwardMost), peers: map[uint16]*agreement{}}
	if hold != nil {
		hold(memory(f.vaults))
	}
	return f
}

// at is the agreement with a peer; nil: there can be none.
func (f *Forward) at(id uint16) *agreement {
	if f == nil {
		return nil
	}
	a := f.peers[id]
	if a == nil {
		if _, ok := f.ring.epochs[0].pairs[id]; !ok || len(f.peers) == forwardMost {
			return nil
		}
		a = &agreement{id: id, vault: &f.vaults[len(f.peers)]}
		f.peers[id] = a
	}
	return a
}

// draw makes an ephemeral pair if there is none.
func (f *Forward) draw(a *agreement) {
	if none(&a.own) {
		f.chance(&a.own)
		a.public = agreeBase(&a.own)
		a.has = false
	}
}

// echo names an ephemeral key in two octets; 0: none.
func echo(public *[keyLen]byte) uint16 {
	if *public == [keyLen]byte{} {
		return 0
	}
	return max(1, binary.BigEndian.Uint16(public[:]))
}

// Says is the content of a HELLO to a peer: the public half of this node's pair, and which half of the peer this node has.
// Both are zero once the peer has sealed with the key, for then it needs neither.
func (f *Forward) Says(id uint16) (public [keyLen]byte, heard uint16) {
	a := f.at(id)
	if a == nil || a.both {
		return public, 0
	}
	f.draw(a)
	return a.public, echo(&a.theirs)
}

// Lacks says whether the peer may lack this node's public half.
func (f *Forward) Lacks(id uint16) bool {
	a := f.at(id)
	return a != nil && !a.has
}

// Hear takes the content of the newest HELLO of a peer's start: the public half of its pair, all zero if it has none, and
// which half of this node it has. news says that the peer should get a HELLO: it does not know that this node has its half,
// or lacks this node's.
func (f *Forward) Hear(id uint16, incarnation Incarnation, theirs [keyLen]byte, heard uint16) (news bool) {
	a := f.at(id)
	if a == nil || theirs == [keyLen]byte{} {
		return false
	}
	if !a.agreed || theirs != a.theirs || incarnation != a.incarnation {
		f.leave(a)
		f.draw(a)
		news = f.agree(a, incarnation, theirs)
		if !news {
			return false
		}
	}
	a.has = a.has || heard == echo(&a.public)
	return news || !a.has // the HELLO with this node's half was lost, or overtaken
}

// agree makes the first key of two pairs; false: the peer's half is invalid.
func (f *Forward) agree(a *agreement, incarnation Incarnation, theirs [keyLen]byte) bool {
	var shared [keyLen]byte
	defer wipe(&shared)
	if !agreeInto(&shared, &a.own, &theirs) {
		return false
	}
	pair := f.ring.epochs[0].pairs[a.id]
	type end struct {
		id          uint16
		incarnation Incarnation
		public      [keyLen]byte
	}
	low, high := end{f.self, f.incarnation, a.public}, end{a.id, incarnation, theirs}
	if low.id > high.id {
		low, high = high, low
	}
	text := append([]byte("aldis forward key 1"), pair[:]...)
	for _, e := range []end{low, high} {
		text = append(binary.BigEndian.AppendUint64(text, startID(e.id, e.incarnation)), e.public[:]...)
	}
	hashInto(&a.base, shared[:], text)
	clear(text)
	a.theirs, a.incarnation, a.agreed, a.step, a.began = theirs, incarnation, true, 0, f.now
	deriveInto(&a.in, &a.base, startID(a.id, a.incarnation), datagramContext)
	deriveInto(&a.out, &a.base, startID(f.self, f.incarnation), datagramContext)
	return true
}

// leave ends an agreement. Datagrams that the peer has sealed with its key can still be opened for a while.
func (f *Forward) leave(a *agreement) {
	if a.agreed && a.both {
		a.past, a.pastIncarnation, a.pastUntil, a.pastGone = a.in, a.incarnation, f.now.Add(forwardLate), false
		f.wake(a.pastUntil)
	}
	for _, k := range []*[keyLen]byte{&a.base, &a.in, &a.out, &a.before, &a.next, &a.nextIn} {
		wipe(k)
	}
	a.theirs, a.incarnation, a.until = [keyLen]byte{}, Incarnation{}, time.Time{}
	a.agreed, a.both, a.since = false, false, time.Time{}
	a.has = a.has && !none(&a.own)
}

// begin notes a start of a peer that was not heard before: the agreement with the last start is over.
func (f *Forward) begin(id uint16) {
	if a := f.at(id); a != nil {
		f.leave(a)
		a.has = false
	}
}

// rekey changes to other keys of nodes. Agreements with nodes that keep their key stay.
func (f *Forward) rekey(ring *Keyring) {
	was := f.ring
	f.ring = ring
	for id, a := range f.peers {
		if base, ok := ring.epochs[0].pairs[id]; ok && base == was.epochs[0].pairs[id] {
			continue
		}
		f.leave(a)
		wipe(&a.own)
		a.public, a.has = [keyLen]byte{}, false
		a.pastGone = !none(&a.past)
		if a.pastGone {
			a.pastUntil = f.now.Add(forwardGone)
		}
	}
}

// Silent says that a peer has become silent, or transmits again. Nothing for a silent peer is sealed with this start's key:
// the peer may start anew, and could not say so.
func (f *Forward) Silent(id uint16, on bool) {
	if a := f.at(id); a != nil {
		a.silent = on
	}
}

// InForce says that datagrams to a peer are sealed with a key that both ends wipe.
func (f *Forward) InForce(id uint16) bool {
	a := f.at(id)
	return a != nil && a.agreed && a.has && !a.silent
}

// sealing is the key for a datagram to a peer; nil: the key from the nodes' own keys is used.
func (f *Forward) sealing(id uint16) *[keyLen]byte {
	if !f.InForce(id) {
		return nil
	}
	a := f.peers[id]
	if !a.since.IsZero() && f.now.Sub(a.since) >= forwardEvery {
		f.advance(a, false)
	}
	return &a.out
}

// foresee makes the key of the next step.
func (f *Forward) foresee(a *agreement) {
	if none(&a.next) {
		deriveInto(&a.next, &a.base, a.step+1, [8]byte([]byte("aldisfwr")))
		deriveInto(&a.nextIn, &a.next, startID(a.id, a.incarnation), datagramContext)
	}
}

// advance changes to the next step. heard: the peer has done so.
func (f *Forward) advance(a *agreement, heard bool) {
	f.foresee(a)
	a.before, a.base, a.in = a.in, a.next, a.nextIn
	deriveInto(&a.out, &a.base, startID(f.self, f.incarnation), datagramContext)
	wipe(&a.next)
	wipe(&a.nextIn)
	a.step++
	a.began, a.since, a.until = f.now, time.Time{}, time.Time{}
	if heard {
		f.follows(a)
	}
}

// follows notes that the peer seals with the key of this step: the key of the last step is needed only for a while.
func (f *Forward) follows(a *agreement) {
	a.since = f.now
	if !none(&a.before) {
		a.until = f.now.Add(forwardLate)
		f.wake(a.until)
	}
}

// incoming is the keys that a short datagram of a peer's start may be sealed with, at most three, the likeliest first.
func (f *Forward) incoming(id uint16, incarnation Incarnation) (list [3]*[keyLen]byte) {
	if f == nil || f.peers[id] == nil {
		return list
	}
	a := f.peers[id]
	switch {
	case a.agreed && a.incarnation == incarnation:
		list[0] = &a.in
		if !none(&a.before) {
			list[1] = &a.before
		}
		if f.now.Sub(a.began) >= forwardEvery/2 && a.has {
			f.foresee(a)
			list[2] = &a.nextIn
		} else if list[1] == nil && !none(&a.past) && a.pastIncarnation == incarnation {
			list[1] = &a.past
		}
	case !none(&a.past) && a.pastIncarnation == incarnation:
		list[0] = &a.past
	}
	return list
}

// opened notes that a datagram of a peer was sealed with one of its keys. gone says that the peer was no member any more.
func (f *Forward) opened(id uint16, key *[keyLen]byte) (gone bool) {
	a := f.peers[id]
	switch key {
	case &a.nextIn:
		f.advance(a, true)
	case &a.in:
		if a.since.IsZero() {
			f.follows(a)
		}
	case &a.past:
		return a.pastGone
	}
	a.has, a.both = true, true
	wipe(&a.own)
	return false
}

// Step brings the time to now, and wipes keys whose time is over.
func (f *Forward) Step(now time.Time) {
	if f == nil {
		return
	}
	f.now = now
	if f.due.IsZero() || now.Before(f.due) {
		return
	}
	f.due = time.Time{}
	for _, a := range f.peers {
		f.end(&a.until, &a.before)
		f.end(&a.pastUntil, &a.past)
	}
}

func (f *Forward) end(until *time.Time, key *[keyLen]byte) {
	switch {
	case until.IsZero():
	case f.now.Before(*until):
		f.wake(*until)
	default:
		*until = time.Time{}
		wipe(key)
	}
}

func (f *Forward) wake(at time.Time) {
	if f.due.IsZero() || at.Before(f.due) {
		f.due = at
	}
}

// Due is when Step has a key to wipe; zero: no time is set.
func (f *Forward) Due() (at time.Time) {
	if f != nil {
		at = f.due
	}
	return at
}

func none(key *[keyLen]byte) bool { return *key == [keyLen]byte{} }
