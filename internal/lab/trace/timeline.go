package trace

import (
	"aldis/internal/lab/linkemu"
	"cmp"
	"maps"
	"math"
	"slices"
)

const (
	maxSlots    = 240     // of a timeline; when it is longer, every two become one
	firstSlot   = 1 << 20 // ns, about a millisecond
	maxAccounts = 64      // names of a timeline
	maxSamples  = 1 << 14 // of a distribution; when there are more, every other one is left out
)

// The parts of a TCP packet that are no message.
const (
	spentHeaders = "TCP/IP headers"
	spentAgain   = "sent again"
	spentHTTP    = "HTTP"
	spentWelcome = "welcome lines"
	spentCoT     = "events of TAK"
	spentXMPP    = "XMPP"
	spentUnread  = "unread"
	spentCut     = "not captured"
)

// Series are the octets of one kind in every slot of a timeline.
type Series struct {
	Name   string  `json:"name"`
	Octets []int64 `json:"octets"`
}

// Timeline is the octets of a capture over time. Slots are equal and begin with the capture.
type Timeline struct {
	SlotS  float64  `json:"slot_s"`
	Series []Series `json:"series"` // largest first; the sums are those of the report
	// Waiting is the traffic sent and not acknowledged, the most in each slot: octets over all TCP connections, or messages under the
	// custody of gateways.
	Waiting []int64 `json:"waiting"`
}

// Distribution is figures of times, in seconds.
type Distribution struct {
	N       int64     `json:"n"`
	MedianS float64   `json:"median_s"`
	P95S    float64   `json:"p95_s"`
	MaxS    float64   `json:"max_s"`
	Sorted  []float64 `json:"-"` // all, or evenly thinned out
}

// timeline collects a Timeline. Its memory does not grow with the capture.
type timeline struct {
	width   int64 // of a slot, ns; 0: nothing yet
	used    int   // slots
	octets  map[string]*[maxSlots]int64
	waiting [maxSlots]int64 // most
	last    [maxSlots]int64 // at the slot's end
	told    [maxSlots]bool  // the slot has a value
}

// slot returns the slot of a time, ns from the beginning; an earlier time counts as the beginning.
func (t *timeline) slot(at int64) int {
	if t.width == 0 {
		t.width, t.octets = firstSlot, map[string]*[maxSlots]int64{}
	}
	at = max(at, 0)
	for at/t.width >= maxSlots {
		t.fold()
	}
	i := int(at / t.width)
	t.used = max(t.used, i+1)
	return i
}

// fold makes one slot of every two.
func (t *timeline) fold() {
	t.width *= 2
	for _, s := range t.octets {
		for i := range maxSlots / 2 {
			s[i] = s[2*i] + s[2*i+1]
		}
		clear(s[maxSlots/2:])
	}
	for i := range maxSlots / 2 {
		a, b := 2*i, 2*i+1
		t.waiting[i], t.told[i], t.last[i] = max(t.waiting[a], t.waiting[b]), t.told[a] || t.told[b], t.last[a]
		if t.told[b] {
			t.last[i] = t.last[b]
		}
	}
	clear(t.waiting[maxSlots/2:])
	clear(t.last[maxSlots/2:])
	clear(t.told[maxSlots/2:])
	t.used = (t.used + 1) / 2
}

// spend adds octets of a kind.
func (t *timeline) spend(at int64, kind string, octets int64) {
	if octets == 0 {
		return
	}
	i := t.slot(at)
	s := t.octets[kind]
	if s == nil {
		if len(t.octets) >= maxAccounts {
			kind = "(others)"
		}
		s = t.octets[kind]
		if s == nil {
			s = new([maxSlots]int64)
			t.octets[kind] = s
		}
	}
	s[i] += octets
}

// wait notes how much is waiting from now on.
func (t *timeline) wait(at, n int64) {
	i := t.slot(at)
	if !t.told[i] {
		for before := i - 1; before >= 0; before-- { // the value until now
			if t.told[before] {
				t.waiting[i] = t.last[before]
				break
			}
		}
	}
	t.waiting[i], t.last[i], t.told[i] = max(t.waiting[i], n), n, true
}

// result is nil when nothing was ever noted.
func (t *timeline) result() *Timeline {
	if t.width == 0 {
		return nil
	}
	r := &Timeline{SlotS: float64(t.width) / 1e9, Waiting: make([]int64, t.used), Series: []Series{}}
	sums := map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(t.octets)) {
		s := Series{name, slices.Clone(t.octets[name][:t.used])}
		for _, n := range s.Octets {
			sums[name] += n
		}
		r.Series = append(r.Series, s)
	}
	slices.SortStableFunc(r.Series, func(a, b Series) int { return cmp.Compare(sums[b.Name], sums[a.Name]) })
	var now int64
	for i := range r.Waiting {
		r.Waiting[i] = now
		if t.told[i] {
			r.Waiting[i], now = t.waiting[i], t.last[i]
		}
	}
	return r
}

// samples keeps times for a distribution, in seconds.
type samples struct {
	n, every int64
	max      float64
	kept     []float64
}

func (s *samples) add(v float64) {
	s.every = max(s.every, 1)
	s.max = math.Max(s.max, v)
	s.n++
	if (s.n-1)%s.every != 0 {
		return
	}
	if len(s.kept) >= maxSamples {
		for i := range maxSamples / 2 {
			s.kept[i] = s.kept[2*i]
		}
		s.kept, s.every = s.kept[:maxSamples/2], 2*s.every
		if (s.n-1)%s.every != 0 {
			return
		}
	}
	s.kept = append(s.kept, v)
}

// result is nil when there are none.
func (s *samples) result() *Distribution {
	if s.n == 0 {
		return nil
	}
	d := &Distribution{N: s.n, MaxS: s.max, Sorted: slices.Clone(s.kept)}
	slices.Sort(d.Sorted)
	d.MedianS, d.P95S = linkemu.Quantile(d.Sorted, 0.5), linkemu.Quantile(d.Sorted, 0.95)
	return d
}
