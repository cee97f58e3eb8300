package compact

import (
	"strings"

	"aldis/internal/jxta"
)

// Canonical returns a document in the layout that package jxta writes: without the white space between elements. Every JXTA
// peer treats both layouts as equal (wire 9.3). It answers false, and the caller keeps the octets, for a text that is no
// JXTA document, for a document that a signature inside covers (wire 9.2), and for a document that package jxta does not
// parse.
func Canonical(text []byte) ([]byte, bool) {
	root, err := jxta.ParseXML(text, jxta.DefaultXML)
	if err != nil || !strings.HasPrefix(root.Name, "jxta:") || root.Name == "jxta:SA" {
		return nil, false
	}
	signed := false
	root.Walk(func(n *jxta.Node) bool {
		signed = signed || strings.HasPrefix(n.Name, "XMLSignature")
		return !signed
	})
	if signed {
		return nil, false
	}
	return jxta.AppendDocument(make([]byte, 0, len(text)), root), true
}

// AppendEquivalent is Append for a document that the far peer may get in another layout: the document is made canonical
// first, where Canonical can do so. Expand gives the canonical document.
func (c *Coder) AppendEquivalent(dst, text []byte) ([]byte, Codec) {
	if canonical, ok := Canonical(text); ok {
		text = canonical
	}
	return c.Append(dst, text)
}
