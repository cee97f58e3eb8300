package stanza

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parser reads one stanza, whose tags a Splitter has counted.
type parser struct {
	b      []byte
	at     int
	nodes  int
	most   bounds
	spaces []Attr // declared at this place, the innermost last: prefix and namespace
}

// bounds are the most levels and nodes of a stanza.
type bounds struct{ depth, nodes int }

var (
	ofStreams = bounds{MaxDepth, MaxNodes}
	// A memory holds a stanza within other elements, and a namespace for each prefix that the stanza had.
	ofMemories = bounds{MaxDepth + 8, 3 * MaxNodes}
)

// Parse reads a memory: an element that Append has written within a component's stream. Whatever a stream gave can be in it.
func Parse(b []byte) (Element, *Fault) {
	if len(b) == 0 || b[0] != '<' {
		return Element{}, fault(Syntax, "no stanza")
	}
	return parse(b, []Attr{{"", Component}}, ofMemories)
}

// parse reads a whole stanza.
func parse(b []byte, spaces []Attr, most bounds) (Element, *Fault) {
	if !utf8.Valid(b) {
		return Element{}, fault(Letters, "a stanza that is not UTF-8")
	}
	p := &parser{b: b, at: 1, most: most, spaces: spaces[:len(spaces):len(spaces)]}
	e, f := p.element(1)
	if f == nil && p.at < len(p.b) {
		f = fault(Syntax, "something behind a stanza")
	}
	return e, f
}

// element reads an element whose < was read.
func (p *parser) element(depth int) (Element, *Fault) {
	declared := len(p.spaces)
	e, f := p.start(p.spaces)
	if f != nil || depth > p.most.depth {
		if f == nil {
			f = fault(TooDeep, "a stanza of more than %d levels", p.most.depth)
		}
		return e, f
	}
	if p.b[p.at-2] != '/' {
		if f := p.inside(&e, depth); f != nil {
			return e, f
		}
	}
	p.spaces = p.spaces[:declared]
	return e, nil
}

// start reads a tag up to its >. Declarations in it go to p.spaces, behind those in around.
func (p *parser) start(around []Attr) (e Element, f *Fault) {
	p.spaces = around
	begin := p.at
	raw := p.name()
	prefix, name, f := cutName(raw)
	if f != nil {
		return e, f
	}
	if p.nodes++; p.nodes > p.most.nodes {
		return e, fault(TooDeep, "a stanza of more than %d nodes", p.most.nodes)
	}
	for {
		spaced := p.space()
		if p.skip("/>") || p.skip(">") {
			break
		}
		if !spaced {
			return e, fault(Syntax, "<%.40s> is no tag", p.b[begin:])
		}
		a, err := p.attribute()
		if err != nil {
			return e, err
		}
		if p.nodes++; p.nodes > p.most.nodes {
			return e, fault(TooDeep, "a stanza of more than %d nodes", p.most.nodes)
		}
		switch prefix, local, _ := cutName(a.Name); {
		case a.Name == "xmlns:xml" && a.Value == nsXML: // it always is
		case (a.Name == "xmlns" || prefix == "xmlns") && (!IsSpace(a.Value) || local == "xml"):
			return e, fault(Syntax, "a namespace that only XML itself has")
		case a.Name == "xmlns":
			p.spaces = append(p.spaces, Attr{"", a.Value})
		case prefix == "xmlns":
			p.spaces = append(p.spaces, Attr{local, a.Value})
		case prefix != "" && prefix != "xml": // Append would write it without the declaration of its prefix
		default:
			for _, o := range e.Attrs {
				if o.Name == a.Name {
					return e, fault(Syntax, "the attribute %.40s twice", a.Name)
				}
			}
			e.Attrs = append(e.Attrs, a)
		}
	}
	e.Name = name
	for i := len(p.spaces) - 1; i >= 0; i-- {
		if p.spaces[i].Name == prefix {
			e.Space = p.spaces[i].Value
			return e, nil
		}
	}
	if prefix != "" {
		return e, fault(Syntax, "the prefix of <%.40s> is not declared", raw)
	}
	return e, nil
}

func (p *parser) attribute() (a Attr, f *Fault) {
	a.Name = p.name()
	if _, _, f = cutName(a.Name); f != nil {
		return a, f
	}
	p.space()
	if !p.skip("=") {
		return a, fault(Syntax, "the attribute %.40s without a value", a.Name)
	}
	p.space()
	if p.at == len(p.b) || p.b[p.at] != '"' && p.b[p.at] != '\'' {
		return a, fault(Syntax, "the attribute %.40s without quotes", a.Name)
	}
	end := bytes.IndexByte(p.b[p.at+1:], p.b[p.at])
	if end < 0 {
		return a, fault(Syntax, "the attribute %.40s without an end", a.Name)
	}
	raw := p.b[p.at+1 : p.at+1+end]
	p.at += end + 2
	if bytes.IndexByte(raw, '<') >= 0 {
		return a, fault(Syntax, "the attribute %.40s with a <", a.Name)
	}
	a.Value, f = unescape(raw)
	return a, f
}

