package keys

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/link/seal"
)

// GroupKeys are the keys of one group of gateways, and its members: docs/decisions/groups.md. Members say that they join and leave, and one
// of them makes a new key for those who are members then. They say this in open messages of the group, which their origins have signed.
//
// A new key is made by the member with the lowest number; the next one makes it if that one has not done so for rankWait, and so on.
type GroupKeys struct {
	self     uint16
	pair     func(from, to uint16, streams []byte) (seal.EndKey, bool)
	known    func(id uint16) bool // to the roster
	chance   func(*[32]byte)
	standing groupStanding
	again    uint64    // a member without the newest key has joined again, with the message of this number
	makes    time.Time // when this node makes a key if no other has; zero: none is due
	joins    time.Time // this node does not join again before
	wants    bool      // it is to join again
}

// groupStanding is the part of GroupKeys that the journal has.
type groupStanding struct {
	In   map[uint16]uint64 `json:"in,omitempty"`   // members, and the number of the message with which they joined; 0: a key named them
	Out  map[uint16]uint64 `json:"out,omitempty"`  // those that have left, likewise
	Keys []groupKey        `json:"keys,omitempty"` // the one to seal with last
}

type groupKey struct {
	Serial uint32   `json:"serial"`
	By     uint16   `json:"by"`
	Key    [16]byte `json:"key"`
	For    []uint16 `json:"for"`
}

// Kinds of messages of a group with a key, by the first octet.
const (
	groupSealed = 1 + iota // octets 2 of the key's mark, tag, content
	groupNewKey            // varint serial, the members as varints of differences with 0 behind, mark, varint of the first copy, copies for all but its maker
	groupJoins
	groupLeaves
)

const (
	mostGroupKeys = 8 // that are kept: a message may be as old as entropy.MostLife
	groupTag      = 4 // octets
	copyOctets    = 16
	markOctets    = 2
	gather        = 10 * time.Second // in which more members may join or leave before a key is made
	rankWait      = 2 * time.Minute
	rejoinAfter   = time.Hour
	mostAhead     = 1 << 10 // serials that a key may be ahead of the newest here
	mostFirst     = 1 << 24 // serial of the first key here: the highest of all would leave none for the next key
	// SealedOctets is by how many octets a content grows.
	SealedOctets = 1 + markOctets + groupTag
)

// ErrGroup says that something is no message of a group with a key.
var ErrGroup = errors.New("keys: not a message of a group with a key")

// NewGroupKeys is this node in a group, as the journal has it; nil: for the first time.
func (k *Keys) NewGroupKeys(chance func(*[32]byte), standing []byte) *GroupKeys {
	g := &GroupKeys{self: k.cfg.ID, pair: k.End, chance: chance}
	g.known = func(id uint16) bool { _, ok := k.Public(id); return ok || id == k.cfg.ID }
	if json.Unmarshal(standing, &g.standing) != nil || g.standing.In == nil {
		g.standing = groupStanding{In: map[uint16]uint64{}, Out: map[uint16]uint64{}}
	}
	if g.standing.Out == nil {
		g.standing.Out = map[uint16]uint64{}
	}
	return g
}

// Standing is for the journal.
func (g *GroupKeys) Standing() []byte {
	b, err := json.Marshal(g.standing)
	if err != nil {
		panic("keys: " + err.Error())
	}
	return b
}

func (k *groupKey) mark() (m [markOctets]byte) {
	h := sha256.Sum256(append([]byte("aldis group key mark 1"), k.Key[:]...))
	copy(m[:], h[:])
	return m
}

func (k *groupKey) seals() seal.EndKey {
	return seal.NewEndKey(sha256.Sum256(append([]byte("aldis group key 1"), k.Key[:]...)))
}

// newest is the key to seal with; nil: there is none.
func (g *GroupKeys) newest() *groupKey {
	if n := len(g.standing.Keys); n > 0 {
		return &g.standing.Keys[n-1]
	}
	return nil
}

// inForce is the key to seal with; nil: there is none, or a member that has it has left and the next is not here yet.
func (g *GroupKeys) inForce() *groupKey {
	k := g.newest()
	if k == nil || !slices.Contains(k.For, g.self) {
		return nil
	}
	for _, id := range k.For {
		if _, in := g.standing.In[id]; !in || !g.known(id) {
			return nil
		}
	}
	return k
}

// Mark tells the key in force from others; "" is none.
func (g *GroupKeys) Mark() string {
	if k := g.inForce(); k != nil {
		m := k.mark()
		return string(m[:])
	}
	return ""
}

// Members are those in the group that the roster names, in order.
func (g *GroupKeys) Members() []uint16 {
	ids := slices.Sorted(maps.Keys(g.standing.In))
	return slices.DeleteFunc(ids, func(id uint16) bool { return !g.known(id) })
}

// nonceOf is a number that no two messages of a group share.
func nonceOf(origin uint16, number uint64) uint64 { return uint64(origin)<<48 | number }

