package trace

import (
	"encoding/binary"
	"slices"

	"aldis/internal/link/elide"
	"aldis/internal/link/frame"
)

const (
	maxObjects  = 64       // NORM objects put together at a time
	maxAssembly = 32 << 20 // octets of them all
	maxFinished = 1 << 16  // objects of one direction that are remembered
)

// object is a NORM object being put together from its source symbols.
type object struct {
	data    []byte
	have    map[int]bool // offsets
	missing int
}

const (
	normPayload  = 32 // octets of header of a restored NORM DATA packet (norm 1)
	normNackKind = 5  // first octet of an elided NACK (package normwire)
)

// norm returns the ledger's kind of a NORM frame.
func (l *linkAnalyser) norm(d *direction, s *tcpSegment, body []byte, octets int) string {
	packet, info, err := d.restore(body)
	if err != nil {
		tallyIn(l.frames, "norm (unread)", octets)
		return "repair"
	}
	tallyIn(l.frames, "norm "+info.Kind.String(), octets)
	if info.Kind != elide.Data || len(packet) < normPayload {
		return "repair"
	}
	at := uint64(info.Generation)<<56 | uint64(info.Object)<<40 | uint64(info.Block)<<8 | uint64(info.Symbol) + 1
	again := info.Repair || at <= d.sent && d.sent>>56 == at>>56
	d.sent = max(d.sent, at)
	l.assemble(d, s, info, packet[normPayload:])
	if again {
		return "repair"
	}
	return "payload"
}

// restore restores the packet of a NORM frame. The segment size is the profile's; without a profile the first DATA of an object of
// several segments shows it, because that segment is full.
func (d *direction) restore(body []byte) ([]byte, elide.Info, error) {
	if len(body) < 2 {
		return nil, elide.Info{}, elide.ErrShort
	}
	if d.session != nil && body[0]&7 == normNackKind {
		d.session.Restarted(body[1]) // a NACK is for the generation that it names
	}
	try := func(s *elide.Session) ([]byte, elide.Info, error) {
		packets, info, err := s.Restore(body)
		if err != nil {
			return nil, info, err
		}
		return packets[len(packets)-1], info, nil
	}
	if d.session != nil {
		packet, info, err := try(d.session)
		if err == nil || d.segment != 0 {
			return packet, info, err
		}
	}
	to := d.nodes.to
	if to == 0 {
		to = ^d.nodes.from // NORM node id that no node has; only NACKs name it
	}
	for segment := min(len(body), elide.MaxSegment); segment > 0; segment-- {
		s, err := elide.NewSession(elide.Config{Self: to, Peer: d.nodes.from, Segment: segment})
		if err != nil {
			return nil, elide.Info{}, err
		}
		s.Restarted(body[1])
		packet, info, err := try(s)
		if err != nil {
			continue
		}
		d.session = s
		if len(packet) > normPayload && info.Kind == elide.Data && info.Octets == segment && segment < info.Size {
			d.segment = segment
		}
		return packet, info, nil
	}
	return nil, elide.Info{}, elide.ErrMismatch
}

// assemble puts an object together from source symbols. Objects that need parity stay unread.
func (l *linkAnalyser) assemble(d *direction, s *tcpSegment, info elide.Info, payload []byte) {
	size := int64(info.Size)
	if size <= 0 || size > maxAssembly || info.Octets != len(payload) {
		return
	}
	key := uint32(info.Generation)<<16 | uint32(info.Object)
	o := d.objects[key]
	if o == nil {
		if len(d.objects) >= maxFinished {
			d.objects = map[uint32]*object{}
		}
		for len(l.assembly) > 0 && (len(l.assembly) >= maxObjects || l.assembled+size > maxAssembly) {
			oldest := l.assembly[0]
			l.assembly = l.assembly[1:]
			l.assembled -= int64(len(oldest.data))
			oldest.data, oldest.have = nil, nil
		}
		l.assembled += size
		o = &object{data: make([]byte, size), have: map[int]bool{}, missing: int(size)}
		d.objects[key] = o
		l.assembly = append(l.assembly, o)
	}
	if o.missing == 0 || int64(len(o.data)) != size {
		return
	}
	at, ok := elide.LayoutOf(info.Size, max(d.segment, len(payload))).Offset(info.Block, info.Symbol)
	if !ok || o.have[at] || at+len(payload) > len(o.data) {
		return
	}
	o.have[at] = true
	copy(o.data[at:], payload)
	o.missing -= len(payload)
	if o.missing > 0 {
		return
	}
	data := o.data
	l.assembly = slices.DeleteFunc(l.assembly, func(other *object) bool { return other == o })
	l.assembled -= size
	o.data, o.have = nil, nil
	l.r.Objects++
	_, _, data, ok = elide.CutPrefix(data)
	if !ok || len(data) < objectHead {
		return
	}
	if !d.first(frame.Bulk, binary.BigEndian.Uint16(data), s.at) {
		l.r.Repeats++
		return
	}
	l.r.Messages++
	l.envelope(d, s, d.flows, data[objectHead:], nil, 0)
}

// objectHead is the length of the head, a number, that a gateway puts before an envelope in an object.
const objectHead = 2
