package pmul

import (
	"encoding/binary"
	"math"
	"time"
)

// The compact coding: the same PDUs inside a sealed datagram, which knows its sender and its length and needs no
// checksum. A datagram holds one PDU after the other. The first octet of each is a type in the low four bits and flags:
//
//	Data      0  [source] message number [priority] [length] fragment
//	Ack       1  [source] [source of the messages] count entries
//	Address   2  [source] message total expiry [priority] [MAP] [last follow] destinations
//	Discard   3  [source] message [priority]
//	Whole     4  an Address_PDU with Total 1 and its Data_PDU: [source] message expiry [priority] destinations [length] fragment
//	Parity    5  [source] message index left [length] shard
//	Turn      6  number next left
//	After     9  distance, before an Address or a Whole
//	Have      7  an Ack_PDU of complete messages alone: [source] [source of the messages] count runs
//	10 and 12    as 2 and 4, with the destinations as a set (destset.go)
//	Standard 15  length, a PDU byte by byte as in ACP 142: all others
//
// Numbers are unsigned varints (LEB128), expiry is four octets. Destinations are a count and for each Destination_ID and
// Message_Sequence_Number. An entry is the Message_ID (the first plain, others as zigzag difference to the one before),
// then twice the number of runs plus one if the list is cut, then for each run twice the distance from the end of the
// one before (less one) plus one for more than one number, and in that case its length less two. A run of messages is the first
// Message_ID (of later runs as zigzag difference to the end of the one before) and how many follow it.
const (
	compactData = iota
	compactAck
	compactAddress
	compactDiscard
	compactWhole
	compactParity
	compactTurn
	compactHave
	compactAfter    = 9
	compactSet      = 8 // added to Address and Whole: the destinations are a set
	compactStandard = 15

	compactTypeMask = 0x0f
	flagSource      = 0x10 // Source_ID follows: it is not the datagram's sender
	flagLength      = 0x20 // the length of the fragment follows: it is not the last of the datagram
	flagPlan        = 0x20 // Address: a Plan follows
	flagPriority    = 0x40 // Priority follows: it is not 0
	flagMAP         = 0x80 // Address: MAP follows
	flagAtOnce      = 0x80 // Whole: it is repeated, and acknowledged at once; older gateways ignore this
	mapBatch        = 0x01 // in the MAP of an Address: a batch; gateways before version 0.3 would take it for one message
	flagOf          = 0x80 // Ack: the source of the messages follows: they are not the reader's
)

// ParityPDU is no PDU of ACP 142: one shard of erasure coding over the fragments of a message, in the compact coding
// only. Shards are as long as the longest fragment.
type ParityPDU struct {
	Source  NodeID
	Message MessageID
	Index   uint16 // 0..: which parity shard
	Left    uint16 // shards that follow in this turn of the sender
	Shard   []byte
}

// Kind is the type of the PDU.
func (ParityPDU) Kind() Kind { return kindParity }

// kindParity is outside the six bits of PDU_Type.
const kindParity Kind = 0x40

// AppendCompact appends one datagram's PDUs. from is the datagram's sender, to its only reader, or 0 for a group. Fragments
// of 0 octets carry their length, because they could not be recognised at the end of a datagram.
func AppendCompact(b []byte, from, to NodeID, pdus ...PDU) ([]byte, error) {
	at := len(b)
	var err error
	for i := 0; i < len(pdus) && err == nil; i++ {
		last := i == len(pdus)-1
		switch p := pdus[i].(type) {
		case DataPDU:
			b, err = appendCompactData(b, from, p, last)
		case AckPDU:
			b, err = appendCompactAck(b, from, to, p)
		case AddressPDU:
			if p.After > 0 && plainAddress(p) {
				b = binary.AppendUvarint(append(b, compactAfter), uint64(p.After))
			}
			if i+1 < len(pdus) {
				if d, ok := pdus[i+1].(DataPDU); ok && wholeOf(p, d) {
					i++
					b, err = appendCompactAddress(b, from, p, &d, i == len(pdus)-1)
					continue
				}
			}
			b, err = appendCompactAddress(b, from, p, nil, last)
		case DiscardPDU:
			b = compactStart(b, compactDiscard, from, p.Source, p.Message, p.Priority, 0)
		case ParityPDU:
			b = compactStart(b, compactParity, from, p.Source, p.Message, 0, lengthFlag(last, p.Shard))
			b = binary.AppendUvarint(b, uint64(p.Index))
			b = binary.AppendUvarint(b, uint64(p.Left))
			b = appendFragment(b, last, p.Shard)
		case TurnPDU:
			b = appendTurn(b, p)
		default:
			b, err = appendStandard(b, p)
		}
	}
	if err != nil {
		return b[:at], err
	}
	return b, nil
}

