package due_test

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aldis/internal/ground/due"
)

var never, noon, later = time.Time{}, time.Unix(43200, 0), time.Unix(43201, 0)

func TestNeverIsNoTime(t *testing.T) {
	for _, c := range []struct{ a, b, first, last time.Time }{
		{never, never, never, never},
		{noon, never, noon, noon},
		{never, noon, noon, noon},
		{noon, later, noon, later},
		{later, noon, noon, later},
		{noon, noon, noon, noon},
	} {
		if got := due.Earliest(c.a, c.b); got != c.first {
			t.Errorf("Earliest(%v, %v) = %v, want %v", c.a, c.b, got, c.first)
		}
		if got := due.Latest(c.a, c.b); got != c.last {
			t.Errorf("Latest(%v, %v) = %v, want %v", c.a, c.b, got, c.last)
		}
	}
}

func TestReached(t *testing.T) {
	if due.Reached(noon, never) {
		t.Error("never is reached")
	}
	if due.Reached(noon, later) {
		t.Error("a later time is reached")
	}
	if !due.Reached(noon, noon) || !due.Reached(later, noon) {
		t.Error("a time that has come is not reached")
	}
}

// timer has a serial to distinguish timers of the same time.
type timer struct{ at, serial, place int }

func (t *timer) Before(o *timer) bool { return t.at < o.at }
func (t *timer) Placed(n int)         { t.place = n }

// model is the same heap on container/heap.
type model []*timer

func (m model) Len() int           { return len(m) }
func (m model) Less(i, j int) bool { return m[i].at < m[j].at }
func (m model) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *model) Push(x any)        { *m = append(*m, x.(*timer)) }
func (m *model) Pop() any {
	x := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return x
}

// Items with the same time come out in the order of container/heap: recorded runs depend on it.
func TestHeapIsThatOfTheLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h due.Heap[*timer]
	var m model
	for serial := range 20000 {
		switch n := rng.IntN(10); {
		case len(h) == 0 || n < 4:
			x := &timer{at: rng.IntN(50), serial: serial}
			h.Set(x, x.place)
			heap.Push(&m, x)
		case n < 6:
			i := rng.IntN(len(h))
			x := h[i]
			x.at = rng.IntN(50)
			h.Set(x, x.place)
			heap.Fix(&m, i)
		case n < 8:
			x := h[rng.IntN(len(h))]
			heap.Remove(&m, x.place-1)
			h.Remove(x.place)
			if x.place != 0 {
				t.Fatalf("step %d: an item that was removed stands at %d", serial, x.place)
			}
			h.Remove(x.place)
		default:
			if got, want := h.Pop(), heap.Pop(&m); got != want {
				t.Fatalf("step %d: Pop = %v, want %v", serial, got, want)
			}
		}
		if !slices.Equal(h, due.Heap[*timer](m)) {
			t.Fatalf("step %d: the heaps differ", serial)
		}
		for i, x := range h {
			if x.place != i+1 {
				t.Fatalf("step %d: element %d is told that it stands at %d", serial, i, x.place)
			}
		}
	}
}
