package due

import "time"

// Bucket is a token bucket; the zero value is full at its first use. It is for one goroutine.
type Bucket struct {
	tokens float64
	at     time.Time
}

// Allow takes a token if there is one. Tokens come at rate a second, and the bucket holds at most burst.
func (k *Bucket) Allow(now time.Time, rate, burst float64) bool {
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

// Idle is the time since its last use.
func (k *Bucket) Idle(now time.Time) time.Duration { return now.Sub(k.at) }

// Each is a Bucket for each of many keys; it keeps at most Most at a time. It is for one goroutine.
type Each[K comparable] struct {
	Rate, Burst float64 // as in Bucket.Allow
	Most        int
	buckets     map[K]*Bucket
}

// Of is the bucket of a key; nil: there are Most others, and none of them is full again.
func (e *Each[K]) Of(now time.Time, key K) *Bucket {
	b := e.buckets[key]
	if b != nil {
		return b
	}
	if len(e.buckets) >= e.Most {
		for k, old := range e.buckets {
			if old.Idle(now).Seconds() > e.Burst/e.Rate {
				delete(e.buckets, k)
			}
		}
	}
	if len(e.buckets) >= e.Most {
		return nil
	}
	if e.buckets == nil {
		e.buckets = map[K]*Bucket{}
	}
	b = &Bucket{}
	e.buckets[key] = b
	return b
}

// Len is how many buckets are kept.
func (e *Each[K]) Len() int { return len(e.buckets) }
