package linkemu

import (
	"math"
	"math/rand/v2"
	"time"

	"aldis/internal/link/profile"
)

// spells are times that come and go by chance: fades, or calls that have dropped. Between them, and as their lengths, lie
// exponential times, or lengths that are always the same. The first begins after a good time that begins with the first
// question.
type spells struct {
	rng          *rand.Rand
	every, lasts time.Duration // means
	fixed        bool          // lasts is no mean
	list         []interval    // the last of them, the newest last
	next         time.Time     // when the next begins; zero: nobody has asked yet
}

type interval struct{ from, until time.Time }

// maxSpells is how many are remembered: as far back as a frame's airtime reaches.
const maxSpells = 64

func newSpells(rng *rand.Rand, every, lasts time.Duration, fixed bool) *spells {
	if every <= 0 {
		return nil
	}
	return &spells{rng: rng, every: every, lasts: lasts, fixed: fixed}
}

// during says whether one of them lies between two times. The later times of the questions do not go back by more than
// maxSpells of them.
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

// draw is an exponential time of this mean.
func (s *spells) draw(mean time.Duration) time.Duration {
	return time.Duration(-math.Log(1-s.rng.Float64()) * float64(mean))
}

// handovers are pauses of a terminal's leg that come like clockwork: nothing is sent, and nothing is lost.
type handovers struct {
	every, pause time.Duration
	phase        time.Duration // by the seed
	begin        time.Time     // of the first question
}

func newHandovers(rng *rand.Rand, c profile.Calls) *handovers {
	if c.HandoverEvery <= 0 {
		return nil
	}
	return &handovers{every: c.HandoverEvery, pause: c.Handover, phase: time.Duration(rng.Int64N(int64(c.HandoverEvery)))}
}

// end is when a frame is through that begins at start and needs so much air.
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
