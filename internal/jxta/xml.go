package jxta

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
)

// Node is one element of an XML document, or a run of text inside one (Name empty). Names keep their prefix as
// written: "jxta:PA".
type Node struct {
	Name string
	Attr []Attr
	Text string // text nodes only
	Kids []*Node
}

// Attr is one attribute; Name keeps its prefix.
type Attr struct{ Name, Value string }

// XMLLimits bound one document.
type XMLLimits struct {
	Octets int // of the document
	Depth  int // of nesting
	Nodes  int // elements, attributes and runs of text
	// Slow bounds documents that are not in the form that peers write, in octets: they take ten times as long. 0: as Octets.
	Slow int
}

// DefaultXML fits every JXTA document with room: the largest seen has 7 kB, depth 9, 120 nodes. In the usual form it may
// be as large as an answer of many advertisements.
var DefaultXML = XMLLimits{Octets: 1 << 20, Depth: 48, Nodes: 20000, Slow: 64 << 10}

// ParseXML reads a document strictly. The only directive that it takes is a bare "DOCTYPE name" before the root, which every
// JXTA document has. No entity can be declared, so only the predefined and numeric ones exist. Comments and
// processing instructions are dropped.
func ParseXML(b []byte, lim XMLLimits) (*Node, error) {
	slow := lim.Slow
	if slow == 0 {
		slow = lim.Octets
	}
	return ParseWithin(b, lim, &slow)
}

// ParseWithin is ParseXML for one of several documents of a message. slow is how many octets all documents that are not in the form that
// peers write may still take together, in place of XMLLimits.Slow; it is reduced by the octets of this one.
func ParseWithin(b []byte, lim XMLLimits, slow *int) (*Node, error) {
	if len(b) > lim.Octets {
		return nil, fail("XML", "document", ErrTooLong)
	}
	if n, ok := parsePlain(b, lim); ok {
		return n, nil
	}
	if len(b) > *slow {
		return nil, fail("XML", "document of an unusual form", ErrTooLong)
	}
	*slow -= len(b)
	return parseAny(b, lim)
}

// parseAny is ParseXML by encoding/xml.
func parseAny(b []byte, lim XMLLimits) (*Node, error) {
	d := xml.NewDecoder(bytes.NewReader(b))
	var root *Node
	var open []*Node
	nodes := 0
	for {
		tok, err := d.RawToken()
		switch {
		case err == io.EOF && (root == nil || len(open) > 0):
			return nil, fail("XML", "document", ErrShort)
		case err == io.EOF:
			return root, nil
		case err != nil:
			return nil, fail("XML", "document", ErrSyntax)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if len(open) == 0 && root != nil {
				return nil, fail("XML", "second root", ErrSyntax)
			}
			if len(open) >= lim.Depth {
				return nil, fail("XML", "nesting", ErrTooLong)
			}
			n := &Node{Name: fullName(t.Name)}
			for _, a := range t.Attr {
				n.Attr = append(n.Attr, Attr{fullName(a.Name), a.Value})
			}
			nodes += 1 + len(t.Attr)
			if nodes > lim.Nodes {
				return nil, fail("XML", "nodes", ErrTooLong)
			}
			if root == nil {
				root = n
			} else {
				top := open[len(open)-1]
				top.Kids = append(top.Kids, n)
			}
			open = append(open, n)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1].Name != fullName(t.Name) {
				return nil, fail("XML", "end tag", ErrSyntax)
			}
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) == 0 {
				if len(bytes.TrimSpace(t)) > 0 {
					return nil, fail("XML", "text outside the root", ErrSyntax)
				}
				continue
			}
			nodes++
			if nodes > lim.Nodes {
				return nil, fail("XML", "nodes", ErrTooLong)
			}
			top := open[len(open)-1]
			top.Kids = append(top.Kids, &Node{Text: string(t)})
		case xml.Directive:
			f := strings.Fields(string(t))
			if root != nil || len(f) != 2 || f[0] != "DOCTYPE" || strings.ContainsAny(f[1], `[]<>"'%&`) {
				return nil, fail("XML", "directive", ErrMismatch)
			}
		}
	}
}