// wholeOf tells whether an Address_PDU and a Data_PDU are one short message.
func wholeOf(a AddressPDU, d DataPDU) bool {
	return plainAddress(a) && !a.Batch && a.Plan == nil && a.Total == 1 && a.MAP == 0 && d.Number == 1 && d.Source == a.Source && d.Message == a.Message && d.Priority == a.Priority
}

// plainAddress says whether an Address_PDU has a compact form; others go in standard form.
func plainAddress(p AddressPDU) bool { return p.Reserved == 0 && p.FEC == nil && !p.Extra }

// compactStart appends the first octet, source and message; the priority goes last of these, so that all types agree.
func compactStart(b []byte, kind byte, from, source NodeID, m MessageID, priority uint8, flags byte) []byte {
	if source != from {
		flags |= flagSource
	}
	if priority != 0 {
		flags |= flagPriority
	}
	b = append(b, kind|flags)
	if source != from {
		b = binary.AppendUvarint(b, uint64(source))
	}
	b = binary.AppendUvarint(b, uint64(m))
	if priority != 0 {
		b = append(b, priority)
	}
	return b
}

func lengthFlag(last bool, fragment []byte) byte {
	if last && len(fragment) > 0 {
		return 0
	}
	return flagLength
}

func appendFragment(b []byte, last bool, fragment []byte) []byte {
	if lengthFlag(last, fragment) != 0 {
		b = binary.AppendUvarint(b, uint64(len(fragment)))
	}
	return append(b, fragment...)
}

func appendCompactData(b []byte, from NodeID, p DataPDU, last bool) ([]byte, error) {
	if p.Number == 0 {
		return b, pduErr(KindData, "Sequence_Number", ErrValue)
	}
	b = compactStart(b, compactData, from, p.Source, p.Message, p.Priority, lengthFlag(last, p.Fragment))
	b = binary.AppendUvarint(b, uint64(p.Number))
	return appendFragment(b, last, p.Fragment), nil
}

func appendCompactAddress(b []byte, from NodeID, p AddressPDU, whole *DataPDU, last bool) ([]byte, error) {
	if !plainAddress(p) {
		return appendStandard(b, p)
	}
	kind, flags := byte(compactAddress), byte(0)
	switch {
	case whole != nil:
		kind, flags = compactWhole, lengthFlag(last, whole.Fragment)
		if p.AtOnce {
			flags |= flagAtOnce
		}
	default:
		if p.MAP != 0 || p.Batch {
			flags |= flagMAP
		}
		if p.Plan != nil {
			flags |= flagPlan
		}
	}
	dests, set := appendDestinations(p.Destinations)
	if set {
		kind |= compactSet
	}
	b = compactStart(b, kind, from, p.Source, p.Message, p.Priority, flags)
	if whole == nil {
		b = binary.AppendUvarint(b, uint64(p.Total))
	}
	b, err := appendExpiry(b, KindAddress, p.Expiry)
	if err != nil {
		return b, err
	}
	if whole == nil && flags&flagMAP != 0 {
		m := byte(p.MAP)
		if p.Batch {
			m |= mapBatch
		}
		b = append(b, m)
	}
	if whole == nil && p.Plan != nil {
		b = binary.AppendUvarint(b, uint64(p.Plan.Last))
		b = binary.AppendUvarint(b, uint64(p.Plan.Follow))
	}
	b = append(b, dests...)
	if whole != nil {
		b = appendFragment(b, last, whole.Fragment)
	}
	return b, nil
}