// Seal is a content as it goes to the group; false: no key is in force.
func (g *GroupKeys) Seal(number uint64, ad, content []byte) ([]byte, bool) {
	k := g.inForce()
	if k == nil {
		return nil, false
	}
	m, e := k.mark(), k.seals()
	return e.Seal(append([]byte{groupSealed}, m[:]...), groupTag, nonceOf(g.self, number), ad, content), true
}

// Newest says that a message of the group is sealed with the key in force.
func (g *GroupKeys) Newest(body []byte) bool {
	return len(body) > markOctets && body[0] == groupSealed && string(body[1:1+markOctets]) == g.Mark()
}

// Heard is the result of a message of a group.
type Heard struct {
	Content []byte // of the message; nil: it was about the group's key
	Lacking bool   // the key of the content is not here, or not yet
	Changed bool   // Standing has changed
	NewKey  bool   // messages that lacked their key may be readable now
}

// Hear takes a message that has been proven to be its origin's.
func (g *GroupKeys) Hear(now time.Time, origin uint16, number uint64, ad, body []byte) (h Heard, err error) {
	if len(body) == 0 {
		return h, ErrGroup
	}
	s := &g.standing
	switch kind, rest := body[0], body[1:]; kind {
	case groupSealed:
		if len(rest) < markOctets+groupTag {
			return h, ErrGroup
		}
		for i := range s.Keys {
			k := &s.Keys[len(s.Keys)-1-i]
			e := k.seals()
			if k.mark() != [markOctets]byte(rest) {
				continue
			}
			if content, ok := e.Open(rest[markOctets:], groupTag, nonceOf(origin, number), ad); ok {
				return Heard{Content: content}, nil
			}
		}
		return Heard{Lacking: true}, nil
	case groupNewKey:
		if h.Changed, err = g.take(now, origin, number, rest); err != nil {
			return h, err
		}
		h.NewKey = h.Changed
	case groupJoins:
		if number <= max(s.Out[origin], s.In[origin]) {
			return h, nil
		}
		if _, in := s.In[origin]; in {
			g.again = number
		}
		delete(s.Out, origin)
		s.In[origin], h.Changed = number, true
	case groupLeaves:
		if number <= max(s.Out[origin], s.In[origin]) {
			return h, nil
		}
		delete(s.In, origin)
		s.Out[origin], h.Changed = number, true
	default:
		return h, ErrGroup
	}
	g.plan(now)
	return h, nil
}

// parsedKey is a message with a new key.
type parsedKey struct {
	serial  uint64
	members []uint16
	mark    [markOctets]byte
	first   int
	copies  []byte
}

func parseKey(b []byte) (p parsedKey, err error) {
	number := func() (n uint64) {
		n, w := binary.Uvarint(b)
		if w <= 0 || n > 1<<32-1 {
			err = ErrGroup
			return 0
		}
		b = b[w:]
		return n
	}
	p.serial = number()
	id := uint64(0)
	for step := number(); step > 0 && err == nil; step = number() {
		if id += step; id > 1<<16-1 {
			return p, ErrGroup
		}
		p.members = append(p.members, uint16(id))
	}
	if err != nil || len(b) < markOctets {
		return p, ErrGroup
	}
	p.mark, b = [markOctets]byte(b), b[markOctets:]
	p.first, p.copies = int(number()), b
	if err != nil || len(b)%copyOctets != 0 || p.first > len(p.members) {
		return p, ErrGroup
	}
	return p, nil
}

// take takes a new key out of the copy for this node.
func (g *GroupKeys) take(now time.Time, by uint16, number uint64, b []byte) (changed bool, err error) {
	p, err := parseKey(b)
	if err != nil {
		return false, err
	}
	at, in := slices.BinarySearch(p.members, g.self)
	newest := g.newest()
	newer := newest == nil || p.serial > uint64(newest.Serial) || p.serial == uint64(newest.Serial) && by < newest.By
	if !in {
		g.wants = g.wants || newer && g.In() // its maker did not know of this node
		return false, nil
	}
	if maker, is := slices.BinarySearch(p.members, by); is && maker < at {
		at--
	}
	if newest == nil && p.serial > mostFirst || newest != nil && p.serial > uint64(newest.Serial)+mostAhead {
		return false, ErrGroup
	}
	if at -= p.first; at < 0 || len(p.copies) < (at+1)*copyOctets {
		return false, nil // the copy is in another part
	}
	k := groupKey{Serial: uint32(p.serial), By: by, For: p.members}
	e, ok := g.pair(by, g.self, copyStream(p.mark))
	if !ok {
		return false, ErrGroup
	}
	key, _ := e.Open(p.copies[at*copyOctets:(at+1)*copyOctets], 0, nonceOf(by, number), nil)
	copy(k.Key[:], key)
	if k.mark() != p.mark {
		return false, ErrGroup
	}
	return g.enter(k), nil
}

