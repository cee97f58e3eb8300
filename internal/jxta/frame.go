package jxta

import (
	"encoding/binary"
	"strings"
)

// MessageType is the content-type of every package.
const MessageType = "application/x-jxta-msg"

// MaxPackageHeader bounds a header block in octets. JXSE emits at most 1,024 (wire 2.2).
const MaxPackageHeader = 2048

// PackageHeader is the content of a header block.
type PackageHeader struct {
	Length uint64 // content-length: octets of the body, trailer included
	Type   string // content-type
}

// AppendPackageHeader appends the 63 octets that stand before a body, in the order of JXSE 2.7.
func AppendPackageHeader(b []byte, bodyLength int) []byte {
	b = append(b, "\x0econtent-length\x00\x08"...)
	b = binary.BigEndian.AppendUint64(b, uint64(bodyLength))
	b = append(b, "\x0ccontent-type\x00\x16"+MessageType...)
	return append(b, 0)
}

// ParsePackageHeader reads the header block at the start of b and returns its length in octets. ErrShort means that
// more octets are needed; unknown headers are ignored.
func ParsePackageHeader(b []byte) (PackageHeader, int, error) {
	var h PackageHeader
	var haveLength, haveType bool
	for n := 0; ; {
		if n > MaxPackageHeader {
			return h, 0, fail("package", "header block", ErrTooLong)
		}
		if n >= len(b) {
			return h, 0, fail("package", "header block", ErrShort)
		}
		name := int(b[n])
		n++
		if name == 0 {
			switch {
			case !haveLength:
				return h, 0, fail("package", "content-length", ErrMissing)
			case !haveType:
				return h, 0, fail("package", "content-type", ErrMissing)
			}
			return h, n, nil
		}
		if name > 127 { // read as a signed octet by JXSE
			return h, 0, fail("package", "header name", ErrTooLong)
		}
		if len(b) < n+name+2 {
			return h, 0, fail("package", "header name", ErrShort)
		}
		key := b[n : n+name]
		size := int(binary.BigEndian.Uint16(b[n+name:]))
		n += name + 2
		if n+size > MaxPackageHeader {
			return h, 0, fail("package", "header value", ErrTooLong)
		}
		if len(b) < n+size {
			return h, 0, fail("package", "header value", ErrShort)
		}
		value := b[n : n+size]
		n += size
		switch strings.ToLower(string(key)) {
		case "content-length":
			if size != 8 || haveLength {
				return h, 0, fail("package", "content-length", ErrMismatch)
			}
			h.Length, haveLength = binary.BigEndian.Uint64(value), true
		case "content-type":
			if base, _, _ := strings.Cut(string(value), ";"); !strings.EqualFold(strings.TrimSpace(base), MessageType) {
				return h, 0, fail("package", "content-type", ErrMismatch)
			}
			h.Type, haveType = string(value), true
		}
	}
}
