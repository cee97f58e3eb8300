package jxta

// MaxDatagram is the largest multicast datagram in octets that JXTA peers read (wire 2.7); they lose the rest of a longer
// one.
const MaxDatagram = 16384

const datagramMagic = "JXTA"

// AppendDatagram appends a multicast datagram (wire 2.7): body is a message of messageLength octets and perhaps its
// trailer. As in JXSE 2.7, content-length does not include the trailer, so that a 2.2 peer stops before it.
func AppendDatagram(b []byte, body []byte, messageLength int) ([]byte, error) {
	start := len(b)
	b = append(b, datagramMagic...)
	b = AppendPackageHeader(b, messageLength)
	b = append(b, body...)
	if len(b)-start > MaxDatagram {
		return b[:start], fail("datagram", "length", ErrTooLong)
	}
	return b, nil
}

// ParseDatagram returns the body of a multicast datagram: a message and, from signed 2.7 peers, its trailer. It aliases b.
func ParseDatagram(b []byte) ([]byte, error) {
	switch {
	case len(b) > MaxDatagram:
		return nil, fail("datagram", "length", ErrTooLong)
	case len(b) < len(datagramMagic):
		return nil, fail("datagram", "signature", ErrShort)
	case string(b[:len(datagramMagic)]) != datagramMagic:
		return nil, fail("datagram", "signature", ErrMismatch)
	}
	b = b[len(datagramMagic):]
	h, n, err := ParsePackageHeader(b)
	if err != nil {
		return nil, err
	}
	b = b[n:]
	if h.Length > uint64(len(b)) {
		return nil, fail("datagram", "content-length", ErrShort)
	}
	return b, nil
}
