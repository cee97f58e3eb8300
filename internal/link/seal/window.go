package seal

import "math"

// windowLen is the number of counters, up to the highest, for which replays are recognised.
const windowLen = 1024

// window records which counters of one incarnation were received. The zero value has none.
type window struct {
	highest  uint32                 // 0: none
	received [windowLen / 64]uint64 // bit counter mod windowLen, for highest-windowLen < counter <= highest
}

// check tells whether counter is new.
func (w *window) check(counter uint32) error {
	switch {
	case counter > w.highest:
		return nil
	case w.highest-counter >= windowLen:
		return ErrTooOld
	case w.received[counter%windowLen/64]>>(counter%64)&1 == 1:
		return ErrReplay
	}
	return nil
}

// mark enters counter, which check has accepted.
func (w *window) mark(counter uint32) {
	if counter > w.highest {
		if counter-w.highest >= windowLen {
			w.received = [windowLen / 64]uint64{}
		} else {
			for c := w.highest + 1; c != counter; c++ {
				w.received[c%windowLen/64] &^= 1 << (c % 64)
			}
		}
		w.highest = counter
	}
	w.received[counter%windowLen/64] |= 1 << (counter % 64)
}

// expand finds the counter whose low 16 bits are low and that is nearest to the one after the highest (RFC 9000 A.3).
// It answers 0, which no datagram has, where there is none.
func (w *window) expand(low uint16) uint32 {
	const span, half = 1 << 16, 1 << 15
	expected := int64(w.highest) + 1
	c := expected&^(span-1) | int64(low)
	switch {
	case c <= expected-half && c < math.MaxUint32+1-span:
		c += span
	case c > expected+half && c >= span:
		c -= span
	}
	if c > math.MaxUint32 {
		return 0
	}
	return uint32(c)
}

// full is the window in which every counter up to highest was received.
func full(highest uint32) window {
	w := window{highest: highest}
	for i := range w.received {
		w.received[i] = math.MaxUint64
	}
	return w
}
