package trace

import (
	"bytes"
	"net/netip"
	"strings"

	"aldis/internal/jxta"
)

// Kind is the purpose of a JXTA message.
type Kind string

// Kinds of messages.
const (
	kindLease             Kind = "lease"
	kindRelay             Kind = "relay"
	kindPeerView          Kind = "peer view"
	kindDiscoveryQuery    Kind = "discovery query"
	kindDiscoveryResponse Kind = "discovery response"
	kindPipeQuery         Kind = "pipe query"
	kindPipeAnswer        Kind = "pipe answer"
	kindRouteQuery        Kind = "route query"
	kindRouteResponse     Kind = "route response"
	kindQuery             Kind = "resolver query"
	kindResponse          Kind = "resolver response"
	kindSRDI              Kind = "srdi"
	kindPropagatePipe     Kind = "propagate pipe"
	kindUnicastPipe       Kind = "unicast pipe"
	kindTLS               Kind = "tls"
	kindRouter            Kind = "router"
	kindOther             Kind = "other"
)

// Element names and texts that decide the kind (wire 4 to 10).
const (
	elDest       = "EndpointDestinationAddress"
	elRouter     = "EndpointRouterMsg"
	elWire       = "JxtaWireHeader"
	sufQuery     = "ORes"
	sufResponse  = "IRes"
	sufSRDI      = "Srdi"
	nsReliable   = "jxtarel"
	serviceWire  = "jxta.service.wirepipe"
	servicePipe  = "PipeService"
	handlerRoute = "EndpointRouter"
)

// host is the knowledge of one IP address.
type host struct {
	peer        string // its PID's unique value
	in, out     int64  // application octets
	passed      int64  // of out, octets from other peers
	inMessages  int64
	outMessages int64
	echoed      int64            // of in, its own messages that came back
	published   map[string]bool  // services that it mentioned before it received them
	heard       map[string]int64 // services: when their advertisement first came
	firstData   int64            // when the first data of another peer came; 0: never
	asked       int64            // when it sent the message to which no answer has come; 0: none is open
	answers     samples          // from such a message to the next one to it, seconds
}

// host returns the record of an address; past the limit, records of further addresses are lost.
func (a *Analyser) host(addr netip.Addr) *host {
	h := a.hosts[addr]
	if h == nil {
		h = &host{published: map[string]bool{}, heard: map[string]int64{}}
		if len(a.hosts) < maxNames {
			a.hosts[addr] = h
		}
	}
	return h
}

// welcome takes in a welcome line.
func (a *Analyser) welcome(d *dialog, side int, s *stream, w jxta.Welcome, octets int) {
	a.read.welcome += int64(octets)
	a.host(d.c.sender(side).Addr()).peer = s.peer
}

// request takes in the first line of an HTTP request. The path of a poll is the client's unique value (wire 3.1).
func (a *Analyser) request(d *dialog, side int, _ *stream, method, target string) {
	a.httpRequests++
	if host, ok := strings.CutPrefix(target, "http://"); ok { // through a proxy
		_, target, _ = strings.Cut(host, "/")
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(target, "/"), "?")
	if method == "GET" && len(path) > 5 && (path[:5] == "uuid-" || path[:5] == "cbid-") {
		if id, err := jxta.Normalize(path); err == nil {
			a.host(d.c.sender(side).Addr()).peer = id
		}
	}
}

// trailer takes in a CBJX trailer after a message in an HTTP body.
func (a *Analyser) trailer(s *stream, b []byte) {
	if _, err := jxta.ParseTrailer(b); err != nil {
		a.damaged("a CBJX trailer that cannot be read", s.number, err)
		a.read.unread += int64(len(b))
		return
	}
	t := a.kinds[s.kind]
	if t == nil { // the message before it could not be read
		a.read.unread += int64(len(b))
		return
	}
	t.Octets += int64(len(b))
	a.line.spend(s.at-a.start, string(s.kind), int64(len(b)))
	a.trailers += int64(len(b))
	a.trailerCount++
}

// body takes in one message that had framing octets before it.
func (a *Analyser) body(d *dialog, side int, s *stream, b []byte, framing int) {
	m, rest, err := jxta.ParseMessage(b, jxta.DefaultLimits)
	if err != nil {
		a.damaged("a message that cannot be read", s.number, err)
		a.read.unread += int64(len(b) + framing)
		s.kind = ""
		return
	}
	if len(rest) > 0 {
		if _, err := jxta.ParseTrailer(rest); err != nil {
			a.damaged("octets behind a message that are no CBJX trailer", s.number, err)
		}
		a.trailers += int64(len(rest))
		a.trailerCount++
	}
	a.framing += int64(framing)
	kind := classify(&m)
	tallyIn(a.kinds, kind, len(b)+framing)
	a.line.spend(s.at-a.start, string(kind), int64(len(b)+framing))
	s.kind = kind
	for i := range m.Elements {
		for e := &m.Elements[i]; e != nil; e = e.Signature {
			a.element(e)
		}
	}
	a.understand(d, side, s, kind, &m)
}

