package replica

import (
	"time"

	"aldis/internal/ground/due"
)

// renewals are keys that wait for a time, each once.
type renewals struct {
	queue due.Heap[renewal]
	at    map[string]time.Time // by key, the time that counts
}

type renewal struct {
	at  time.Time
	key string
}

func (r renewal) Before(o renewal) bool { return r.at.Before(o.at) }
func (r renewal) Placed(int)            {}

// add makes next return key at that time, or earlier if it is already waiting for an earlier one.
func (r *renewals) add(at time.Time, key string) {
	if old, waits := r.at[key]; waits && !at.Before(old) {
		return
	}
	r.at[key] = at
	r.queue.Push(renewal{at, key})
}

// next takes out a key whose time has come; "": there is none.
func (r *renewals) next(now time.Time) string {
	for len(r.queue) > 0 && !now.Before(r.queue[0].at) {
		w := r.queue.Pop()
		if at, waits := r.at[w.key]; waits && at.Equal(w.at) { // else an earlier time was set, and next has returned the key
			delete(r.at, w.key)
			return w.key
		}
	}
	return ""
}
