package roster

import (
	"encoding/binary"
	"slices"

	"aldis/internal/link/seal"
)

// The change of a roster of the second form from any roster with at least some serial has its nodes by id, the text of the
// nodes that have changed since that serial, and the secret for all. A node with any roster from that serial on can make
// the whole roster from it, so one text serves members with different rosters. A change from serial 0 is the whole roster.

const changeFormat = 3

// AppendChange appends, for Apply, the change to r, of the second form, from rosters with serial from or a higher one below
// r's own; 0: the whole.
func (r *Roster) AppendChange(b []byte, from uint32) []byte {
	return append(r.appendUnsigned(b, from), r.Signature[:]...)
}

func (r *Roster) appendUnsigned(b []byte, from uint32) []byte {
	return r.appendRest(r.appendHead(b, from), from)
}

// appendHead appends the part that a member needs for the secret: serial, wrapper, ids, and the wrapped secrets in the
// order of the ids.
func (r *Roster) appendHead(b []byte, from uint32) []byte {
	b = binary.BigEndian.AppendUint32(append(b, changeFormat), r.Serial)
	b = append(binary.AppendUvarint(b, uint64(r.Serial-from)), r.Wrapper[:]...)
	var runs []byte
	count, next := uint64(0), 0
	for i := 0; i < len(r.Nodes); count++ {
		end := i + 1
		for end < len(r.Nodes) && r.Nodes[end].ID == r.Nodes[end-1].ID+1 {
			end++
		}
		runs = binary.AppendUvarint(binary.AppendUvarint(runs, uint64(int(r.Nodes[i].ID)-next)), uint64(end-i))
		next, i = int(r.Nodes[end-1].ID)+1, end
	}
	b = append(binary.AppendUvarint(b, count), runs...)
	for _, n := range r.Nodes {
		b = append(b, n.Wrapped[:]...)
	}
	return b
}

// appendRest appends everything after the head, except the signature.
func (r *Roster) appendRest(b []byte, from uint32) []byte {
	b = appendTime(appendTime(b, r.Made), r.At)
	if from == 0 {
		b = append(append(b, byte(len(r.Network))), r.Network...)
	}
	var set []byte
	count := uint64(0)
	for i, n := range r.Nodes {
		if n.Since > from {
			set, count = appendEntry(binary.AppendUvarint(set, uint64(i)), n, r.Serial), count+1
		}
	}
	return append(binary.AppendUvarint(b, count), set...)
}

func appendEntry(b []byte, n Node, serial uint32) []byte {
	b = append(append(append(b, n.Public[:]...), byte(len(n.Name))), n.Name...)
	b = binary.AppendUvarint(b, uint64(serial-n.Since))
	flags := byte(len(n.Ways) << 1)
	if n.Relay {
		flags |= 1
	}
	b = append(b, flags)
	for _, w := range n.Ways {
		b = append(append(b, byte(len(w.Bearer))), w.Bearer...)
		var addr []byte
		if w.Addr.IsValid() {
			addr, _ = w.Addr.MarshalBinary() // of Addr and port
		}
		b = append(append(b, byte(len(addr))), addr...)
	}
	return b
}

// head is the content of appendHead.
type head struct {
	serial, from uint32
	wrapper      [32]byte
	ids          []uint16
	wrapped      [][16]byte
}

// head takes a head off.
func (p *parser) head() (h head) {
	if p.octets(1)[0] != changeFormat {
		p.short = true
	}
	h.serial = p.number()
	h.from = h.serial - uint32(p.count(uint64(h.serial)))
	h.wrapper = [32]byte(p.octets(32))
	next := 0
	for range p.count(MaxNodes) {
		first := next + int(p.count(1<<16))
		next = first + int(p.count(MaxNodes))
		if p.short || next == first || next > 1<<16 || len(h.ids)+next-first > MaxNodes {
			p.short = true
			return h
		}
		for id := first; id < next; id++ {
			h.ids = append(h.ids, uint16(id))
		}
	}
	for range h.ids {
		h.wrapped = append(h.wrapped, [16]byte(p.octets(16)))
	}
	return h
}