func (a *Analyser) element(e *jxta.Element) {
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + ":" + name
	}
	if a.elements[name] == nil && len(a.elements) >= maxNames {
		name = "(others)"
	}
	tallyIn(a.elements, name, len(e.Data))
}

// classify finds the purpose of a message by its elements, and within resolver messages by the handler.
func classify(m *jxta.Message) Kind {
	kind := kindOther
	for i := range m.Elements {
		e := &m.Elements[i]
		switch e.Namespace {
		case "relay":
			return kindRelay
		case "jxtatls":
			return kindTLS
		case "jxta":
		default:
			continue
		}
		switch {
		case e.Name == elWire:
			return kindPropagatePipe
		case strings.HasPrefix(e.Name, "PeerView."):
			return kindPeerView
		case e.Name == "Connect" || e.Name == "Disconnect" || e.Name == "ConnectedLease" || e.Name == "ConnectedPeer" || e.Name == "RdvAdvReply":
			return kindLease
		case strings.HasSuffix(e.Name, sufQuery):
			return resolverKind(e.Data, kindDiscoveryQuery, kindPipeQuery, kindRouteQuery, kindQuery)
		case strings.HasSuffix(e.Name, sufResponse):
			return resolverKind(e.Data, kindDiscoveryResponse, kindPipeAnswer, kindRouteResponse, kindResponse)
		case strings.HasSuffix(e.Name, sufSRDI):
			return kindSRDI
		}
	}
	service, param := destination(m)
	switch {
	case service == servicePipe || strings.HasPrefix(param, servicePipe+"/"):
		kind = kindUnicastPipe
	case service == serviceWire:
		kind = kindPropagatePipe
	case m.Find("jxta", elRouter) != nil:
		kind = kindRouter
	}
	return kind
}

func resolverKind(doc []byte, discovery, pipe, route, other Kind) Kind {
	switch handler := field(doc, "HandlerName"); {
	case strings.EqualFold(handler, jxta.HandlerDiscovery):
		return discovery
	case handler == jxta.HandlerPipe:
		return pipe
	case handler == handlerRoute:
		return route
	}
	return other
}

// destination returns the service and parameter of a message: from its router message when it has one.
func destination(m *jxta.Message) (service, param string) {
	text := ""
	if e := m.Find("jxta", elRouter); e != nil {
		text = field(e.Data, "Dest")
	}
	if text == "" {
		e := m.Find("jxta", elDest)
		if e == nil {
			return "", ""
		}
		text = string(e.Data)
	}
	addr, err := jxta.ParseAddress(strings.TrimSpace(text))
	if err != nil {
		return "", ""
	}
	_, service, param = jxta.Demangle(addr.Service, addr.Param)
	return service, param
}

// field returns the text of the first element of that name in an XML document, without reading the document: a capture of 100 MB has
// 30,000 of them. Empty when there is none.
func field(doc []byte, name string) string {
	for {
		i := bytes.Index(doc, []byte(name))
		if i < 0 {
			return ""
		}
		before := i > 0 && doc[i-1] == '<'
		doc = doc[i+len(name):]
		if !before || len(doc) == 0 || doc[0] != '>' {
			continue
		}
		end := bytes.IndexByte(doc, '<')
		if end < 0 {
			return ""
		}
		return string(bytes.TrimSpace(doc[1:end]))
	}
}

// understand follows the actions of the application.
func (a *Analyser) understand(d *dialog, side int, s *stream, kind Kind, m *jxta.Message) {
	from, to := d.c.sender(side).Addr(), d.c.sender(1-side).Addr()
	src, dst := a.host(from), a.host(to)
	switch kind {
	case kindPropagatePipe, kindUnicastPipe:
		a.payload(s, from, to, src, dst, kind, m)
	case kindDiscoveryQuery:
		a.query(s, from, to, m)
	case kindDiscoveryResponse:
		a.advertised(s, from, to, src, dst, m)
	case kindPipeQuery:
		a.opens(s, from, to, m)
	case kindSRDI:
		a.listens(s, from, to, m)
	}
}

