package cot

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Header stands before an event on a stream.
const Header = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"

// ParseXML reads one event.
func ParseXML(b []byte) (*Event, error) {
	if len(b) > MaxEvent {
		return nil, fault(TooLong, "an event of %d octets, at most %d are read", len(b), MaxEvent)
	}
	if !utf8.Valid(b) {
		return nil, fault(Syntax, "an event that is not UTF-8")
	}
	p := &parser{b: b}
	root, err := p.document()
	if err != nil {
		return nil, err
	}
	if root.Name != "event" {
		return nil, fault(Syntax, "<%.40s> is no event", root.Name)
	}
	return eventOf(root)
}

// ParseDetail reads elements without an event around them, the form that they have in version 1.
func ParseDetail(b []byte) ([]Node, error) {
	if len(b) > MaxEvent || !utf8.Valid(b) {
		return nil, fault(Syntax, "a detail that is too long or not UTF-8")
	}
	p := &parser{b: b}
	root := Node{Name: "detail"}
	if err := p.inside(&root, 2); err != nil {
		return nil, err
	}
	if p.at < len(p.b) {
		return nil, fault(Syntax, "a detail with an end that nothing begins")
	}
	return root.Kids, nil
}

// eventOf makes an event of its element.
func eventOf(root Node) (*Event, error) {
	e := &Event{}
	for _, a := range root.Attrs {
		if to := e.text(a.Name); to != nil && a.Value != "" {
			*to = a.Value
			continue
		}
		switch a.Name {
		case "time":
			e.Time, _ = ParseTime(a.Value)
		case "start":
			e.Start, _ = ParseTime(a.Value)
		case "stale":
			e.Stale, _ = ParseTime(a.Value)
		default:
			e.Other = append(e.Other, a)
		}
	}
	points, details := 0, 0
	e.Bare = true
	for _, k := range root.Kids {
		switch {
		case k.Name == "point" && points == 0:
			points++
			e.Point = pointOf(k)
		case k.Name == "detail" && details == 0 && len(k.Attrs) == 0:
			details++
			e.Detail, e.Bare, e.DetailFirst = k.Kids, false, points == 0
		case k.Name != "":
			e.More = append(e.More, k)
		}
	}
	if points == 0 {
		return nil, fault(Nowhere, "an event without a point")
	}
	return e, e.Check()
}

// text is the field that holds a text attribute; nil: there is no field for it.
func (e *Event) text(name string) *string {
	switch name {
	case "version":
		return &e.Version
	case "uid":
		return &e.UID
	case "type":
		return &e.Type
	case "how":
		return &e.How
	case "access":
		return &e.Access
	case "qos":
		return &e.QoS
	case "opex":
		return &e.Opex
	case "caveat":
		return &e.Caveat
	case "releasableTo":
		return &e.Releasable
	}
	return nil
}

func pointOf(n Node) Point {
	p := Point{HAE: Unknown, CE: Unknown, LE: Unknown}
	for _, a := range n.Attrs {
		switch number := Number(strings.TrimSpace(a.Value)).clean(); a.Name {
		case "lat":
			p.Lat = number
		case "lon":
			p.Lon = number
		case "hae":
			p.HAE = number.unknown()
		case "ce":
			p.CE = number.unknown()
		case "le":
			p.LE = number.unknown()
		default:
			p.Other = append(p.Other, a)
		}
	}
	return p
}

// parser reads the XML that events use: elements, attributes, text, CDATA, comments; no custom entities.
type parser struct {
	b     []byte
	at    int
	nodes int
}

func (p *parser) document() (Node, error) {
	for {
		p.space()
		switch {
		case p.skip("<?"):
			if !p.past("?>") {
				return Node{}, fault(Syntax, "a declaration without an end")
			}
		case p.skip("<!--"):
			if !p.past("-->") {
				return Node{}, fault(Syntax, "a comment without an end")
			}
		case p.skip("<!"):
			return Node{}, fault(Doctype, "a document type: nothing of the kind is read")
		case p.skip("<"):
			n, err := p.element(1)
			if err != nil {
				return n, err
			}
			p.space()
			if p.at < len(p.b) {
				return n, fault(Syntax, "something behind the event")
			}
			return n, nil
		default:
			return Node{}, fault(Syntax, "no element where an event should begin")
		}
	}
}