// parseChange reads the octets of AppendChange, relative to a roster with at least its base serial; nil: only a whole
// roster can be read.
func parseChange(old *Roster, b []byte) (*Roster, error) {
	p := parser{b: b}
	h := p.head()
	r := &Roster{Serial: h.serial, Wrapper: h.wrapper, Made: p.time(), At: p.time()}
	switch {
	case p.short:
		return nil, wrong("cut short, or more than a change")
	case h.from == 0:
		r.Network, old = p.name(), nil
	case old == nil || old.Serial < h.from || old.Serial >= h.serial:
		return nil, wrong("it changes roster %d and later ones", h.from)
	default:
		r.Network = old.Network
	}
	set := make([]Node, len(h.ids))
	last := -1
	for range p.count(uint64(len(h.ids))) {
		at := int(p.count(uint64(len(h.ids) - 1)))
		if at <= last {
			p.short = true
			break
		}
		last, set[at] = at, p.entry(h.serial)
		if set[at].Since <= h.from { // such a node would have been left out
			p.short = true
		}
	}
	copy(r.Signature[:], p.octets(sigLen))
	if p.short || len(p.b) > 0 {
		return nil, wrong("cut short, or more than a change")
	}
	for i, id := range h.ids {
		n := set[i]
		if n.Since == 0 {
			was, ok := Node{}, false
			if old != nil {
				was, ok = old.Node(id)
			}
			if !ok {
				return nil, wrong("it does not say what node %d is", id)
			}
			n = was
			if n.Since == 0 {
				n.Since = old.Serial
			}
		}
		n.ID, n.Wrapped = id, h.wrapped[i]
		r.Nodes = append(r.Nodes, n)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

// entry takes off a node that appendEntry wrote.
func (p *parser) entry(serial uint32) Node {
	n := Node{Public: seal.PublicKey(p.octets(len(seal.PublicKey{})))}
	n.Name = p.name()
	n.Since = serial - uint32(p.count(uint64(serial)-1))
	flags := p.octets(1)[0]
	n.Relay = flags&1 != 0
	for range min(flags>>1, MaxWays+1) {
		w := Way{Bearer: p.name()}
		switch b := p.octets(int(p.octets(1)[0])); len(b) {
		case 0:
		case 6, 18:
			if w.Addr.UnmarshalBinary(b) != nil || len(w.Addr.Addr().AsSlice())+2 != len(b) {
				p.short = true
			}
		default:
			p.short = true
		}
		n.Ways = append(n.Ways, w)
	}
	return n
}

// Introduction is a change of rosters from a serial on, for members that do not know its sender. A stranger learns from it
// only how many nodes there are, and their ids; the secret in the roster hides the rest.
func (r *Roster) Introduction(from uint32, secret seal.GroupSecret) []byte {
	clear := r.appendHead(nil, from)
	return append(clear, secret.Hide(r.Serial, clear, append(r.appendRest(nil, from), r.Signature[:]...))...)
}

// Introduced is the change in an Introduction, as read by the member self with the key own. newest is the serial of its
// newest roster: an older change gives ErrOld. The change is not verified: use Apply and Verify.
func Introduced(b []byte, self uint16, own *seal.SigningKey, newest uint32) ([]byte, error) {
	p := parser{b: b}
	h := p.head()
	i := slices.Index(h.ids, self)
	switch {
	case p.short || len(b) > MaxOctets:
		return nil, wrong("no introduction")
	case h.serial <= newest:
		return nil, ErrOld
	case i < 0:
		return nil, seal.ErrNotMember
	}
	secret, err := own.Unwrap(self, h.serial, h.wrapper, h.wrapped[i])
	if err != nil {
		return nil, err
	}
	clear := b[:len(b)-len(p.b)]
	rest, err := secret.Show(h.serial, clear, p.b)
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(clear), rest...), nil
}