func fullName(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

// El makes an element with children; Leaf one with text.
func El(name string, kids ...*Node) *Node { return &Node{Name: name, Kids: kids} }

// Leaf makes an element that holds text only.
func Leaf(name, text string) *Node {
	if text == "" {
		return &Node{Name: name}
	}
	return &Node{Name: name, Kids: []*Node{{Text: text}}}
}

// Kid is the first child element of a name, nil if there is none. A nil Node has no children.
func (n *Node) Kid(name string) *Node {
	if n == nil {
		return nil
	}
	for _, k := range n.Kids {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// All are the child elements of a name.
func (n *Node) All(name string) []*Node {
	if n == nil {
		return nil
	}
	var out []*Node
	for _, k := range n.Kids {
		if k.Name == name {
			out = append(out, k)
		}
	}
	return out
}

// Value is the text directly inside n, trimmed: 2.2 and the pretty layout of 2.7 put white space around it (wire 9.3).
func (n *Node) Value() string {
	if n == nil {
		return ""
	}
	if len(n.Kids) == 1 && n.Kids[0].Name == "" {
		return strings.TrimSpace(n.Kids[0].Text)
	}
	var s strings.Builder
	for _, k := range n.Kids {
		if k.Name == "" {
			s.WriteString(k.Text)
		}
	}
	return strings.TrimSpace(s.String())
}

// KidValue is the text of the first child of a name.
func (n *Node) KidValue(name string) string { return n.Kid(name).Value() }

// AttrValue is an attribute's value, "" if absent.
func (n *Node) AttrValue(name string) string {
	if n == nil {
		return ""
	}
	for _, a := range n.Attr {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// Walk calls f for n and every element below, until f returns false.
func (n *Node) Walk(f func(*Node) bool) bool {
	if n == nil {
		return true
	}
	if n.Name != "" && !f(n) {
		return false
	}
	for _, k := range n.Kids {
		if !k.Walk(f) {
			return false
		}
	}
	return true
}

// Clone copies n and all nodes below.
func (n *Node) Clone() *Node {
	if n == nil {
		return nil
	}
	c := &Node{Name: n.Name, Text: n.Text, Attr: append([]Attr(nil), n.Attr...)}
	for _, k := range n.Kids {
		c.Kids = append(c.Kids, k.Clone())
	}
	return c
}

// Prolog stands before every JXTA document; the root's name goes between.
const (
	prologHead = `<?xml version="1.0" encoding="UTF-8"?>` + "\n<!DOCTYPE "
	prologTail = ">\n"
)

// AppendDocument appends n as a document of its own, compact, with header and DOCTYPE.
func AppendDocument(b []byte, n *Node) []byte {
	b = append(b, prologHead...)
	b = append(b, n.Name...)
	b = append(b, prologTail...)
	return append(AppendXML(b, n), '\n')
}

// AppendXML appends n without header: no white space between elements, and text trimmed if nothing else stands
// next to it. Mixed content keeps its text.
func AppendXML(b []byte, n *Node) []byte {
	if n.Name == "" {
		return appendText(b, n.Text, false)
	}
	b = append(append(b, '<'), n.Name...)
	for _, a := range n.Attr {
		b = append(append(b, ' '), a.Name...)
		b = append(b, `="`...)
		b = appendText(b, a.Value, true)
		b = append(b, '"')
	}
	elements, text := false, false
	for _, k := range n.Kids {
		if k.Name != "" {
			elements = true
		} else if strings.TrimSpace(k.Text) != "" {
			text = true
		}
	}
	if !elements && !text {
		return append(b, "/>"...)
	}
	b = append(b, '>')
	switch {
	case !elements:
		b = appendText(b, n.Value(), false)
	default:
		for _, k := range n.Kids {
			if k.Name == "" && !text {
				continue // layout
			}
			b = AppendXML(b, k)
		}
	}
	b = append(append(b, "</"...), n.Name...)
	return append(b, '>')
}

// appendText escapes like JXSE: only "<" and "&" (wire 6), and in attributes the quote. A carriage return would
// not survive a parser, so it goes out as a number.
func appendText(b []byte, s string, attr bool) []byte {
	for i := 0; i < len(s); {
		n := i
		for n < len(s) && !special[s[n]] {
			n++
		}
		b = append(b, s[i:n]...)
		i = n
		if i == len(s) {
			break
		}
		switch c := s[i]; {
		case c == '<':
			b = append(b, "&lt;"...)
		case c == '&':
			b = append(b, "&amp;"...)
		case c == '"' && attr:
			b = append(b, "&quot;"...)
		case c == '>' && !attr && i >= 2 && s[i-1] == ']' && s[i-2] == ']':
			b = append(b, "&gt;"...) // "]]>" may not stand in text
		case c == '\r':
			b = append(b, "&#13;"...)
		default:
			b = append(b, c)
		}
		i++
	}
	return b
}

// special are the octets that appendText may have to escape.
var special = [256]bool{'<': true, '&': true, '"': true, '>': true, '\r': true}
