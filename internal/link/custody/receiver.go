package custody

import (
	"time"

	"aldis/internal/link/frame"
)

// Fresh is the result of Accept.
type Fresh uint8

const (
	New       Fresh = iota // keep it, then Advance
	Duplicate              // known; its acknowledgement is owed again
	Beyond                 // further ahead than a sender may go: drop it
)

// Receiver is the receiving half of one peer.
type Receiver struct {
	ackDelay time.Duration
	cum      [frame.Queues]uint64
	held     [frame.Queues]map[uint64]bool // above cum
	far      bool                          // the sender has gone beyond ByteAhead: it takes long acknowledgements
	wide     bool                          // the latest number came in 16 bits, or none has come in this start
	behind   [frame.Queues]bool            // the last acknowledgement named the next message, which was here but not read
	told     [frame.Queues]uint64          // the cumulative number of that acknowledgement
	marked   [frame.Queues]bool            // the latest number was counted by a mark: Mark
	before   [frame.Queues]uint64          // the highest number before the first mark
	owed     [frame.Queues]bool
	due      time.Time // when the acknowledgements owed go alone; zero: none is owed
}

// NewReceiver takes all numbers up to cum of each queue as received.
func NewReceiver(cfg Config, cum [frame.Queues]uint64) *Receiver {
	r := &Receiver{ackDelay: cfg.AckDelay, cum: cum, wide: true}
	for l := range r.held {
		r.held[l] = map[uint64]bool{}
	}
	return r
}

// Restore adds a message that had arrived before its turn when the gateway stopped. false: no message can arrive so far
// before its turn, and Restore adds nothing.
func (r *Receiver) Restore(id ID) bool {
	if id.Number > r.cum[id.Queue] {
		if id.Number-r.cum[id.Queue] > furthest(id.Queue) {
			return false
		}
		r.held[id.Queue][id.Number] = true
		r.noteFar(id)
	}
	return true
}

// Mark adds a number that a message on another bearer names. The sender has begun to use the number here, perhaps in a
// start of which nothing else was heard here. false: as in Restore.
func (r *Receiver) Mark(id ID) bool {
	if l := id.Queue; !r.marked[l] {
		r.marked[l], r.before[l] = true, r.Highest(l)
	}
	return r.Restore(id)
}

// Cumulative is the number up to which all messages of the queue were read. It alone is acknowledged for good. Messages
// that are here but not read are named singly: until they are read, the sender may have to send them again in another
// coding.
func (r *Receiver) Cumulative(l frame.Queue) uint64 { return r.cum[l] }

// Widen finds the number whose low 8 bits came in a datagram newer than all others.
func (r *Receiver) Widen(l frame.Queue, low uint8) uint16 { return Near(r.cum[l], low) }

// Near finds the number with these low 8 bits that is less than ShortAhead+1 away from another.
func Near(other uint64, low uint8) uint16 {
	return uint16(other) + uint16(int16(int8(low-uint8(other))))
}

// Accept takes the low 16 bits of a number. After New the caller keeps the message and calls Advance. prompt: the sender
// wants the acknowledgement at once.
func (r *Receiver) Accept(now time.Time, l frame.Queue, low uint16, prompt bool) (ID, Fresh) {
	return r.accept(now, l, low, prompt, l == frame.Bulk) // an acknowledgement of a long message is worth a datagram
}

// AcceptRiding is Accept for a message whose acknowledgement goes with that of the direct queue.
func (r *Receiver) AcceptRiding(now time.Time, l frame.Queue, low uint16) (ID, Fresh) {
	return r.accept(now, l, low, false, false)
}

func (r *Receiver) accept(now time.Time, l frame.Queue, low uint16, prompt, hurry bool) (ID, Fresh) {
	ahead := int16(low - uint16(r.cum[l]))
	id := ID{l, r.cum[l] + uint64(int64(ahead))}
	switch {
	case ahead <= 0 || r.held[l][id.Number]:
		if prompt {
			r.owe(now, l, 0)
		} else {
			r.owe(now, l, r.ackDelay)
		}
		return id, Duplicate
	case int(ahead) > int(furthest(l)):
		return id, Beyond
	}
	r.held[l][id.Number], r.marked[l] = true, false
	r.noteFar(id)
	delay := r.ackDelay
	if hurry || ahead > 1 || prompt {
		delay = 0 // a message before it is missing: the sender should know at once
	}
	r.owe(now, l, delay)
	return id, New
}

