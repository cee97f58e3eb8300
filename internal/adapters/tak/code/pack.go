package code

import "strings"

// Short texts that use few different letters, such as names, models and versions, take five or four bits for most letters.
//
// An alphabet's first letters have short codes. The other letters have a code above those, followed by more bits.

type alphabet struct {
	bits    int    // of a short code
	letters string // first those with short codes
	escapes int    // codes that begin a long code
	more    int    // bits that follow in a long code
}

// alphabets by their tag, from packedUpper on.
var alphabets = []alphabet{
	{5, "ABCDEFGHIJKLMNOPQRSTUVWXYZ -" + "0123456789._()/:abdefghiklnoprst", 4, 3},
	{5, "abcdefghijklmnopqrstuvwxyz ." + "0123456789-_()/:,;!?'ABCDEFHMST+", 4, 3},
	{4, "0123456789. -" + "abcdefghijklmnopqrstuvwxyzABCDEFHIKMNPRSTUVXZ()", 3, 4},
}

// packed is a text in the alphabet that makes it shortest; nil: no alphabet makes it shorter.
func packed(v string) (best []byte) {
	if len(v) < 5 || len(v) > 63 {
		return nil
	}
	for i := range alphabets {
		if b := alphabets[i].pack(v); b != nil && len(b)+2 < len(v)+1 && (best == nil || len(b)+2 < len(best)) {
			best = append([]byte{byte(packedUpper + i), byte(len(v))}, b...)
		}
	}
	return best
}

func (a *alphabet) pack(v string) []byte {
	var out []byte
	held, n := uint32(0), 0
	put := func(code, bits int) {
		held, n = held<<bits|uint32(code), n+bits
		for n >= 8 {
			n -= 8
			out = append(out, byte(held>>n))
		}
	}
	short := 1<<a.bits - a.escapes
	for i := range len(v) {
		switch at := strings.IndexByte(a.letters, v[i]); {
		case at < 0:
			return nil
		case at < short:
			put(at, a.bits)
		default:
			at -= short
			put(short+at>>a.more, a.bits)
			put(at&(1<<a.more-1), a.more)
		}
	}
	if n > 0 {
		out = append(out, byte(held<<(8-n)))
	}
	return out
}

// unpack reads a text of so many letters.
func (a *alphabet) unpack(r *reader, letters int) string {
	held, n := uint32(0), 0
	get := func(bits int) int {
		for n < bits {
			held, n = held<<8|uint32(r.octet()), n+8
		}
		n -= bits
		return int(held >> n & (1<<bits - 1))
	}
	short := 1<<a.bits - a.escapes
	var out []byte
	for range letters {
		at := get(a.bits)
		if at >= short {
			at = short + (at-short)<<a.more + get(a.more)
		}
		if r.err != nil || at >= len(a.letters) {
			r.fail("letter %d", at)
			return ""
		}
		out = append(out, a.letters[at])
	}
	return string(out)
}
