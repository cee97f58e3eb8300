package edgepeer

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"aldis/internal/jxta"
)

// received takes a message apart and acts on its elements. The elements decide, not the address, because rendezvous of different makes
// address the same message to different services.
func (p *Peer) received(body []byte) {
	p.stats.Received++
	m, _, err := jxta.ParseMessage(body, jxta.DefaultLimits)
	if err != nil {
		p.stats.Bad++
		return
	}
	var dest jxta.Address
	src := ""
	routed := false
	elements := m.Elements[:0]
	for _, e := range m.Elements {
		if e.Namespace == "jxta" {
			switch {
			case e.Name == elFingerprint:
				continue
			case e.Name == elSource:
				if a, err := jxta.ParseAddress(string(e.Data)); err == nil && src == "" && a.Scheme == "jxta" {
					src = a.Host
				}
				continue
			case e.Name == elDestination:
				if a, err := jxta.ParseAddress(string(e.Data)); err == nil && !routed {
					dest = a
				}
				continue
			case e.Name == elRouter:
				if src, dest, err = routerOf(e.Data); err != nil || dest.Host != p.id {
					p.stats.Bad++
					return
				}
				routed = true
				continue
			case strings.HasPrefix(e.Name, elPropagate):
				continue
			}
		}
		elements = append(elements, e)
	}
	group, service, param := jxta.Demangle(dest.Service, dest.Param)
	p.dispatch(groupOf(group), service, param, src, elements)
}

func (p *Peer) dispatch(group, service, param, src string, elements []jxta.Element) {
	if service == svcPipe {
		p.unicast(group, param, src, elements)
		return
	}
	for i, e := range elements {
		switch {
		case e.Namespace == "relay" && e.Name == "lease":
			if ms, err := strconv.ParseInt(strings.TrimSpace(string(e.Data)), 10, 64); err == nil && ms > 0 {
				p.notice(Relayed{time.Duration(ms) * time.Millisecond})
			}
			return
		case e.Namespace != "jxta":
		case e.Name == "ConnectedLease", e.Name == "Disconnect":
			p.granted(group, elements)
			return
		case e.Name == elWire:
			p.wire(group, e.Data, append(elements[:i:i], elements[i+1:]...))
			return
		case strings.HasSuffix(e.Name, "ORes"):
			p.asked(strings.TrimSuffix(e.Name, "ORes"), e.Data)
			return
		case strings.HasSuffix(e.Name, "IRes"):
			p.answered(strings.TrimSuffix(e.Name, "IRes"), e.Data)
			return
		}
	}
}

func (p *Peer) unicast(group, param, src string, elements []jxta.Element) {
	pipe, err := jxta.ParseURN(param)
	kind, open := p.pipes[pipeKey{group, pipe}]
	if err != nil || !open {
		p.stats.Bad++
		return
	}
	p.notice(Message{Group: group, Pipe: pipe, Kind: kind, Src: src, Elements: elements})
}

// wire takes a propagate pipe's message. A rendezvous of 2.7 returns the peer's own messages (baseline 4).
func (p *Peer) wire(group string, header []byte, elements []jxta.Element) {
	w, err := wireOf(header)
	if err != nil {
		p.stats.Bad++
		return
	}
	kind, open := p.pipes[pipeKey{group, w.Pipe}]
	if !open {
		return
	}
	if w.Src == p.id || !p.seen.add(w.MsgID) {
		p.stats.Duplicates++
		return
	}
	p.notice(Message{Group: group, Pipe: w.Pipe, Kind: kind, Src: w.Src, MsgID: w.MsgID, Elements: elements})
}

// answered handles a resolver response.
func (p *Peer) answered(group string, data []byte) {
	data, err := jxta.Gunzip(data)
	if err != nil {
		p.stats.Bad++
		return
	}
	handler, ok := inside(data, "HandlerName")
	id, ok2 := inside(data, "QueryID")
	queryID, err := strconv.Atoi(id)
	if !ok || !ok2 || err != nil {
		p.stats.Bad++
		return
	}
	if strings.EqualFold(handler, jxta.HandlerDiscovery) {
		p.notice(Answer{Group: group, QueryID: queryID, Raw: data})
		return
	}
	r, err := jxta.ParseResolverResponse(data)
	if err != nil {
		p.stats.Bad++
		return
	}
	switch handler {
	case jxta.HandlerPipe:
		a, err := jxta.ParsePipeResolver([]byte(r.Response))
		if err != nil || !a.Answer {
			p.stats.Bad++
			return
		}
		p.pipeAnswer(group, queryID, a)
	case jxta.HandlerRouter:
		if a, err := jxta.ParseRouteResponse([]byte(r.Response)); err == nil && queryID == -1 {
			p.unreachable(a.Dest.Dest)
		}
	}
}

// inside cuts out the text of the first element of that name, trimmed, without reading the rest, so that the work of a load generator
// does not distort the measurement. It reports false if the text is not as plain as ids and numbers are.
func inside(doc []byte, name string) (string, bool) {
	for rest := doc; ; {
		i := bytes.IndexByte(rest, '<')
		if i < 0 {
			return "", false
		}
		rest = rest[i+1:]
		if !bytes.HasPrefix(rest, []byte(name)) || len(rest) == len(name) || rest[len(name)] != '>' {
			continue
		}
		value, _, ok := bytes.Cut(rest[len(name)+1:], []byte{'<'})
		if !ok || bytes.IndexByte(value, '&') >= 0 {
			return "", false
		}
		return string(bytes.TrimSpace(value)), true
	}
}

// routerOf returns the origin and destination of an ERM.
func routerOf(doc []byte) (src string, dest jxta.Address, err error) {
	s, ok := inside(doc, "Src")
	d, ok2 := inside(doc, "Dest")
	if !ok || !ok2 {
		r, err := jxta.ParseRouterMessage(doc)
		return r.Src, r.Dest, err
	}
	a, err := jxta.ParseAddress(s)
	if err == nil {
		dest, err = jxta.ParseAddress(d)
	}
	return a.Host, dest, err
}

// wireOf reads a wire header.
func wireOf(doc []byte) (jxta.WireHeader, error) {
	pipe, ok := inside(doc, "PipeId")
	id, ok2 := inside(doc, "MsgId")
	if !ok || !ok2 {
		return jxta.ParseWireHeader(doc)
	}
	w := jxta.WireHeader{MsgID: id}
	var err error
	if w.Pipe, err = jxta.ParseURN(pipe); err != nil {
		return w, err
	}
	if src, ok := inside(doc, "SrcPeer"); ok {
		w.Src, err = jxta.ParseURN(src)
	}
	return w, err
}