// furthest is how far a number may be ahead of the cumulative number.
func furthest(l frame.Queue) uint64 {
	if l == frame.Direct {
		return MaxAhead
	}
	return ByteAhead
}

func (r *Receiver) noteFar(id ID) {
	r.far = r.far || id.Queue == frame.Direct && id.Number-r.cum[id.Queue] > ByteAhead
}

// Newest notes whether the latest number of the direct queue came in 8 bits.
func (r *Receiver) Newest(short bool) { r.wide = !short }

// Byte says whether 8 bits of the cumulative number of the direct queue are enough for a sender that may go up to MaxAhead
// ahead. They are if the sender's latest number came in 8 bits: then the oldest number under way was near, and the
// cumulative number is between the two.
func (r *Receiver) Byte() bool { return !r.wide }

// Known says whether the message whose number has these low 16 bits has arrived.
func (r *Receiver) Known(l frame.Queue, low uint16) bool {
	ahead := int16(low - uint16(r.cum[l]))
	return ahead <= 0 || r.held[l][r.cum[l]+uint64(ahead)]
}

// Advance moves past the next message in order if it is there, and returns it.
func (r *Receiver) Advance(l frame.Queue) (ID, bool) {
	n := r.cum[l] + 1
	if !r.held[l][n] {
		return ID{}, false
	}
	delete(r.held[l], n)
	r.cum[l] = n
	return ID{l, n}, true
}

// Read is called when messages have been read that the last acknowledgement named as not read yet: another acknowledgement is owed.
func (r *Receiver) Read(now time.Time, l frame.Queue) {
	if r.behind[l] && r.cum[l] > r.told[l] {
		r.behind[l] = false
		r.owe(now, l, r.ackDelay)
	}
}

// Next returns the message that Advance would move past.
func (r *Receiver) Next(l frame.Queue) (ID, bool) {
	n := r.cum[l] + 1
	return ID{l, n}, r.held[l][n]
}

// Reject marks a received message as missing again, so that the sender retransmits it.
func (r *Receiver) Reject(now time.Time, id ID) {
	delete(r.held[id.Queue], id.Number)
	r.owe(now, id.Queue, 0)
}

func (r *Receiver) owe(now time.Time, l frame.Queue, delay time.Duration) {
	r.owed[l] = true
	if due := now.Add(delay); r.due.IsZero() || due.Before(r.due) {
		r.due = due
	}
}

// Probed notes that the peer asks: acknowledgements of both queues are owed at once.
func (r *Receiver) Probed(now time.Time) {
	r.owe(now, frame.Direct, 0)
	r.owed[frame.Bulk] = r.owed[frame.Bulk] || r.cum[frame.Bulk] > 0 || len(r.held[frame.Bulk]) > 0
}

// Due is when the acknowledgements owed should go alone; zero: none is owed.
func (r *Receiver) Due() time.Time { return r.due }

// Acks returns the acknowledgements that are owed; Settle says that they went out.
func (r *Receiver) Acks() (acks []frame.Ack) {
	for l, owed := range r.owed {
		if owed {
			acks = append(acks, r.Ack(frame.Queue(l)))
		}
	}
	return acks
}

// Settle notes that everything owed went out.
func (r *Receiver) Settle() {
	for l, owed := range r.owed {
		if owed {
			r.told[l], r.behind[l] = r.cum[l], r.held[l][r.cum[l]+1]
		}
	}
	r.owed = [frame.Queues]bool{}
	r.due = time.Time{}
}

// Ack is the acknowledgement of a queue.
func (r *Receiver) Ack(l frame.Queue) frame.Ack {
	out, most := frame.Ack{Queue: l, Cumulative: uint16(r.cum[l])}, frame.MaxBitmap
	if r.far && l == frame.Direct {
		most = frame.MaxRuns
	}
	for n := range r.held[l] {
		bit := int(n - r.cum[l] - 1)
		if bit/8 >= most {
			continue // it is named once the messages before it have been read
		}
		for len(out.Bitmap) <= bit/8 {
			out.Bitmap = append(out.Bitmap, 0)
		}
		out.Bitmap[bit/8] |= 1 << (bit % 8)
	}
	return out
}
