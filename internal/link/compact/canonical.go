package compact

import (
	"strings"

	"aldis/internal/jxta"
)

// Canonical returns a document in the layout that package jxta writes: without the white space between elements. Every
// JXTA peer takes it for the same (wire 9.3). It answers false, and the caller keeps the octets, for what is no
// JXTA document, for one that a signature inside covers (wire 9.2), and for what package jxta does not parse.
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

// AppendEquivalent is Append for a document of which the far peer may get another layout: it is made canonical first,
// where that is allowed. Expand gives the canonical document.
func (c *Coder) AppendEquivalent(dst, text []byte) ([]byte, Codec) {
	if canonical, ok := Canonical(text); ok {
		text = canonical
	}
	return c.Append(dst, text)
}
