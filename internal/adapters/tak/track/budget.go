package track

import "time"

// Budget bounds octets. A minute's worth may be spent at once; what was spent beyond that is paid back by the time that passes.
// A nil Budget has no bound. It is for one goroutine.
type Budget struct {
	PerMinute float64 // octets
	spent     float64
	at        time.Time
}

// Changes is how often in a minute changes of one thing are told where a site says something at least once in age.
func Changes(age time.Duration) float64 { return float64(4*time.Minute) / float64(age) }

// Left says whether something may be spent now. now never goes back.
func (b *Budget) Left(now time.Time) bool {
	if b == nil {
		return true
	}
	if !b.at.IsZero() {
		b.spent = max(0, b.spent-now.Sub(b.at).Minutes()*b.PerMinute)
	}
	b.at = now
	return b.spent < b.PerMinute
}

// Spend notes that so many octets were spent, also beyond what was left.
func (b *Budget) Spend(octets int) {
	if b != nil {
		b.spent += float64(octets)
	}
}
