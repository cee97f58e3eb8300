package reliable

import (
	"encoding/binary"
	"time"
)

const (
	// maxAhead is how far ahead of the last block a number may be; beyond that it is wrong.
	maxAhead = 1024
	// closedWindow is how many selective acknowledgements tell JXSE of a queue without room.
	closedWindow = 102
	firstReopen  = 5 * time.Second // until a near peer is told again that the window is open
)

// Place is where a block or an acknowledgement belongs.
type Place uint8

// Places.
const (
	Next  Place = iota // it is the next one, or new
	Early              // blocks before it are missing
	Taken              // it was taken before
	Kept               // it is here, and waits
	Full               // there is no room for it
	Over               // the conversation has ended
	Wrong              // its number is 0, or further ahead than any gap
)

// Classify tells where block n of the near peer belongs.
func (c *Conversation[B]) Classify(n uint32) Place {
	_, kept := c.early[n]
	switch {
	case n == 0 || n > c.taken+maxAhead:
		return Wrong
	case n <= c.taken:
		return Taken
	case kept:
		return Kept
	case c.ended:
		return Over
	case c.Full() || n > c.taken+1 && len(c.early) >= c.terms.Reorder:
		return Full
	case n > c.taken+1:
		return Early
	}
	return Next
}

// Full tells whether so much waits for the link that no block is taken.
func (c *Conversation[B]) Full() bool { return c.toLink.full(c.terms.Hard) }

// EarlyOctets is how many octets the waiting early blocks have.
func (c *Conversation[B]) EarlyOctets(of func(B) int) (sum int) {
	for _, b := range c.early {
		sum += of(b)
	}
	return sum
}

// Accept takes block n, which Classify has found Next or Early. An early one is kept without an acknowledgement: the near peer
// keeps it, too, until it is durable here. The next, and those that waited for it, go to carry in order until carry
// returns false; then they are acknowledged.
func (c *Conversation[B]) Accept(n uint32, block B, carry func(B) bool) Output {
	if n > c.taken+1 {
		c.early[n] = block
		return Output{}
	}
	for ok := true; ok; block, ok = c.early[c.taken+1] {
		c.taken++
		delete(c.early, c.taken)
		if !carry(block) {
			break
		}
	}
	c.reopen = time.Time{}
	return c.Acknowledge()
}

// Begin takes a new connection of the near peer, whose blocks up to n are done.
func (c *Conversation[B]) Begin(n uint32) {
	clear(c.early)
	c.taken = n
}

// Duplicate answers a block that Classify has found Taken or Kept.
func (c *Conversation[B]) Duplicate(place Place) Output {
	if place == Kept && !c.terms.AckKept {
		return Output{}
	}
	return c.Acknowledge()
}

// Acknowledge tells the near peer which blocks were taken. A block without an acknowledgement breaks the connection after 60 s,
// so selective acknowledgements, which all repeat the highest block, signal a closed window. JXSE takes 100 less
// their number for the receiver's free space (impl/util/pipe/reliable), and waits while it has more than twice that
// under way. With closedWindow of them it waits with nothing under way, for as long as it takes.
func (c *Conversation[B]) Acknowledge() (out Output) {
	if !c.open {
		return out
	}
	n := 1
	c.shut = !c.ended && (c.state.Held || c.toLink.full(c.terms.Soft))
	if c.shut {
		n += closedWindow
	}
	data := make([]byte, 0, 4*n)
	for range n {
		data = binary.BigEndian.AppendUint32(data, c.taken)
	}
	return Output{Send: []Send{{Data: data}}}
}

// Give counts a block that was given to the link.
func (c *Conversation[B]) Give(octets int) {
	c.toLink.Octets += octets
	c.toLink.Blocks++
}

// Stored counts off a block that the far site has, or will never get.
func (c *Conversation[B]) Stored(now time.Time, octets int) Output {
	c.toLink = Room{max(0, c.toLink.Octets-octets), max(0, c.toLink.Blocks-1)}
	return c.roomAgain(now)
}

// Hold takes in whether the far gateway has enough.
func (c *Conversation[B]) Hold(now time.Time, enough bool) Output {
	c.state.Held = enough
	return c.roomAgain(now)
}

// roomAgain opens the near peer's window when enough waiting blocks have reached the far site.
func (c *Conversation[B]) roomAgain(now time.Time) Output {
	soft := c.terms.Soft
	if !c.shut || c.state.Held || c.ended || c.toLink.Octets > soft.Octets/2 || c.toLink.Blocks > soft.Blocks/2 {
		return Output{}
	}
	c.reopenWait = firstReopen // if this acknowledgement is lost, the near peer waits for the next
	c.reopen = now.Add(c.reopenWait)
	return c.Acknowledge()
}

// tellAgain tells a connected near peer once more that the window is open.
func (c *Conversation[B]) tellAgain(now time.Time, here bool, out *Output) {
	switch {
	case !here:
		c.reopen = now.Add(c.reopenWait)
	case c.shut || c.reopenWait > LastRepeat:
		c.reopen = time.Time{}
	default:
		out.Send = append(out.Send, c.Acknowledge().Send...)
		c.reopenWait *= 2
		c.reopen = now.Add(c.reopenWait)
	}
}
