package pmul

import (
	"encoding/binary"
	"math"
	"time"
)

// Fixed sizes, octets (p-mul 2).
const (
	dataHeader     = 16
	ackHeader      = 14
	ackEntryHeader = 10
	addressHeader  = 24
	fecHeader      = 2 // more, and the parameters
	addressEntry   = 8 // and the reserved field
	discardLen     = 16
	announceHeader = 24
	groupLen       = 20
	timestampLen   = 8
	typeMask       = 0x3f
	mapMask        = 0xc0
)

func pduErr(k Kind, field string, err error) error { return &PDUError{k.String(), field, err} }

// start appends the first 16 octets (12 for an Ack_PDU; p-mul 2). Length and checksum come with finish.
func start(b []byte, priority uint8, m MAP, k Kind, four uint16, source NodeID) []byte {
	b = append(b, 0, 0, priority, byte(m)|byte(k))
	b = binary.BigEndian.AppendUint16(b, four)
	b = append(b, 0, 0)
	return binary.BigEndian.AppendUint32(b, uint32(source))
}

func finish(b []byte, at int, k Kind, sum Checksum) ([]byte, error) {
	n := len(b) - at
	if n > math.MaxUint16 {
		return b[:at], pduErr(k, "Length_of_PDU", ErrTooLong)
	}
	binary.BigEndian.PutUint16(b[at:], uint16(n))
	putChecksum(b[at:], sum)
	return b, nil
}

// appendExpiry appends an Expiry_Time; on the wire seconds since 1970, unsigned 32 bits.
func appendExpiry(b []byte, k Kind, t time.Time) ([]byte, error) {
	s := t.Unix()
	if s < 0 || s > math.MaxUint32 || t.Nanosecond() != 0 {
		return b, pduErr(k, "Expiry_Time", ErrValue)
	}
	return binary.BigEndian.AppendUint32(b, uint32(s)), nil
}

func expiryAt(b []byte) time.Time { return time.Unix(int64(binary.BigEndian.Uint32(b)), 0).UTC() }

// Append appends any PDU in wire form. On an error it returns b unchanged.
func Append(b []byte, p PDU, sum Checksum) ([]byte, error) {
	switch p := p.(type) {
	case DataPDU:
		return appendData(b, p, sum)
	case AckPDU:
		return appendAck(b, p, sum)
	case AddressPDU:
		return appendAddress(b, p, sum)
	case DiscardPDU:
		return appendDiscard(b, p, sum)
	case AnnouncePDU:
		return appendAnnounce(b, p, sum)
	case RequestPDU:
		return appendGroup(b, KindRequest, p, sum)
	case RejectPDU:
		return appendGroup(b, KindReject, RequestPDU(p), sum)
	case ReleasePDU:
		return appendGroup(b, KindRelease, RequestPDU(p), sum)
	}
	return b, &PDUError{"PDU", "PDU_Type", ErrType}
}

// Parse reads one datagram, which is one PDU, and returns its kind of checksum. Errors are *PDUError and wrap ErrShort,
// ErrTooLong, ErrMismatch, ErrChecksum, ErrValue or ErrType.
func Parse(b []byte) (PDU, Checksum, error) {
	if len(b) < 4 {
		return nil, 0, &PDUError{"PDU", "PDU_Type", ErrShort}
	}
	sum, _ := checksumOf(b) // each parser below refuses a PDU with neither
	var p PDU
	var err error
	switch k := Kind(b[3] & typeMask); k {
	case KindData:
		p, err = parseData(b)
	case KindAck:
		p, err = parseAck(b)
	case KindAddress, KindFECAddress, KindExtraAddress, KindExtraFECAddress:
		p, err = parseAddress(b)
	case KindDiscard:
		p, err = parseDiscard(b)
	case KindAnnounce:
		p, err = parseAnnounce(b)
	case KindRequest, KindReject, KindRelease:
		p, err = parseGroup(b, k)
	default:
		err = pduErr(k, "PDU_Type", ErrType)
	}
	if err != nil {
		return nil, sum, err
	}
	return p, sum, nil
}

// open checks the fields that all PDUs share: type, length, checksum. fixed is the least length.
func open(b []byte, fixed int, kinds ...Kind) (Kind, error) {
	if len(b) < 4 {
		return 0, &PDUError{kinds[0].String(), "Length_of_PDU", ErrShort}
	}
	k, known := Kind(b[3]&typeMask), false
	for _, want := range kinds {
		known = known || k == want
	}
	if !known {
		return k, pduErr(k, "PDU_Type", ErrMismatch)
	}
	if len(b) < fixed {
		return k, pduErr(k, "Length_of_PDU", ErrShort)
	}
	if int(binary.BigEndian.Uint16(b)) != len(b) {
		return k, pduErr(k, "Length_of_PDU", ErrMismatch)
	}
	if _, ok := checksumOf(b); !ok {
		return k, pduErr(k, "Checksum", ErrChecksum)
	}
	return k, nil
}