// payload counts the application's octets in a pipe's message.
func (a *Analyser) payload(s *stream, from, to netip.Addr, src, dst *host, kind Kind, m *jxta.Message) {
	ev := Event{Event: EventSend, From: from.String(), To: to.String(), at: s.at}
	if e := m.Find("jxta", elWire); e != nil {
		ev.Pipe, ev.Origin = unique(field(e.Data, "PipeId")), unique(field(e.Data, "SrcPeer"))
		ev.ID, ev.Kind = field(e.Data, "MsgId"), "propagate"
		if ev.Origin == "" {
			ev.Origin = unique(field(e.Data, "VisitedPeer")) // 2.2: the first peer visited made it
		}
	} else {
		_, param := destination(m)
		param = strings.TrimPrefix(param, servicePipe+"/")
		ev.Pipe, ev.Kind = unique(param), "unicast"
		if e := m.Find("jxta", elRouter); e != nil {
			ev.Origin = unique(strings.TrimPrefix(field(e.Data, "Src"), "jxta://"))
		}
	}
	payloadElements(m, &ev, 0)
	if len(ev.Elements) == 0 {
		return
	}
	octets := int64(ev.Octets)
	src.out += octets
	src.outMessages++
	dst.in += octets
	dst.inMessages++
	if ev.Origin != "" && src.peer != "" && ev.Origin != src.peer {
		src.passed += octets
	}
	switch {
	case ev.Origin != "" && ev.Origin == dst.peer:
		dst.echoed += octets
		ev.Echo = true
	case dst.firstData == 0:
		dst.firstData = s.at
	}
	if src.asked == 0 {
		src.asked = s.at
	}
	if dst.asked != 0 && !ev.Echo {
		dst.answers.add(float64(s.at-dst.asked) / 1e9)
		dst.asked = 0
	}
	a.emit(ev)
}

// reserved are the namespaces of JXTA's own elements.
func reserved(namespace string) bool {
	switch namespace {
	case "jxta", "relay", "jxtatls", "JXTABIP", "JXTASOC", nsReliable:
		return true
	}
	return false
}

// payloadElements collects the application's elements, including those inside reliable blocks (wire 8.6).
func payloadElements(m *jxta.Message, ev *Event, depth int) {
	for i := range m.Elements {
		e := &m.Elements[i]
		switch {
		case e.Namespace == nsReliable && strings.HasSuffix(e.Type, "reliable-block"):
			if inner, _, err := jxta.ParseMessage(e.Data, jxta.DefaultLimits); err == nil && depth == 0 {
				payloadElements(&inner, ev, depth+1)
			} else {
				ev.add("(stream)", "", e.Data)
			}
		case e.Namespace == "JXTASOC" && e.Name == "data":
			ev.add("data", e.Type, e.Data)
		case !reserved(e.Namespace):
			name := e.Name
			if e.Namespace != "" {
				name = e.Namespace + ":" + name
			}
			ev.add(name, e.Type, e.Data)
		}
	}
}

// unique is an ID's unique value, or the text itself when it is no ID.
func unique(text string) string {
	if id, err := jxta.ParseURN(text); err == nil {
		return id
	}
	if id, err := jxta.Normalize(text); err == nil {
		return id
	}
	return text
}

// maker is the peer that made a message: the first of its propagation's path, or the source of its route.
func maker(m *jxta.Message) string {
	for i := range m.Elements {
		e := &m.Elements[i]
		if e.Namespace == "jxta" && strings.HasPrefix(e.Name, "RendezVousPropagate") {
			return unique(field(e.Data, "Path"))
		}
	}
	if e := m.Find("jxta", elRouter); e != nil {
		return unique(strings.TrimPrefix(field(e.Data, "Src"), "jxta://"))
	}
	return ""
}

// opens notes the peer that looks for the far end of a unicast pipe (wire 8.2).
func (a *Analyser) opens(s *stream, from, to netip.Addr, m *jxta.Message) {
	if a.opt.Sink == nil {
		return
	}
	for i := range m.Elements {
		e := &m.Elements[i]
		if e.Namespace != "jxta" || !strings.HasSuffix(e.Name, sufQuery) {
			continue
		}
		doc := unescape(e.Data, 1)
		kind := "unicast"
		if field(doc, "Type") == jxta.PipeTypePropagate {
			kind = "propagate"
		}
		a.emit(Event{
			Event: EventOpen, From: from.String(), To: to.String(), at: s.at, Origin: unique(field(doc, "SrcPeerID")),
			Pipe: unique(field(doc, "PipeId")), Kind: kind,
		})
	}
}

