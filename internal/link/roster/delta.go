package roster

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"aldis/internal/link/seal"
)

const (
	deltaFormat = 2
	deltaHead   = 1 + 4 // format and serial
)

// AppendDelta appends the changes from old to r, for a node that has old. Apply gives back r, with the authority's
// signature of the whole. The serial of old is less than that of r. If r has the second form, only the serial of old
// counts.
func (r *Roster) AppendDelta(b []byte, old *Roster) []byte {
	if r.Dated() {
		return r.AppendChange(b, old.Serial)
	}
	b = binary.BigEndian.AppendUint32(append(b, deltaFormat), r.Serial)
	b = binary.AppendUvarint(b, uint64(r.Serial-old.Serial))
	b = append(appendTime(appendTime(b, r.Made), r.At), r.Wrapper[:]...)
	var gone, set []byte
	var goneCount, setCount uint64
	for _, n := range old.Nodes {
		if _, ok := r.Node(n.ID); !ok {
			gone, goneCount = binary.BigEndian.AppendUint16(gone, n.ID), goneCount+1
		}
	}
	for _, n := range r.Nodes {
		if was, ok := old.Node(n.ID); !ok || was.Public != n.Public || was.Name != n.Name {
			set = append(binary.BigEndian.AppendUint16(set, n.ID), n.Public[:]...)
			set, setCount = append(append(set, byte(len(n.Name))), n.Name...), setCount+1
		}
	}
	b = append(binary.AppendUvarint(b, goneCount), gone...)
	b = append(binary.AppendUvarint(b, setCount), set...)
	for _, n := range r.Nodes {
		b = append(b, n.Wrapped[:]...)
	}
	return append(b, r.Signature[:]...)
}

// SerialOf is the serial of a roster that Append or AppendDelta wrote, and that of the roster which it changes; 0: none, it is whole.
func SerialOf(b []byte) (serial, base uint32, err error) {
	if len(b) > 0 && b[0] == format {
		r, err := Parse(b)
		if err != nil {
			return 0, 0, err
		}
		return r.Serial, 0, nil
	}
	if len(b) < deltaHead || b[0] != deltaFormat && b[0] != changeFormat {
		return 0, 0, wrong("of another version")
	}
	serial = binary.BigEndian.Uint32(b[1:])
	back, n := binary.Uvarint(b[deltaHead:])
	if n > 0 && b[0] == changeFormat && back == uint64(serial) && back > 0 {
		return serial, 0, nil
	}
	if n <= 0 || back == 0 || back >= uint64(serial) {
		return 0, 0, wrong("what it changes is none")
	}
	return serial, serial - uint32(back), nil
}

// Apply reads the octets of AppendDelta, relative to the roster that they change. The result is not verified: use Verify.
func Apply(old *Roster, b []byte) (*Roster, error) {
	if len(b) > MaxOctets {
		return nil, wrong("%d octets, at most %d are read", len(b), MaxOctets)
	}
	serial, base, err := SerialOf(b)
	switch {
	case err != nil:
		return nil, err
	case b[0] == changeFormat:
		return parseChange(old, b)
	case base == 0 || old == nil || old.Serial != base:
		return nil, wrong("it changes roster %d", base)
	}
	p := parser{b: b[deltaHead:]}
	p.count(math.MaxUint32)
	r := &Roster{Network: old.Network, Serial: serial, Made: p.time(), At: p.time(), Nodes: slices.Clone(old.Nodes)}
	copy(r.Wrapper[:], p.octets(len(r.Wrapper)))
	for range p.count(MaxNodes) {
		id := binary.BigEndian.Uint16(p.octets(2))
		r.Nodes = slices.DeleteFunc(r.Nodes, func(n Node) bool { return n.ID == id })
	}
	for range p.count(MaxNodes) {
		n := Node{ID: binary.BigEndian.Uint16(p.octets(2)), Public: seal.PublicKey(p.octets(len(seal.PublicKey{})))}
		n.Name = p.name()
		r.Nodes = append(slices.DeleteFunc(r.Nodes, func(was Node) bool { return was.ID == n.ID }), n)
	}
	slices.SortFunc(r.Nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	for i := range r.Nodes {
		copy(r.Nodes[i].Wrapped[:], p.octets(len(r.Nodes[i].Wrapped)))
	}
	copy(r.Signature[:], p.octets(sigLen))
	if p.short || len(p.b) > 0 {
		return nil, wrong("cut short, or more than a change")
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

// count takes off a count of items, at most so many.
func (p *parser) count(most uint64) uint64 {
	n, size := binary.Uvarint(p.b)
	if size <= 0 || n > most {
		p.short, p.b = true, nil
		return 0
	}
	p.b = p.b[size:]
	return n
}
