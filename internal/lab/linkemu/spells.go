package linkemu

import (
	"math"
	"math/rand/v2"
	"time"

	"aldis/internal/link/profile"
)

// spells are random times of trouble: fades, or dropped calls. The times between them are exponential; their lengths are exponential or
// fixed. The first begins after a good time that starts with the first call of during.
type spells struct {
	rng          *rand.Rand
	every, lasts time.Duration // means
	fixed        bool          // all last equally long
	list         []interval    // the latest spells, the newest last
	next         time.Time     // when the next begins; zero: during was not called yet
}

type interval struct{ from, until time.Time }

// maxSpells is how many spells are remembered: as far back as a frame's airtime reaches.
const maxSpells = 64

func newSpells(rng *rand.Rand, every, lasts time.Duration, fixed bool) *spells {
	if every <= 0 {
		return nil
	}
	return &spells{rng: rng, every: every, lasts: lasts, fixed: fixed}
}

// during says whether a spell lies between two times. From call to call the times may go back by no more than maxSpells spells.
func (s *spells) during(from, until time.Time) bool {
	if s == nil {
		return false
	}
	if s.next.IsZero() {
		s.next = from.Add(s.draw(s.every))
	}
	for !s.next.After(until) {
		one := interval{s.next, s.next.Add(s.length())}
		s.list = append(s.list, one)
		s.next = one.until.Add(s.draw(s.every))
		if len(s.list) > maxSpells {
			s.list = s.list[1:]
		}
	}
	for i := len(s.list) - 1; i >= 0; i-- {
		if o := s.list[i]; !o.from.After(until) && o.until.After(from) {
			return true
		}
	}
	return false
}

func (s *spells) length() time.Duration {
	if s.fixed {
		return s.lasts
	}
	return s.draw(s.lasts)
}

// draw is an exponential time with this mean.
func (s *spells) draw(mean time.Duration) time.Duration {
	return time.Duration(-math.Log(1-s.rng.Float64()) * float64(mean))
}

// handovers are pauses of a terminal's leg at regular times: nothing is sent, and nothing is lost.
type handovers struct {
	every, pause time.Duration
	phase        time.Duration // by the seed
	begin        time.Time     // of the first call
}

func newHandovers(rng *rand.Rand, c profile.Calls) *handovers {
	if c.HandoverEvery <= 0 {
		return nil
	}
	return &handovers{every: c.HandoverEvery, pause: c.Handover, phase: time.Duration(rng.Int64N(int64(c.HandoverEvery)))}
}

// end is when a frame has been sent that begins at start and needs so much airtime.
func (h *handovers) end(start time.Time, air time.Duration) time.Time {
	if h == nil {
		return start.Add(air)
	}
	if h.begin.IsZero() {
		h.begin = start.Add(h.phase - h.every)
	}
	for at := start; ; {
		into := at.Sub(h.begin) % h.every // the time since the last pause began
		if into < h.pause {
			at, into = at.Add(h.pause-into), h.pause
		}
		if left := h.every - into; air > left {
			at, air = at.Add(left), air-left
			continue
		}
		return at.Add(air)
	}
}
