package pmul

import (
	"encoding/binary"
	"math"
)

// appendAck appends an Ack_PDU (p-mul 2.3). Runs must ascend and not touch 0.
func appendAck(b []byte, p AckPDU, sum Checksum) ([]byte, error) {
	if len(p.Entries) > math.MaxUint16 {
		return b, pduErr(KindAck, "Count_of_Ack_Info_Entries", ErrTooLong)
	}
	at := len(b)
	b = start(b, p.Priority, 0, KindAck, 0, p.Source)
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.Entries)))
	for _, e := range p.Entries {
		entry := len(b)
		b = append(b, 0, 0)
		b = binary.BigEndian.AppendUint32(b, uint32(e.Source))
		b = binary.BigEndian.AppendUint32(b, uint32(e.Message))
		if e.Cut && len(e.Missing) == 0 {
			return b[:at], pduErr(KindAck, "Missing_Data_PDU_Seq_Numbers", ErrValue)
		}
		var last uint16
		for _, r := range e.Missing {
			if r.From <= last || r.To < r.From {
				return b[:at], pduErr(KindAck, "Missing_Data_PDU_Seq_Numbers", ErrValue)
			}
			b = binary.BigEndian.AppendUint16(b, r.From)
			if r.To > r.From {
				b = binary.BigEndian.AppendUint16(b, 0)
				b = binary.BigEndian.AppendUint16(b, r.To)
			}
			last = r.To
		}
		if e.Cut {
			b = binary.BigEndian.AppendUint16(b, last)
		}
		if len(b)-at > math.MaxUint16 {
			return b[:at], pduErr(KindAck, "Length_of_PDU", ErrTooLong)
		}
		binary.BigEndian.PutUint16(b[entry:], uint16(len(b)-entry))
	}
	if p.Stamped {
		b = binary.BigEndian.AppendUint64(b, p.Timestamp)
	}
	return finish(b, at, KindAck, sum)
}

// parseAck reads an Ack_PDU.
func parseAck(b []byte) (AckPDU, error) {
	if _, err := open(b, ackHeader, KindAck); err != nil {
		return AckPDU{}, err
	}
	p := AckPDU{Priority: b[2], Source: NodeID(binary.BigEndian.Uint32(b[8:]))}
	rest := b[ackHeader:]
	for range binary.BigEndian.Uint16(b[12:]) {
		if len(rest) < ackEntryHeader {
			return AckPDU{}, pduErr(KindAck, "Count_of_Ack_Info_Entries", ErrShort)
		}
		n := int(binary.BigEndian.Uint16(rest))
		switch {
		case n < ackEntryHeader || n%2 != 0:
			return AckPDU{}, pduErr(KindAck, "Length_of_Ack_Info_Entry", ErrValue)
		case n > len(rest):
			return AckPDU{}, pduErr(KindAck, "Length_of_Ack_Info_Entry", ErrShort)
		}
		e := AckEntry{Source: NodeID(binary.BigEndian.Uint32(rest[2:])), Message: MessageID(binary.BigEndian.Uint32(rest[6:]))}
		var err error
		if e.Missing, e.Cut, err = parseMissing(rest[ackEntryHeader:n]); err != nil {
			return AckPDU{}, err
		}
		p.Entries = append(p.Entries, e)
		rest = rest[n:]
	}
	switch len(rest) {
	case 0:
	case timestampLen:
		p.Stamped, p.Timestamp = true, binary.BigEndian.Uint64(rest)
	default:
		return AckPDU{}, pduErr(KindAck, "Count_of_Ack_Info_Entries", ErrMismatch)
	}
	return p, nil
}

// parseMissing reads ascending numbers, a run as from, 0, to. A word not above the one before it ends the list, which then
// says nothing of higher numbers.
func parseMissing(b []byte) (runs []Run, cut bool, err error) {
	illegal := pduErr(KindAck, "Missing_Data_PDU_Seq_Numbers", ErrValue)
	for ; len(b) >= 2; b = b[2:] {
		w := binary.BigEndian.Uint16(b)
		last := len(runs) - 1
		switch {
		case w == 0:
			if last < 0 || runs[last].From != runs[last].To || len(b) < 4 || binary.BigEndian.Uint16(b[2:]) <= runs[last].From {
				return nil, false, illegal
			}
			runs[last].To = binary.BigEndian.Uint16(b[2:])
			b = b[2:]
			if len(b) >= 4 && binary.BigEndian.Uint16(b[2:]) == 0 {
				return nil, false, illegal // a run that starts with the end of another run
			}
		case last >= 0 && w <= runs[last].To:
			return runs, true, nil
		default:
			runs = append(runs, Run{w, w})
		}
	}
	return runs, false, nil
}
