package replica

import (
	"container/heap"
	"time"
)

// renewals are keys that wait for a time, each once.
type renewals struct {
	heap waits
	at   map[string]time.Time
}

type wait struct {
	at  time.Time
	key string
}

// add has next answer key at that time, or earlier if it waits already.
func (r *renewals) add(at time.Time, key string) {
	if old, waits := r.at[key]; waits && !at.Before(old) {
		return
	}
	r.at[key] = at
	heap.Push(&r.heap, wait{at, key})
}

// next takes out a key whose time has come; "" is none.
func (r *renewals) next(now time.Time) string {
	for len(r.heap) > 0 && !now.Before(r.heap[0].at) {
		w := heap.Pop(&r.heap).(wait)
		if at, waits := r.at[w.key]; waits && at.Equal(w.at) { // else it was to come earlier, and did
			delete(r.at, w.key)
			return w.key
		}
	}
	return ""
}

type waits []wait

func (w waits) Len() int           { return len(w) }
func (w waits) Less(i, j int) bool { return w[i].at.Before(w[j].at) }
func (w waits) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *waits) Push(x any)        { *w = append(*w, x.(wait)) }
func (w *waits) Pop() any {
	old := *w
	x := old[len(old)-1]
	old[len(old)-1] = wait{}
	*w = old[:len(old)-1]
	return x
}
