package jxta

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Discovery types (wire 7).
const (
	TypePeer  = 0
	TypeGroup = 1
	TypeAdv   = 2
)

// Namespace attributes of every root and of nested advertisements.
var (
	attrNS    = Attr{"xmlns:jxta", "http://jxta.org"}
	attrSpace = Attr{"xml:space", "preserve"}
)

func rootEl(name string, kids ...*Node) *Node {
	return &Node{Name: name, Attr: []Attr{attrSpace, attrNS}, Kids: kids}
}

// AccessPoint is a jxta:APA: a peer and its transport addresses (wire 4.5).
type AccessPoint struct {
	Peer      string // unique value; may be empty
	Addresses []string
}

// Route is a jxta:RA, how to reach a peer.
type Route struct {
	Dest   string      // unique value of DstPID
	Access AccessPoint // of Dst
	Hops   []AccessPoint
}

// Node is the access point as XML.
func (a AccessPoint) Node() *Node {
	n := &Node{Name: "jxta:APA", Attr: []Attr{attrNS}}
	if a.Peer != "" {
		n.Kids = append(n.Kids, Leaf("PID", URN(a.Peer)))
	}
	for _, ea := range a.Addresses {
		n.Kids = append(n.Kids, Leaf("EA", ea))
	}
	return n
}

const maxHops = 64 // access points of one list; more is an attack

// parseAccessPoint reads a jxta:APA.
func parseAccessPoint(n *Node) (AccessPoint, error) {
	var a AccessPoint
	if pid := n.KidValue("PID"); pid != "" {
		p, err := ParseURN(pid)
		if err != nil {
			return a, err
		}
		a.Peer = p
	}
	for _, ea := range n.All("EA") {
		if len(a.Addresses) == maxHops {
			return a, fail("jxta:APA", "EA", ErrTooLong)
		}
		a.Addresses = append(a.Addresses, ea.Value())
	}
	return a, nil
}