// enter keeps a key, the one to seal with last, and goes by its list of members, less those that have left: its maker did not know of
// these.
func (g *GroupKeys) enter(k groupKey) bool {
	s := &g.standing
	before := func(a, b groupKey) int { // of two keys with one serial, the key of the maker with the lower number counts
		if a.Serial != b.Serial {
			return int(int64(a.Serial) - int64(b.Serial))
		}
		return int(b.By) - int(a.By)
	}
	at, found := slices.BinarySearchFunc(s.Keys, k, before)
	if found {
		return false
	}
	s.Keys = slices.Insert(s.Keys, at, k)
	if at == len(s.Keys)-1 {
		in := map[uint16]uint64{}
		for _, id := range k.For {
			if _, left := s.Out[id]; !left {
				in[id] = s.In[id]
			}
		}
		if _, here := s.In[g.self]; here {
			in[g.self] = s.In[g.self]
		}
		s.In, g.again = in, 0
	}
	if len(s.Keys) > mostGroupKeys { // a maker that floods loses its own
		most, made := 0, map[uint16]int{}
		for i := range s.Keys[:mostGroupKeys] {
			made[s.Keys[i].By]++
		}
		for i := range s.Keys[:mostGroupKeys] {
			if made[s.Keys[i].By] > made[s.Keys[most].By] {
				most = i
			}
		}
		s.Keys = slices.Delete(s.Keys, most, most+1)
	}
	return true
}

// copyStream sets the copies of one key apart from those of another.
func copyStream(mark [markOctets]byte) []byte { return append([]byte("aldis group key"), mark[:]...) }

// In says that this node has joined.
func (g *GroupKeys) In() bool { _, in := g.standing.In[g.self]; return in }

// Since is when this node last joined, in this run; zero: before.
func (g *GroupKeys) Since() time.Time {
	if g.joins.IsZero() {
		return g.joins
	}
	return g.joins.Add(-rejoinAfter)
}

// Joins says whether this node has to say that it joins.
func (g *GroupKeys) Joins(now time.Time) bool { return !g.In() || g.wants && !now.Before(g.joins) }

// Join is the message, with this number, in which it says so.
func (g *GroupKeys) Join(now time.Time, number uint64) []byte {
	g.standing.In[g.self] = number
	delete(g.standing.Out, g.self)
	g.joins, g.wants = now.Add(rejoinAfter), false
	g.plan(now)
	return []byte{groupJoins}
}

// Leave is the message of a node that leaves.
func (g *GroupKeys) Leave() []byte { return []byte{groupLeaves} }

// Missed: the key of a message has not come for a while, though the message was sent after this node joined. The node joins again.
func (g *GroupKeys) Missed() { g.wants = true }

// fits says that the newest key is for the present members.
func (g *GroupKeys) fits() bool {
	members := g.Members()
	if len(members) < 2 {
		return true
	}
	k := g.newest()
	return k != nil && g.again == 0 && slices.Equal(k.For, members)
}

// plan says when this node makes a key.
func (g *GroupKeys) plan(now time.Time) {
	rank, in := slices.BinarySearch(g.Members(), g.self)
	switch {
	case g.fits() || !in:
		g.makes = time.Time{}
	case g.makes.IsZero():
		g.makes = now.Add(gather + time.Duration(rank)*rankWait)
	}
}

// Due is when Joins or Make may have something to say; zero: by itself never.
func (g *GroupKeys) Due() time.Time {
	if g.wants {
		return due.Earliest(g.makes, g.joins)
	}
	return g.makes
}

// Make makes a new key where that is this node's to do now. It returns the messages to the group with that key, of at most so many octets
// each. number is that of the first of them.
func (g *GroupKeys) Make(now time.Time, number uint64, octets int) (says [][]byte) {
	if g.makes.IsZero() && !g.fits() { // the roster has changed
		g.plan(now)
	}
	if g.makes.IsZero() || now.Before(g.makes) {
		return nil
	}
	g.makes = time.Time{}
	if g.fits() {
		return nil
	}
	k := groupKey{Serial: 1, By: g.self, For: g.Members()}
	if last := g.newest(); last != nil {
		if k.Serial = last.Serial + 1; k.Serial == 0 {
			return nil // a key of serial 0 would be older than all, and not end the want of one
		}
	}
	var drawn [32]byte
	g.chance(&drawn)
	copy(k.Key[:], drawn[:])
	head, before, mark := binary.AppendUvarint([]byte{groupNewKey}, uint64(k.Serial)), uint16(0), k.mark()
	for _, id := range k.For {
		head = binary.AppendUvarint(head, uint64(id-before))
		before = id
	}
	head = append(append(head, 0), mark[:]...)
	others := slices.DeleteFunc(slices.Clone(k.For), func(id uint16) bool { return id == g.self })
	for first := 0; first < len(others); {
		part := binary.AppendUvarint(slices.Clone(head), uint64(first))
		for whole := len(part) + copyOctets; first < len(others) && len(part)+copyOctets <= max(octets, whole); first++ {
			e, _ := g.pair(g.self, others[first], copyStream(mark)) // a member that the roster does not name can open no copy
			part = e.Seal(part, 0, nonceOf(g.self, number+uint64(len(says))), nil, k.Key[:])
		}
		says = append(says, part)
	}
	g.enter(k)
	return says
}
