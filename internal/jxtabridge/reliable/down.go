package reliable

import (
	"maps"
	"slices"
	"time"
)

// The time until a block is repeated doubles with each repeat.
const (
	FirstRepeat = 3 * time.Second
	LastRepeat  = time.Minute
	returnAfter = time.Second // from the near peer's return to the repeat
	// After an interruption hurries repeats are hurryEvery apart. That is shorter than the pipe query that a near peer
	// makes before it opens again.
	hurryEvery = 5 * time.Millisecond
	hurries    = 30
)

// Block is one block on its way to the near peer.
type Block struct {
	Token  uint64 // of the far message in which it came; 0: it was made here
	Data   []byte
	Closes bool // it is the sender's last block

	sent int // how often it was sent
}

// Put adds block n of the far end; long ones may come after short ones that were sent later. It returns Next, Taken
// (a duplicate), Kept (handed in again) or Full. Pump sends it.
func (c *Conversation[B]) Put(n uint32, b *Block) Place {
	old := c.queue[n]
	switch {
	case n <= c.acked || c.state.Ending && n > c.state.Final || old != nil && old.Token != b.Token:
		return Taken
	case old != nil:
		return Kept
	case c.octets+len(b.Data) > c.terms.Near.Octets || n > c.acked+uint32(c.terms.Near.Blocks):
		return Full
	}
	c.queue[n] = b
	c.octets += len(b.Data)
	return Next
}

// Pump sends the near peer the blocks that its window allows, and makes the far gateway pause when too much waits.
func (c *Conversation[B]) Pump(now time.Time) (out Output) {
	c.pump(now, &out)
	soft := Room{4 * c.terms.Soft.Octets, 2 * c.terms.Soft.Blocks}
	if !c.state.Holding && (Room{c.octets, len(c.queue)}).full(soft) {
		c.state.Holding, out.Hold = true, true
	}
	return out
}

func (c *Conversation[B]) pump(now time.Time, out *Output) {
	if !c.open || c.ended || c.interrupted {
		return
	}
	if s := c.state; s.Ending && c.terms.Last != nil && c.queue[s.Final+1] == nil && c.acked <= s.Final {
		c.queue[s.Final+1] = &Block{Data: c.terms.Last, Closes: true}
	}
	if c.sent == c.acked {
		c.wait, c.stuck = FirstRepeat, now
	}
	c.advance(now, out)
	if c.due.IsZero() && c.sent > c.acked {
		c.due = now.Add(c.repeatIn())
	}
}

// repeatIn is the distance to the next repeat.
func (c *Conversation[B]) repeatIn() time.Duration {
	if c.hurry > 0 {
		return hurryEvery
	}
	return c.wait
}

func (c *Conversation[B]) advance(now time.Time, out *Output) {
	for c.sent < c.acked+c.terms.Window+c.extra && c.queue[c.sent+1] != nil {
		if now.Before(c.next) {
			c.paced = c.next
			return
		}
		c.sent++
		c.send(c.sent, out)
	}
}

func (c *Conversation[B]) send(n uint32, out *Output) {
	if b := c.queue[n]; b != nil {
		b.sent++
		out.Send = append(out.Send, Send{Number: n, Data: b.Data, Again: b.sent > 1})
	}
}

// Ack frees the blocks up to n, which the near peer has. After a restart it may have more blocks than were sent as far as we
// know, but never more than there are. Ack returns Next, Taken (nothing new) or Wrong (it cannot have them).
func (c *Conversation[B]) Ack(now time.Time, n uint32) (place Place, out Output) {
	switch {
	case n > 0 && c.interrupted: // it knows of the interruption, and drops its connection
		c.interrupted, c.hurry, c.stuck, c.due = false, hurries, now, time.Time{}
		c.pump(now, &out)
		return Taken, out
	case n <= c.acked || c.ended:
		return Taken, out
	}
	for m := c.acked + 1; m <= n; m++ {
		if c.queue[m] == nil {
			return Wrong, out
		}
	}
	for ; c.acked < n; c.acked++ {
		b := c.queue[c.acked+1]
		delete(c.queue, c.acked+1)
		out.Closed = out.Closed || b.Closes
		if b.Token != 0 {
			c.octets -= len(b.Data)
			out.Freed = append(out.Freed, b)
		}
	}
	c.sent = max(c.sent, c.acked)
	c.extra, c.hurry, c.wait, c.stuck, c.due = 0, 0, FirstRepeat, now, time.Time{}
	if c.terms.Pace != nil {
		c.next = now.Add(c.terms.Pace(len(c.queue)))
	}
	if out.Closed {
		return Next, out
	}
	if c.terms.Repeats > 0 && c.acked < c.lost { // the blocks after a lost block are probably lost, too
		c.send(c.acked+1, &out)
	}
	c.pump(now, &out)
	if soft := c.terms.Soft; c.state.Holding && len(c.queue) <= soft.Blocks && c.octets <= soft.Octets {
		c.state.Holding, out.Go = false, true
	}
	return Next, out
}

