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
)

// Block is one block on its way to the near peer.
type Block struct {
	Token  uint64 // of the far message that it came in; 0: it was made here
	Data   []byte
	Closes bool // it is the sender's last
	Sent   int  // how often it was sent
}

// Down holds what goes to the near peer. New makes one.
type Down struct {
	Acked  uint32        // highest block that the near peer has acknowledged, all before it too
	Sent   uint32        // highest block that was sent, or at least Acked
	Octets int           // of the far blocks that wait
	Due    time.Time     // of the next repeat; zero: nothing is to be repeated
	Stuck  time.Time     // since when the near peer has acknowledged nothing that it was sent
	Wait   time.Duration // from one repeat to the next

	queue map[uint32]*Block // beyond Acked
	extra uint32            // blocks let through beyond the window after repeats without an answer
	lost  uint32            // highest block sent before the last repeat
}

// New expects the acknowledgement of block acked+1.
func New(acked uint32) Down {
	return Down{Acked: acked, Sent: acked, Wait: FirstRepeat, queue: map[uint32]*Block{}}
}

// Block is the block with this number; nil: it is not here.
func (d *Down) Block(n uint32) *Block { return d.queue[n] }

// Len is how many blocks wait or are not acknowledged.
func (d *Down) Len() int { return len(d.queue) }

// Put adds a block that has arrived, in whatever order.
func (d *Down) Put(n uint32, b *Block) {
	d.queue[n] = b
	if b.Token != 0 {
		d.Octets += len(b.Data)
	}
}

// All calls f with each block in order; f may not change the queue.
func (d *Down) All(f func(n uint32, b *Block)) {
	for _, n := range slices.Sorted(maps.Keys(d.queue)) {
		f(n, d.queue[n])
	}
}

// Cut drops the blocks behind the first gap and answers them, and the number of the last that is left. Octets still
// counts what was cut: nothing more comes.
func (d *Down) Cut() (last uint32, cut []*Block) {
	for last = d.Acked; d.queue[last+1] != nil; {
		last++
	}
	d.All(func(n uint32, b *Block) {
		if n > last {
			cut = append(cut, b)
			delete(d.queue, n)
		}
	})
	return last, cut
}

// Clear drops all blocks and answers them in order. Nothing is repeated any more.
func (d *Down) Clear() (all []*Block) {
	d.All(func(_ uint32, b *Block) { all = append(all, b) })
	clear(d.queue)
	d.Octets, d.extra, d.Wait, d.Due = 0, 0, FirstRepeat, time.Time{}
	return all
}

// Restart expects the acknowledgement of block acked+1; the queue is empty.
func (d *Down) Restart(acked uint32) { d.Acked, d.Sent = acked, acked }

// Send is how a block leaves for the near peer. A block with Sent above 1 is a repetition.
type Send func(n uint32, b *Block)

// Pump sends what the window allows. It stops at a block for which may answers false; nil allows all.
func (d *Down) Pump(now time.Time, window uint32, may func() bool, send Send) {
	if d.Sent == d.Acked {
		d.Wait, d.Stuck = FirstRepeat, now
	}
	d.advance(window, may, send)
	if d.Due.IsZero() && d.Sent > d.Acked {
		d.Due = now.Add(d.Wait)
	}
}

func (d *Down) advance(window uint32, may func() bool, send Send) {
	for d.Sent < d.Acked+window+d.extra && d.queue[d.Sent+1] != nil && (may == nil || may()) {
		d.Sent++
		d.send(d.Sent, send)
	}
}

func (d *Down) send(n uint32, send Send) {
	if b := d.queue[n]; b != nil {
		b.Sent++
		send(n, b)
	}
}

// Ack frees the blocks up to n, which the near peer has, and reports whether it can have them: after a restart it may
// have more than were sent as far as we know, but never more than there are.
func (d *Down) Ack(now time.Time, n uint32, free func(*Block)) bool {
	for m := d.Acked + 1; m <= n; m++ {
		if d.queue[m] == nil {
			return false
		}
	}
	for d.Acked < n {
		d.Acked++
		b := d.queue[d.Acked]
		delete(d.queue, d.Acked)
		if b.Token != 0 {
			d.Octets -= len(b.Data)
		}
		free(b)
	}
	d.Sent = max(d.Sent, d.Acked)
	d.extra, d.Wait, d.Stuck, d.Due = 0, FirstRepeat, now, time.Time{}
	return true
}

// Fill sends the first block again if it was sent before the last repeat: what followed a lost block is probably lost
// too.
func (d *Down) Fill(send Send) {
	if d.Acked < d.lost {
		d.send(d.Acked+1, send)
	}
}

// Repeat sends the first blocks again, at most most of them, and lets one new block go: JXSE 2.7 does not answer a
// repetition of what it has, only what is new.
func (d *Down) Repeat(now time.Time, window, most uint32, send Send) {
	d.extra++
	d.Wait = min(2*d.Wait, LastRepeat)
	d.Resend(now, window, most, send)
}

// Resend is Repeat without a longer wait and without a new block beyond the window.
func (d *Down) Resend(now time.Time, window, most uint32, send Send) {
	d.lost = d.Sent
	for n := d.Acked + 1; n <= d.lost && n-d.Acked <= most; n++ {
		d.send(n, send)
	}
	d.advance(window, nil, send)
	d.Due = now.Add(d.Wait)
}

// Absent moves the repeat on while the near peer has no connection: it cannot be stuck.
func (d *Down) Absent(now time.Time) { d.Stuck, d.Due = now, now.Add(d.Wait) }

// Return plans a repeat for a near peer that has dialled in again and may have lost what was sent. It reports whether
// anything was.
func (d *Down) Return(at time.Time) bool {
	if d.Sent == d.Acked {
		return false
	}
	d.lost, d.Due = d.Sent, at
	return true
}