// listens notes the input pipes that a peer announces to its rendezvous (wire 5.6).
func (a *Analyser) listens(s *stream, from, to netip.Addr, m *jxta.Message) {
	if a.opt.Sink == nil {
		return
	}
	for i := range m.Elements {
		e := &m.Elements[i]
		if e.Namespace != "jxta" || !strings.HasSuffix(e.Name, sufSRDI) {
			continue
		}
		outer, err := jxta.ParseResolverSRDI(e.Data)
		if err != nil || outer.Handler != jxta.HandlerPipe {
			continue
		}
		inner, err := jxta.ParseSRDI([]byte(outer.Payload))
		if err != nil {
			continue
		}
		for _, entry := range inner.Entries {
			kind := "unicast"
			if strings.HasPrefix(inner.Key, jxta.PipeTypePropagate) || strings.HasPrefix(entry.Key, jxta.PipeTypePropagate) {
				kind = "propagate"
			}
			a.emit(Event{
				Event: EventOpen, From: from.String(), To: to.String(), at: s.at, Origin: inner.Peer,
				Pipe: unique(entry.Value), Kind: kind, Listen: true,
			})
		}
	}
}

// query notes a peer's question.
func (a *Analyser) query(s *stream, from, to netip.Addr, m *jxta.Message) {
	if a.opt.Sink == nil {
		return
	}
	for i := range m.Elements {
		e := &m.Elements[i]
		if e.Namespace == "jxta" && strings.HasSuffix(e.Name, sufQuery) {
			doc := unescape(e.Data, 1)
			a.emit(Event{
				Event: EventQuery, From: from.String(), To: to.String(), at: s.at, Origin: unique(field(doc, "SrcPeerID")),
				Attr: field(doc, "Attr"), Name: field(doc, "Value"), ID: field(doc, "QueryID"),
			})
		}
	}
}

var (
	msaStart = []byte("<jxta:MSA")
	msaEnd   = []byte("</jxta:MSA>")
	msaName  = []byte("jxta:MSA")
)

// advertised notes the services in a discovery response.
func (a *Analyser) advertised(s *stream, from, to netip.Addr, src, dst *host, m *jxta.Message) {
	for i := range m.Elements {
		e := &m.Elements[i]
		if e.Namespace != "jxta" || !strings.HasSuffix(e.Name, sufResponse) || !bytes.Contains(e.Data, msaName) {
			continue
		}
		doc := unescape(e.Data, 3)
		for {
			i := bytes.Index(doc, msaStart)
			if i < 0 {
				break
			}
			doc = doc[i+len(msaStart):]
			end := bytes.Index(doc, msaEnd)
			if end < 0 {
				break
			}
			a.service(s, from, to, src, dst, maker(m), doc[:end])
			doc = doc[end:]
		}
	}
}

// service notes one service whose advertisement by sent.
func (a *Analyser) service(s *stream, from, to netip.Addr, src, dst *host, by string, msa []byte) {
	name := field(msa, "Name")
	if name == "" || len(name) > 1024 {
		return
	}
	if _, known := src.heard[name]; !known && !src.published[name] && a.services < maxServices {
		src.published[name] = true
		a.services++
	}
	if _, again := dst.heard[name]; !again && a.services < maxServices {
		dst.heard[name] = s.at
		a.services++
	}
	if a.opt.Sink == nil {
		return
	}
	kind := "propagate"
	if field(msa, "Type") == jxta.PipeTypeUnicast {
		kind = "unicast"
	}
	a.emit(Event{
		Event: EventPublish, From: from.String(), To: to.String(), at: s.at, Name: name, ID: unique(field(msa, "MSID")),
		Origin: by, Pipe: unique(field(msa, "Id")), Kind: kind, Octets: len(msa) + len(msaStart) + len(msaEnd),
	})
}

// unescape undoes the escaping of XML, times over.
func unescape(b []byte, times int) []byte {
	for ; times > 0 && bytes.IndexByte(b, '&') >= 0; times-- {
		out := make([]byte, 0, len(b))
		for {
			i := bytes.IndexByte(b, '&')
			if i < 0 {
				break
			}
			out = append(out, b[:i]...)
			b = b[i:]
			switch {
			case bytes.HasPrefix(b, []byte("&lt;")):
				out, b = append(out, '<'), b[4:]
			case bytes.HasPrefix(b, []byte("&gt;")):
				out, b = append(out, '>'), b[4:]
			case bytes.HasPrefix(b, []byte("&amp;")):
				out, b = append(out, '&'), b[5:]
			case bytes.HasPrefix(b, []byte("&quot;")):
				out, b = append(out, '"'), b[6:]
			default:
				out, b = append(out, '&'), b[1:]
			}
		}
		b = append(out, b...)
	}
	return b
}
