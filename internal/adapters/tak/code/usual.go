package code

import "aldis/internal/adapters/tak/cot"

// usual are the elements by which a device reports itself, in the order and with the attributes that ATAK gives them. Where
// they stand like this, their names are left out, and so are the attributes that are the callsign.
var usual = []struct {
	name  string
	attrs []string
}{
	{"takv", []string{"device", "platform", "os", "version"}},
	{"contact", []string{"endpoint", "callsign"}},
	{"uid", []string{"Droid"}},
	{"precisionlocation", []string{"geopointsrc", "altsrc"}},
	{"__group", []string{"name", "role"}},
	{"status", []string{"battery"}},
	{"track", []string{"course", "speed"}},
}

// usual says whether a list begins with all these elements.
func (c *coder) usual(nodes []cot.Node) bool {
	if len(nodes) < len(usual) || c.callsign == "" || nodes[1].Get("callsign") != c.callsign || nodes[2].Get("Droid") != c.callsign {
		return false
	}
	for i, u := range usual {
		n := &nodes[i]
		if n.Name != u.name || len(n.Attrs) != len(u.attrs) || len(n.Kids) > 0 {
			return false
		}
		for _, a := range n.Attrs {
			if indexOf(u.attrs, a.Name) < 0 {
				return false
			}
		}
		if twice(n.Attrs) {
			return false
		}
	}
	return true
}

func sign(attr string) bool { return attr == "callsign" || attr == "Droid" }

func (c *coder) appendUsual(dst []byte, nodes []cot.Node) []byte {
	dst = append(dst, usualReport)
	for i, u := range usual {
		for _, attr := range u.attrs {
			if !sign(attr) {
				dst = c.value(dst, nodes[i].Get(attr), 0)
			}
		}
	}
	return dst
}

func (c *coder) readUsual(r *reader) (nodes []cot.Node) {
	c.octets += 2 * len(c.callsign) // two of the attributes
	for _, u := range usual {
		n := cot.Node{Name: u.name}
		for _, attr := range u.attrs {
			v := c.callsign
			if !sign(attr) {
				v = c.clean(r, c.read(r, 0))
			}
			n.Attrs = append(n.Attrs, cot.Attr{Name: attr, Value: v})
		}
		nodes = append(nodes, n)
	}
	return nodes
}
