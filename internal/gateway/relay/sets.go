package relay

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

func setName(rank int, to []uint16) string { return fmt.Sprint(rank, to) }

// setFor is the set for these recipients, by id, and a precedence.
func (c *Carrier) setFor(m *mail.Message, to []uint16) *set {
	name := setName(m.Rank(), to)
	s := c.named[name]
	if s == nil || len(to) > 1 && s.next >= mostNumbers {
		c.dropEnded()
		s = c.newSet(c.next, m.Rank(), to)
		c.next++
		c.record(s)
	}
	return s
}

func (c *Carrier) newSet(number uint16, rank int, to []uint16) *set {
	s := &set{number: number, rank: rank, to: to, next: 1, told: map[uint16]bool{},
		history: mail.NewAudience(c.Services, mail.Policy{Ordered: true, Bucket: bucketFlow, Prefix: binary.BigEndian.AppendUint16(nil, number)})}
	s.history.Since(s.at(1).Number)
	c.sets[number], c.named[setName(rank, to)] = s, s
	c.next = max(c.next, number+1)
	return s
}

// dropEnded forgets the sets of several that no new message gets, full ones and those of a recipient that began anew, if all their
// messages have ended.
func (c *Carrier) dropEnded() {
	used := map[*set]bool{}
	for _, s := range c.of {
		used[s] = true
	}
	for _, number := range slices.Sorted(maps.Keys(c.sets)) {
		s := c.sets[number]
		if len(s.to) > 1 && c.named[setName(s.rank, s.to)] != s && !used[s] && c.oldest(s) == s.at(s.next).Number {
			c.drop(s)
		}
	}
}

func (c *Carrier) drop(s *set) {
	s.history.Forget(nil)
	delete(c.sets, s.number)
	c.Services.Record(bucketSet, lineKey(s.number), nil)
	c.recordNext()
}

// several is how many sets of several recipients there are.
func (c *Carrier) several() (n int) {
	for _, s := range c.sets {
		if len(s.to) > 1 {
			n++
		}
	}
	return n
}

// at is the transmission ID of a message of a set: the number of the set is its high half.
func (s *set) at(number uint32) mail.TransmissionID {
	return mail.TransmissionID{Queue: frame.Direct, Number: uint64(s.number)<<32 | uint64(number)}
}

// together is the set of several recipients of a message; nil: each is by itself.
func (c *Carrier) together(m *mail.Message, to []*mail.Peer) *set {
	if len(to) < 2 || len(to) > MaxRecipients || m.Content.Payload == nil || len(c.of) >= mostNumbers {
		return nil
	}
	var ids []uint16
	for _, p := range to {
		ids = append(ids, p.ID)
	}
	slices.Sort(ids)
	if c.named[setName(m.Rank(), ids)] == nil {
		if c.dropEnded(); c.several() >= mostSets {
			return nil
		}
	}
	s := c.setFor(m, ids)
	c.of[m.ID] = s
	return s
}

// secret is the key of a set of several recipients.
func (c *Carrier) secret(s *set) [32]byte {
	of := binary.BigEndian.AppendUint16(nil, s.number)
	for _, id := range s.to {
		if l := c.lines[id]; l != nil { // a member that was taken out does not have the key of the others any more
			of = l.own.append(of)
		}
	}
	return c.Ways.Secret(of)
}
