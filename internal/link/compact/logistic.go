package compact

import "math/bits"

// Probabilities are 16 bits (of a one, 1 to 65535); in the logistic domain they are ln(p/(1-p)) in units of 1/256,
// from -stretchMax to stretchMax. Both tables are made with integers only: the same on every CPU.
const stretchMax = 2815

var squashTable = makeSquash()
var stretchMid, stretchLow = makeStretch()

// stretched is stretchMid with two more, so that four octets can be read at each.
var stretched = func() (t [4096 + 2]int16) {
	copy(t[:], stretchMid[:])
	return t
}()

// makeSquash returns 65536/(1+e^(-x/256)) for x from -stretchMax to stretchMax.
func makeSquash() *[2*stretchMax + 1]uint16 {
	const one = 1 << 62
	const step = 4593706758521714574 // 2^62 * e^(-1/256)
	t := new([2*stretchMax + 1]uint16)
	e := uint64(one) // 2^62 * e^(-x/256)
	for x := 0; x <= stretchMax; x++ {
		q, _ := bits.Div64(1<<14, 0, one+e) // 2^16 * one / (one+e)
		p := min(max(q, 1), 65535)
		t[stretchMax+x] = uint16(p)
		t[stretchMax-x] = uint16(65536 - p)
		hi, lo := bits.Mul64(e, step)
		e = hi<<2 | lo>>62
	}
	return t
}

// makeStretch inverts squash: mid by the high 12 bits of p, low by p itself below 1/16.
func makeStretch() (mid, low *[4096]int16) {
	mid, low = new([4096]int16), new([4096]int16)
	inverse := func(p int, from int) int {
		for from < stretchMax && int(squashTable[stretchMax+from]) < p {
			from++
		}
		return from
	}
	x := -stretchMax
	for i := range mid {
		x = inverse(i*16+8, x)
		mid[i] = int16(x)
	}
	x = -stretchMax
	for i := range low {
		x = inverse(i, x)
		low[i] = int16(x)
	}
	return mid, low
}

func squash(x int) int {
	if x > stretchMax {
		x = stretchMax
	} else if x < -stretchMax {
		x = -stretchMax
	}
	return int(squashTable[x+stretchMax])
}

func stretch(p int) int {
	switch {
	case p < 4096:
		return int(stretchLow[p&4095])
	case p > 65536-4096:
		return -int(stretchLow[(65536-p)&4095])
	}
	return int(stretchMid[p>>4&4095])
}
