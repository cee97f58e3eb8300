package segment

import (
	"cmp"
	"slices"

	"aldis/internal/link/frame"
)

// MaxObject is the most octets of an object that is cut, as coded.
const MaxObject = 1 << 20

// MostUnder is how many objects may be under way, so that the low 7 bits of their numbers name them.
const MostUnder = 48

// sliver is the least octets of a segment, unless its object has fewer left.
const sliver = 24

// Cutter is the objects to one peer that are being cut, and the segments under way. The zero value is ready.
type Cutter struct {
	objects map[uint64]*object // by number of the bulk queue
	under   map[uint64]*span   // by number of the direct queue
	octets  int                // of the segments in under that have not arrived
}

// object is a message that is being cut.
type object struct {
	number  uint64
	rank    int
	free    bool
	body    []byte
	given   int // octets of it cut so far
	flying  int // segments that are not known to have arrived
	strikes int
}

// span is the part of an object in one segment.
type span struct {
	of       *object // nil: the segment is not needed any more, and its number goes without a body
	id       uint8
	from, to int
	arrived  bool
}

// idOf is the name of an object in its segments.
func idOf(number uint64) uint8 { return uint8(number) & 0x7f }

// Begin takes an object. Objects of a higher rank are cut first. free: the receiver need not wait for earlier objects. An
// object whose number is under way begins anew.
func (c *Cutter) Begin(number uint64, rank int, free bool, body []byte) {
	c.End(number)
	if c.objects == nil {
		c.objects = map[uint64]*object{}
	}
	c.objects[number] = &object{number: number, rank: rank, free: free, body: body}
}

// Has says whether an object is under way.
func (c *Cutter) Has(number uint64) bool { return c.objects[number] != nil }

// Progress is how many octets of an object are known to have arrived, and how many it has; 0, 0: it is not under way.
func (c *Cutter) Progress(number uint64) (there, all int) {
	o := c.objects[number]
	if o == nil {
		return 0, 0
	}
	there = o.given
	for _, s := range c.under {
		if s.of == o && !s.arrived {
			there -= s.to - s.from
		}
	}
	return there, len(o.body)
}

// Behind is the part of an object that its receiver is not known to have read: where it begins, its octets, and the numbers
// of the segments that have some of them, ascending.
func (c *Cutter) Behind(number uint64) (from int, body []byte, numbers []uint64) {
	o := c.objects[number]
	if o == nil {
		return 0, nil, nil
	}
	from = o.given
	for at, s := range c.under {
		if s.of == o {
			from, numbers = min(from, s.from), append(numbers, at)
		}
	}
	slices.Sort(numbers)
	return from, o.body[from:], numbers
}

// Flying counts the segments that are not known to have arrived.
func (c *Cutter) Flying() (n int) {
	for _, s := range c.under {
		if !s.arrived {
			n++
		}
	}
	return n
}

// Octets are the octets of segments that are not known to have arrived.
func (c *Cutter) Octets() int { return c.octets }

// Numbers are the numbers of segments that were cut and not acknowledged, ascending.
func (c *Cutter) Numbers() (list []uint64) {
	for at := range c.under {
		list = append(list, at)
	}
	slices.Sort(list)
	return list
}

// Next is the object of the next segment: the most urgent one, and of these the first. false: all are cut.
func (c *Cutter) Next() (number uint64, rank int, ok bool) {
	if o := c.next(); o != nil {
		return o.number, o.rank, true
	}
	return 0, 0, false
}

func (c *Cutter) next() (next *object) {
	for _, o := range c.objects {
		if o.given < len(o.body) && (next == nil || cmp.Or(cmp.Compare(next.rank, o.rank), cmp.Compare(o.number, next.number)) < 0) {
			next = o
		}
	}
	return next
}

// Cut is the next segment. most is the room in octets for its body and, in the first segment of an object, its total. last:
// it is the last of its object. false: there is none, or too little room. The segment is under way once Gave is called.
func (c *Cutter) Cut(most int) (f frame.Segment, last, ok bool) {
	o := c.next()
	if o == nil {
		return f, false, false
	}
	f.Object = idOf(o.number)
	if o.given == 0 {
		f.Total, f.Free = len(o.body), o.free
		most -= frame.SegmentTotal(f)
	}
	left := len(o.body) - o.given
	if most < min(left, sliver) {
		return f, false, false
	}
	n := min(most, left)
	f.Body = o.body[o.given : o.given+n]
	return f, n == left, true
}

