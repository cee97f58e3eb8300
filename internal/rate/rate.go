// Package rate bounds how often something may happen.
package rate

import "time"

// Bucket is a token bucket; the zero value is full when it is first asked. It is for one goroutine.
type Bucket struct {
	tokens float64
	at     time.Time
}

// Take takes a token if there is one, at rate tokens a second and at most burst together.
func (k *Bucket) Take(now time.Time, rate, burst float64) bool {
	if k.at.IsZero() {
		k.tokens = burst
	} else if d := now.Sub(k.at); d > 0 {
		k.tokens = min(burst, k.tokens+rate*d.Seconds())
	}
	k.at = now
	if k.tokens < 1 {
		return false
	}
	k.tokens--
	return true
}

// Idle is how long ago it was last asked.
func (k *Bucket) Idle(now time.Time) time.Duration { return now.Sub(k.at) }
