package jxta

import "strconv"

// RouterMessage is a jxta:ERM, the element jxta:EndpointRouterMsg (wire 4.4).
type RouterMessage struct {
	Src   string  // originator, unique value
	Dest  Address // jxta://<unique>/<service>/<param>
	Last  string  // last forwarder, unique value
	Fwd   []AccessPoint
	Rvs   []AccessPoint
	Route *Route // the sender's own route, at first contact
}

// ParseRouterMessage reads the element's data.
func ParseRouterMessage(b []byte) (RouterMessage, error) {
	var m RouterMessage
	n, err := ParseXML(b, DefaultXML)
	if err != nil {
		return m, err
	}
	if n.Name != "jxta:ERM" {
		return m, fail("jxta:ERM", "root", ErrMismatch)
	}
	src, err := ParseAddress(n.KidValue("Src"))
	if err != nil {
		return m, err
	}
	if m.Dest, err = ParseAddress(n.KidValue("Dest")); err != nil {
		return m, err
	}
	if src.Scheme != "jxta" || m.Dest.Scheme != "jxta" {
		return m, fail("jxta:ERM", "Src or Dest", ErrMismatch)
	}
	m.Src = src.Host
	if last, err := ParseAddress(n.KidValue("Last")); err == nil && last.Scheme == "jxta" {
		m.Last = last.Host
	}
	if m.Fwd, err = parseAccessPoints(n.Kid("Fwd")); err != nil {
		return m, err
	}
	if m.Rvs, err = parseAccessPoints(n.Kid("Rvs")); err != nil {
		return m, err
	}
	if ra := n.Kid("jxta:RA"); ra != nil {
		r, err := ParseRoute(ra)
		if err != nil {
			return m, err
		}
		m.Route = &r
	}
	return m, nil
}

// RouteQuery is a jxta:ERQ (wire 4.6).
type RouteQuery struct {
	Dest string // peer wanted, unique value
	Src  *Route
	Bad  []string
}

// ParseRouteQuery reads the query of handler EndpointRouter.
func ParseRouteQuery(b []byte) (RouteQuery, error) {
	var q RouteQuery
	n, err := ParseXML(b, DefaultXML)
	if err != nil {
		return q, err
	}
	if n.Name != "jxta:ERQ" && n.Name != "jxta:EndpointRouterQuery" {
		return q, fail("jxta:ERQ", "root", ErrMismatch)
	}
	if q.Dest, err = ParseURN(n.KidValue("Dst")); err != nil {
		return q, err
	}
	if ra := n.Kid("Src").Kid("jxta:RA"); ra != nil {
		r, err := ParseRoute(ra)
		if err != nil {
			return q, err
		}
		q.Src = &r
	}
	for _, bad := range n.All("Bad") {
		if p, err := ParseURN(bad.Value()); err == nil && len(q.Bad) < maxHops {
			q.Bad = append(q.Bad, p)
		}
	}
	return q, nil
}

// Append appends the document.
func (q RouteQuery) Append(b []byte) []byte {
	n := rootEl("jxta:ERQ", Leaf("Dst", URN(q.Dest)))
	if q.Src != nil {
		n.Kids = append(n.Kids, El("Src", q.Src.Node()))
	}
	for _, bad := range q.Bad {
		n.Kids = append(n.Kids, Leaf("Bad", URN(bad)))
	}
	return AppendDocument(b, n)
}

// RouteResponse is a jxta:ERR: Dest is the wanted route, Src the route of the answering peer.
type RouteResponse struct{ Dest, Src Route }

// Append appends the document.
func (r RouteResponse) Append(b []byte) []byte {
	return AppendDocument(b, rootEl("jxta:ERR", El("Dst", r.Dest.Node()), El("Src", r.Src.Node())))
}

// ParseRouteResponse reads a jxta:ERR.
func ParseRouteResponse(b []byte) (RouteResponse, error) {
	var r RouteResponse
	n, err := ParseXML(b, DefaultXML)
	if err != nil {
		return r, err
	}
	if n.Name != "jxta:ERR" {
		return r, fail("jxta:ERR", "root", ErrMismatch)
	}
	if r.Dest, err = ParseRoute(n.Kid("Dst").Kid("jxta:RA")); err != nil {
		return r, err
	}
	r.Src, err = ParseRoute(n.Kid("Src").Kid("jxta:RA"))
	return r, err
}

// Propagate is a jxta:RendezVousPropagateMessage, the element RendezVousPropagate<group> (wire 5.3).
type Propagate struct {
	MessageID string // UUID text; older peers: any
	Service   string // DestSName
	Param     string // DestSParam
	TTL       int
	Path      []string // peers visited, unique values, sender first
}

// ParsePropagate reads the element's data.
func ParsePropagate(b []byte) (Propagate, error) {
	var p Propagate
	n, err := ParseXML(b, DefaultXML)
	if err != nil {
		return p, err
	}
	if n.Name != "jxta:RendezVousPropagateMessage" {
		return p, fail("jxta:RendezVousPropagateMessage", "root", ErrMismatch)
	}
	p.MessageID, p.Service, p.Param = n.KidValue("MessageId"), n.KidValue("DestSName"), n.KidValue("DestSParam")
	if p.MessageID == "" || len(p.MessageID) > maxIndexValue {
		return p, fail(n.Name, "MessageId", ErrMismatch)
	}
	if p.TTL, err = strconv.Atoi(n.KidValue("TTL")); err != nil {
		return p, fail(n.Name, "TTL", ErrSyntax)
	}
	for _, v := range n.All("Path") {
		if len(p.Path) == maxHops {
			return p, fail(n.Name, "Path", ErrTooLong)
		}
		if u, err := ParseURN(v.Value()); err == nil {
			p.Path = append(p.Path, u)
		}
	}
	return p, nil
}

// WireHeader is a JxtaWire document, the element jxta:JxtaWireHeader of a propagate pipe's message (wire 8.4).
type WireHeader struct {
	Src   string // SrcPeer, unique value; may be empty
	Pipe  string // PipeId, unique value
	MsgID string
	TTL   int
}

// Append appends the document.
func (w WireHeader) Append(b []byte) []byte {
	n := rootEl("JxtaWire")
	if w.Src != "" {
		n.Kids = append(n.Kids, Leaf("SrcPeer", URN(w.Src)))
	}
	n.Kids = append(n.Kids, Leaf("PipeId", URN(w.Pipe)), Leaf("MsgId", w.MsgID), Leaf("TTL", strconv.Itoa(w.TTL)))
	return AppendDocument(b, n)
}

// ParseWireHeader reads the element's data.
func ParseWireHeader(b []byte) (WireHeader, error) {
	var w WireHeader
	n, err := ParseXML(b, DefaultXML)
	if err != nil {
		return w, err
	}
	if n.Name != "JxtaWire" {
		return w, fail("JxtaWire", "root", ErrMismatch)
	}
	if s := n.KidValue("SrcPeer"); s != "" {
		if w.Src, err = ParseURN(s); err != nil {
			return w, err
		}
	}
	if w.Pipe, err = ParseURN(n.KidValue("PipeId")); err != nil {
		return w, err
	}
	w.MsgID = n.KidValue("MsgId")
	if w.MsgID == "" || len(w.MsgID) > maxIndexValue {
		return w, fail("JxtaWire", "MsgId", ErrMismatch)
	}
	if w.TTL, err = strconv.Atoi(n.KidValue("TTL")); err != nil {
		return w, fail("JxtaWire", "TTL", ErrSyntax)
	}
	return w, nil
}