// inside reads the content of an element, and its end tag.
func (p *parser) inside(e *Element, depth int) *Fault {
	begin := p.spaces
	add := func(text string) *Fault {
		if last := len(e.Kids) - 1; last >= 0 && e.Kids[last].Name == "" {
			e.Kids[last].Text += text
			return nil
		}
		if p.nodes++; p.nodes > p.most.nodes {
			return fault(TooDeep, "a stanza of more than %d nodes", p.most.nodes)
		}
		if text != "" {
			e.Kids = append(e.Kids, Element{Text: text})
		}
		return nil
	}
	for p.at < len(p.b) {
		switch {
		case p.skip("</"):
			prefix, name, split := strings.Cut(p.name(), ":")
			if !split {
				name = prefix
			}
			p.space()
			if name != e.Name || !p.skip(">") {
				return fault(Syntax, "<%.40s> without its end", e.Name)
			}
			return nil
		case p.skip("<![CDATA["):
			end := bytes.Index(p.b[p.at:], []byte("]]>"))
			if end < 0 {
				return fault(Syntax, "CDATA without an end")
			}
			text := string(p.b[p.at : p.at+end])
			p.at += end + 3
			if !Printable(text) {
				return fault(Letters, "a character that XML has not")
			}
			if f := add(text); f != nil {
				return f
			}
		case p.skip("<"):
			kid, f := p.element(depth + 1)
			if f != nil {
				return f
			}
			e.Kids = append(e.Kids, kid)
			p.spaces = begin
		default:
			end := bytes.IndexByte(p.b[p.at:], '<')
			if end < 0 {
				return fault(Syntax, "<%.40s> without its end", e.Name)
			}
			text, f := unescape(p.b[p.at : p.at+end])
			p.at += end
			if f == nil {
				f = add(text)
			}
			if f != nil {
				return f
			}
		}
	}
	return fault(Syntax, "<%.40s> without its end", e.Name)
}

func (p *parser) space() bool {
	begin := p.at
	for p.at < len(p.b) && strings.IndexByte(" \t\r\n", p.b[p.at]) >= 0 {
		p.at++
	}
	return p.at > begin
}

func (p *parser) skip(what string) bool {
	if !bytes.HasPrefix(p.b[p.at:], []byte(what)) {
		return false
	}
	p.at += len(what)
	return true
}

func (p *parser) name() string {
	begin := p.at
	for p.at < len(p.b) && strings.IndexByte(" \t\r\n=/>'\"&<", p.b[p.at]) < 0 {
		p.at++
	}
	return string(p.b[begin:p.at])
}

// cutName takes a name apart: its prefix, or "", and the name behind the colon. A name is later written as it was read, so it must
// not have a character that ends a tag or begins another one.
func cutName(raw string) (prefix, name string, f *Fault) {
	prefix, name, split := strings.Cut(raw, ":")
	if !split {
		prefix, name = "", raw
	}
	switch {
	case IsName(name) && (!split || IsName(prefix)):
		return prefix, name, nil
	case strings.ContainsFunc(raw, func(c rune) bool { return c >= utf8.RuneSelf }):
		return "", "", fault(Letters, "the name %.40q, which is not of ASCII", raw)
	}
	return "", "", fault(Syntax, "%.40q is no name", raw)
}

var entities = map[string]string{"lt": "<", "gt": ">", "amp": "&", "quot": `"`, "apos": "'"}

func unescape(raw []byte) (string, *Fault) {
	var out []byte
	for {
		i := bytes.IndexByte(raw, '&')
		if i < 0 {
			break
		}
		out = append(out, raw[:i]...)
		raw = raw[i+1:]
		end := bytes.IndexByte(raw[:min(len(raw), 12)], ';')
		if end < 0 {
			return "", fault(Syntax, "& without its ;")
		}
		name := string(raw[:end])
		raw = raw[end+1:]
		if text, ok := entities[name]; ok {
			out = append(out, text...)
			continue
		}
		code, ok := strings.CutPrefix(name, "#")
		if !ok {
			return "", fault(Doctype, "the entity &%s; that XML does not have", name)
		}
		base := 10
		if hex, ok := strings.CutPrefix(code, "x"); ok {
			code, base = hex, 16
		}
		r, err := strconv.ParseUint(code, base, 21)
		if err != nil || !utf8.ValidRune(rune(r)) {
			return "", fault(Letters, "the character &%s; that there is not", name)
		}
		out = utf8.AppendRune(out, rune(r))
	}
	text := string(append(out, raw...))
	if !Printable(text) {
		return "", fault(Letters, "a character that XML has not")
	}
	return text, nil
}
