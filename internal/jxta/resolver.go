package jxta

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Resolver handler names (wire 6).
const (
	HandlerDiscovery = urnPrefix + ClassDiscovery
	HandlerPipe      = "JxtaPipeResolver"
	HandlerRouter    = "EndpointRouter"
)

const maxGunzip = 1 << 20 // octets of one unpacked element, as in XMLLimits.Octets

// Gunzip unpacks an element of type application/gzip; plain XML passes through (wire 6).
func Gunzip(b []byte) ([]byte, error) {
	if len(b) < 2 || b[0] != 0x1f || b[1] != 0x8b {
		return b, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fail("gzip", "header", ErrSyntax)
	}
	out, err := io.ReadAll(io.LimitReader(z, maxGunzip+1))
	if err != nil {
		return nil, fail("gzip", "stream", ErrSyntax)
	}
	if len(out) > maxGunzip {
		return nil, fail("gzip", "stream", ErrTooLong)
	}
	return out, nil
}

func parseRoot(b []byte, name string) (*Node, error) {
	n, err := ParseXML(b, DefaultXML)
	if err != nil {
		return nil, err
	}
	if n.Name != name {
		return nil, fail(name, "root", ErrMismatch)
	}
	return n, nil
}

func kidInt(n *Node, name string, missing int) (int, error) {
	s := n.KidValue(name)
	if s == "" {
		return missing, nil
	}
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, fail(n.Name, name, ErrSyntax)
	}
	return int(v), nil
}

// ResolverQuery is a jxta:ResolverQuery. Its credential is dropped: no receiver checks it (wire 0.9).
type ResolverQuery struct {
	Handler  string
	QueryID  int // unique per peer and handler only
	HopCount int
	Src      string // SrcPeerID, unique value
	Route    *Route // SrcPeerRoute
	Query    string // the inner document
}

// ParseResolverQuery reads the element <group>ORes.
func ParseResolverQuery(b []byte) (ResolverQuery, error) {
	var q ResolverQuery
	n, err := parseRoot(b, "jxta:ResolverQuery")
	if err != nil {
		return q, err
	}
	q.Handler, q.Query = n.KidValue("HandlerName"), n.KidValue("Query")
	if q.QueryID, err = kidInt(n, "QueryID", 0); err != nil {
		return q, err
	}
	if q.HopCount, err = kidInt(n, "HC", 0); err != nil {
		return q, err
	}
	if q.Src, err = ParseURN(n.KidValue("SrcPeerID")); err != nil {
		return q, err
	}
	if ra := n.Kid("SrcPeerRoute").Kid("jxta:RA"); ra != nil {
		r, err := ParseRoute(ra)
		if err != nil {
			return q, err
		}
		q.Route = &r
	}
	return q, nil
}

// Append appends the document.
func (q ResolverQuery) Append(b []byte) []byte {
	n := rootEl("jxta:ResolverQuery", Leaf("HandlerName", q.Handler), Leaf("QueryID", strconv.Itoa(q.QueryID)),
		Leaf("HC", strconv.Itoa(q.HopCount)), Leaf("SrcPeerID", URN(q.Src)))
	if q.Route != nil {
		n.Kids = append(n.Kids, El("SrcPeerRoute", q.Route.Node()))
	}
	n.Kids = append(n.Kids, Leaf("Query", q.Query))
	return AppendDocument(b, n)
}

// ResolverResponse is a jxta:ResolverResponse, credential dropped.
type ResolverResponse struct {
	Handler  string
	QueryID  int
	Response string
}

// ParseResolverResponse reads the element <group>IRes.
func ParseResolverResponse(b []byte) (ResolverResponse, error) {
	var r ResolverResponse
	n, err := parseRoot(b, "jxta:ResolverResponse")
	if err != nil {
		return r, err
	}
	r.Handler, r.Response = n.KidValue("HandlerName"), n.KidValue("Response")
	r.QueryID, err = kidInt(n, "QueryID", 0)
	return r, err
}

// ResolverSRDI is a jxta:ResolverSRDI.
type ResolverSRDI struct{ Handler, Payload string }

// ParseResolverSRDI reads the element <group>Srdi, packed or not.
func ParseResolverSRDI(b []byte) (ResolverSRDI, error) {
	b, err := Gunzip(b)
	if err != nil {
		return ResolverSRDI{}, err
	}
	n, err := parseRoot(b, "jxta:ResolverSRDI")
	if err != nil {
		return ResolverSRDI{}, err
	}
	return ResolverSRDI{n.KidValue("HandlerName"), n.KidValue("Payload")}, nil
}

