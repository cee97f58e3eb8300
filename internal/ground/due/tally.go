package due

import "time"

const (
	tellAgain = time.Minute
	mostTold  = 256
)

// Tally counts what happened, by name, and lets each of at most 256 things be told of once a minute. It is for one goroutine.
type Tally struct {
	Of   map[string]int
	told Seldom[string]
}

// NewTally makes one of nothing.
func NewTally() Tally {
	return Tally{Of: map[string]int{}, told: Seldom[string]{Every: tellAgain, Most: mostTold}}
}

// Count counts one more.
func (t *Tally) Count(what string) { t.Of[what]++ }

// May says whether a thing is to be told of now. now never goes back.
func (t *Tally) May(now time.Time, key string) bool { return t.told.May(now, key) }
