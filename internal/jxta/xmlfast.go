package jxta

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// parsePlain reads the documents that peers write: elements, attributes in double quotes, text with the five
// predefined entities, one bare DOCTYPE, a usual XML declaration. It returns false for everything else, well-formed or
// not, which is then left to encoding/xml. So it accepts nothing that encoding/xml would refuse, and makes the same tree.
// Every message has three to five such documents, and encoding/xml takes ten times as long for them.
func parsePlain(b []byte, lim XMLLimits) (*Node, bool) {
	if !plainOctets(b) {
		return nil, false
	}
	p := plain{b: b, lim: lim}
	for _, prolog := range [...]string{prologUTF8, prologBare} {
		if bytes.HasPrefix(b, []byte(prolog)) {
			p.at = len(prolog)
			break
		}
	}
	p.space()
	if bytes.HasPrefix(b[p.at:], []byte(doctype)) {
		p.at += len(doctype)
		if p.name() == "" || !p.is('>') {
			return nil, false
		}
		p.space()
	}
	root := p.tree()
	if root == nil {
		return nil, false
	}
	p.space()
	return root, p.at == len(b)
}

const (
	prologUTF8 = `<?xml version="1.0" encoding="UTF-8"?>`
	prologBare = `<?xml version="1.0"?>`
	doctype    = "<!DOCTYPE "
)

// plainOctets says whether b is UTF-8 of characters that XML takes literally and that no parser changes.
func plainOctets(b []byte) bool {
	ascii := true
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' {
			return false // carriage returns, too: a parser turns them into line feeds
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(b) && !bytes.Contains(b, []byte("\uFFFE")) && !bytes.Contains(b, []byte("\uFFFF"))
}

// plain is the state of one parsePlain.
type plain struct {
	b     []byte
	at    int
	lim   XMLLimits
	count int // of nodes, as XMLLimits counts them

	slab []Node  // nodes not handed out yet
	refs []*Node // room for lists of children
	kids []*Node // of all open elements, the innermost last
}

// node returns a new Node. Nodes are made by the dozen, because most documents have many, which are freed together.
func (p *plain) node() *Node {
	if len(p.slab) == 0 {
		p.slab = make([]Node, 24)
	}
	n := &p.slab[0]
	p.slab = p.slab[1:]
	return n
}

// adopt gives n its children.
func (p *plain) adopt(n *Node, kids []*Node) {
	if len(kids) == 0 {
		return
	}
	if cap(p.refs)-len(p.refs) < len(kids) {
		p.refs = make([]*Node, 0, max(32, len(kids)))
	}
	start := len(p.refs)
	p.refs = append(p.refs, kids...)
	n.Kids = p.refs[start:len(p.refs):len(p.refs)]
}

// is takes one octet if it comes next.
func (p *plain) is(c byte) bool {
	if p.at < len(p.b) && p.b[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *plain) space() {
	for p.at < len(p.b) && (p.b[p.at] == ' ' || p.b[p.at] == '\n' || p.b[p.at] == '\t') {
		p.at++
	}
}

// nameOctet is 1 for an octet that may begin a name, 2 for one that may only continue it.
var nameOctet = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
			t[c] = 1
		case c >= '0' && c <= '9', c == '-', c == '.', c == ':':
			t[c] = 2
		}
	}
	return t
}()

// raw takes a name in ASCII with at most one colon inside it; nil if there is none.
func (p *plain) raw() []byte {
	start, colon := p.at, 0
	for p.at < len(p.b) && nameOctet[p.b[p.at]] != 0 {
		if p.b[p.at] == ':' {
			colon++
		}
		p.at++
	}
	name := p.b[start:p.at]
	if len(name) == 0 || nameOctet[name[0]] != 1 || colon > 1 || name[len(name)-1] == ':' {
		return nil
	}
	if colon == 1 && nameOctet[name[bytes.IndexByte(name, ':')+1]] != 1 {
		return nil
	}
	return name
}

func (p *plain) name() string {
	name := p.raw()
	if s, ok := wellKnown[string(name)]; ok {
		return s
	}
	return string(name)
}

// tree reads the root with all nodes below it; nil if the document is not plain.
func (p *plain) tree() *Node {
	type level struct {
		n     *Node
		first int // of its children in p.kids
	}
	var buf [12]level
	open := buf[:0]
	for {
		if len(open) > 0 && p.at < len(p.b) && p.b[p.at] != '<' {
			text, ok := p.text('<')
			p.count++
			if !ok || p.count > p.lim.Nodes {
				return nil
			}
			n := p.node()
			n.Text = text
			p.kids = append(p.kids, n)
		}
		if !p.is('<') {
			return nil
		}
		if p.is('/') {
			if len(open) == 0 {
				return nil
			}
			top := open[len(open)-1]
			name := p.raw()
			p.space()
			if string(name) != top.n.Name || !p.is('>') {
				return nil
			}
			p.adopt(top.n, p.kids[top.first:])
			p.kids = p.kids[:top.first]
			open = open[:len(open)-1]
			if len(open) == 0 {
				return top.n
			}
			continue
		}
		n := p.node()
		n.Name = p.name()
		if n.Name == "" || len(open) >= p.lim.Depth {
			return nil
		}
		if !p.attributes(n) {
			return nil
		}
		p.count += 1 + len(n.Attr)
		if p.count > p.lim.Nodes {
			return nil
		}
		empty := p.is('/')
		if !p.is('>') {
			return nil
		}
		if len(open) > 0 {
			p.kids = append(p.kids, n)
		}
		if !empty {
			open = append(open, level{n, len(p.kids)})
		} else if len(open) == 0 {
			return n
		}
	}
}