func appendCompactAck(b []byte, from, to NodeID, p AckPDU) ([]byte, error) {
	for _, e := range p.Entries {
		if e.Source != p.Entries[0].Source {
			return appendStandard(b, p) // entries of several sources: rare
		}
	}
	if p.Stamped || p.Priority != 0 || len(p.Entries) == 0 {
		return appendStandard(b, p)
	}
	var flags byte
	if p.Source != from {
		flags |= flagSource
	}
	if to == 0 || p.Entries[0].Source != to {
		flags |= flagOf
	}
	kind := byte(compactAck)
	runs, inRuns := runsOf(p.Entries)
	inRuns = inRuns && p.Runs
	if inRuns {
		kind = compactHave
	}
	b = append(b, kind|flags)
	if flags&flagSource != 0 {
		b = binary.AppendUvarint(b, uint64(p.Source))
	}
	if flags&flagOf != 0 {
		b = binary.AppendUvarint(b, uint64(p.Entries[0].Source))
	}
	if inRuns {
		return appendRuns(b, runs), nil
	}
	b = binary.AppendUvarint(b, uint64(len(p.Entries)))
	for i, e := range p.Entries {
		if i == 0 {
			b = binary.AppendUvarint(b, uint64(e.Message))
		} else {
			b = binary.AppendVarint(b, int64(int32(e.Message-p.Entries[i-1].Message)))
		}
		head := uint64(len(e.Missing)) << 1
		if e.Cut {
			head |= 1
		}
		b = binary.AppendUvarint(b, head)
		var end uint16
		for _, r := range e.Missing {
			if r.From <= end || r.To < r.From {
				return b, pduErr(KindAck, "Missing_Data_PDU_Seq_Numbers", ErrValue)
			}
			b = appendRun(b, uint64(end), uint64(r.From), uint64(r.To))
			end = r.To
		}
		if e.Cut && len(e.Missing) == 0 {
			return b, pduErr(KindAck, "Missing_Data_PDU_Seq_Numbers", ErrValue)
		}
	}
	return b, nil
}

// appendRun writes the beginning and the end of a run; end is the end of the run before, or 0.
func appendRun(b []byte, end, from, to uint64) []byte {
	step := (from - end - 1) << 1
	if to == from {
		return binary.AppendUvarint(b, step)
	}
	b = binary.AppendUvarint(b, step|1)
	return binary.AppendUvarint(b, to-from-1)
}

// run undoes appendRun. The end of the run is at most most, and at most longest and one more after its beginning.
func (r *reader) run(field string, end, most, longest uint64) (from, to uint64) {
	step := r.uvarint(field, 2*most)
	from = end + 1 + step>>1
	to = from
	if step&1 != 0 {
		to += 1 + r.uvarint(field, longest)
	}
	if to > most {
		r.fail(field, ErrValue)
	}
	return from, to
}

func appendStandard(b []byte, p PDU) ([]byte, error) {
	out, err := Append(nil, p, Fletcher)
	if err != nil {
		return b, err
	}
	b = append(b, compactStandard)
	b = binary.AppendUvarint(b, uint64(len(out)))
	return append(b, out...), nil
}

// ParseCompact reads a datagram from a node to self. Slices of the PDUs alias b. Errors are like those of Parse.
func ParseCompact(b []byte, from, self NodeID) ([]PDU, error) {
	var pdus []PDU
	for len(b) > 0 {
		r := &reader{b: b[1:], pdu: "compact PDU"}
		kind, after := b[0], uint64(0)
		if kind == compactAfter {
			after = r.uvarint("after", math.MaxUint32)
			kind = r.octets("PDU_Type", 1)[0]
		}
		more, err := r.pdu1(kind&compactTypeMask, kind&^compactTypeMask, from, self)
		if err != nil {
			return nil, err
		}
		if after > 0 {
			a, ok := more[0].(AddressPDU)
			if !ok {
				return nil, &PDUError{"compact PDU", "after", ErrMismatch}
			}
			a.After = uint32(after)
			more[0] = a
		}
		pdus = append(pdus, more...)
		b = r.b
	}
	return pdus, nil
}

// reader takes fields off the front; the first error persists.
type reader struct {
	b   []byte
	pdu string
	err error
}

func (r *reader) fail(field string, err error) {
	if r.err == nil {
		r.err = &PDUError{r.pdu, field, err}
	}
	r.b = nil
}

