package envelope

import (
	"encoding/binary"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// fieldAccepted follows all other fields of an envelope in the journal, and is nowhere else: milliseconds since 1970 UTC. A
// gateway that does not know the field skips it.
const fieldAccepted protowire.Number = 14

// AppendAccepted appends to an envelope the time when the message was accepted.
func AppendAccepted(b []byte, at time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, fieldAccepted, protowire.Fixed64Type), uint64(at.UnixMilli()))
}

// CutAccepted takes that time off again; a zero time: the envelope has none.
func CutAccepted(b []byte) (envelope []byte, at time.Time) {
	for rest := b; len(rest) > 0; {
		field, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return b, at
		}
		if field == fieldAccepted && kind == protowire.Fixed64Type && len(rest) == n+8 {
			ms := binary.LittleEndian.Uint64(rest[n:])
			return b[:len(b)-len(rest)], time.UnixMilli(int64(ms)).UTC()
		}
		m := protowire.ConsumeFieldValue(field, kind, rest[n:])
		if m < 0 {
			return b, at
		}
		rest = rest[n+m:]
	}
	return b, at
}