func parseAccessPoints(n *Node) ([]AccessPoint, error) {
	var out []AccessPoint
	for _, k := range n.All("jxta:APA") {
		if len(out) == maxHops {
			return nil, fail("jxta:RA", "Hops", ErrTooLong)
		}
		a, err := parseAccessPoint(k)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// Node is the route as XML, unsigned: receivers accept it without a signature (wire 9.2).
func (r Route) Node() *Node {
	n := rootEl("jxta:RA", Leaf("DstPID", URN(r.Dest)), El("Dst", r.Access.Node()))
	if len(r.Hops) > 0 {
		hops := El("Hops")
		for _, h := range r.Hops {
			hops.Kids = append(hops.Kids, h.Node())
		}
		n.Kids = append(n.Kids, hops)
	}
	return n
}

// ParseRoute reads a jxta:RA.
func ParseRoute(n *Node) (Route, error) {
	var r Route
	if n == nil || n.Name != "jxta:RA" {
		return r, fail("jxta:RA", "root", ErrMismatch)
	}
	var err error
	if pid := n.KidValue("DstPID"); pid != "" {
		if r.Dest, err = ParseURN(pid); err != nil {
			return r, err
		}
	}
	if apa := n.Kid("Dst").Kid("jxta:APA"); apa != nil {
		if r.Access, err = parseAccessPoint(apa); err != nil {
			return r, err
		}
	}
	if r.Dest == "" {
		r.Dest = r.Access.Peer
	}
	r.Hops, err = parseAccessPoints(n.Kid("Hops"))
	return r, err
}

// Service is one Svc block of a peer advertisement.
type Service struct {
	Class string // unique value of MCID
	Node  *Node  // the whole Svc element
}

// PeerAdvertisement is a jxta:PA.
type PeerAdvertisement struct {
	Peer     string // PID, unique value
	Group    string // GID, unique value
	Name     string
	Desc     *Node // the Desc element, nil if none
	Services []Service
}

// ParsePeerAdvertisement reads a jxta:PA. Signature children are left behind.
func ParsePeerAdvertisement(n *Node) (PeerAdvertisement, error) {
	var p PeerAdvertisement
	if n == nil || n.Name != "jxta:PA" {
		return p, fail("jxta:PA", "root", ErrMismatch)
	}
	var err error
	if p.Peer, err = ParseURN(n.KidValue("PID")); err != nil {
		return p, err
	}
	if p.Group, err = ParseURN(n.KidValue("GID")); err != nil {
		return p, err
	}
	p.Name, p.Desc = n.KidValue("Name"), n.Kid("Desc")
	for _, svc := range n.All("Svc") {
		class, err := ParseURN(svc.KidValue("MCID"))
		if err != nil {
			return p, err
		}
		p.Services = append(p.Services, Service{class, svc})
	}
	return p, nil
}

// Node is the advertisement as XML.
func (p PeerAdvertisement) Node() *Node {
	n := rootEl("jxta:PA", Leaf("PID", URN(p.Peer)), Leaf("GID", URN(p.Group)))
	if p.Name != "" {
		n.Kids = append(n.Kids, Leaf("Name", p.Name))
	}
	if p.Desc != nil {
		n.Kids = append(n.Kids, p.Desc)
	}
	for _, s := range p.Services {
		n.Kids = append(n.Kids, s.Node)
	}
	return n
}

// ServiceNode makes a Svc block.
func ServiceNode(class string, parm ...*Node) *Node {
	return El("Svc", Leaf("MCID", URN(class)), El("Parm", parm...))
}

// RdvAdvertisement is a jxta:RdvAdvertisement (wire 5.4, 10).
type RdvAdvertisement struct {
	Group       string // RdvGroupId, unique value
	Peer        string // RdvPeerId, unique value
	ServiceName string
	Name        string
	Route       *Route
}

// Node is the advertisement as XML.
func (r RdvAdvertisement) Node() *Node {
	n := rootEl("jxta:RdvAdvertisement", Leaf("RdvGroupId", URN(r.Group)), Leaf("RdvPeerId", URN(r.Peer)),
		Leaf("RdvServiceName", r.ServiceName), Leaf("Name", r.Name))
	if r.Route != nil {
		n.Kids = append(n.Kids, El("RdvRoute", r.Route.Node()))
	}
	return n
}

// ParseRdvAdvertisement reads a jxta:RdvAdvertisement.
func ParseRdvAdvertisement(n *Node) (RdvAdvertisement, error) {
	var r RdvAdvertisement
	if n == nil || n.Name != "jxta:RdvAdvertisement" {
		return r, fail("jxta:RdvAdvertisement", "root", ErrMismatch)
	}
	var err error
	if r.Peer, err = ParseURN(n.KidValue("RdvPeerId")); err != nil {
		return r, err
	}
	if g := n.KidValue("RdvGroupId"); g != "" {
		if r.Group, err = ParseURN(g); err != nil {
			return r, err
		}
	}
	r.ServiceName, r.Name = n.KidValue("RdvServiceName"), n.KidValue("Name")
	if ra := n.Kid("RdvRoute").Kid("jxta:RA"); ra != nil {
		route, err := ParseRoute(ra)
		if err != nil {
			return r, err
		}
		r.Route = &route
	}
	return r, nil
}

// Field is one index field of an advertisement.
type Field struct{ Name, Value string }

// Description has the properties of an advertisement for a discovery cache.
type Description struct {
	Root   string // document type: "jxta:MSA"
	Type   uint8  // TypePeer, TypeGroup, TypeAdv
	ID     string // unique value, or "h-<hex>" of the content if the document has no id (wire 7)
	Index  []Field
	Signed bool // carries an XMLSignature: octets count (wire 9.2)
}

// documents are the known documents, by root element: where the ID is and which elements are indexed (wire 9.1).
var documents = map[string]struct {
	kind  uint8
	id    string
	index []string
}{
	"jxta:PA":                {TypePeer, "PID", []string{"Name", "PID"}},
	"jxta:PGA":               {TypeGroup, "GID", []string{"Name", "GID", "Desc", "MSID"}},
	"jxta:MCA":               {TypeAdv, "MCID", []string{"Name", "MCID"}},
	"jxta:MSA":               {TypeAdv, "MSID", []string{"Name", "MSID"}},
	"jxta:MIA":               {TypeAdv, "", []string{"Name", "MSID"}},
	"jxta:PipeAdvertisement": {TypeAdv, "Id", []string{"Name", "Id"}},
	"jxta:RA":                {TypeAdv, "DstPID", []string{"DstPID"}},
	"jxta:RdvAdvertisement":  {TypeAdv, "RdvPeerId", []string{"RdvPeerId", "RdvServiceName", "RdvGroupId"}},
}

const (
	maxIndexFields = 32
	maxIndexValue  = 512 // octets
)

// Describe finds identity and index fields of any advertisement. In unknown documents every short leaf below the
// root is indexed, which covers all fields that their own class would name.
func Describe(n *Node) Description {
	d := Description{Root: n.Name, Type: TypeAdv}
	k, known := documents[n.Name]
	if !known {
		k, known = documents[n.AttrValue("type")]
		if known {
			d.Root = n.AttrValue("type")
		}
	}
	add := func(name, value string) {
		if value != "" && len(value) <= maxIndexValue && len(d.Index) < maxIndexFields {
			d.Index = append(d.Index, Field{name, value})
		}
	}
	if known {
		d.Type = k.kind
		if k.id != "" {
			if id, err := ParseURN(n.KidValue(k.id)); err == nil {
				d.ID = id
			}
		}
		for _, f := range k.index {
			add(f, n.KidValue(f))
		}
	} else {
		for _, kid := range n.Kids {
			if kid.Name != "" {
				add(kid.Name, kid.Value())
			}
		}
	}
	if d.Root == "jxta:RdvAdvertisement" && d.ID != "" { // one peer has one for each group and service
		d.ID = ""
	}
	if d.ID == "" {
		sum := sha256.Sum256(AppendXML(nil, n))
		d.ID = "h-" + hex.EncodeToString(sum[:16])
	}
	d.Signed = n.Kid("XMLSignature") != nil
	return d
}

// Match reports whether value satisfies pattern: equal, with "*" at its start, its end or both standing for anything;
// case counts (wire 7).
func Match(pattern, value string) bool {
	if pattern == "*" {
		return true
	}
	head, tail := strings.HasPrefix(pattern, "*"), strings.HasSuffix(pattern, "*")
	p := strings.TrimSuffix(strings.TrimPrefix(pattern, "*"), "*")
	switch {
	case head && tail:
		return strings.Contains(value, p)
	case head:
		return strings.HasSuffix(value, p)
	case tail:
		return strings.HasPrefix(value, p)
	}
	return value == pattern
}

// PipeType names a pipe's type as advertisements and SRDI spell it (wire 8.1).
const (
	PipeTypePropagate = "JxtaPropagate"
	PipeTypeUnicast   = "JxtaUnicast"
	PipeTypeSecure    = "JxtaUnicastSecure"
)
