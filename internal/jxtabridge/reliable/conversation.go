package reliable

import (
	"time"

	"aldis/internal/ground/due"
)

// Room is an amount of octets and blocks.
type Room struct{ Octets, Blocks int }

// full tells whether limit is reached; a limit of 0 blocks never is.
func (r Room) full(limit Room) bool {
	return limit.Blocks > 0 && (r.Octets >= limit.Octets || r.Blocks >= limit.Blocks)
}

// Terms are the properties of a kind of connections.
type Terms struct {
	Window  uint32                          // blocks that the near peer may have without an acknowledgement
	Repeats uint32                          // how many blocks a repeat sends at most; 0: all that were sent
	Last    []byte                          // block after the far end's last one; nil: the format closes in another way
	Pace    func(waiting int) time.Duration // from an acknowledgement to the next new block; nil: at once
	Near    Room                            // for blocks that wait for the near peer
	Soft    Room                            // for blocks that wait for the link: the window closes; zero: the format cannot close it
	Hard    Room                            // for blocks that wait for the link: further blocks of the near peer are refused
	Reorder int                             // blocks of the near peer beyond a gap that are kept
	AckKept bool                            // if such a block comes again, the last acknowledgement is repeated
	GiveUp  time.Duration                   // a near peer that is there and acknowledges nothing for that time is given up
	Closing time.Duration                   // the same after the far end's last block
	Patient bool                            // it is not given up if no further block waits: perhaps only the acknowledgement was lost
}

// State is the state for a restart, without the position.
type State struct {
	Held    bool   `json:"held,omitempty"`    // the far gateway has enough
	Holding bool   `json:"holding,omitempty"` // the far gateway was told to pause
	Ending  bool   `json:"ending,omitempty"`  // Final is the far end's last block; after it the near peer is closed
	Final   uint32 `json:"final,omitempty"`
}

// Send is a block for the near peer, or with number 0 the data of an acknowledgement.
type Send struct {
	Number uint32
	Data   []byte
	Again  bool // the block was sent before
}

// Output is what the caller has to do, in this order.
type Output struct {
	Freed       []*Block // far blocks that the near peer now has
	Closed      bool     // it also has the far end's last block
	Send        []Send
	Hold, Go    bool // tell the far gateway to pause; to go on
	GaveUp      bool // the near peer is there and takes nothing
	Interrupted bool // the near peer does not know yet that its connection was interrupted
}

// Conversation is the gateway's end of one connection. It shares no memory with others. New makes one.
type Conversation[B any] struct {
	terms *Terms
	state State
	open  bool // blocks can be sent to the near peer
	ended bool // it only answers late blocks

	// From the near peer to the link.
	taken      uint32        // highest block that was taken, with all before it
	early      map[uint32]B  // blocks beyond a gap
	toLink     Room          // blocks that the far site does not have yet
	shut       bool          // the near peer was told that the window is closed
	reopen     time.Time     // when it is told again that the window is open
	reopenWait time.Duration // the wait before it is told once more

	// From the link to the near peer.
	acked       uint32            // highest block that the near peer has acknowledged, with all before it
	sent        uint32            // highest block that was sent, or at least acked
	queue       map[uint32]*Block // beyond acked
	octets      int               // of the far blocks in it
	due         time.Time         // of the next repeat; zero: there is nothing to repeat
	wait        time.Duration     // from one repeat to the next
	hurry       int               // how many repeats are left at hurryEvery
	stuck       time.Time         // since when the near peer has acknowledged none of the blocks sent to it
	extra       uint32            // blocks sent beyond the window after repeats without an answer
	lost        uint32            // highest block sent before the last repeat
	next        time.Time         // earliest time of the next new block; see Terms.Pace
	paced       time.Time         // when a block that waits for next is sent; zero: none waits
	interrupted bool              // nothing is sent until the near peer has acknowledged the interruption
}

// New makes a conversation at its beginning. Until it is open, nothing is sent to the near peer.
func New[B any](terms *Terms, state State, open bool) Conversation[B] {
	return Conversation[B]{terms: terms, state: state, open: open, early: map[uint32]B{}, queue: map[uint32]*Block{}, wait: FirstRepeat}
}

// Open makes it possible to send to the near peer.
func (c *Conversation[B]) Open() { c.open = true }

// Start starts the clocks of a conversation from before a restart. The near peer may wait for a window that was closed
// then.
func (c *Conversation[B]) Start(now time.Time) {
	c.stuck, c.shut = now, c.state.Held
	if !c.shut {
		c.reopenWait, c.reopen = firstReopen, now.Add(firstReopen)
	}
}

// State is the state that has to be saved whenever it changes.
func (c *Conversation[B]) State() State { return c.state }

// Position is the highest block that was taken from the near peer, and the highest block that it has acknowledged.
func (c *Conversation[B]) Position() (taken, acked uint32) { return c.taken, c.acked }

// Waiting is how many octets wait for the link and for the near peer, and whether the window is closed.
func (c *Conversation[B]) Waiting() (link, near int, shut bool) {
	return c.toLink.Octets, c.octets, c.shut
}

// Idle tells whether nothing waits for the near peer.
func (c *Conversation[B]) Idle() bool { return len(c.queue) == 0 }

// Ended tells whether End was called.
func (c *Conversation[B]) Ended() bool { return c.ended }

// Finished tells whether the near peer has all blocks of a far end that has closed.
func (c *Conversation[B]) Finished() bool {
	return c.state.Ending && c.acked >= c.state.Final && c.open && !c.ended
}

// Deadline is when Tick is due; zero: never.
func (c *Conversation[B]) Deadline() time.Time {
	return due.Earliest(due.Earliest(c.paced, c.reopen), c.due)
}

// Tick does what is due; here says whether the near peer has a connection.
func (c *Conversation[B]) Tick(now time.Time, here bool) (out Output) {
	if due.Reached(now, c.paced) {
		c.paced = time.Time{}
		c.pump(now, &out)
	}
	if due.Reached(now, c.reopen) {
		c.tellAgain(now, here, &out)
	}
	if due.Reached(now, c.due) {
		c.repeat(now, here, &out)
	}
	return out
}

// Back says that the near peer has dialled in again: it is sent the blocks that it may have lost.
func (c *Conversation[B]) Back(now time.Time) {
	if c.ended {
		return
	}
	soon := now.Add(returnAfter)
	if c.sent != c.acked {
		c.lost, c.due = c.sent, soon
	}
	if !c.reopen.IsZero() {
		c.reopen = soon
	}
}

// End drops blocks that wait for the near peer and returns the tokens of the far blocks in order. After that only late blocks are
// answered.
func (c *Conversation[B]) End() []uint64 {
	clear(c.early)
	c.ended, c.paced, c.reopen = true, time.Time{}, time.Time{}
	return c.Clear()
}
