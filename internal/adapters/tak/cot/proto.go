package cot

import (
	"slices"
	"strings"
	"time"
)

// Control says which versions a device reads (TakControl).
type Control struct {
	Least, Most uint32
	UID         string
}

// The elements for which version 1 has messages, by their field in Detail, with their fields. An element with other
// attributes, or with something inside, stays XML.
var typed = []struct {
	number int
	name   string
	attrs  []string
	kind   byte // of the fields: s text, u whole number, d double
}{
	{2, "contact", []string{"endpoint", "callsign"}, 's'},
	{3, "__group", []string{"name", "role"}, 's'},
	{4, "precisionlocation", []string{"geopointsrc", "altsrc"}, 's'},
	{5, "status", []string{"battery"}, 'u'},
	{6, "takv", []string{"device", "platform", "os", "version"}, 's'},
	{7, "track", []string{"speed", "course"}, 'd'},
}

// surelyShort is the length up to which a message of version 1 obeys the bounds of XML: a double of nine octets has up to 340 in XML.
const surelyShort = 4 << 10

// ParseProto reads a TakMessage: an event, a Control, or both. The event obeys the bounds of ParseXML.
func ParseProto(b []byte) (e *Event, c *Control, err error) {
	if len(b) > MaxEvent {
		return nil, nil, fault(TooLong, "a message of %d octets, at most %d are read", len(b), MaxEvent)
	}
	err = fields(b, func(f field) (err error) {
		switch {
		case f.number == 1 && f.wire == wireBytes:
			c, err = controlOf(f.b)
		case f.number == 2 && f.wire == wireBytes:
			e, err = protoEvent(f.b)
		}
		return err
	})
	if err == nil && e == nil && c == nil {
		err = fault(Syntax, "a message without an event")
	}
	if err == nil && e != nil {
		err = e.Check()
	}
	if err == nil && e != nil && len(b) > surelyShort { // texts and doubles become longer in XML
		_, err = ParseXML(e.AppendXML(nil))
	}
	if err != nil {
		return nil, nil, err
	}
	return e, c, nil
}

func controlOf(b []byte) (*Control, error) {
	c := &Control{}
	err := fields(b, func(f field) error {
		switch {
		case f.number == 1 && f.wire == wireVarint:
			c.Least = uint32(min(f.n, 1<<31))
		case f.number == 2 && f.wire == wireVarint:
			c.Most = uint32(min(f.n, 1<<31))
		case f.number == 3 && f.wire == wireBytes:
			c.UID = f.text()
		}
		return nil
	})
	c.Least = max(1, c.Least)
	if c.Most == 0 { // absent: 1, by the protocol
		c.Most = 1
	}
	return c, err
}

func protoEvent(b []byte) (*Event, error) {
	e := &Event{Version: "2.0", Bare: true, Point: Point{Lat: "0", Lon: "0", HAE: "0", CE: "0", LE: "0"}}
	texts := map[int]*string{1: &e.Type, 2: &e.Access, 3: &e.QoS, 4: &e.Opex, 5: &e.UID, 9: &e.How}
	times := map[int]*time.Time{6: &e.Time, 7: &e.Start, 8: &e.Stale}
	numbers := map[int]*Number{10: &e.Point.Lat, 11: &e.Point.Lon, 12: &e.Point.HAE, 13: &e.Point.CE, 14: &e.Point.LE}
	err := fields(b, func(f field) (err error) {
		switch {
		case texts[f.number] != nil && f.wire == wireBytes:
			*texts[f.number] = f.text()
			if !readable(f.b) {
				return fault(Syntax, "a text that is not UTF-8 or has control characters")
			}
		case times[f.number] != nil && f.wire == wireVarint:
			if f.n >= uint64(timesEnd.UnixMilli()) {
				return fault(NoTime, "a time after the year 2200")
			}
			*times[f.number] = time.UnixMilli(int64(f.n)).UTC()
		case numbers[f.number] != nil && f.wire == wireDouble:
			*numbers[f.number] = f.double()
		case f.number == 15 && f.wire == wireBytes:
			e.Bare = false
			e.Detail, err = protoDetail(f.b)
		}
		return err
	})
	for _, n := range []*Number{&e.Point.HAE, &e.Point.CE, &e.Point.LE} {
		*n = n.unknown()
	}
	return e, err
}

