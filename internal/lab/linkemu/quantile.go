package linkemu

import "math"

// Between is the figure below which a share, from 0 to 1, of figures in ascending order lies, by linear interpolation between two of
// them. There must be at least one figure.
func Between(sorted []float64, share float64) float64 {
	at := share * float64(len(sorted)-1)
	i := int(at)
	v := sorted[i]
	if i+1 < len(sorted) {
		v += (at - float64(i)) * (sorted[i+1] - v)
	}
	return v
}

// Quantile is the least figure that a share of all does not exceed; 0 of none.
func Quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}