// appendData appends a Data_PDU (p-mul 2.2).
func appendData(b []byte, p DataPDU, sum Checksum) ([]byte, error) {
	if p.Number == 0 {
		return b, pduErr(KindData, "Sequence_Number", ErrValue)
	}
	at := len(b)
	b = start(b, p.Priority, 0, KindData, p.Number, p.Source)
	b = binary.BigEndian.AppendUint32(b, uint32(p.Message))
	b = append(b, p.Fragment...)
	return finish(b, at, KindData, sum)
}

// parseData reads a Data_PDU. Fragment aliases b.
func parseData(b []byte) (DataPDU, error) {
	if _, err := open(b, dataHeader, KindData); err != nil {
		return DataPDU{}, err
	}
	p := DataPDU{Priority: b[2], Number: binary.BigEndian.Uint16(b[4:]), Source: NodeID(binary.BigEndian.Uint32(b[8:])),
		Message: MessageID(binary.BigEndian.Uint32(b[12:])), Fragment: b[dataHeader:]}
	if p.Number == 0 {
		return DataPDU{}, pduErr(KindData, "Sequence_Number", ErrValue)
	}
	return p, nil
}

// appendAddress appends an Address_PDU of any of the four kinds (p-mul 2.1).
func appendAddress(b []byte, p AddressPDU, sum Checksum) ([]byte, error) {
	k := p.Kind()
	if len(p.Destinations) > math.MaxUint16 {
		return b, pduErr(k, "Count_of_Destination_Entries", ErrTooLong)
	}
	if p.Reserved < 0 || p.Reserved > math.MaxUint16 {
		return b, pduErr(k, "Length_of_Reserved_Field", ErrValue)
	}
	at := len(b)
	b = start(b, p.Priority, p.MAP&mapMask, k, p.Total, p.Source)
	b = binary.BigEndian.AppendUint32(b, uint32(p.Message))
	b, err := appendExpiry(b, k, p.Expiry)
	if err != nil {
		return b[:at], err
	}
	if p.FEC != nil {
		if len(p.FEC.Parameters) > math.MaxUint8 {
			return b[:at], pduErr(k, "Length_of_FEC_Parameters", ErrTooLong)
		}
		b = append(b, byte(len(p.FEC.Parameters)), p.FEC.ID)
		b = append(b, p.FEC.Parameters...)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.Destinations)))
	b = binary.BigEndian.AppendUint16(b, uint16(p.Reserved))
	for _, d := range p.Destinations {
		if len(d.Reserved) != p.Reserved {
			return b[:at], pduErr(k, "Reserved", ErrMismatch)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(d.Node))
		b = binary.BigEndian.AppendUint32(b, d.Sequence)
		b = append(b, d.Reserved...)
		if len(b)-at > math.MaxUint16 {
			return b[:at], pduErr(k, "Length_of_PDU", ErrTooLong)
		}
	}
	return finish(b, at, k, sum)
}

// parseAddress reads an Address_PDU of any of the four kinds.
func parseAddress(b []byte) (AddressPDU, error) {
	k, err := open(b, addressHeader, KindAddress, KindExtraAddress, KindFECAddress, KindExtraFECAddress)
	if err != nil {
		return AddressPDU{}, err
	}
	p := AddressPDU{Priority: b[2], MAP: MAP(b[3] & mapMask), Total: binary.BigEndian.Uint16(b[4:]),
		Source: NodeID(binary.BigEndian.Uint32(b[8:])), Message: MessageID(binary.BigEndian.Uint32(b[12:])), Expiry: expiryAt(b[16:]),
		Extra: k == KindExtraAddress || k == KindExtraFECAddress}
	rest := b[20:]
	if k == KindFECAddress || k == KindExtraFECAddress {
		n := int(rest[0])
		if len(rest) < fecHeader+n+4 {
			return AddressPDU{}, pduErr(k, "Length_of_FEC_Parameters", ErrShort)
		}
		p.FEC = &FEC{ID: rest[1], Parameters: rest[fecHeader : fecHeader+n]}
		rest = rest[fecHeader+n:]
	}
	count := int(binary.BigEndian.Uint16(rest))
	p.Reserved = int(binary.BigEndian.Uint16(rest[2:]))
	rest = rest[4:]
	switch want := count * (addressEntry + p.Reserved); {
	case len(rest) < want:
		return AddressPDU{}, pduErr(k, "Count_of_Destination_Entries", ErrShort)
	case len(rest) > want:
		return AddressPDU{}, pduErr(k, "Count_of_Destination_Entries", ErrMismatch)
	}
	if count > 0 {
		p.Destinations = make([]Destination, count) // at most an eighth of the PDU's octets
	}
	for i := range p.Destinations {
		d := Destination{Node: NodeID(binary.BigEndian.Uint32(rest)), Sequence: binary.BigEndian.Uint32(rest[4:])}
		if p.Reserved > 0 {
			d.Reserved = rest[addressEntry : addressEntry+p.Reserved]
		}
		p.Destinations[i] = d
		rest = rest[addressEntry+p.Reserved:]
	}
	return p, nil
}

