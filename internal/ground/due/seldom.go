package due

import (
	"maps"
	"time"
)

// Seldom lets each of many keys through once in a while. It is for one goroutine.
type Seldom[K comparable] struct {
	Every time.Duration // the least time between two times that a key passes
	Most  int           // the most keys that are kept at a time
	last  map[K]time.Time
}

// May says whether a key passes now: it has not passed within the last Every, and fewer than Most other keys have. now must
// never go back.
func (s *Seldom[K]) May(now time.Time, key K) bool {
	recent := func(at time.Time) bool { return now.Sub(at) < s.Every }
	if at, has := s.last[key]; has && recent(at) {
		return false
	}
	if len(s.last) >= s.Most {
		maps.DeleteFunc(s.last, func(_ K, at time.Time) bool { return !recent(at) })
		if len(s.last) >= s.Most {
			return false
		}
	}
	if s.last == nil {
		s.last = map[K]time.Time{}
	}
	s.last[key] = now
	return true
}
