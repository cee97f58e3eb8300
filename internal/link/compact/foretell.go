package compact

import "slices"

// outlook is what earlier values let the model expect of this one.
type outlook struct {
	v1, v2            span              // at this place in the message before, and the last under this key
	exp               [maxExpected]byte // the number to expect
	expN              int
	exact             bool // the last three lie on a line
	expOK, v1OK, v2OK bool // the value so far agrees with each
}

// extrapolate sets exp to the number that continues those at the same place in earlier messages, in the decimals of the
// last one: on their line when the last three lie on one, else on the line that fits them best. It expects nothing after
// other values.
func (s *scan) extrapolate(place int) {
	var y [pastMessages]int64
	have, yd := 0, 0
	for _, values := range s.past {
		if place >= len(values) {
			break
		}
		v, d, ok := s.number(values[place])
		if !ok || have > 0 && d != yd {
			break
		}
		y[have], yd = v, d
		have++
	}
	if have < 2 {
		return
	}
	e := 2*y[0] - y[1]
	s.exact = have > 2 && y[0]-y[1] == y[1]-y[2]
	if have > 2 && !s.exact {
		e = further(y[:have])
	}
	s.expected(e, yd, s.hist[s.v1.from:s.v1.to])
}

// clear expects nothing.
func (o *outlook) clear() {
	o.v1, o.v2, o.expN, o.exact = span{}, span{}, 0, false
	o.expOK, o.v1OK, o.v2OK = false, false, false
}

// follow compares octet c at place i of the value.
func (o *outlook) follow(hist []byte, i int, c byte) {
	if o.v1OK || o.v2OK || o.expOK {
		o.v1OK = o.v1OK && i < int(o.v1.to-o.v1.from) && hist[int(o.v1.from)+i] == c
		o.v2OK = o.v2OK && i < int(o.v2.to-o.v2.from) && hist[int(o.v2.from)+i] == c
		o.expOK = o.expOK && i < o.expN && o.exp[i] == c
	}
}

// expected sets exp to a number with yd decimals, written as text is.
func (o *outlook) expected(e int64, yd int, text []byte) {
	neg := e < 0
	if neg {
		e = -e
	}
	var rev [maxExpected]byte
	n := 0
	for i := 0; (e > 0 || i <= yd) && n < len(rev)-3; i++ {
		if yd > 0 && i == yd {
			rev[n] = '.'
			n++
		}
		rev[n] = byte('0' + e%10)
		n++
		e /= 10
	}
	var sign byte
	if letter(text[0]) {
		sign = text[0]
		text = text[1:]
	}
	if text[0] == '0' { // leading zeros as in text
		for n < len(text) && n < len(rev)-2 {
			rev[n] = '0'
			n++
		}
	}
	switch c := text[0]; {
	case neg:
		rev[n] = '-'
		n++
	case c == '+':
		rev[n] = c
		n++
	}
	if sign != 0 {
		rev[n] = sign
		n++
	}
	for i := range n {
		o.exp[i] = rev[n-1-i]
	}
	o.expN = n
}

// further is where values, the last one first and at least three, will be next. It takes the line that fits them best, or
// the line through most of them if that has foretold the last two better: clocks are late now and then.
func further(y []int64) int64 {
	if len(y) > 4 {
		var fit, most int64
		for i := range int64(2) {
			fit += distance(y[i], fitted(y[i+1:]))
			most += distance(y[i], median(y[i+1:]))
		}
		if most < fit {
			return median(y)
		}
	}
	return fitted(y)
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// fitted is the next point on the line that fits y[k-1] ... y[0] at 0 ... k-1.
func fitted(y []int64) int64 {
	k := int64(len(y))
	var sum, moment int64
	for i, v := range y {
		sum += v
		moment += (k - 1 - int64(i)) * v
	}
	// slope = (12 moment - 6 (k-1) sum) / (k (k^2-1)); e = sum/k + slope (k+1)/2
	return (2*sum*(k-1) + 12*moment - 6*(k-1)*sum) / (2 * k * (k - 1))
}

// median continues with the median step. It starts from the median of all values, each moved to the present by that step.
func median(y []int64) int64 {
	var d [pastMessages]int64
	steps := d[:len(y)-1]
	for i := range steps {
		steps[i] = y[i] - y[i+1]
	}
	slices.Sort(steps)
	step := steps[len(steps)/2]
	at := d[:len(y)]
	for i, v := range y {
		at[i] = v + step*int64(i+1)
	}
	slices.Sort(at)
	return at[len(at)/2]
}

// What an earlier value lets the model expect of the octet at place i, besides an octet plus one.
const (
	valueEnds  = 0x1ff
	asExpected = 0x200 // the value so far agrees with the earlier one
)

// expect returns this for value v; ok: the value so far agrees with v.
func (s *scan) expect(v span, ok bool, i int) uint32 {
	e := uint32(0)
	switch n := int(v.to - v.from); {
	case i < n:
		e = uint32(s.hist[int(v.from)+i]) + 1
	case i == n && n > 0:
		e = valueEnds
	}
	if ok {
		e |= asExpected
	}
	return e
}