// repeat sends blocks without an acknowledgement again, or gives the near peer up. It also sends one new block: JXSE 2.7 does
// not answer a block that it already has, only a new one. In a hurry, repeat neither waits longer nor sends a new one.
func (c *Conversation[B]) repeat(now time.Time, here bool, out *Output) {
	limit, patient := c.terms.GiveUp, c.terms.Patient && c.queue[c.sent+1] == nil
	if c.state.Ending {
		limit, patient = c.terms.Closing, false
	}
	switch {
	case !here: // a near peer without a connection is not stuck
		c.stuck, c.due = now, now.Add(c.wait)
		return
	case now.Sub(c.stuck) >= limit && !patient:
		out.GaveUp = true
		return
	case c.interrupted:
		c.wait = min(2*c.wait, LastRepeat)
		c.due, out.Interrupted = now.Add(c.wait), true
		return
	case c.hurry > 0:
		c.hurry--
	default:
		c.extra++
		c.wait = min(2*c.wait, LastRepeat)
	}
	c.lost = c.sent
	for n := c.acked + 1; n <= c.lost && (c.terms.Repeats == 0 || n-c.acked <= c.terms.Repeats); n++ {
		c.send(n, out)
	}
	c.advance(now, out)
	c.due = now.Add(c.repeatIn())
}

// Interrupt stops blocks to the near peer until it knows of the interruption, and afterwards sends them again from the first block
// without an acknowledgement.
func (c *Conversation[B]) Interrupt(now time.Time) {
	if !c.interrupted {
		c.stuck = now
	}
	c.interrupted, c.sent, c.due = true, c.acked, now.Add(c.wait)
}

// Close says that the far end's last block is number final, and sends the remaining blocks.
func (c *Conversation[B]) Close(now time.Time, final uint32) (out Output) {
	c.state.Ending, c.state.Final, c.stuck = true, final, now
	c.pump(now, &out)
	return out
}

// Cut drops the blocks after the first gap and returns their tokens, and the number of the last block that is left. Their
// octets stay counted: nothing more comes.
func (c *Conversation[B]) Cut() (last uint32, cut []uint64) {
	for last = c.acked; c.queue[last+1] != nil; {
		last++
	}
	return last, c.drop(last)
}

// drop drops the blocks beyond n and returns the tokens of the far ones.
func (c *Conversation[B]) drop(n uint32) (tokens []uint64) {
	for _, m := range slices.Sorted(maps.Keys(c.queue)) {
		if m <= n {
			continue
		}
		if t := c.queue[m].Token; t != 0 {
			tokens = append(tokens, t)
		}
		delete(c.queue, m)
	}
	return tokens
}

// Told tells whether the far end has closed, or the near peer was sent its last block.
func (c *Conversation[B]) Told() bool {
	told := c.state.Ending
	for _, b := range c.queue {
		told = told || b.Closes && b.sent > 0
	}
	return told
}

// Clear drops blocks that wait for the near peer and returns the tokens of the far blocks in order. Nothing is repeated.
func (c *Conversation[B]) Clear() []uint64 {
	tokens := c.drop(0)
	c.interrupted, c.octets, c.extra, c.hurry, c.wait, c.due = false, 0, 0, 0, FirstRepeat, time.Time{}
	return tokens
}

// Expect takes a new connection of the far end, whose blocks up to acked are done; nothing waits.
func (c *Conversation[B]) Expect(acked uint32) { c.acked, c.sent = acked, acked }
