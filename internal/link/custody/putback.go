package custody

import "aldis/internal/link/frame"

// A node that is put back to an older copy of its data counts from there: as a sender it gives numbers again, and as a
// receiver it lacks messages that it has acknowledged. Here each end detects this of the other, from the low 16 bits of
// numbers (docs/decisions/put-back.md). It cannot see a step back by about a multiple of 65,536, as far as messages are
// under way.

// behind is how far the number with these low bits is behind number n; negative: it is ahead.
func behind(low uint16, n uint64) int { return int(int16(uint16(n) - low)) }

// First is the first number of a queue that this start has given or will give.
func (s *Sender) First(l frame.Queue) uint64 { return s.first[l] }

// Settled is the number up to which everything of the queue is acknowledged.
func (s *Sender) Settled(l frame.Queue) uint64 { return s.base(l) - 1 }

// Earlier is Ack for a peer that has not heard of this start: the acknowledgement can only mean numbers below below, of
// earlier starts.
func (s *Sender) Earlier(r frame.Ack, below [frame.Queues]uint64) (acked, held []ID) {
	l := r.Queue
	if int(l) >= frame.Queues {
		return nil, nil
	}
	for n, end := s.base(l), s.end(l, below[l]); n < end; n++ {
		switch {
		case s.flight[l][n] == nil && !s.held[l][n] || !names(r, n):
		case behind(r.Cumulative, n) <= 0:
			s.settle(l, n)
			acked = append(acked, ID{l, n})
		case !s.held[l][n]:
			s.settle(l, n)
			s.held[l][n] = true
			held = append(held, ID{l, n})
		}
	}
	return acked, held
}

// Last is Ack for a peer that takes nothing more of this stream and has read all that it can. Each number below below that
// the acknowledgement names has arrived, even where the peer's cumulative number is behind because it lacks messages that
// it has acknowledged.
func (s *Sender) Last(r frame.Ack, below [frame.Queues]uint64) (acked []ID) {
	l := r.Queue
	if int(l) >= frame.Queues {
		return nil
	}
	for n, end := s.base(l), s.end(l, min(below[l], s.next[l])); n < end; n++ {
		if (s.flight[l][n] != nil || s.held[l][n]) && names(r, n) {
			s.settle(l, n)
			acked = append(acked, ID{l, n})
		}
	}
	return acked
}

// end is the first number after those that may be under way: below, or MaxAhead from the oldest. If a record of the journal
// has a number far beyond that, nothing counts up to it.
func (s *Sender) end(l frame.Queue, below uint64) uint64 { return min(below, s.base(l)+MaxAhead) }

// settle takes a message off those under way and held.
func (s *Sender) settle(l frame.Queue, n uint64) {
	s.land(l, n)
	delete(s.held[l], n)
}

// names says whether an acknowledgement confirms a number.
func names(r frame.Ack, n uint64) bool {
	after := behind(r.Cumulative, n)
	if after <= 0 { // the cumulative number includes it
		return true
	}
	i := (after - 1) / 8
	return i < len(r.Bitmap) && r.Bitmap[i]>>((after-1)%8)&1 != 0
}

// Lacks says whether an acknowledgement of the peer's newest datagram lacks messages that an earlier one has acknowledged.
// lost is how many, at least.
func (s *Sender) Lacks(r frame.Ack) (lost int) {
	l := r.Queue
	if int(l) >= frame.Queues {
		return 0
	}
	base, end, reach := s.base(l), s.end(l, s.next[l]), r.Reach()
	lost = behind(r.Cumulative, base-1)
	if lost < 0 {
		lost = 0
	}
	for n := base; n < end; n++ {
		if s.flight[l][n] == nil && !s.held[l][n] && behind(r.Cumulative, n) <= reach && !names(r, n) {
			lost++
		}
	}
	return lost
}

// Highest is the highest number of a queue that was received.
func (r *Receiver) Highest(l frame.Queue) uint64 {
	highest := r.cum[l]
	for n := range r.held[l] {
		highest = max(highest, n)
	}
	return highest
}

// Reused says whether the sender, whose present start begins with the number of these low bits, will give numbers again
// that were already received. n is how many; 0: unknown. takes is what the sender says of itself: Sender.Ahead.
func (r *Receiver) Reused(l frame.Queue, first uint16, takes bool) (n int, reused bool) {
	highest := r.Highest(l)
	if r.marked[l] { // later numbers may all be of the sender's present start
		highest = r.before[l]
	}
	n = behind(first, highest+1)
	if n > 0 {
		return n, true
	}
	most := ByteAhead
	if takes || r.far {
		most = MaxAhead
	}
	return 0, behind(first, r.cum[l]+1) < -most
}
