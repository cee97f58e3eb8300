package jxta

import (
	"slices"
	"strconv"
	"strings"
)

// The documents in every message are written without a tree of Nodes. These functions write the same octets
// that AppendDocument makes of the tree.

// docRoom is about the octets that a document takes besides the texts in it.
const docRoom = 320

// beginDocument appends everything up to the children of the root; size is the size of the texts, in octets.
func beginDocument(b []byte, root string, size int) []byte {
	b = slices.Grow(b, docRoom+size)
	b = append(b, prologHead...)
	b = append(b, root...)
	b = append(b, prologTail...)
	b = append(append(b, '<'), root...)
	return append(b, ` xml:space="preserve" xmlns:jxta="http://jxta.org">`...)
}

func endDocument(b []byte, root string) []byte { return append(endElement(b, root), '\n') }

func endElement(b []byte, name string) []byte {
	b = append(append(b, "</"...), name...)
	return append(b, '>')
}

// appendLeaf appends an element whose only content is a text: prefix, then value.
func appendLeaf(b []byte, name, prefix, value string) []byte {
	if prefix == "" {
		value = strings.TrimSpace(value)
	}
	b = append(append(b, '<'), name...)
	if prefix == "" && value == "" {
		return append(b, "/>"...)
	}
	b = append(b, '>')
	b = append(b, prefix...)
	return endElement(appendText(b, value, false), name)
}

const peerPrefix = "jxta://"

// Append appends the document in compact layout.
func (m RouterMessage) Append(b []byte) []byte {
	const root = "jxta:ERM"
	b = beginDocument(b, root, len(m.Src)+len(m.Last)+len(m.Dest.Host)+len(m.Dest.Service)+len(m.Dest.Param)+200*(len(m.Fwd)+len(m.Rvs)))
	b = appendLeaf(b, "Src", peerPrefix, m.Src)
	b = appendLeaf(b, "Dest", "", m.Dest.String())
	b = appendLeaf(b, "Last", peerPrefix, m.Last)
	b = appendAccess(b, "Fwd", m.Fwd)
	b = appendAccess(b, "Rvs", m.Rvs)
	if m.Route != nil {
		b = AppendXML(b, m.Route.Node())
	}
	return endDocument(b, root)
}

func appendAccess(b []byte, name string, points []AccessPoint) []byte {
	b = append(append(b, '<'), name...)
	if len(points) == 0 {
		return append(b, "/>"...)
	}
	b = append(b, '>')
	for _, a := range points {
		b = AppendXML(b, a.Node())
	}
	return endElement(b, name)
}

// Append appends the document.
func (p Propagate) Append(b []byte) []byte {
	const root = "jxta:RendezVousPropagateMessage"
	b = beginDocument(b, root, len(p.MessageID)+len(p.Service)+len(p.Param)+120*len(p.Path))
	b = appendLeaf(b, "MessageId", "", p.MessageID)
	b = appendLeaf(b, "DestSName", "", p.Service)
	b = appendLeaf(b, "DestSParam", "", p.Param)
	b = appendLeaf(b, "TTL", "", strconv.Itoa(p.TTL))
	for _, v := range p.Path {
		b = appendLeaf(b, "Path", urnPrefix, v)
	}
	return endDocument(b, root)
}

// Append appends the document.
func (r ResolverResponse) Append(b []byte) []byte {
	const root = "jxta:ResolverResponse"
	b = beginDocument(b, root, len(r.Handler)+len(r.Response)*9/8)
	b = appendLeaf(b, "HandlerName", "", r.Handler)
	b = appendLeaf(b, "QueryID", "", strconv.Itoa(r.QueryID))
	b = appendLeaf(b, "Response", "", r.Response)
	return endDocument(b, root)
}

// Append appends the document.
func (r DiscoveryResponse) Append(b []byte) []byte {
	const root = "jxta:DiscoveryResponse"
	size := len(r.PeerAdv) + len(r.Attr) + len(r.Value)
	for i := range r.Found {
		size += 64 + len(r.Found[i].Doc)*9/8
	}
	b = beginDocument(b, root, size)
	b = appendLeaf(b, "Count", "", strconv.Itoa(len(r.Found)))
	b = appendLeaf(b, "Type", "", strconv.Itoa(r.Type))
	if r.PeerAdv != "" {
		b = appendLeaf(b, "PeerAdv", "", r.PeerAdv)
	}
	if r.Attr != "" {
		b = appendLeaf(b, "Attr", "", r.Attr)
		b = appendLeaf(b, "Value", "", r.Value)
	}
	for _, f := range r.Found {
		b = append(b, `<Response Expiration="`...)
		b = strconv.AppendInt(b, f.Life.Milliseconds(), 10)
		doc := strings.TrimSpace(f.Doc)
		if doc == "" {
			b = append(b, `"/>`...)
			continue
		}
		b = append(b, `">`...)
		b = append(appendText(b, doc, false), "</Response>"...)
	}
	return endDocument(b, root)
}