// attributes reads the attributes of n, up to the end of its tag.
func (p *plain) attributes(n *Node) bool {
	for {
		before := p.at
		p.space()
		if p.at == len(p.b) {
			return false
		}
		if c := p.b[p.at]; c == '>' || c == '/' {
			return true
		}
		spaced := p.at > before
		name := p.name()
		if name == "" || !spaced || !p.is('=') || !p.is('"') {
			return false
		}
		value, ok := p.text('"')
		if !ok || !p.is('"') {
			return false
		}
		n.Attr = append(n.Attr, Attr{name, value})
	}
}

// text takes the text before end and replaces the predefined entities.
func (p *plain) text(end byte) (string, bool) {
	rest := p.b[p.at:]
	size := bytes.IndexByte(rest, end)
	if size < 0 {
		return "", false
	}
	run := rest[:size]
	p.at += size
	if end != '<' && bytes.IndexByte(run, '<') >= 0 || end == '<' && bytes.Contains(run, []byte("]]>")) {
		return "", false
	}
	first := bytes.IndexByte(run, '&')
	if first < 0 {
		if s, ok := wellKnown[string(run)]; ok {
			return s, true
		}
		return string(run), true
	}
	var s strings.Builder
	s.Grow(len(run))
	for first >= 0 {
		s.Write(run[:first])
		run = run[first:]
		e := bytes.IndexByte(run[:min(len(run), 6)], ';')
		if e < 0 {
			return "", false
		}
		switch string(run[1:e]) {
		case "lt":
			s.WriteByte('<')
		case "gt":
			s.WriteByte('>')
		case "amp":
			s.WriteByte('&')
		case "apos":
			s.WriteByte('\'')
		case "quot":
			s.WriteByte('"')
		default:
			return "", false
		}
		run = run[e+1:]
		first = bytes.IndexByte(run, '&')
	}
	s.Write(run)
	return s.String(), true
}

// wellKnown are names, types and texts in nearly every message; no new strings are made for them.
var wellKnown = func() map[string]string {
	m := map[string]string{}
	for _, s := range strings.Fields(`jxta:ERM Src Dest Last Fwd Rvs jxta:RA jxta:APA DstPID Dst Hops PID EA
		jxta:RendezVousPropagateMessage MessageId DestSName DestSParam TTL Path JxtaWire SrcPeer PipeId MsgId
		jxta:ResolverQuery jxta:ResolverResponse jxta:ResolverSRDI HandlerName QueryID HC SrcPeerID SrcPeerRoute Query
		Response Payload jxta:DiscoveryQuery jxta:DiscoveryResponse Type Threshold PeerAdv Attr Value Count
		jxta:GenSRDI PKey Entry SKey Expiration ttl jxta:PipeResolver MsgType Peer Found jxta:PA jxta:PipeAdvertisement
		jxta:PGA jxta:MSA jxta:MCA jxta:MIA jxta:RdvAdvertisement jxta:ERQ jxta:ERR Id GID MSID MCID Name Desc Svc Parm
		Rdv RootCert isOn isOff Addr Flags Rtr Dbg RdvGroupId RdvPeerId RdvServiceName RdvRoute XMLSignature
		XMLSignatureInfo xml:space xmlns:jxta preserve http://jxta.org default type Answer true false
		JxtaPropagate JxtaUnicast JxtaUnicastSecure JxtaPipeResolver EndpointRouter jxta-NetGroup urn:jxta:jxta-NetGroup
		EndpointSourceAddress EndpointDestinationAddress EndpointRouterMsg JxtaWireHeader text/xml text/plain
		text/xml;charset=UTF-8 text/plain;charset=UTF-8 text/xml;charset="UTF-8" text/plain;charset="UTF-8"
		RendezVousPropagatejxta-NetGroup jxta-NetGroupORes jxta-NetGroupIRes jxta-NetGroupSrdi jxta relay
		urn:jxta:uuid-DEADBEEFDEAFBABAFEEDBABE0000000305 urn:jxta:uuid-DEADBEEFDEAFBABAFEEDBABE0000000205
		urn:jxta:uuid-DEADBEEFDEAFBABAFEEDBABE0000000605 jxta.service.wirepipe 0 1 2 200`) {
		m[s] = s
	}
	return m
}()