// Gave notes that the segment of Cut goes under a number of the direct queue.
func (c *Cutter) Gave(at uint64, f frame.Segment) {
	if c.under == nil {
		c.under = map[uint64]*span{}
	}
	o := c.next()
	c.under[at] = &span{of: o, id: f.Object, from: o.given, to: o.given + len(f.Body)}
	o.given += len(f.Body)
	o.flying++
	c.octets += len(f.Body)
}

// Restore takes a segment that was under way when the gateway stopped: its object, and its octets of the object. No octets:
// the segment is not needed any more.
func (c *Cutter) Restore(at uint64, id uint8, from, to int) {
	if c.under == nil {
		c.under = map[uint64]*span{}
	}
	c.under[at] = &span{id: id, from: from, to: to}
}

// Resume continues an object that was being cut when the gateway stopped; its segments have been restored. there is the
// octet up to which all segments had been acknowledged.
func (c *Cutter) Resume(number uint64, rank int, free bool, body []byte, there int) {
	c.Begin(number, rank, free, body)
	o := c.objects[number]
	o.given = there
	for _, s := range c.under {
		if s.of == nil && s.id == idOf(number) && s.to > s.from && s.to <= len(body) {
			s.of, o.given = o, max(o.given, s.to)
			o.flying++
			c.octets += s.to - s.from
		}
	}
}

// Span is an object's number, and which of its octets the segment with this number has; zeros: it has none.
func (c *Cutter) Span(at uint64) (number uint64, from, to int) {
	if s := c.under[at]; s != nil && s.of != nil {
		return s.of.number, s.from, s.to
	}
	return 0, 0, 0
}

// Repeat is a segment to be sent again, and the number of its object. A segment that is not needed any more has no body,
// and makes its receiver forget the parts it has of the object. false: there is no segment of this number.
func (c *Cutter) Repeat(at uint64) (f frame.Segment, number uint64, ok bool) {
	s := c.under[at]
	if s == nil {
		return f, 0, false
	}
	f.Object = s.id
	if s.of == nil {
		return f, 0, true
	}
	if s.from == 0 {
		f.Total, f.Free = len(s.of.body), s.of.free
	}
	f.Body = s.of.body[s.from:s.to]
	return f, s.of.number, true
}

// Arrived notes that a segment has arrived; acked: so have all before it, and the segment is forgotten here. false: there
// is no segment of this number.
func (c *Cutter) Arrived(at uint64, acked bool) bool {
	s := c.under[at]
	if s == nil {
		return false
	}
	if !s.arrived {
		s.arrived = true
		c.octets -= s.to - s.from
		if s.of != nil {
			s.of.flying--
		}
	}
	if acked {
		delete(c.under, at)
	}
	return true
}

// End forgets an object, because it has arrived or begins anew. It returns the numbers of its segments under way, which stay in use.
func (c *Cutter) End(number uint64) (under []uint64) {
	o := c.objects[number]
	if o == nil {
		return nil
	}
	delete(c.objects, number)
	for at, s := range c.under {
		if s.of == o {
			under = append(under, at)
			if !s.arrived {
				c.octets -= s.to - s.from
			}
			s.of, s.from, s.to = nil, 0, 0
		}
	}
	slices.Sort(under)
	return under
}

// Strike is called each time the peer has said which objects it has. It returns the objects, ascending, that the peer lacks
// although all their segments have arrived, once this was so for so many calls in a row.
func (c *Cutter) Strike(times int) (list []uint64) {
	for _, o := range c.objects {
		if o.given < len(o.body) || o.flying > 0 {
			o.strikes = 0
		} else if o.strikes++; o.strikes >= times {
			list = append(list, o.number)
		}
	}
	slices.Sort(list)
	return list
}

// All are the numbers of the objects under way, ascending.
func (c *Cutter) All() (list []uint64) {
	for number := range c.objects {
		list = append(list, number)
	}
	slices.Sort(list)
	return list
}

// Open counts the objects that are not wholly cut.
func (c *Cutter) Open() (n int) {
	for _, o := range c.objects {
		if o.given < len(o.body) {
			n++
		}
	}
	return n
}
