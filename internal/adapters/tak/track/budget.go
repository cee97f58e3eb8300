package track

import "time"

// Budget bounds octets. The octets of a minute may be spent at once; octets spent beyond them are paid back as time passes.
// A nil Budget has no bound. A Budget is for one goroutine.
type Budget struct {
	PerMinute float64 // octets
	spent     float64
	at        time.Time
}

// Changes is how many changes of one unit or object may be sent in a minute by a site that sends something at least once in age.
func Changes(age time.Duration) float64 { return float64(4*time.Minute) / float64(age) }

// Left says whether octets may be spent now. now never goes back.
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

// Spend notes that so many octets were spent, even if fewer were left.
func (b *Budget) Spend(octets int) {
	if b != nil {
		b.spent += float64(octets)
	}
}