func protoDetail(b []byte) (nodes []Node, err error) {
	err = fields(b, func(f field) error {
		if f.wire != wireBytes {
			return nil
		}
		if f.number == 1 {
			inside := strings.TrimSpace(f.text())
			if inside, ok := strings.CutPrefix(inside, "<detail>"); ok { // some devices put the element itself there
				f.b = []byte(strings.TrimSuffix(inside, "</detail>"))
			}
			more, err := ParseDetail(f.b)
			nodes = append(nodes, more...)
			return err
		}
		for _, t := range typed {
			if t.number != f.number {
				continue
			}
			n := Node{Name: t.name}
			err := fields(f.b, func(g field) error {
				if g.number > len(t.attrs) {
					return nil
				}
				value := ""
				switch {
				case t.kind == 's' && g.wire == wireBytes:
					value = g.text()
					if !readable(g.b) {
						return fault(Syntax, "a text that is not UTF-8 or has control characters")
					}
				case t.kind == 'u' && g.wire == wireVarint:
					value = string(NumberOf(float64(g.n)))
				case t.kind == 'd' && g.wire == wireDouble:
					value = string(g.double())
				default:
					return nil
				}
				n.Attrs = append(n.Attrs, Attr{t.attrs[g.number-1], value})
				return nil
			})
			if err != nil {
				return err
			}
			if t.kind == 'd' { // a double of 0 takes no field
				for _, name := range t.attrs {
					if !slices.ContainsFunc(n.Attrs, func(a Attr) bool { return a.Name == name }) {
						n.Attrs = append(n.Attrs, Attr{name, "0"})
					}
				}
			}
			nodes = append(nodes, n)
		}
		return nil
	})
	return nodes, err
}

func readable(b []byte) bool {
	_, err := ParseDetail(appendText(nil, string(b), false))
	return err == nil
}

// AppendProto appends the event as a TakMessage, with the versions of c; c may be nil, or e. Attributes for which version 1
// has no field (caveat, releasableTo, those that this package does not know) are dropped.
func (e *Event) AppendProto(dst []byte, c *Control) []byte {
	if c != nil {
		m := appendUint(nil, 1, uint64(c.Least))
		m = appendUint(m, 2, uint64(c.Most))
		dst = appendMessage(dst, 1, appendString(m, 3, c.UID))
	}
	if e == nil {
		return dst
	}
	m := appendString(nil, 1, e.Type)
	m = appendString(m, 2, e.Access)
	m = appendString(m, 3, e.QoS)
	m = appendString(m, 4, e.Opex)
	m = appendString(m, 5, e.UID)
	m = appendUint(m, 6, uint64(max(0, e.Time.UnixMilli())))
	m = appendUint(m, 7, uint64(max(0, e.Start.UnixMilli())))
	m = appendUint(m, 8, uint64(max(0, e.Stale.UnixMilli())))
	m = appendString(m, 9, e.How)
	for i, n := range [...]Number{e.Point.Lat, e.Point.Lon, e.Point.HAE, e.Point.CE, e.Point.LE} {
		f, _ := n.Float()
		m = appendDouble(m, 10+i, f)
	}
	if d := appendProtoDetail(nil, e.Detail); len(d) > 0 {
		m = appendMessage(m, 15, d)
	}
	return appendMessage(dst, 2, m)
}

func appendProtoDetail(dst []byte, nodes []Node) []byte {
	var xml, rest []byte
	used := map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		body, number := typedBody(n)
		if number == 0 || used[n.Name] {
			xml = n.append(xml)
			continue
		}
		used[n.Name] = true
		rest = appendMessage(rest, number, body)
	}
	return append(appendString(dst, 1, string(xml)), rest...)
}

// typedBody is an element as a message of version 1; 0: version 1 has no message that can express it.
func typedBody(n *Node) (body []byte, number int) {
	for _, t := range typed {
		if t.name != n.Name || len(n.Kids) > 0 || len(n.Attrs) == 0 {
			continue
		}
		if t.kind == 'd' && len(n.Attrs) != len(t.attrs) {
			return nil, 0
		}
		for at, name := range t.attrs {
			i := slices.IndexFunc(n.Attrs, func(a Attr) bool { return a.Name == name })
			if i < 0 {
				continue
			}
			v := n.Attrs[i].Value
			f, ok := Number(v).Float()
			switch {
			case v == "", t.kind != 's' && (!ok || string(NumberOf(f)) != v), t.kind == 'u' && (f < 1 || f > 1<<31 || f != float64(uint64(f))):
				return nil, 0
			case t.kind == 's':
				body = appendString(body, at+1, v)
			case t.kind == 'u':
				body = appendUint(body, at+1, uint64(f))
			default:
				body = appendDouble(body, at+1, f)
			}
		}
		for _, a := range n.Attrs {
			if !slices.Contains(t.attrs, a.Name) {
				return nil, 0
			}
		}
		return body, t.number
	}
	return nil, 0
}
