package seal

import (
	"encoding/binary"
	"time"
)

// Forward is keys that this start of a node shares with one start of a peer: of ephemeral X25519 pairs, whose public halves ride
// on HELLOs. They are in memory alone and are wiped, so that an attacker who takes both nodes' keys later cannot open what went under them:
// docs/decisions/forward-secrecy.md. A nil Forward has none. It belongs to the goroutine of its Sealer and its Opener.
type Forward struct {
	self        uint16
	incarnation Incarnation
	ring        *Keyring
	chance      func(*[keyLen]byte)
	now         time.Time
	due         time.Time // when a key is wiped next; zero: none waits for that
	vaults      []vault
	peers       map[uint16]*agreement
}

const (
	// forwardEvery is how long two nodes that talk use one key. The other may go on to the next a good deal earlier by this clock.
	forwardEvery = time.Hour
	// forwardLate is how long a datagram may be under way after its sender has gone on to the next key.
	forwardLate = 10 * time.Minute
	// forwardGone is how long it is known that a datagram is of a node that the roster does not name any more.
	forwardGone = 24 * time.Hour
	// forwardMost is how many peers a start may have agreements with, as many as a roster names.
	forwardMost = 256
)

// vault is the secrets of an agreement. A key that is all zero is none, or was wiped.
type vault struct {
	own     [keyLen]byte // private half of this node's ephemeral pair
	base    [keyLen]byte // of the step that is used
	in, out [keyLen]byte // of it: what the peer seals with, and this node
	before  [keyLen]byte // in of the step before
	next    [keyLen]byte // base of the step after
	nextIn  [keyLen]byte
	past    [keyLen]byte // in of the agreement before
}

// agreement is what one start of this node and a peer have agreed on.
type agreement struct {
	*vault
	id          uint16
	public      [keyLen]byte // of own
	theirs      [keyLen]byte // zero: not heard
	incarnation Incarnation  // of the peer's start that has said theirs
	agreed      bool         // base, in and out are there
	has         bool         // the peer is known to have public
	both        bool         // the peer has sealed with the key
	since       time.Time    // it has with that of this step; zero: not yet
	silent      bool         // the peer may start anew and be unable to say so
	step        uint64
	began       time.Time // of the step
	until       time.Time // then before is wiped; zero: not yet
	// pastIncarnation is the start that past is of, and pastUntil when it is wiped. pastGone: the roster did not name its sender any more.
	pastIncarnation Incarnation
	pastUntil       time.Time
	pastGone        bool
}

// NewForward begins without agreements. chance fills 32 octets with chance that nobody can guess. hold is given the memory that
// all secrets will lie in; it may be nil.
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

// draw makes an ephemeral pair where there is none.
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

// Says is what a HELLO to a peer says: the public half of this node's pair, and which half of the peer this node has. Its own half is
// all zero where the peer has sealed with the key, and needs no word of it.
func (f *Forward) Says(id uint16) (public [keyLen]byte, heard uint16) {
	a := f.at(id)
	if a == nil || a.both {
		return public, 0
	}
	f.draw(a)
	return a.public, echo(&a.theirs)
}

// Lacks says that a peer is not known to have this node's public half.
func (f *Forward) Lacks(id uint16) bool {
	a := f.at(id)
	return a != nil && !a.has
}

// Hear takes what the newest HELLO of a peer's start says: the public half of its pair, all zero where it says none, and which half
// of this node it has. news says that the peer is to be told: that this node has its half, or this node's again.
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

// agree makes the first key of two pairs; false: the peer's half is none.
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

// leave ends an agreement. What the peer has sealed with its key is understood for a while.
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

// begin is a start of a peer that was not heard of before: the agreement with the one before is over.
func (f *Forward) begin(id uint16) {
	if a := f.at(id); a != nil {
		f.leave(a)
		a.has = false
	}
}

// rekey goes on with other keys of nodes. Agreements with nodes that have the same key stay.
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

// Silent says that a peer has fallen silent, or speaks. A silent one is told nothing under this start's key: it may start anew,
// and could not say so.
func (f *Forward) Silent(id uint16, on bool) {
	if a := f.at(id); a != nil {
		a.silent = on
	}
}

// InForce says that what goes to a peer is sealed with a key that both forget.
func (f *Forward) InForce(id uint16) bool {
	a := f.at(id)
	return a != nil && a.agreed && a.has && !a.silent
}

// sealing is the key for a datagram to a peer; nil: the one of the nodes' own keys.
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

// foresee makes the key of the step after.
func (f *Forward) foresee(a *agreement) {
	if none(&a.next) {
		deriveInto(&a.next, &a.base, a.step+1, [8]byte([]byte("aldisfwr")))
		deriveInto(&a.nextIn, &a.next, startID(a.id, a.incarnation), datagramContext)
	}
}

// advance goes on to the next step. heard: the peer has.
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

// follows notes that the peer seals with the key of this step: that of the one before is needed for a while only.
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

// Step brings the keys to now, and wipes those whose time is over.
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

// Due is when Step has a key to wipe; zero: not by itself.
func (f *Forward) Due() (at time.Time) {
	if f != nil {
		at = f.due
	}
	return at
}

func none(key *[keyLen]byte) bool { return *key == [keyLen]byte{} }
