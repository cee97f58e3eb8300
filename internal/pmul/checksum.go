package pmul

import "encoding/binary"

// Checksum is an algorithm of the Checksum field (p-mul 4).
type Checksum uint8

const (
	Fletcher Checksum = iota // ISO 8473 check octets: what ACP 142 annex B(04) describes
	Internet                 // RFC 1071: met in the wild
)

// String is the name of the checksum.
func (c Checksum) String() string {
	if c == Internet {
		return "Internet"
	}
	return "Fletcher"
}

const checksumAt = 6

// putChecksum writes the checksum over the whole PDU, which has at least 8 octets and 0 in the field.
func putChecksum(b []byte, c Checksum) {
	if c == Internet {
		binary.BigEndian.PutUint16(b[checksumAt:], ^internetSum(b))
		return
	}
	c0, c1 := fletcherSums(b)
	n := len(b) - checksumAt - 1
	hi := (n*c0 - c1) % 255
	lo := (c1 - (n+1)*c0) % 255
	b[checksumAt], b[checksumAt+1] = byte((hi+255)%255), byte((lo+255)%255)
}

// checksumOf says which algorithm the PDU was made with; it tries Fletcher first.
func checksumOf(b []byte) (Checksum, bool) {
	if c0, c1 := fletcherSums(b); c0 == 0 && c1 == 0 {
		return Fletcher, true
	}
	return Internet, internetSum(b) == 0xffff
}

func fletcherSums(b []byte) (c0, c1 int) {
	for len(b) > 0 { // reduced before the sums can overflow 32 bits
		part := b[:min(len(b), 2048)]
		for _, x := range part {
			c0 += int(x)
			c1 += c0
		}
		c0, c1 = c0%255, c1%255
		b = b[len(part):]
	}
	return c0, c1
}

func internetSum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 != 0 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}
