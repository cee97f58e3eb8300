package linkemu

import "math"

// Wander is n rates in bits per second, one after the other, that wander between least and most as those of the exercise of 2004 did
// (docs/reference/published-figures.md): their square root walks at random and turns back at the ends, so that low rates are as frequent
// as there, with a mean of 8.8 between 0.8 and 21.4 kbit/s. A step is a fifth of the way between the ends in the standard deviation.
func Wander(seed uint64, least, most, n int) []int {
	rng := generator(seed, "link", "wander")
	low, high := math.Sqrt(float64(least)), math.Sqrt(float64(most))
	at, rates := low+rng.Float64()*(high-low), make([]int, n)
	for i := range rates {
		rates[i] = int(math.Round(at * at))
		at += rng.NormFloat64() * (high - low) / 5
		for at < low || at > high {
			at = max(2*low-at, min(at, 2*high-at))
		}
	}
	return rates
}