// appendDiscard appends a Discard_Message_PDU (p-mul 2.4).
func appendDiscard(b []byte, p DiscardPDU, sum Checksum) ([]byte, error) {
	at := len(b)
	b = start(b, p.Priority, 0, KindDiscard, 0, p.Source)
	b = binary.BigEndian.AppendUint32(b, uint32(p.Message))
	return finish(b, at, KindDiscard, sum)
}

// parseDiscard reads a Discard_Message_PDU.
func parseDiscard(b []byte) (DiscardPDU, error) {
	if _, err := open(b, discardLen, KindDiscard); err != nil {
		return DiscardPDU{}, err
	}
	if len(b) > discardLen {
		return DiscardPDU{}, pduErr(KindDiscard, "Length_of_PDU", ErrTooLong)
	}
	return DiscardPDU{b[2], NodeID(binary.BigEndian.Uint32(b[8:])), MessageID(binary.BigEndian.Uint32(b[12:]))}, nil
}

// appendAnnounce appends an Announce_PDU (p-mul 2.4).
func appendAnnounce(b []byte, p AnnouncePDU, sum Checksum) ([]byte, error) {
	if announceHeader+4*len(p.Destinations) > math.MaxUint16 {
		return b, pduErr(KindAnnounce, "Count_of_Destination_IDs", ErrTooLong)
	}
	at := len(b)
	b = start(b, 0, p.MAP&mapMask, KindAnnounce, uint16(len(p.Destinations)), p.Source)
	b = binary.BigEndian.AppendUint32(b, uint32(p.Message))
	b, err := appendExpiry(b, KindAnnounce, p.Expiry)
	if err != nil {
		return b[:at], err
	}
	b = binary.BigEndian.AppendUint32(b, uint32(p.Group))
	for _, n := range p.Destinations {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return finish(b, at, KindAnnounce, sum)
}

// parseAnnounce reads an Announce_PDU.
func parseAnnounce(b []byte) (AnnouncePDU, error) {
	if _, err := open(b, announceHeader, KindAnnounce); err != nil {
		return AnnouncePDU{}, err
	}
	p := AnnouncePDU{MAP: MAP(b[3] & mapMask), Source: NodeID(binary.BigEndian.Uint32(b[8:])),
		Message: MessageID(binary.BigEndian.Uint32(b[12:])), Expiry: expiryAt(b[16:]), Group: GroupAddr(binary.BigEndian.Uint32(b[20:]))}
	rest := b[announceHeader:]
	switch want := 4 * int(binary.BigEndian.Uint16(b[4:])); {
	case len(rest) < want:
		return AnnouncePDU{}, pduErr(KindAnnounce, "Count_of_Destination_IDs", ErrShort)
	case len(rest) > want:
		return AnnouncePDU{}, pduErr(KindAnnounce, "Count_of_Destination_IDs", ErrMismatch)
	}
	for ; len(rest) > 0; rest = rest[4:] {
		p.Destinations = append(p.Destinations, NodeID(binary.BigEndian.Uint32(rest)))
	}
	return p, nil
}

// appendGroup and parseGroup: Request, Reject and Release have one layout (p-mul 2.4).
func appendGroup(b []byte, k Kind, p RequestPDU, sum Checksum) ([]byte, error) {
	at := len(b)
	b = start(b, 0, 0, k, 0, p.Source)
	b = binary.BigEndian.AppendUint32(b, uint32(p.Message))
	b = binary.BigEndian.AppendUint32(b, uint32(p.Group))
	return finish(b, at, k, sum)
}

func parseGroup(b []byte, k Kind) (PDU, error) {
	if _, err := open(b, groupLen, k); err != nil {
		return nil, err
	}
	if len(b) > groupLen {
		return nil, pduErr(k, "Length_of_PDU", ErrTooLong)
	}
	p := RequestPDU{NodeID(binary.BigEndian.Uint32(b[8:])), MessageID(binary.BigEndian.Uint32(b[12:])), GroupAddr(binary.BigEndian.Uint32(b[16:]))}
	switch k {
	case KindReject:
		return RejectPDU(p), nil
	case KindRelease:
		return ReleasePDU(p), nil
	}
	return p, nil
}
