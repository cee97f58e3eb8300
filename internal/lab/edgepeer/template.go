package edgepeer

import (
	"bytes"
	"strconv"
	"strings"

	"aldis/internal/jxta"
)

// template is a document of which only marked places change from message to message: those are cut out once and filled in again, so that
// a load generator has little work of its own.
type template [][]byte

// cut divides a document at marks, each of which is in it once, in that order.
func cut(doc []byte, marks ...string) template {
	var t template
	for _, mark := range marks {
		head, rest, ok := bytes.Cut(doc, []byte(mark))
		if !ok {
			panic("edgepeer: a document without its own mark " + mark)
		}
		t, doc = append(t, head), rest
	}
	return append(t, doc)
}

// fill puts values where the marks were.
func (t template) fill(values ...string) []byte {
	size := 0
	for i, part := range t {
		size += len(part)
		if i < len(values) {
			size += len(values[i])
		}
	}
	b := make([]byte, 0, size)
	for i, part := range t {
		b = append(b, part...)
		if i < len(values) {
			b = append(b, values[i]...)
		}
	}
	return b
}

// templateKey identifies a document: its kind and the parts of it that are not marked.
type templateKey struct {
	kind byte
	a, b string
	n, m int
}

const (
	markText  = "@mark@"
	markQuery = 1073741823 // a query id that is never drawn
)

// template returns the cached template, or makes it.
func (p *Peer) template(k templateKey, make func() template) template {
	t := p.templates[k]
	if t == nil {
		if len(p.templates) >= maxCached {
			clear(p.templates)
		}
		t = make()
		p.templates[k] = t
	}
	return t
}

// propagateDoc is the header of messages to the whole group.
func (p *Peer) propagateDoc(id, service, param string) []byte {
	return p.template(templateKey{kind: 'p', a: service, b: param}, func() template {
		h := jxta.Propagate{MessageID: markText, Service: service, Param: param, TTL: walkTTL, Path: []string{p.id}}
		return cut(h.Append(nil), markText)
	}).fill(id)
}

// wireDoc is the header of a propagate pipe's message. For an id that is not plain text it is built without a template.
func (p *Peer) wireDoc(pipe, id string) []byte {
	if strings.ContainsAny(id, "<&>\r") {
		return jxta.WireHeader{Src: p.id, Pipe: pipe, MsgID: id, TTL: walkTTL}.Append(nil)
	}
	return p.template(templateKey{kind: 'w', a: pipe}, func() template {
		return cut(jxta.WireHeader{Src: p.id, Pipe: pipe, MsgID: markText, TTL: walkTTL}.Append(nil), markText)
	}).fill(id)
}

// questionDoc is a resolver query.
func (p *Peer) questionDoc(id int, handler, query string) []byte {
	route := p.Route()
	return jxta.ResolverQuery{Handler: handler, QueryID: id, Src: p.id, Route: &route, Query: query}.Append(nil)
}

// discoveryDoc is a resolver query of the discovery handler.
func (p *Peer) discoveryDoc(id int, q jxta.DiscoveryQuery) []byte {
	if q.Attr == "" || q.Value == "" || strings.ContainsAny(q.Value, "<&>\r") || strings.TrimSpace(q.Value) != q.Value {
		return p.questionDoc(id, jxta.HandlerDiscovery, string(q.Append(nil)))
	}
	return p.template(templateKey{kind: 'd', a: q.Attr, n: q.Type, m: q.Threshold}, func() template {
		marked := q
		marked.Value = markText
		return cut(p.questionDoc(markQuery, jxta.HandlerDiscovery, string(marked.Append(nil))), strconv.Itoa(markQuery), markText)
	}).fill(strconv.Itoa(id), q.Value)
}