// Append appends the document, not packed.
func (r ResolverSRDI) Append(b []byte) []byte {
	return AppendDocument(b, rootEl("jxta:ResolverSRDI", Leaf("HandlerName", r.Handler), Leaf("Payload", r.Payload)))
}

// DiscoveryQuery is a jxta:DiscoveryQuery (wire 7).
type DiscoveryQuery struct {
	Type        int // TypePeer, TypeGroup, TypeAdv
	Threshold   int // most answers wanted
	PeerAdv     string
	Attr, Value string // both empty: anything; no Value without an Attr
}

// ParseDiscoveryQuery reads the query of the discovery handler. A Value without an Attr asks for nothing, so it is dropped.
func ParseDiscoveryQuery(b []byte) (DiscoveryQuery, error) {
	var q DiscoveryQuery
	n, err := parseRoot(b, "jxta:DiscoveryQuery")
	if err != nil {
		return q, err
	}
	if q.Type, err = kidInt(n, "Type", TypeAdv); err != nil {
		return q, err
	}
	if q.Type < TypePeer || q.Type > TypeAdv {
		return q, fail(n.Name, "Type", ErrMismatch)
	}
	if q.Threshold, err = kidInt(n, "Threshold", 1); err != nil {
		return q, err
	}
	q.PeerAdv, q.Attr, q.Value = n.KidValue("PeerAdv"), n.KidValue("Attr"), n.KidValue("Value")
	if len(q.Attr) > maxIndexValue || len(q.Value) > maxIndexValue {
		return q, fail(n.Name, "Value", ErrTooLong)
	}
	if q.Attr == "" {
		q.Value = ""
	}
	return q, nil
}

// Append appends the document.
func (q DiscoveryQuery) Append(b []byte) []byte {
	n := rootEl("jxta:DiscoveryQuery", Leaf("Type", strconv.Itoa(q.Type)), Leaf("Threshold", strconv.Itoa(q.Threshold)))
	if q.PeerAdv != "" {
		n.Kids = append(n.Kids, Leaf("PeerAdv", q.PeerAdv))
	}
	if q.Attr != "" {
		n.Kids = append(n.Kids, Leaf("Attr", q.Attr), Leaf("Value", q.Value))
	}
	return AppendDocument(b, n)
}

// Found is one advertisement in a DiscoveryResponse.
type Found struct {
	Life time.Duration // Expiration; MaxLife stands for "forever"
	Doc  string
}

// MaxLife bounds a lifetime. It is JXTA's own default for local advertisements (wire 7).
const MaxLife = 365 * 24 * time.Hour

// defaultLife is JXTA's lifetime for advertisements of others without an Expiration.
const defaultLife = 2 * time.Hour

// maxFound bounds the advertisements of one response; JXTA caps its own at 50.
const maxFound = 256

// DiscoveryResponse is a jxta:DiscoveryResponse.
type DiscoveryResponse struct {
	Type        int
	PeerAdv     string
	Attr, Value string
	Found       []Found
}

// ParseDiscoveryResponse reads the response of the discovery handler.
func ParseDiscoveryResponse(b []byte) (DiscoveryResponse, error) {
	var r DiscoveryResponse
	n, err := parseRoot(b, "jxta:DiscoveryResponse")
	if err != nil {
		return r, err
	}
	if r.Type, err = kidInt(n, "Type", TypeAdv); err != nil {
		return r, err
	}
	if r.Type < TypePeer || r.Type > TypeAdv {
		return r, fail(n.Name, "Type", ErrMismatch)
	}
	r.PeerAdv, r.Attr, r.Value = n.KidValue("PeerAdv"), n.KidValue("Attr"), n.KidValue("Value")
	for _, k := range n.All("Response") {
		if len(r.Found) == maxFound {
			return r, fail(n.Name, "Response", ErrTooLong)
		}
		life, err := parseLife(n.Name, k.AttrValue("Expiration"))
		if err != nil {
			return r, err
		}
		r.Found = append(r.Found, Found{life, k.Value()})
	}
	return r, nil
}