// element reads an element whose "<" was read.
func (p *parser) element(depth int) (n Node, err error) {
	p.nodes++
	if depth > MaxDepth || p.nodes > MaxNodes {
		return n, fault(TooDeep, "an event with more than %d levels or %d elements", MaxDepth, MaxNodes)
	}
	n.Name = p.name()
	if n.Name == "" {
		return n, fault(Syntax, "an element without a name")
	}
	for {
		p.space()
		switch {
		case p.skip("/>"):
			return n, nil
		case p.skip(">"):
			if err := p.inside(&n, depth); err != nil {
				return n, err
			}
			if !p.skip("</") || p.name() != n.Name {
				return n, fault(Syntax, "<%.40s> without its end", n.Name)
			}
			p.space()
			if !p.skip(">") {
				return n, fault(Syntax, "<%.40s> without its end", n.Name)
			}
			return n, nil
		}
		a, err := p.attribute()
		if err != nil {
			return n, err
		}
		p.nodes++
		if p.nodes > MaxNodes {
			return n, fault(TooDeep, "an event with more than %d attributes", MaxNodes)
		}
		n.Attrs = append(n.Attrs, a)
	}
}

func (p *parser) attribute() (a Attr, err error) {
	a.Name = p.name()
	if a.Name == "" {
		return a, fault(Syntax, "an attribute without a name")
	}
	p.space()
	if !p.skip("=") {
		return a, fault(Syntax, "the attribute %.40q without a value", a.Name)
	}
	p.space()
	if p.at == len(p.b) || p.b[p.at] != '"' && p.b[p.at] != '\'' {
		return a, fault(Syntax, "the attribute %.40q without quotes", a.Name)
	}
	quote := p.b[p.at]
	p.at++
	end := bytes.IndexByte(p.b[p.at:], quote)
	if end < 0 {
		return a, fault(Syntax, "the attribute %.40q without an end", a.Name)
	}
	raw := p.b[p.at : p.at+end]
	p.at += end + 1
	if bytes.IndexByte(raw, '<') >= 0 {
		return a, fault(Syntax, "the attribute %.40q with a <", a.Name)
	}
	a.Value, err = unescape(raw)
	return a, err
}

// inside reads the content of an element, up to its end tag. Texts of white space alone next to elements are dropped.
func (p *parser) inside(n *Node, depth int) error {
	elements := false
	add := func(text string) error {
		if last := len(n.Kids) - 1; last >= 0 && n.Kids[last].Name == "" {
			n.Kids[last].Text += text
		} else if text != "" {
			p.nodes++
			if p.nodes > MaxNodes {
				return fault(TooDeep, "an event with more than %d texts", MaxNodes)
			}
			n.Kids = append(n.Kids, Node{Text: text})
		}
		return nil
	}
	for p.at < len(p.b) && !bytes.HasPrefix(p.b[p.at:], []byte("</")) {
		switch {
		case p.skip("<!--"):
			if !p.past("-->") {
				return fault(Syntax, "a comment without an end")
			}
		case p.skip("<![CDATA["):
			begin := p.at
			if !p.past("]]>") {
				return fault(Syntax, "CDATA without an end")
			}
			if err := add(string(p.b[begin : p.at-3])); err != nil {
				return err
			}
		case p.skip("<?"):
			if !p.past("?>") {
				return fault(Syntax, "an instruction without an end")
			}
		case p.skip("<!"):
			return fault(Doctype, "a document type inside of an event")
		case p.skip("<"):
			kid, err := p.element(depth + 1)
			if err != nil {
				return err
			}
			elements = true
			n.Kids = append(n.Kids, kid)
		default:
			end := bytes.IndexByte(p.b[p.at:], '<')
			if end < 0 {
				end = len(p.b) - p.at
			}
			text, err := unescape(p.b[p.at : p.at+end])
			if err == nil {
				err = add(text)
			}
			if err != nil {
				return err
			}
			p.at += end
		}
	}
	if elements {
		n.Kids = dropBlanks(n.Kids)
	}
	return nil
}

func dropBlanks(kids []Node) []Node {
	var list []Node
	for _, k := range kids {
		if k.Name != "" || strings.TrimSpace(k.Text) != "" {
			list = append(list, k)
		}
	}
	return list
}

func (p *parser) space() {
	for p.at < len(p.b) && (p.b[p.at] == ' ' || p.b[p.at] == '\n' || p.b[p.at] == '\t' || p.b[p.at] == '\r') {
		p.at++
	}
}

func (p *parser) skip(what string) bool {
	if !bytes.HasPrefix(p.b[p.at:], []byte(what)) {
		return false
	}
	p.at += len(what)
	return true
}

// past moves behind the next occurrence of what.
func (p *parser) past(what string) bool {
	i := bytes.Index(p.b[p.at:], []byte(what))
	if i < 0 {
		return false
	}
	p.at += i + len(what)
	return true
}

