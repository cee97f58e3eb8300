package compact

import "hash/crc32"

// sums follows the checksums that a text may carry, so that the octets of a correct one cost next to nothing. It knows that
// of an NMEA 0183 sentence (IEC 61162-1, 7.2.4: the exclusive or of the octets between $ or ! and *, two hexadecimal
// digits), and a CRC-32 of all octets before it in the last eight hexadecimal digits of a message, if the message before
// had one at the same place.
type sums struct {
	n     int // octets of this message
	crc   uint32
	crcs  [crcDigits + 1]uint32 // after the last octets, by their number
	at    int                   // where in the message the digits of a CRC are expected to begin; 0: nowhere
	lower bool                  // in small letters
	xor   byte                  // of the sentence so far
	open  bool                  // in a sentence
	left  int                   // digits expected
	digit [crcDigits]byte       // the last left of these are the expected digits
	nmea  bool                  // they are of a sentence
}

const crcDigits = 8

const upperHex, lowerHex = "0123456789ABCDEF", "0123456789abcdef"

// begin starts a message after last.
func (s *sums) begin(last []byte) {
	at := 0
	if s.n == len(last) && s.n > 2*crcDigits {
		crc := s.crcs[(s.n-crcDigits)%len(s.crcs)]
		for _, hex := range [...]string{lowerHex, upperHex} {
			if d := digits(crc, hex); string(last[s.n-crcDigits:]) == string(d[:]) {
				at, s.lower = s.n-crcDigits, hex == lowerHex
				break
			}
		}
	}
	*s = sums{at: at, lower: s.lower}
}

func digits(crc uint32, hex string) (d [crcDigits]byte) {
	for i := range d {
		d[i] = hex[crc>>(28-4*i)&15]
	}
	return d
}

func (s *sums) put(c byte) {
	s.n++
	s.crc = ^(crc32.IEEETable[byte(^s.crc)^c] ^ ^s.crc>>8)
	s.crcs[s.n%len(s.crcs)] = s.crc
	if s.left > 0 {
		if s.digit[crcDigits-s.left] == c {
			s.left--
		} else {
			s.left = 0
		}
	}
	switch {
	case c == '$' || c == '!':
		s.open, s.xor = true, 0
	case c == '\n' || c == '\r':
		s.open = false
	case c == '*' && s.open:
		s.open, s.left, s.nmea = false, 2, true
		s.digit[crcDigits-2], s.digit[crcDigits-1] = upperHex[s.xor>>4], upperHex[s.xor&15]
	default:
		s.xor ^= c
	}
	if s.n == s.at {
		hex := upperHex
		if s.lower {
			hex = lowerHex
		}
		s.digit, s.left, s.nmea = digits(s.crc, hex), crcDigits, false
	}
}

// checksum is the octet that a checksum expects next, 0 for none, and a context that tells how good that is.
func (s *sums) checksum() (c byte, kind uint32) {
	if s.left == 0 {
		return 0, 0
	}
	kind = uint32(s.left)
	if s.nmea {
		kind |= 16
	}
	return s.digit[crcDigits-s.left], kind
}
