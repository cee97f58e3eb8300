package shapes

import (
	"math/rand/v2"
	"time"
)

// Patterns are the names of the patterns of arrival.
var Patterns = []string{"steady", "poisson", "bursts", "bunches"}

// Arrivals draws the time from each message to the next; their mean is every.
//
//   - steady: always the same
//   - poisson: exponential
//   - bursts: eight at once, then a pause
//   - bunches: of one to seven, a tenth of the mean apart
func Arrivals(seed uint64, pattern string, every time.Duration) (next func() time.Duration, known bool) {
	rng := rand.New(rand.NewPCG(seed, 0x41525256))
	switch pattern {
	case "steady":
		return func() time.Duration { return every }, true
	case "poisson":
		return func() time.Duration { return time.Duration(rng.ExpFloat64() * float64(every)) }, true
	case "bursts":
		return bunches(func() int { return 8 }, every, 0), true
	case "bunches":
		return bunches(func() int { return 1 + rng.IntN(7) }, every, every/10), true
	}
	return nil, false
}

// bunches is bunches of messages at the interval apart, each followed by a pause that keeps the mean.
func bunches(size func() int, every, apart time.Duration) func() time.Duration {
	many := size()
	left := many
	return func() time.Duration {
		left--
		if left > 0 {
			return apart
		}
		pause := time.Duration(many)*every - time.Duration(many-1)*apart
		many = size()
		left = many
		return pause
	}
}