func (p *parser) name() string {
	begin := p.at
	for p.at < len(p.b) && named(p.b[p.at], p.at > begin) {
		p.at++
	}
	return string(p.b[begin:p.at])
}

func named(c byte, inside bool) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || inside && c == ':' ||
		inside && (c >= '0' && c <= '9' || c == '-' || c == '.')
}

var entities = map[string]string{"lt": "<", "gt": ">", "amp": "&", "quot": `"`, "apos": "'"}

func unescape(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '&') < 0 {
		if !printable(raw) {
			return "", fault(Syntax, "a control character")
		}
		return string(raw), nil
	}
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
		if code != "" && (code[0] == 'x' || code[0] == 'X') {
			code, base = code[1:], 16
		}
		r, err := strconv.ParseUint(code, base, 21)
		if err != nil || !utf8.ValidRune(rune(r)) {
			return "", fault(Syntax, "the character &%s; that there is not", name)
		}
		out = utf8.AppendRune(out, rune(r))
	}
	out = append(out, raw...)
	if !printable(out) {
		return "", fault(Syntax, "a control character")
	}
	return string(out), nil
}

// printable says whether XML may hold the text.
func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return !bytes.Contains(b, []byte("\uFFFE")) && !bytes.Contains(b, []byte("\uFFFF"))
}

// AppendXML appends the event in the form of streams: a declaration, a newline, nothing behind.
func (e *Event) AppendXML(dst []byte) []byte { return e.appendEvent(append(dst, Header...)) }

func (e *Event) appendEvent(dst []byte) []byte {
	dst = append(dst, "<event"...)
	for _, name := range [...]string{"version", "uid", "type", "how", "access", "qos", "opex", "caveat", "releasableTo"} {
		if v := *e.text(name); v != "" {
			dst = appendAttr(dst, Attr{name, v})
		}
	}
	dst = appendAttr(dst, Attr{"time", e.Time.Format(TimeFormat)})
	dst = appendAttr(dst, Attr{"start", e.Start.Format(TimeFormat)})
	dst = appendAttr(dst, Attr{"stale", e.Stale.Format(TimeFormat)})
	for _, a := range e.Other {
		dst = appendAttr(dst, a)
	}
	dst = append(dst, '>')
	if e.DetailFirst {
		dst = e.Point.append(e.appendDetail(dst))
	} else {
		dst = e.appendDetail(e.Point.append(dst))
	}
	for i := range e.More {
		dst = e.More[i].append(dst)
	}
	return append(dst, "</event>"...)
}

func (e *Event) appendDetail(dst []byte) []byte {
	if e.Bare && len(e.Detail) == 0 {
		return dst
	}
	dst = append(dst, "<detail>"...)
	for i := range e.Detail {
		dst = e.Detail[i].append(dst)
	}
	return append(dst, "</detail>"...)
}

func (p *Point) append(dst []byte) []byte {
	dst = append(dst, "<point"...)
	for _, a := range [...]Attr{{"lat", string(p.Lat)}, {"lon", string(p.Lon)}, {"hae", string(p.HAE)}, {"ce", string(p.CE)}, {"le", string(p.LE)}} {
		dst = appendAttr(dst, a)
	}
	for _, a := range p.Other {
		dst = appendAttr(dst, a)
	}
	return append(dst, "/>"...)
}

func (n *Node) append(dst []byte) []byte {
	if n.Name == "" {
		return appendText(dst, n.Text, false)
	}
	dst = append(append(dst, '<'), n.Name...)
	for _, a := range n.Attrs {
		dst = appendAttr(dst, a)
	}
	if len(n.Kids) == 0 {
		return append(dst, "/>"...)
	}
	dst = append(dst, '>')
	for i := range n.Kids {
		dst = n.Kids[i].append(dst)
	}
	return append(append(append(dst, "</"...), n.Name...), '>')
}

func appendAttr(dst []byte, a Attr) []byte {
	dst = append(append(append(dst, ' '), a.Name...), `="`...)
	return append(appendText(dst, a.Value, true), '"')
}

func appendText(dst []byte, text string, attr bool) []byte {
	for i := range len(text) {
		switch c := text[i]; {
		case c == '&':
			dst = append(dst, "&amp;"...)
		case c == '<':
			dst = append(dst, "&lt;"...)
		case c == '>':
			dst = append(dst, "&gt;"...)
		case c == '"' && attr:
			dst = append(dst, "&quot;"...)
		case (c == '\n' || c == '\t') && attr, c == '\r':
			dst = append(strconv.AppendUint(append(dst, "&#"...), uint64(c), 10), ';')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
