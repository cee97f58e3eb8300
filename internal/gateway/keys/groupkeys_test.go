package keys

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/seal"
)

// crew is members of a group that hear each other at once.
type crew struct {
	now     time.Time
	members map[uint16]*GroupKeys
	gone    map[uint16]bool // of the roster
	number  uint64
	drawn   byte
}

func newCrew(n uint16) *crew {
	c := &crew{now: time.Unix(1_800_000_000, 0), members: map[uint16]*GroupKeys{}, gone: map[uint16]bool{}}
	for id := uint16(1); id <= n; id++ {
		c.add(id)
	}
	return c
}

// add makes a member, with keys for each two as the roster gives them.
func (c *crew) add(id uint16) *GroupKeys {
	pair := func(from, to uint16, streams []byte) (seal.EndKey, bool) {
		var secret [32]byte
		copy(secret[:], fmt.Sprint(from, to, string(streams)))
		return seal.NewEndKey(secret), from == id || to == id
	}
	chance := func(key *[32]byte) {
		c.drawn++
		key[0] = c.drawn
	}
	g := &GroupKeys{self: id, pair: pair, chance: chance, known: func(id uint16) bool { return !c.gone[id] },
		standing: groupStanding{In: map[uint16]uint64{}, Out: map[uint16]uint64{}}}
	c.members[id] = g
	return g
}

// hear has all but the origin hear a message, and returns the members that could read its content.
func (c *crew) hear(origin uint16, body []byte) (read []uint16) {
	c.number++
	for id := uint16(1); id < 100; id++ {
		g := c.members[id]
		if g == nil || id == origin {
			continue
		}
		if h, err := g.Hear(c.now, origin, c.number, []byte("ad"), body); err == nil && h.Content != nil {
			read = append(read, id)
		}
	}
	return read
}

// run lets time pass until nobody says any more; silent members say nothing.
func (c *crew) run(d time.Duration, silent ...uint16) (keys int) {
	for end := c.now.Add(d); c.now.Before(end); c.now = c.now.Add(time.Second) {
		for id := uint16(1); id < 100; id++ {
			g := c.members[id]
			if g == nil || slices.Contains(silent, id) {
				continue
			}
			if g.Joins(c.now) {
				c.hear(id, g.Join(c.now, c.number+1))
			}
			for _, body := range g.Make(c.now, c.number+1, 10_000) {
				c.hear(id, body)
				keys++
			}
		}
	}
	return keys
}

// say lists the members that can read a message of a member.
func (c *crew) say(id uint16) []uint16 {
	body, ok := c.members[id].Seal(c.number+1, []byte("ad"), []byte("hej"))
	if !ok {
		return nil
	}
	return c.hear(id, body)
}

func TestGroupKeyFollowsWhoIsThere(t *testing.T) {
	c := newCrew(4)
	check.Equal(t, "keys for four", c.run(time.Minute), 1)
	check.Same(t, "who reads", c.say(2), []uint16{1, 3, 4})

	// A member that leaves keeps the old key, and reads no later messages; one that joins reads no earlier ones.
	thief, before := c.members[3], c.members[3].Standing()
	old, _ := c.members[2].Seal(c.number+1, []byte("ad"), []byte("before"))
	c.hear(2, old)
	oldNumber := c.number
	c.hear(3, thief.Leave())
	_, sealed := c.members[2].Seal(c.number+1, []byte("ad"), []byte("hej"))
	check.True(t, "nothing is sealed with a key that one has who left", !sealed && c.members[2].Mark() == "")
	check.Equal(t, "keys without one", c.run(time.Minute, 3), 1)
	check.Same(t, "who reads", c.say(2), []uint16{1, 4})
	check.True(t, "the thief has its old keys", string(before) == string(thief.Standing()))
	c.add(5)
	check.Equal(t, "keys with one more", c.run(time.Minute, 3), 1)
	check.Same(t, "who reads", c.say(2), []uint16{1, 4, 5})
	h, err := c.members[5].Hear(c.now, 2, oldNumber, []byte("ad"), old)
	check.NoError(t, err)
	check.True(t, "what was said before is closed to who has joined", h.Lacking && h.Content == nil)
	h, _ = c.members[4].Hear(c.now, 2, oldNumber, []byte("ad"), old)
	check.Equal(t, "who was there reads it", string(h.Content), "before")
	h, _ = c.members[4].Hear(c.now, 2, oldNumber, []byte("other"), old)
	check.True(t, "with another head it is none", h.Content == nil)

	// A member that the roster names no more is out, though it says nothing; the member with the lowest number may be silent.
	c.gone[4] = true
	check.Equal(t, "keys of the second, in the first's silence", c.run(rankWait+time.Minute, 1, 3, 4), 1)
	check.Same(t, "who reads", c.say(5), []uint16{1, 2})
}

