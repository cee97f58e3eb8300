package due

import "time"

const (
	tellAgain = time.Minute
	mostTold  = 256
)

// Tally counts events by name, and lets each of at most 256 things be reported once a minute. It is for one goroutine.
type Tally struct {
	Of   map[string]int
	told Seldom[string]
}

// NewTally makes an empty Tally.
func NewTally() Tally {
	return Tally{Of: map[string]int{}, told: Seldom[string]{Every: tellAgain, Most: mostTold}}
}

// Count counts one more event.
func (t *Tally) Count(what string) { t.Of[what]++ }

// May says whether a thing may be reported now. now must never go back.
func (t *Tally) May(now time.Time, key string) bool { return t.told.May(now, key) }
