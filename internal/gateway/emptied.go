package gateway

import (
	"encoding/binary"
	"slices"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
)

// emptied are the numbers of messages of a peer that came empty on one bearer, because they had arrived on another: over P_Mul a message is
// acknowledged before its turn, and so it may not have been read. The newest mostEmptied numbers are kept, in the journal too.
type emptied []mail.TransmissionID

const (
	mostEmptied   = 64
	bucketEmptied = "emptied" // peer -> queue, number of each
)

// empty notes the number of a message that is empty.
func (l *leg) empty(m envelope.Message, at mail.TransmissionID) {
	if len(l.of.legs) < 2 || len(m.Void) != 1 || m.Void[0] != (envelope.Hash{}) {
		return
	}
	l.emptied = append(l.emptied, at)
	l.emptied = l.emptied[max(0, len(l.emptied)-mostEmptied):]
	var b []byte
	for _, at := range l.emptied {
		b = binary.BigEndian.AppendUint64(append(b, byte(at.Queue)), at.Number)
	}
	l.bearer.road.Record(bucketEmptied, peerKey(l.ID, nil), b)
}

// has says that the message with this number was empty.
func (e emptied) has(at mail.TransmissionID) bool { return slices.Contains(e, at) }

func (e *emptied) restore(b []byte) error {
	if len(b)%9 != 0 || len(b) > 9*mostEmptied {
		return mail.ErrRecord
	}
	for ; len(b) > 0; b = b[9:] {
		*e = append(*e, mail.TransmissionID{Queue: frame.Queue(b[0]), Number: binary.BigEndian.Uint64(b[1:])})
	}
	return nil
}

// forgetEmptied forgets these numbers when the peer counts anew.
func (l *leg) forgetEmptied() {
	if l.emptied != nil {
		l.emptied = nil
		l.bearer.road.Record(bucketEmptied, peerKey(l.ID, nil), nil)
	}
}