// Two parts of a group that cannot hear each other both make keys. Once they hear each other, all read all later messages.
func TestGroupKeysOfTwoHalves(t *testing.T) {
	c, d := newCrew(2), newCrew(0)
	d.number, d.drawn = 1000, 99
	for id := uint16(3); id <= 4; id++ {
		d.add(id)
	}
	check.Equal(t, "keys of each half", c.run(time.Minute)+d.run(time.Minute), 2)
	for id, g := range d.members {
		g.known = func(uint16) bool { return true }
		c.members[id] = g
		c.hear(id, []byte{groupJoins})
	}
	for _, id := range []uint16{3, 4} {
		for _, other := range []uint16{1, 2} {
			_, err := c.members[id].Hear(c.now, other, c.number+uint64(other), nil, []byte{groupJoins})
			check.NoError(t, err)
		}
	}
	c.number = 2000
	c.run(5 * time.Minute)
	for id := uint16(1); id <= 4; id++ {
		check.Equal(t, "how many read", len(c.say(id)), 3)
	}
}

// A member that gives its key the highest serial that there is, and leaves, does not have the others make keys without end.
func TestGroupKeyWithTheLastSerial(t *testing.T) {
	for _, first := range []bool{true, false} { // whether its key is the first
		c := newCrew(3)
		if evil := c.members[3]; first {
			for id := uint16(1); id <= 3; id++ {
				c.hear(id, c.members[id].Join(c.now, c.number+1))
			}
			evil.standing.Keys, evil.makes = []groupKey{{Serial: math.MaxUint32 - 1, By: 3}}, c.now
			for _, body := range evil.Make(c.now, c.number+1, 10_000) {
				c.hear(3, body)
			}
		} else {
			c.run(time.Minute)
			for id := uint16(1); id <= 2; id++ { // as it may be in the journal
				c.members[id].enter(groupKey{Serial: math.MaxUint32, By: 3, For: []uint16{1, 2, 3}})
			}
		}
		delete(c.members, 3)
		c.hear(3, []byte{groupLeaves})
		keys := c.run(time.Hour)
		check.True(t, "keys in an hour", keys <= 2, keys)
		if first {
			check.Same(t, "who reads", c.say(1), []uint16{2})
		}
	}
}

func TestBadGroupMessages(t *testing.T) {
	c := newCrew(3)
	c.run(time.Minute)
	g := c.members[2]
	for _, body := range [][]byte{nil, {0}, {9, 9}, {groupSealed}, {groupSealed, 1, 2, 3}, {groupNewKey}, {groupNewKey, 1}, {groupNewKey, 1, 2, 0}, {groupNewKey, 1, 2, 0, 1, 2, 0, 1},
		append([]byte{groupNewKey, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, make([]byte, 40)...), append([]byte{groupNewKey, 2, 1, 1, 1, 0, 1, 2, 0}, make([]byte, 32)...),
		append([]byte{groupNewKey, 0xff, 0xff, 0x7f, 1, 1, 0, 1, 2, 0}, make([]byte, 16)...)} {
		if h, err := g.Hear(c.now, 1, 500, nil, body); err == nil {
			t.Errorf("%x is taken: %+v", body, h)
		}
	}
	before := g.Mark()
	for i := range 100 { // a member that makes keys without end loses its own
		k := groupKey{Serial: uint32(2 + i), By: 3, For: []uint16{1, 2, 3}, Key: [16]byte{byte(i)}}
		g.enter(k)
	}
	check.Equal(t, "keys that are kept", len(g.standing.Keys), mostGroupKeys)
	first := g.standing.Keys[0].mark()
	check.Equal(t, "the first of another", string(first[:]), before)
	check.Equal(t, "sealed with a list of members that is not its own", c.run(time.Minute), 0)
	all := newCrew(64)
	check.Equal(t, "parts of a key for 64 that fit a datagram each", partsOf(all), 2)
	check.Equal(t, "who reads", len(all.say(64)), 63)
}

// partsOf says in how many parts of 700 octets a key for all goes.
func partsOf(c *crew) (parts int) {
	for id := uint16(1); id <= 64; id++ {
		c.hear(id, c.members[id].Join(c.now, c.number+1))
	}
	c.now = c.now.Add(gather)
	for _, body := range c.members[1].Make(c.now, c.number+1, 700) {
		c.hear(1, body)
		parts++
	}
	return parts
}
