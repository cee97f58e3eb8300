package code

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/tak/cot"
)

// Flags of the head.
const (
	oldVersion  = 1 << iota // a version that is not 2.0
	rare                    // access, qos, opex, caveat, releasableTo or attributes besides these
	startApart              // start is not time
	millis                  // times are in milliseconds, not in seconds
	more                    // elements besides point and detail
	pointMore               // attributes of the point besides the five
	bare                    // no element of details
	detailFirst             // the detail stands before the point
)

// Elements.
const (
	endOfList  = 0
	textNode   = 1
	anyElement = 2
	firstShape = 3

	usualReport = 255
	hasKids     = 1 // of a shape's mask
	hasMore     = 2

	unsaid = 16 // ends of lists that are left out at the end of an event
)

// Append appends an event. base is a time that the far side knows, too; names are the units that it knows, or nil.
func Append(dst []byte, e *cot.Event, base time.Time, names Names) []byte {
	c := &coder{names: names, base: base.Truncate(time.Millisecond)}
	flags := byte(0)
	set := func(bit byte, when bool) {
		if when {
			flags |= bit
		}
	}
	set(oldVersion, e.Version != "2.0")
	set(rare, e.Access+e.QoS+e.Opex+e.Caveat+e.Releasable != "" || len(e.Other) > 0)
	set(startApart, !e.Start.Equal(e.Time))
	for _, t := range [...]time.Time{e.Time, e.Start, e.Stale} {
		set(millis, t.Nanosecond() != 0)
	}
	set(more, len(e.More) > 0)
	set(pointMore, len(e.Point.Other) > 0)
	set(bare, e.Bare && len(e.Detail) == 0)
	set(detailFirst, e.DetailFirst)
	dst = append(dst, flags)
	dst = c.value(dst, e.Type, 0)
	dst = c.value(dst, e.How, 0)
	dst = c.value(dst, e.UID, 0)
	c.uid = e.UID
	unit := time.Second
	if flags&millis != 0 {
		unit = time.Millisecond
	}
	dst = binary.AppendVarint(dst, int64(e.Time.Sub(c.base.Truncate(unit))/unit))
	if flags&startApart != 0 {
		dst = binary.AppendVarint(dst, int64(e.Start.Sub(e.Time)/unit))
	}
	dst = binary.AppendUvarint(dst, uint64(max(0, e.Stale.Sub(e.Start))/unit))
	if flags&oldVersion != 0 {
		dst = c.value(dst, e.Version, 0)
	}
	if flags&rare != 0 {
		for _, v := range [...]string{e.Access, e.QoS, e.Opex, e.Caveat, e.Releasable} {
			dst = c.value(dst, v, 0)
		}
		dst = c.attrs(dst, e.Other)
	}
	dst = c.point(dst, &e.Point)
	c.near = nearOf(&e.Point)
	if flags&pointMore != 0 {
		dst = c.attrs(dst, e.Point.Other)
	}
	// The callsign comes first, so that other values may refer to it.
	sign := e.Callsign()
	dst = c.value(dst, sign, 0)
	c.callsign = sign
	dst = c.list(dst, e.Detail)
	if flags&more != 0 {
		dst = c.list(dst, e.More)
	}
	for n := 0; n < unsaid && dst[len(dst)-1] == endOfList; n++ {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// point appends the position of an event.
func (c *coder) point(dst []byte, p *cot.Point) []byte {
	dst = c.coordinate(dst, p.Lat)
	dst = c.coordinate(dst, p.Lon)
	mask, at := byte(0), len(dst)
	dst = append(dst, 0)
	for i, n := range [...]cot.Number{p.HAE, p.CE, p.LE} {
		if n != cot.Unknown {
			mask |= 1 << i
			dst = c.value(dst, string(n), 1)
		}
	}
	dst[at] = mask
	return dst
}

// coordinate appends digits behind the point and a signed varint, or otherDigits and a value.
func (c *coder) coordinate(dst []byte, n cot.Number) []byte {
	whole, tail, _ := strings.Cut(string(n), ".")
	v, err := strconv.ParseInt(whole+tail, 10, 64)
	if err != nil || v == 0 && n != "0" || len(tail) > 15 || string(n) != written(v, len(tail)) {
		return c.value(append(dst, otherDigits), string(n), 1)
	}
	return binary.AppendVarint(append(dst, byte(len(tail))), v)
}

const otherDigits = 255

func (c *coder) readCoordinate(r *reader) cot.Number {
	digits := r.octet()
	if digits == otherDigits {
		return cot.Number(c.read(r, 1))
	}
	if digits > 15 {
		r.fail("%d digits", digits)
		return ""
	}
	return cot.Number(written(r.varint(), int(digits)))
}

// readPoint reads a position that point appended.
func (c *coder) readPoint(r *reader) (p cot.Point) {
	p.Lat, p.Lon = c.readCoordinate(r), c.readCoordinate(r)
	mask := r.octet()
	for i, to := range [...]*cot.Number{&p.HAE, &p.CE, &p.LE} {
		*to = cot.Unknown
		if mask&(1<<i) != 0 {
			*to = cot.Number(c.read(r, 1))
		}
	}
	return p
}

func (c *coder) attrs(dst []byte, list []cot.Attr) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, a := range list {
		dst = c.value(dst, a.Name, 0)
		dst = c.value(dst, a.Value, 0)
	}
	return dst
}

func (c *coder) list(dst []byte, nodes []cot.Node) []byte {
	for i := 0; i < len(nodes); i++ {
		if c.usual(nodes[i:]) {
			dst = c.appendUsual(dst, nodes[i:])
			i += len(usual) - 1
			continue
		}
		dst = c.node(dst, &nodes[i])
	}
	return append(dst, endOfList)
}

func (c *coder) node(dst []byte, n *cot.Node) []byte {
	if n.Name == "" {
		return c.value(append(dst, textNode), n.Text, 0)
	}
	best, bestCost := -1, 0
	for _, i := range shapeOf[n.Name] {
		cost := 0
		for _, a := range n.Attrs {
			if indexOf(shapes[i].attrs, a.Name) < 0 {
				cost += 2
			}
		}
		cost = cost*16 + len(shapes[i].attrs)
		if best < 0 || cost < bestCost {
			best, bestCost = i, cost
		}
	}
	if best < 0 || twice(n.Attrs) {
		dst = c.value(append(dst, anyElement), n.Name, 0)
		dst = c.attrs(dst, n.Attrs)
		return c.list(dst, n.Kids)
	}
	s := shapes[best]
	mask := uint64(0)
	var other []cot.Attr
	values := make([]string, len(s.attrs))
	for _, a := range n.Attrs {
		if i := indexOf(s.attrs, a.Name); i >= 0 {
			mask |= 4 << i
			values[i] = a.Value
		} else {
			other = append(other, a)
		}
	}
	if len(other) > 0 {
		mask |= hasMore
	}
	if len(n.Kids) > 0 {
		mask |= hasKids
	}
	dst = binary.AppendUvarint(append(dst, byte(firstShape+best)), mask)
	for i, v := range values {
		if mask&(4<<i) != 0 {
			dst = c.value(dst, v, 0)
		}
	}
	if len(other) > 0 {
		dst = c.attrs(dst, other)
	}
	if len(n.Kids) > 0 {
		dst = c.list(dst, n.Kids)
	}
	return dst
}

func indexOf(list []string, name string) int {
	for i, v := range list {
		if v == name {
			return i
		}
	}
	return -1
}

// twice says whether an element has an attribute twice, which no shape can express.
func twice(attrs []cot.Attr) bool {
	for i := range attrs {
		for _, b := range attrs[:i] {
			if b.Name == attrs[i].Name {
				return true
			}
		}
	}
	return false
}

// Parse reads an event that Append appended, with the same base and names. The error is ErrMalformed, or ErrNames where a unit is
// named that is not in names.
func Parse(b []byte, base time.Time, names Names) (*cot.Event, error) {
	c := &coder{names: names, base: base.Truncate(time.Millisecond)}
	r := &reader{b: append(bytes.Clone(b), make([]byte, unsaid)...)}
	flags := r.octet()
	e := &cot.Event{Version: "2.0", Bare: flags&bare != 0, DetailFirst: flags&detailFirst != 0}
	e.Type, e.How, e.UID = c.read(r, 0), c.read(r, 0), c.read(r, 0)
	c.uid = e.UID
	unit := time.Second
	if flags&millis != 0 {
		unit = time.Millisecond
	}
	e.Time = c.after(r, unit)
	e.Start = e.Time
	if flags&startApart != 0 {
		from := *c
		from.base = e.Time
		e.Start = from.after(r, unit)
	}
	stale := r.uvarint()
	if most := uint64(250 * 365 * 24 * time.Hour / unit); stale > most {
		r.fail("stale too late")
		stale = 0
	}
	e.Stale = e.Start.Add(time.Duration(stale) * unit)
	if flags&oldVersion != 0 {
		e.Version = c.read(r, 0)
	}
	if flags&rare != 0 {
		for _, to := range [...]*string{&e.Access, &e.QoS, &e.Opex, &e.Caveat, &e.Releasable} {
			*to = c.read(r, 0)
		}
		e.Other = c.readAttrs(r)
	}
	e.Point = c.readPoint(r)
	c.near = nearOf(&e.Point)
	if flags&pointMore != 0 {
		e.Point.Other = c.readAttrs(r)
	}
	c.callsign = c.read(r, 0)
	c.octets -= len(c.callsign) // the detail has it
	e.Detail = c.readList(r, 2)
	if flags&more != 0 {
		e.More = c.readList(r, 1)
	}
	if r.err != nil {
		return nil, r.err
	}
	for _, v := range [...]string{e.Version, e.UID, e.Type, e.How, e.Access, e.QoS, e.Opex, e.Caveat, e.Releasable} {
		c.clean(r, v)
	}
	if r.err != nil {
		return nil, r.err
	}
	if err := e.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return e, nil
}

func (c *coder) readAttrs(r *reader) (list []cot.Attr) {
	count := r.uvarint()
	for ; count > 0 && r.err == nil; count-- {
		c.nodes++
		if c.nodes > cot.MaxNodes {
			r.fail("too many attributes")
			break
		}
		name := c.read(r, 0)
		list = append(list, cot.Attr{Name: name, Value: c.clean(r, c.read(r, 0))})
		if !nameable(name) {
			r.fail("an attribute without a name")
		}
	}
	return list
}

// clean refuses texts that XML cannot hold.
func (c *coder) clean(r *reader, text string) string {
	if !valid(text) {
		r.fail("a text that XML cannot hold")
	}
	return text
}

// nameable says whether a text is the name of an element or attribute.
func nameable(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		case i > 0 && (c == ':' || c >= '0' && c <= '9' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return name != "" && valid(name)
}

func (c *coder) readList(r *reader, depth int) (list []cot.Node) {
	for r.err == nil {
		tag := r.octet()
		if r.err != nil || tag == endOfList {
			return list
		}
		c.nodes++
		if c.nodes > cot.MaxNodes || depth > cot.MaxDepth {
			r.fail("too many elements, or too deep")
			return nil
		}
		if tag == usualReport {
			c.nodes += len(usual)
			list = append(list, c.readUsual(r)...)
			continue
		}
		list = append(list, c.readNode(r, tag, depth))
	}
	return list
}

func (c *coder) readNode(r *reader, tag byte, depth int) (n cot.Node) {
	switch {
	case tag == textNode:
		n.Text = c.clean(r, c.read(r, 0))
		return n
	case tag == anyElement:
		n.Name = c.read(r, 0)
		if !nameable(n.Name) {
			r.fail("an element without a name")
		}
		n.Attrs = c.readAttrs(r)
		n.Kids = c.readList(r, depth+1)
		return n
	case int(tag-firstShape) >= len(shapes):
		r.fail("shape %d is not known", tag)
		return n
	}
	s := shapes[tag-firstShape]
	n.Name = s.name
	mask := r.uvarint()
	if mask>>(2+len(s.attrs)) != 0 {
		r.fail("shape %d has no such attribute", tag)
	}
	for i, name := range s.attrs {
		if mask&(4<<i) != 0 && r.err == nil {
			n.Attrs = append(n.Attrs, cot.Attr{Name: name, Value: c.clean(r, c.read(r, 0))})
		}
	}
	if mask&hasMore != 0 {
		n.Attrs = append(n.Attrs, c.readAttrs(r)...)
	}
	if mask&hasKids != 0 {
		n.Kids = c.readList(r, depth+1)
	}
	return n
}
