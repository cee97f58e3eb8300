package code

import (
	"encoding/binary"
	"strconv"
	"strings"

	"aldis/internal/adapters/tak/cot"
)

// A place is "lat,lon" or "lat,lon,more". It is coded as its difference from the place before, or from the event's point:
// the digits behind the points of lat and lon, four bits each; two signed varints; and where there is more, a value.

// near is the last place, in tenths of a millionth of a degree.
type near struct{ lat, lon int64 }

const fullDigits = 7

var scale = [fullDigits + 1]int64{1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 10, 1} // by digits: the value of the last digit

// nearOf is an event's point.
func nearOf(p *cot.Point) near {
	lat, _ := p.Lat.Float()
	lon, _ := p.Lon.Float()
	return near{int64(lat * 1e7), int64(lon * 1e7)}
}

// degrees takes a decimal number apart; false: written would not restore the same text, or it has too many digits.
func degrees(text string) (v int64, digits int, ok bool) {
	head, tail, _ := strings.Cut(text, ".")
	v, err := strconv.ParseInt(head+tail, 10, 64)
	if err != nil || len(tail) > fullDigits || v > 1e10 || v < -1e10 || written(v, len(tail)) != text {
		return 0, 0, false
	}
	return v, len(tail), true
}

// place appends a text that is a place; false: it is not one.
func (c *coder) place(dst []byte, text string) ([]byte, bool) {
	first, rest, ok := strings.Cut(text, ",")
	if !ok {
		return dst, false
	}
	second, more, third := strings.Cut(rest, ",")
	lat, d1, ok1 := degrees(first)
	lon, d2, ok2 := degrees(second)
	if !ok1 || !ok2 || third && strings.Contains(more, ",") {
		return dst, false
	}
	tag := byte(placeOnly)
	if third {
		tag = placeMore
	}
	dst = append(dst, tag, byte(d1<<4|d2))
	dst = binary.AppendVarint(dst, lat-c.near.lat/scale[d1])
	dst = binary.AppendVarint(dst, lon-c.near.lon/scale[d2])
	c.near = near{lat * scale[d1], lon * scale[d2]}
	if third {
		dst = c.value(dst, more, 1)
	}
	return dst, true
}

// readPlace reads a place behind its tag.
func (c *coder) readPlace(r *reader, more bool) string {
	digits := r.octet()
	d1, d2 := int(digits>>4), int(digits&15)
	if d1 > fullDigits || d2 > fullDigits {
		r.fail("digits of a place")
		return ""
	}
	lat, lon := r.varint(), r.varint()
	const most = 1e11
	if lat > most || lat < -most || lon > most || lon < -most {
		r.fail("a place too far away")
		return ""
	}
	lat, lon = lat+c.near.lat/scale[d1], lon+c.near.lon/scale[d2]
	if lat > 1e10 || lat < -1e10 || lon > 1e10 || lon < -1e10 {
		r.fail("a place too far away")
		return ""
	}
	c.near = near{lat * scale[d1], lon * scale[d2]}
	text := written(lat, d1) + "," + written(lon, d2)
	if more {
		text += "," + c.read(r, 1)
	}
	return text
}
