package gateway_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/air"
	"aldis/internal/site"
)

// TestFlow: how much a link carries when much is offered, as a share of its rate. Seed 1; 1 to 20 with the tag long.
func TestFlow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		link    string
		share   float64
		lasting time.Duration
		goodput float64 // at least
		over    float64 // the median, over the limit, at most; 0: not asked
	}{
		{"iridium-directip", 0.5, 3 * time.Minute, 0.3, 2},
		{"iridium-directip", 0.75, 3 * time.Minute, 0.5, 4},
		{"iridium-directip", 1, 3 * time.Minute, 0.75, 0},
		{"iridium-dialup", 1, 3 * time.Minute, 0.75, 0},
		{"iridium-certus-100", 1, time.Minute, 0.85, 0},
	} {
		var over, goodputs []float64
		for seed := uint64(1); seed <= uint64(seeds(20)); seed++ {
			got, err := air.Load(context.Background(), c.link, seed, c.share, c.lasting)
			if err != nil {
				t.Fatal(err)
			}
			over = append(over, got.Took[len(got.Took)/2].Seconds()/air.Limit(load(t, c.link), 200).Seconds())
			goodputs = append(goodputs, got.Goodput)
		}
		slices.Sort(over)
		slices.Sort(goodputs)
		mid, last := len(over)/2, len(over)-1
		t.Logf("%s, %.0f %% offered: goodput %.0f to %.0f %% of the rate, median %.1f times the limit", c.link, 100*c.share,
			100*goodputs[0], 100*goodputs[last], over[mid])
		if goodputs[mid] < c.goodput || c.over > 0 && over[mid] > c.over {
			t.Errorf("%s, %.0f %% offered: want a goodput of %.0f %%, a median of %.1f", c.link, 100*c.share, 100*c.goodput, c.over)
		}
	}
}

// TestBurstAtOnce: many messages at once, some of which need most of a datagram or two of them.
func TestBurstAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		link      string
		n, octets int
		down      bool
		over      float64
	}{
		{"iridium-directip", 128, 200, false, 1.5}, {"iridium-dialup", 128, 200, false, 1.3}, {"iridium-certus-100", 128, 200, false, 1.4},
		{"iridium-directip", 100, 400, false, 1.15}, {"iridium-directip", 100, 400, true, 1.16},
		{"iridium-directip", 100, 600, false, 1.3}, {"iridium-directip", 100, 600, true, 1.35},
		{"iridium-directip", 100, 1000, false, 1.25}, {"iridium-directip", 100, 2000, true, 1.25},
	} {
		var over []float64
		for seed := uint64(1); seed <= uint64(seeds(20)); seed++ {
			took, err := air.Burst(context.Background(), c.link, seed, c.n, c.octets, c.down)
			if err != nil {
				t.Fatal(err)
			}
			over = append(over, took)
		}
		slices.Sort(over)
		mid, last := len(over)/2, len(over)-1
		t.Logf("%s: the last of %d of %d octets at once after %.2f to %.2f times the limit; to the ship: %v", c.link, c.n, c.octets, over[0], over[last], c.down)
		if over[mid] > c.over {
			t.Errorf("%s, %d of %d octets, to the ship %v: %.2f, want %.2f", c.link, c.n, c.octets, c.down, over[mid], c.over)
		}
	}
}

// TestBurstTail: the link loses the last datagram of a burst, behind which nothing comes that would show it. The sender asks for its
// acknowledgement and repeats it when that is overdue, instead of waiting as long as an acknowledgement may.
func TestBurstTail(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		down bool
		over float64 // 1.54 and 1.38 without
	}{{6, true, 1.3}, {18, false, 1.25}} {
		took, err := air.Burst(context.Background(), "iridium-directip", c.seed, 100, 400, c.down)
		if err != nil {
			t.Fatal(err)
		}
		if took > c.over {
			t.Errorf("seed %d, to the ship %v: the last after %.2f times the limit, want %.2f", c.seed, c.down, took, c.over)
		}
	}
}

