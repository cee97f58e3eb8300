package code

import "encoding/binary"

// Occupant is an occupant of a room, as other sites know it.
type Occupant struct {
	Nick string // "" if it is the name in the item
	Presence
}

// hasNick is a flag next to the show in the first octet.
const hasNick = 0x40

// Append appends the occupant: the octets of the presence; with the bit 0x40 in the first of them varint length and octets of the
// nick stand before the status. An occupant who is available, without any other property, takes no octets.
func (o Occupant) Append(dst []byte) []byte {
	if o == (Occupant{Presence: Presence{Show: Available}}) {
		return dst
	}
	status := o.Status
	o.Status = ""
	begin := len(dst)
	dst = o.Presence.Append(dst)
	if o.Nick != "" {
		dst[begin] |= hasNick
		dst = append(binary.AppendUvarint(dst, uint64(len(o.Nick))), o.Nick...)
	}
	return append(dst, status...)
}

// ParseOccupant reads what Append appended. The error is ErrMalformed.
func ParseOccupant(b []byte) (o Occupant, err error) {
	if len(b) == 0 {
		return Occupant{Presence: Presence{Show: Available}}, nil
	}
	if b[0]&hasNick == 0 {
		o.Presence, err = ParsePresence(b)
	} else {
		head := 1
		if b[0]&hasPriority != 0 {
			head = min(2, len(b))
		}
		r := &reader{b: b[head:]}
		if o.Nick = r.text(r.uvarint()); o.Nick == "" {
			r.fail("no nick")
		}
		if r.err != nil {
			return o, r.err
		}
		rest := append([]byte{b[0] &^ hasNick}, b[1:head]...)
		o.Presence, err = ParsePresence(append(rest, r.b...))
	}
	if err == nil && (o.Wants != 0 || o == (Occupant{Presence: Presence{Show: Available}})) {
		err = ErrMalformed
	}
	return o, err
}

// Removal tells the site of an occupant that the room has put the occupant out, or not let it in.
type Removal struct {
	Reason Reason // of a refusal; ReasonOf("gone") if it was put out
	Status uint16 // of XEP-0045 if it was put out: 301 banned, 307 kicked, 321, 322, 332
	User   string
}

const isRemoval = notMessage | 0x40

// Append appends the removal: octet 0xC0, octet reason, varint status, octets user.
func (r Removal) Append(dst []byte) []byte {
	return append(binary.AppendUvarint(append(dst, isRemoval, byte(r.Reason)), uint64(r.Status)), r.User...)
}

// IsRemoval says whether a record is a Removal.
func IsRemoval(b []byte) bool { return len(b) > 0 && b[0] == isRemoval }

// ParseRemoval reads what Append appended. The error is ErrMalformed.
func ParseRemoval(b []byte) (m Removal, err error) {
	r := &reader{b: b}
	if r.octet() != isRemoval {
		r.fail("no removal")
	}
	m.Reason = Reason(r.octet())
	status := r.uvarint()
	if int(m.Reason) >= len(Conditions) || status > 999 {
		r.fail("reason %d, status %d", m.Reason, status)
	}
	m.Status, m.User = uint16(status), r.text(uint64(len(r.b)))
	return m, r.err
}
