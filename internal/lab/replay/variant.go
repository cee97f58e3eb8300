package replay

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Limits of a variant's shifts.
const (
	maxPhase  = 15 * time.Second // all sends of a side move together by up to so much, either way
	maxJitter = 3 * time.Second  // and each message by up to so much in addition
)

// Variant is a trace whose peers send at somewhat other times: variant 0 is the trace itself. Only sends after the last open are moved,
// so that each message keeps its listeners; each peer's messages keep their order.
func Variant(s *Script, n Number, seed uint64) *Script {
	if n == 0 {
		return s
	}
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	out := *s
	out.Actions, out.Messages = slices.Clone(s.Actions), slices.Clone(s.Messages)
	var open time.Duration
	for _, a := range out.Actions {
		if a.Do != Send {
			open = max(open, a.At)
		}
	}
	var phase [2]time.Duration
	for i := range phase {
		phase[i] = time.Duration(random.Int64N(int64(2*maxPhase))) - maxPhase
	}
	last := map[int]time.Duration{} // of a peer's messages
	for i := range out.Actions {
		a := &out.Actions[i]
		if a.Do != Send || a.At <= open {
			continue
		}
		side := 0
		if out.Peers[a.Peer].Edge {
			side = 1
		}
		t := a.At + phase[side] + time.Duration(random.Int64N(int64(2*maxJitter))) - maxJitter
		t = max(min(max(t, open+time.Millisecond), out.Duration), last[a.Peer])
		last[a.Peer], a.At = t, t
		out.Messages[a.Message].At = t
	}
	slices.SortStableFunc(out.Actions, func(a, b Action) int { return cmp.Compare(a.At, b.At) })
	return &out
}

// FiguresOf are the figures of a play for a search.
func FiguresOf(res *Result) Figures {
	f := Figures{Octets: res.LinkBytes.Up + res.LinkBytes.Down, Expected: res.Messages.Expected, Delivered: res.Messages.Delivered,
		Wrong: res.Messages.Duplicates + res.Messages.Corrupted}

	for _, s := range res.Samples {
		if v, ok := s.Latency(); ok {
			f.Times = append(f.Times, v)
		}
	}
	slices.Sort(f.Times)
	return f
}

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// tail is the mean of the slowest twentieth, of at least one.
func tail(sorted []float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return mean(sorted[len(sorted)-max(1, len(sorted)/20):])
}
