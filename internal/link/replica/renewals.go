package replica

import (
	"time"

	"aldis/internal/ground/due"
)

// renewals are keys that wait for a time, each once.
type renewals struct {
	queue due.Heap[renewal]
	at    map[string]time.Time // the one of a key that counts
}

type renewal struct {
	at  time.Time
	key string
}

func (r renewal) Before(o renewal) bool { return r.at.Before(o.at) }
func (r renewal) Placed(int)            {}

// add has next answer key at that time, or earlier if it waits already.
func (r *renewals) add(at time.Time, key string) {
	if old, waits := r.at[key]; waits && !at.Before(old) {
		return
	}
	r.at[key] = at
	r.queue.Push(renewal{at, key})
}

// next takes out a key whose time has come; "" is none.
func (r *renewals) next(now time.Time) string {
	for len(r.queue) > 0 && !now.Before(r.queue[0].at) {
		w := r.queue.Pop()
		if at, waits := r.at[w.key]; waits && at.Equal(w.at) { // else it was to come earlier, and did
			delete(r.at, w.key)
			return w.key
		}
	}
	return ""
}
