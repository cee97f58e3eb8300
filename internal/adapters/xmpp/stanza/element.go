package stanza

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Namespaces in every stream.
const (
	Component = "jabber:component:accept"          // of the stanzas of a component
	Client    = "jabber:client"                    // of the stanzas of a client
	Streams   = "http://etherx.jabber.org/streams" // of the stream's own elements
)

// Attr is an attribute. Name is as in the text, with the prefix xml or none.
type Attr struct{ Name, Value string }

// Element is an element, or with Name "" a text. Functions that receive one never change it.
type Element struct {
	Space string // its namespace, not the prefix
	Name  string
	Attrs []Attr // without declarations of namespaces
	Kids  []Element
	Text  string
}

// New makes an element with attributes: names and values in turn. Attributes with an empty value are left out.
func New(space, name string, attrs ...string) Element {
	e := Element{Space: space, Name: name}
	for i := 0; i+1 < len(attrs); i += 2 {
		if attrs[i+1] != "" {
			e.Attrs = append(e.Attrs, Attr{attrs[i], attrs[i+1]})
		}
	}
	return e
}

// With is the element with these elements added inside.
func (e Element) With(kids ...Element) Element {
	e.Kids = append(e.Kids[:len(e.Kids):len(e.Kids)], kids...)
	return e
}

// Says is the element with this text inside.
func (e Element) Says(text string) Element {
	if text == "" {
		return e
	}
	return e.With(Element{Text: text})
}

// Get is the value of an attribute; "": there is none.
func (e *Element) Get(name string) string {
	for _, a := range e.Attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// Kid is the first element inside with this namespace and name; nil: there is none.
func (e *Element) Kid(space, name string) *Element {
	for i := range e.Kids {
		if k := &e.Kids[i]; k.Name == name && k.Space == space {
			return k
		}
	}
	return nil
}

// Inside is the text directly inside the element; "" for nil.
func (e *Element) Inside() string {
	if e == nil {
		return ""
	}
	if len(e.Kids) == 1 {
		return e.Kids[0].Text
	}
	var b strings.Builder
	for _, k := range e.Kids {
		b.WriteString(k.Text)
	}
	return b.String()
}

// Append appends the element as text. around is the default namespace at the place where it will stand. Characters that XML
// does not allow are left out.
func (e *Element) Append(dst []byte, around string) []byte {
	if e.Name == "" {
		return appendText(dst, e.Text, false)
	}
	dst = append(append(dst, '<'), e.Name...)
	if e.Space != around {
		dst = appendAttr(dst, Attr{"xmlns", e.Space})
	}
	for _, a := range e.Attrs {
		dst = appendAttr(dst, a)
	}
	if len(e.Kids) == 0 {
		return append(dst, "/>"...)
	}
	dst = append(dst, '>')
	for i := range e.Kids {
		dst = e.Kids[i].Append(dst, e.Space)
	}
	return append(append(append(dst, "</"...), e.Name...), '>')
}

// Addressed adds the receiver to, after the first attribute, to the text of an element with attributes and without a receiver.
func Addressed(text []byte, to string) []byte {
	open := bytes.IndexByte(text, '\'') + 1
	at := open + bytes.IndexByte(text[open:], '\'') + 1
	dst := append(make([]byte, 0, len(text)+len(to)+8), text[:at]...)
	return append(appendAttr(dst, Attr{"to", to}), text[at:]...)
}

func appendAttr(dst []byte, a Attr) []byte {
	dst = append(append(append(dst, ' '), a.Name...), "='"...)
	return append(appendText(dst, a.Value, true), '\'')
}

func appendText(dst []byte, text string, attr bool) []byte {
	plain := 0 // octets that need no escape
	for plain < len(text) && text[plain] >= ' ' && text[plain] < utf8.RuneSelf && text[plain] != '&' && text[plain] != '<' && text[plain] != '>' && text[plain] != '\'' {
		plain++
	}
	dst = append(dst, text[:plain]...)
	for _, c := range text[plain:] {
		switch {
		case c == '&':
			dst = append(dst, "&amp;"...)
		case c == '<':
			dst = append(dst, "&lt;"...)
		case c == '>':
			dst = append(dst, "&gt;"...)
		case c == '\'' && attr:
			dst = append(dst, "&apos;"...)
		case (c == '\n' || c == '\t') && attr, c == '\r':
			dst = fmt.Appendf(dst, "&#%d;", c)
		case allowed(c):
			dst = utf8.AppendRune(dst, c)
		}
	}
	return dst
}

// allowed says whether XML may hold a character.
func allowed(c rune) bool {
	return c >= ' ' && c < 0xFFFE || c == '\n' || c == '\t' || c == '\r' || c > 0xFFFF
}

// Printable says whether XML may hold a text.
func Printable(text string) bool {
	return strings.ToValidUTF8(text, "") == text && !strings.ContainsFunc(text, func(c rune) bool { return !allowed(c) })
}

// Namespaces that only XML itself has.
const (
	nsXML   = "http://www.w3.org/XML/1998/namespace"
	nsXMLNS = "http://www.w3.org/2000/xmlns/"
)

// IsSpace says whether a text may be the namespace of an element.
func IsSpace(text string) bool { return text != nsXML && text != nsXMLNS && Printable(text) }

// IsName says whether a text may be the name of an element or attribute, without a prefix. XMPP has only names of ASCII.
func IsName(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_':
		case i == 0 || c != '-' && c != '.' && (c < '0' || c > '9'):
			return false
		}
	}
	return text != ""
}

// In moves the element from one namespace to another, and the elements inside it, up to elements of a third namespace.
func (e Element) In(from, to string) Element {
	if e.Name == "" || e.Space != from {
		return e
	}
	e.Space = to
	e.Kids = slices.Clone(e.Kids)
	for i := range e.Kids {
		e.Kids[i] = e.Kids[i].In(from, to)
	}
	return e
}

// Set is the element with another value of an attribute; "": without it.
func (e Element) Set(name, value string) Element {
	e.Attrs = slices.DeleteFunc(slices.Clone(e.Attrs), func(a Attr) bool { return a.Name == name })
	if value != "" {
		e.Attrs = append(e.Attrs, Attr{name, value})
	}
	return e
}