// parseLife reads relative milliseconds; "forever" and beyond become MaxLife.
func parseLife(doc, s string) (time.Duration, error) {
	if s == "" {
		return defaultLife, nil
	}
	ms, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return 0, fail(doc, "Expiration", ErrSyntax)
	}
	if ms <= 0 {
		return 0, nil
	}
	if ms > int64(MaxLife/time.Millisecond) {
		return MaxLife, nil
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func formatLife(d time.Duration) string { return strconv.FormatInt(int64(d/time.Millisecond), 10) }

// PipeResolver is a jxta:PipeResolver, question or answer (wire 8.2).
type PipeResolver struct {
	Answer  bool     // MsgType: Answer, else Query
	Pipe    string   // PipeId, unique value
	Type    string   // "JxtaUnicast"
	Peers   []string // Peer, unique values
	Found   bool
	PeerAdv string
}

// ParsePipeResolver reads the document of handler JxtaPipeResolver.
func ParsePipeResolver(b []byte) (PipeResolver, error) {
	var p PipeResolver
	n, err := parseRoot(b, "jxta:PipeResolver")
	if err != nil {
		return p, err
	}
	switch n.KidValue("MsgType") {
	case "Query":
	case "Answer":
		p.Answer = true
	default:
		return p, fail(n.Name, "MsgType", ErrMismatch)
	}
	if p.Pipe, err = ParseURN(n.KidValue("PipeId")); err != nil {
		return p, err
	}
	if p.Type = n.KidValue("Type"); len(p.Type) > maxIndexValue {
		return p, fail(n.Name, "Type", ErrTooLong)
	}
	for _, k := range n.All("Peer") {
		if len(p.Peers) == maxHops {
			return p, fail(n.Name, "Peer", ErrTooLong)
		}
		peer, err := ParseURN(k.Value())
		if err != nil {
			return p, err
		}
		p.Peers = append(p.Peers, peer)
	}
	p.Found, p.PeerAdv = n.KidValue("Found") != "false", n.KidValue("PeerAdv")
	return p, nil
}

// Append appends the document.
func (p PipeResolver) Append(b []byte) []byte {
	kind := "Query"
	if p.Answer {
		kind = "Answer"
	}
	n := rootEl("jxta:PipeResolver", Leaf("MsgType", kind), Leaf("PipeId", URN(p.Pipe)), Leaf("Type", p.Type))
	for _, peer := range p.Peers {
		n.Kids = append(n.Kids, Leaf("Peer", URN(peer)))
	}
	if p.Answer {
		n.Kids = append(n.Kids, Leaf("Found", strconv.FormatBool(p.Found)))
		if p.PeerAdv != "" {
			n.Kids = append(n.Kids, Leaf("PeerAdv", p.PeerAdv))
		}
	}
	return AppendDocument(b, n)
}

// SRDIEntry is one line of an SRDI message.
type SRDIEntry struct {
	Key   string        // SKey
	Value string        // pipe URN, index value
	Life  time.Duration // 0 removes the entry
}

const maxSRDIEntries = 4096

// SRDI is a jxta:GenSRDI (wire 5.6).
type SRDI struct {
	Peer    string // PID of the owner, unique value
	Key     string // PKey
	TTL     int
	Entries []SRDIEntry
}

// ParseSRDI reads the payload of a ResolverSRDI. An entry whose value is longer than that of any index is left out.
func ParseSRDI(b []byte) (SRDI, error) {
	var s SRDI
	n, err := parseRoot(b, "jxta:GenSRDI")
	if err != nil {
		return s, err
	}
	if s.Peer, err = ParseURN(n.KidValue("PID")); err != nil {
		return s, err
	}
	s.Key = n.KidValue("PKey")
	if s.TTL, err = kidInt(n, "ttl", 0); err != nil {
		return s, err
	}
	for _, k := range n.All("Entry") {
		if len(s.Entries) == maxSRDIEntries {
			return s, fail(n.Name, "Entry", ErrTooLong)
		}
		life, err := parseLife(n.Name, k.AttrValue("Expiration"))
		if err != nil {
			return s, err
		}
		if value := k.Value(); len(value) <= maxIndexValue {
			s.Entries = append(s.Entries, SRDIEntry{k.AttrValue("SKey"), value, life})
		}
	}
	return s, nil
}

// Append appends the document.
func (s SRDI) Append(b []byte) []byte {
	n := rootEl("jxta:GenSRDI", Leaf("PID", URN(s.Peer)), Leaf("PKey", s.Key))
	if s.TTL != 0 {
		n.Kids = append(n.Kids, Leaf("ttl", strconv.Itoa(s.TTL)))
	}
	for _, e := range s.Entries {
		k := Leaf("Entry", e.Value)
		life := formatLife(e.Life)
		if e.Life >= MaxLife {
			life = strconv.FormatInt(math.MaxInt64, 10)
		}
		k.Attr = []Attr{{"SKey", e.Key}, {"Expiration", life}}
		n.Kids = append(n.Kids, k)
	}
	return AppendDocument(b, n)
}