// TestBulk: long messages, alone at three rates of loss and beside short ones, meet the bounds of `gateway air --only bulk`.
// Seeds 1 to 5 up to 100 kB; with the tag long 1 to 20, and 1 MB.
func TestBulk(t *testing.T) {
	t.Parallel()
	scenarios, err := air.Scenarios("bulk")
	if err != nil {
		t.Fatal(err)
	}
	last := max(5, seeds(20))
	for _, s := range scenarios {
		if last < 20 && strings.HasPrefix(s.Rows[0].What, "1000 kB") {
			continue
		}
		var all []air.Samples
		for seed := uint64(1); seed <= last; seed++ {
			got, err := s.Play(context.Background(), seed)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, got)
		}
		for _, r := range s.Judge(all) {
			t.Logf("%s, %s: %.3f, %.3f to %.3f, bound %.3f", s.Link, r.What, r.Value, r.Least, r.Most, r.Bound)
			if r.Asked && r.Value > r.Must {
				t.Errorf("%s, %s: %.3f times the limit, want %.2f", s.Link, r.What, r.Value, r.Must)
			}
		}
	}
}

// TestQuietBesideLoud: neither another local peer nor another pipe of the same peer that sends three times what the link carries
// holds up a source that says little.
func TestQuietBesideLoud(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{false, true} {
		over, err := air.Quiet(context.Background(), "iridium-directip", 1, 4*time.Minute, same)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("median %.2f times the limit; pipes of one peer: %v", over, same)
		if over > 2 {
			t.Errorf("median %.2f times the limit, want at most 2; pipes of one peer: %v", over, same)
		}
	}
}

// TestOverload: at three times what the link carries flash messages arrive as if nothing else were there, routine ones of several
// peers alike, the queue stays within its bound, and each message is delivered or counted as given up.
func TestOverload(t *testing.T) {
	for seed := uint64(1); seed <= uint64(seeds(20)); seed++ {
		var heap []uint64
		o, err := air.Overloaded(context.Background(), "iridium-directip", seed, 5*time.Minute, func() {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heap = append(heap, m.HeapAlloc)
		})
		if err != nil {
			t.Fatal(err)
		}
		limit := air.Limit(load(t, "iridium-directip"), 200)
		slowest := o.Flash[len(o.Flash)-1].Seconds() / limit.Seconds()
		t.Logf("seed %d: flash at most %.2f times the limit; routine %.2f; goodput %.0f %%; %d given up or refused, %d lines; %.1f MB more", seed, slowest, o.Evenly,
			100*o.Goodput, o.Dropped, o.Told, float64(int64(heap[1]-heap[0]))/1e6)
		if slowest > 2.6 || o.Flash[len(o.Flash)*95/100].Seconds() > 2*limit.Seconds() || o.Never > 0 {
			t.Errorf("seed %d: flash messages take up to %.2f times the limit, 95 of 100 %v; %d never came", seed, slowest, o.Flash[len(o.Flash)*95/100], o.Never)
		}
		// Both gateways with their journals, 1.2 MB of offered messages, which are kept until the end, and 60 to 200 kB that may wait.
		if heap[1] > heap[0]+32<<20 {
			t.Errorf("seed %d: %d octets of heap before, %d while the queue is full", seed, heap[0], heap[1])
		}
		if o.Evenly < 0.9 || o.Goodput < 0.7 {
			t.Errorf("seed %d: shares %.2f, goodput %.2f", seed, o.Evenly, o.Goodput)
		}
		if o.Missing != 0 || o.Waiting > 1 || o.Dropped == 0 || o.Told == 0 {
			t.Errorf("seed %d: %d messages neither delivered nor counted, %.2f of what may wait waited, %d dropped, %d lines", seed, o.Missing, o.Waiting, o.Dropped, o.Told)
		}
	}
}

// TestLastAfterOutage: a sender that keeps talking into a dead link is heard soon after the link is back.
func TestLastAfterOutage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		link    string
		lasting time.Duration
		most    time.Duration
	}{
		{"iridium-directip", time.Minute, 12 * time.Second}, {"iridium-directip", 5 * time.Minute, 15 * time.Second},
		{"iridium-dialup", time.Minute, 14 * time.Second}, {"iridium-certus-100", 5 * time.Minute, 12 * time.Second},
	} {
		var last []time.Duration
		for seed := range uint64(max(3, seeds(20))) {
			took, err := air.Outage(context.Background(), c.link, seed+1, c.lasting, func(from uint16, i int) site.Message { return air.Line(from, air.Pipe, i) })
			if err != nil {
				t.Fatal(err)
			}
			last = append(last, took)
		}
		slices.Sort(last)
		t.Logf("%s, %v: the last after %v", c.link, c.lasting, last)
		if mid := last[len(last)/2]; mid > c.most {
			t.Errorf("%s, %v: the last after %v, want %v", c.link, c.lasting, mid, c.most)
		}
	}
}
