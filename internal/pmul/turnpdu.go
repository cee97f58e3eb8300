package pmul

import (
	"encoding/binary"
	"time"
)

// TurnPDU says when a talker's turn on a shared channel ends, and which node has the turn after it. ACP 142 has no such
// PDU: it exists in the compact coding only.
type TurnPDU struct {
	Source NodeID        // the talker: the sender of the datagram
	Number uint8         // of the turn: each is one more than the one before; a PDU of an earlier turn does not count any more
	Left   time.Duration // of the turn after this datagram, in steps of TurnStep, rounded up; at most a minute
	Next   NodeID        // the node with the next turn; 0: any node that wants it
	More   bool          // the talker has more to send than its turn takes
}

// Kind is the type of the PDU.
func (TurnPDU) Kind() Kind { return kindTurn }

// kindTurn is outside the six bits of PDU_Type.
const kindTurn Kind = 0x41

const (
	// TurnStep is the unit of a TurnPDU's Left.
	TurnStep = 250 * time.Millisecond
	leftMost = 240 // steps
	flagMore = 0x80
	// haveMost bounds how many messages the runs of one Ack_PDU acknowledge.
	haveMost = 256
)

func appendTurn(b []byte, p TurnPDU) []byte {
	kind := byte(compactTurn)
	if p.More {
		kind |= flagMore
	}
	b = binary.AppendUvarint(append(b, kind, p.Number), uint64(p.Next))
	return binary.AppendUvarint(b, min(uint64((p.Left+TurnStep-1)/TurnStep), leftMost))
}

func (r *reader) turn(flags byte, from NodeID) TurnPDU {
	p := TurnPDU{Source: from, More: flags&flagMore != 0, Number: r.octets("Number", 1)[0], Next: NodeID(r.uvarint("Next", 1<<32-1))}
	p.Left = time.Duration(r.uvarint("Left", leftMost)) * TurnStep
	return p
}

// idRun is a number of messages in a row.
type idRun struct {
	first MessageID
	count uint32
}

// runsOf are the runs of entries of complete messages; false: the entries have to be written one by one.
func runsOf(entries []AckEntry) (runs []idRun, ok bool) {
	for _, e := range entries {
		if len(e.Missing) > 0 || e.Cut {
			return nil, false
		}
		if n := len(runs); n > 0 && e.Message == runs[n-1].first+MessageID(runs[n-1].count) {
			runs[n-1].count++
		} else {
			runs = append(runs, idRun{e.Message, 1})
		}
	}
	return runs, len(entries) <= haveMost
}

// appendRuns writes the runs of an Ack_PDU, which follow its sources.
func appendRuns(b []byte, runs []idRun) []byte {
	b = binary.AppendUvarint(b, uint64(len(runs)))
	var end MessageID
	for i, r := range runs {
		if i == 0 {
			b = binary.AppendUvarint(b, uint64(r.first))
		} else {
			b = binary.AppendVarint(b, int64(int32(r.first-end)))
		}
		b = binary.AppendUvarint(b, uint64(r.count-1))
		end = r.first + MessageID(r.count)
	}
	return b
}

// runs reads the runs of an Ack_PDU.
func (r *reader) runs(of NodeID) (entries []AckEntry) {
	count := r.uvarint("Count_of_Ack_Info_Entries", uint64(len(r.b)/2))
	if count == 0 {
		r.fail("Count_of_Ack_Info_Entries", ErrValue)
	}
	var m MessageID
	for i := range count {
		if i == 0 {
			m = MessageID(r.uvarint("Message_ID", 1<<32-1))
		} else {
			m += MessageID(r.step())
		}
		more := r.uvarint("Count_of_Messages", haveMost-1)
		if r.err == nil && len(entries)+int(more)+1 > haveMost {
			r.fail("Count_of_Messages", ErrValue)
		}
		if r.err != nil {
			return entries
		}
		for range more + 1 {
			entries = append(entries, AckEntry{Source: of, Message: m})
			m++
		}
	}
	return entries
}

// step is the signed difference of two Message_IDs.
func (r *reader) step() int32 {
	step, n := binary.Varint(r.b)
	if n <= 0 || step != int64(int32(step)) {
		r.fail("Message_ID", ErrValue)
		return 0
	}
	r.b = r.b[n:]
	return int32(step)
}