func (r *reader) uvarint(field string, most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	switch {
	case n == 0:
		r.fail(field, ErrShort)
		return 0
	case n < 0 || v > most:
		r.fail(field, ErrValue)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) octets(field string, n int) []byte {
	if n > len(r.b) {
		r.fail(field, ErrShort)
		return make([]byte, min(n, 4))
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// fragment is the rest of the datagram, or as many octets as the length says.
func (r *reader) fragment(flags byte) []byte {
	n := len(r.b)
	if flags&flagLength != 0 {
		n = int(r.uvarint("length", math.MaxUint16))
	}
	return r.octets("fragment", n)
}

// pdu1 reads one PDU; a Whole is two.
func (r *reader) pdu1(kind, flags byte, from, self NodeID) ([]PDU, error) {
	const id32 = math.MaxUint32
	source := from
	if flags&flagSource != 0 && kind != compactStandard {
		source = NodeID(r.uvarint("Source_ID", id32))
	}
	var out []PDU
	switch kind {
	case compactStandard:
		n := int(r.uvarint("length", math.MaxUint16))
		body := r.octets("Length_of_PDU", n)
		if r.err != nil {
			return nil, r.err
		}
		p, _, err := Parse(body)
		return []PDU{p}, err
	case compactAck, compactHave:
		r.pdu = KindAck.String()
		out = []PDU{r.ack(kind, flags, source, self)}
	case compactTurn:
		r.pdu = "Turn"
		out = []PDU{r.turn(flags, from)}
	case compactData, compactAddress, compactDiscard, compactWhole, compactParity, compactAddress | compactSet, compactWhole | compactSet:
		m := MessageID(r.uvarint("Message_ID", id32))
		var priority uint8
		if flags&flagPriority != 0 {
			priority = r.octets("Priority", 1)[0]
		}
		switch kind {
		case compactData:
			r.pdu = KindData.String()
			p := DataPDU{Priority: priority, Source: source, Message: m, Number: uint16(r.uvarint("Sequence_Number", math.MaxUint16))}
			if p.Number == 0 {
				r.fail("Sequence_Number", ErrValue)
			}
			p.Fragment = r.fragment(flags)
			out = []PDU{p}
		case compactDiscard:
			out = []PDU{DiscardPDU{priority, source, m}}
		case compactParity:
			p := ParityPDU{Source: source, Message: m, Index: uint16(r.uvarint("index", math.MaxUint16)), Left: uint16(r.uvarint("left", math.MaxUint16))}
			p.Shard = r.fragment(flags)
			out = []PDU{p}
		default:
			r.pdu = KindAddress.String()
			out = r.address(kind, flags, AddressPDU{Priority: priority, Source: source, Message: m})
		}
	default:
		r.fail("PDU_Type", ErrType)
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

func (r *reader) address(kind, flags byte, p AddressPDU) []PDU {
	set := kind&compactSet != 0
	kind &^= compactSet
	p.Total = 1
	if kind == compactAddress {
		p.Total = uint16(r.uvarint("Total_Number_of_PDUs", math.MaxUint16))
	}
	p.Expiry = time.Unix(int64(binary.BigEndian.Uint32(r.octets("Expiry_Time", 4))), 0).UTC()
	if kind == compactAddress && flags&flagMAP != 0 {
		m := r.octets("MAP", 1)[0]
		p.MAP, p.Batch = MAP(m)&mapMask, m&mapBatch != 0
	}
	if kind == compactAddress && flags&flagPlan != 0 {
		p.Plan = &Plan{Last: uint16(r.uvarint("last", math.MaxUint16)), Follow: uint16(r.uvarint("follow", math.MaxUint16))}
	}
	p.Destinations = r.destinations(set)
	if r.err != nil {
		return nil
	}
	if kind == compactAddress {
		return []PDU{p}
	}
	p.AtOnce = flags&flagAtOnce != 0
	return []PDU{p, DataPDU{Priority: p.Priority, Number: 1, Source: p.Source, Message: p.Message, Fragment: r.fragment(flags)}}
}

func (r *reader) ack(kind, flags byte, source, self NodeID) AckPDU {
	p := AckPDU{Source: source}
	of := self
	if flags&flagOf != 0 {
		of = NodeID(r.uvarint("Source_ID of the messages", math.MaxUint32))
	}
	if kind == compactHave {
		p.Entries, p.Runs = r.runs(of), true
		return p
	}
	count := r.uvarint("Count_of_Ack_Info_Entries", uint64(len(r.b)/2))
	if count == 0 {
		r.fail("Count_of_Ack_Info_Entries", ErrValue) // such a PDU goes in standard form
	}
	var m MessageID
	for i := range count {
		if i == 0 {
			m = MessageID(r.uvarint("Message_ID", math.MaxUint32))
		} else if m += MessageID(r.step()); r.err != nil {
			return p
		}
		head := r.uvarint("Length_of_Ack_Info_Entry", 2*uint64(len(r.b))+1)
		e := AckEntry{Source: of, Message: m, Cut: head&1 != 0}
		var end uint64
		for range head >> 1 {
			var from uint64
			from, end = r.run("Missing_Data_PDU_Seq_Numbers", end, math.MaxUint16, math.MaxUint16)
			if r.err != nil {
				return p
			}
			e.Missing = append(e.Missing, Run{uint16(from), uint16(end)})
		}
		if e.Cut && len(e.Missing) == 0 {
			r.fail("Missing_Data_PDU_Seq_Numbers", ErrValue)
		}
		p.Entries = append(p.Entries, e)
		if r.err != nil {
			return p
		}
	}
	return p
}
