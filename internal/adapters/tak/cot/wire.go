package cot

import (
	"encoding/binary"
	"math"
)

// The fields of Protocol Buffers that version 1 uses. Unknown fields are skipped.

const (
	wireVarint, wireDouble, wireBytes, wireFixed32 = 0, 1, 2, 5
)

// field is one field of a message.
type field struct {
	number int
	wire   int
	n      uint64 // a varint, or the bits of a double
	b      []byte
}

func (f field) text() string { return string(f.b) }

// double is the shortest text of a double.
func (f field) double() Number {
	v := math.Float64frombits(f.n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "NaN"
	}
	return NumberOf(v)
}

// fields calls do with each field of a message.
func fields(b []byte, do func(field) error) error {
	for count := 0; len(b) > 0; count++ {
		if count > MaxNodes {
			return fault(TooDeep, "a message with more than %d fields", MaxNodes)
		}
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29 {
			return fault(Syntax, "a field without a number")
		}
		b = b[n:]
		f := field{number: int(tag >> 3), wire: int(tag & 7)}
		switch f.wire {
		case wireVarint:
			f.n, n = binary.Uvarint(b)
			if n <= 0 {
				return fault(Syntax, "field %d is cut short", f.number)
			}
			b = b[n:]
		case wireDouble, wireFixed32:
			size := 8
			if f.wire == wireFixed32 {
				size = 4
			}
			if len(b) < size {
				return fault(Syntax, "field %d is cut short", f.number)
			}
			if size == 8 {
				f.n = binary.LittleEndian.Uint64(b)
			}
			b = b[size:]
		case wireBytes:
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return fault(Syntax, "field %d has a wrong length", f.number)
			}
			f.b, b = b[n:n+int(size)], b[n+int(size):]
		default:
			return fault(Syntax, "field %d is of no kind that version 1 has", f.number)
		}
		if err := do(f); err != nil {
			return err
		}
	}
	return nil
}

func appendUint(dst []byte, number int, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(number)<<3|wireVarint), v)
}

func appendString(dst []byte, number int, v string) []byte {
	if v == "" {
		return dst
	}
	return appendMessage(dst, number, []byte(v))
}

func appendMessage(dst []byte, number int, v []byte) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(number)<<3|wireBytes), uint64(len(v)))
	return append(dst, v...)
}

func appendDouble(dst []byte, number int, v float64) []byte {
	if v == 0 {
		return dst
	}
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(dst, uint64(number)<<3|wireDouble), math.Float64bits(v))
}
