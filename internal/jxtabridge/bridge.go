package jxtabridge

import (
	"errors"
	"slices"
	"strings"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// Bridge is one gateway's JXTA side. Step is its only way in.
type Bridge struct {
	*step
	ghosts      *ghosts
	outlets     *outlets
	far         *far
	multicast   *multicast
	rules       *rules
	directory   *directory
	streams     *streams
	secure      *secure
	leases      *leases
	propagation *propagation
	arrivals    *arrivals
	identity    *hostIdentity
	begun       bool // there was a Step
}

// Stats count since the start of the process.
type Stats struct {
	Received, Sent   uint64 // messages
	BadMessages      uint64 // not readable, or with a wrong trailer
	Refused          map[string]uint64
	Grants           uint64 // leases granted and renewed
	Disconnects      uint64 // sent to peers that talked without a lease
	Queries          uint64 // discovery
	Answers          uint64 // discovery, at once
	LateAnswers      uint64 // discovery and pipe queries that were answered later
	PipeQueries      uint64
	RouteQueries     uint64
	Calls            uint64 // to peers without a connection
	Published        uint64 // advertisements that local peers published
	Asked            uint64 // questions that went to far sites
	AskedHere        uint64 // questions of far sites that local peers were asked
	Pushed           uint64 // advertisements handed to peers that had not asked
	Unpushed         uint64 // of those, given up before all peers had them, because more was published than could be handed out
	WireIn           uint64 // propagate pipe messages of local peers
	LocalFanOut      uint64 // copies for other local peers
	Carried          uint64 // payloads given to the gateway
	CarriedLate      uint64 // of them held until a listener became known
	Unheard          uint64 // messages of local peers on propagate pipes that no far site listened to while they were held
	FarPayloads      uint64
	FarUndeliverable uint64 // payloads of far peers that some local peer did not get, or for which no local peer was here
	Throttled        uint64 // times that a peer was not read from because another takes too little
	Overrun          uint64 // messages between local peers lost because the receiver takes too little
	Abandoned        uint64 // payloads given up because the queue of a peer with a lease was full
	Streams          uint64 // of BiDi pipes and sockets between a local and a far peer
	Stream           Traffic
	Secure           Traffic // of secure pipes between a local and a far peer
	SecureBegun      uint64  // connections of secure pipes that began here
	SecureCrossed    uint64  // pairs of connections that both peers opened at once; one of each was kept
	// StreamsEnded counts by reason: closed_here, closed_there (the far peer), reset_there (its gateway), or the error.
	StreamsEnded map[string]uint64
	// Multicast datagrams: heard; of those, copies of messages that a leased peer sends over its connection; sent; not sent, because of
	// the rate or their size.
	MulticastHeard, MulticastCopies, MulticastSent, MulticastWithheld uint64
}

// New makes a bridge from the memories of an earlier one. Memories that cannot be read are left out.
func New(cfg Config, memories []site.Memory) *Bridge {
	s := &step{cfg: cfg.withDefaults(), me: cfg.Identity.Peer, fates: map[uint64]func(bool){}}
	s.stats.Refused, s.stats.StreamsEnded = map[string]uint64{}, map[string]uint64{}
	g, o, r := &ghosts{s}, newOutlets(s), &rules{s}
	f := &far{step: s, outlets: o, sites: map[uint16]*farSite{}}
	e := newEther(s, o, g)
	d := newDirectory(s, o, g, f, e, r)
	st := newStreams(s, o, g, f, r)
	sec := &secure{step: s, outlets: o, talks: newConversations(s, o, g), rules: r, layer: tlsLayer(s), pairs: map[tlsKey]*tlsPair{}}
	a := &arrivals{step: s, outlets: o, ghosts: g, away: away{step: s, of: map[string]*absent{}}, left: map[uint64][]string{}, tallies: map[string]*endTally{}}
	l := &leases{s, o, g, e, d, st, a}
	w := &hostIdentity{step: s, outlets: o, ghosts: g, leases: l, streams: st, secure: sec}
	b := &Bridge{s, g, o, f, e, r, d, st, sec, l, &propagation{step: s, outlets: o, ghosts: g, far: f, multicast: e, rules: r, leases: l}, a, w, false}
	a.propagation, o.arrivals = b.propagation, a
	w.handle, o.gone = b.handle, w.left
	b.recall(memories)
	b.rearm()
	return b
}

func (b *Bridge) recall(memories []site.Memory) {
	positions := map[streamKey][2]uint32{}
	for _, m := range memories {
		if id, ok := strings.CutPrefix(m.Key, memPeer); ok {
			b.outlets.recallPeer(id, m.Value)
		} else if key, ok := strings.CutPrefix(m.Key, memAdv); ok {
			b.directory.recallAdv(key, m.Value)
		} else if b.arrivals.recall(m) || b.directory.views.recall(m) {
			continue
		} else if !b.streams.recall(m, positions) {
			b.secure.recall(m)
		}
	}
	b.streams.place(positions)
}

// Step brings the bridge to now and applies ev; a nil ev means that only time has passed.
func (b *Bridge) Step(now time.Time, ev site.Event) site.Output {
	var out site.Output
	b.now, b.out = now, &out
	b.directory.pushes.room = pushPortion
	if !b.begun {
		b.begun = true
		b.streams.start()
		b.arrivals.start()
		b.leases.restate()
		b.outlets.callAll()
		b.directory.restate()
		b.directory.views.start()
	}
	if due.Reached(now, b.wake) {
		b.sweep()
	}
	switch ev := ev.(type) {
	case Opened:
		b.outlets.opened(ev)
	case Welcomed:
		b.welcomed(ev)
	case Received:
		b.received(ev)
	case Heard:
		b.heard(ev)
	case Quiet:
		b.outlets.quiet(ev)
	case Closed:
		b.outlets.closed(ev)
	case Written:
		b.outlets.written(ev)
	case site.FarItem:
		b.farItem(ev)
		b.directory.views.met()
	case site.FarMessage:
		b.farMessage(ev)
	case site.SiteLost:
		b.siteLost(ev.Site)
	case Viewed:
		b.directory.views.set(ev)
	case ViewOrder:
		b.directory.views.obey(ev.ViewRule)
	case site.Way:
		b.directory.views.reached(ev)
	case site.Near:
		b.far.near = ev.Sites
	case site.Fate:
		b.fate(ev)
	}
	out.Orders, out.Deadline = ordered(out.Orders), b.wake
	b.out = nil
	return out
}

// sweep ends everything whose time is over.
func (b *Bridge) sweep() {
	b.identity.sweep()
	b.leases.sweep()
	b.arrivals.sweep()
	b.propagation.sweep()
	b.directory.sweep()
	b.streams.sweep()
	b.leases.sweepUntold()
	b.secure.sweep()
	b.directory.sweepAsks()
	b.directory.views.sweep()
	b.directory.sweepHere()
	b.rearm()
}

// rearm finds out when something is due next.
func (b *Bridge) rearm() {
	b.wake = time.Time{}
	b.directory.rearm()
	if len(b.outlets.timers) > 0 {
		b.until(b.outlets.timers[0].at)
	}
	for _, t := range b.outlets.untold {
		b.until(t)
	}
	if len(b.propagation.held) > 0 {
		b.until(b.propagation.held[0].until)
	}
	b.identity.rearm()
	b.arrivals.rearm()
	b.until(b.streams.talks.wakeAt)
	b.until(b.secure.talks.wakeAt)
}

// inbound is a message on its way through the bridge, hop elements taken out.
type inbound struct {
	conn     *conn
	from     *peer  // at the other end of conn
	dest     string // peer it is routed to; ours when empty
	group    string
	service  string
	param    string
	elements []jxta.Element
	size     int // octets of the body that the elements are in
}

const (
	elSource      = "EndpointSourceAddress"
	elDestination = "EndpointDestinationAddress"
	elRouter      = "EndpointRouterMsg"
	elFingerprint = "EndpointRouterMsg-fingerprint"
)

func (b *Bridge) welcomed(ev Welcomed) {
	c := b.outlets.conns[ev.Conn]
	if c == nil || c.peer != nil {
		return
	}
	unique, err := jxta.ParseURN(ev.Welcome.Peer)
	if err != nil || unique == b.me || jxta.IDKind(unique) != jxta.KindPeer {
		b.complain(c, "peer_id", err)
		b.post(Close{c.id})
		return
	}
	p := b.outlets.peers[unique]
	if p == nil {
		if reason := b.identity.room(c); reason != "" {
			b.complain(c, reason, nil)
			b.post(Close{c.id})
			return
		}
		p = newPeer(unique)
		b.outlets.addPeer(p)
	}
	c.unique, c.peer = unique, p
	// Before its first message: in the format in which it spoke last, or else signed if the id is made of a certificate (ghosts 2).
	c.signed = p.signed
	if !p.known {
		c.signed = strings.HasPrefix(unique, "cbid-")
	}
	if ev.Welcome.Version == "3.0" && ev.Welcome.MsgVersion == 1 {
		c.version = 1
	}
	b.identity.arrived(c, ev.Welcome)
}

func (b *Bridge) received(ev Received) {
	c := b.outlets.conns[ev.Conn]
	if c == nil || c.peer == nil {
		return
	}
	b.stats.Received++
	b.handle(c, ev.Body)
}

// handle handles a message that came over a connection.
func (b *Bridge) handle(c *conn, body []byte) {
	if c.peer == nil {
		return
	}
	before := b.outlets.source
	b.outlets.source = c
	defer func() { b.outlets.source = before }()
	m, rest, err := jxta.ParseMessage(body, jxta.DefaultLimits)
	maker := ""
	if err == nil && len(rest) > 0 {
		var t jxta.Trailer
		if t, err = jxta.ParseTrailer(rest); err == nil {
			maker, err = c.verifier.Verify(t, body[:len(body)-len(rest)])
		}
	}
	if err != nil {
		b.stats.BadMessages++
		b.complain(c, "message", err)
		return
	}
	if !b.identity.believes(c, maker, body) {
		return
	}
	b.outlets.learnFormat(c, len(rest) > 0)
	in, err := b.open(c, m)
	in.size = len(body)
	if err != nil {
		b.complain(c, "address", err)
		return
	}
	if in.dest != "" {
		b.forward(in)
	} else {
		b.dispatch(in)
	}
}

var errForeign = errors.New("originator is not the peer of this connection")

// open takes the hop elements out and finds the destination of the message (wire 4.3, 4.4).
func (b *Bridge) open(c *conn, m jxta.Message) (inbound, error) {
	in := inbound{conn: c, from: c.peer, group: jxta.NetGroup}
	var dest jxta.Address
	var routed *jxta.RouterMessage
	in.elements = m.Elements[:0] // elements that the application wrote; nobody reads m after this
	for _, e := range m.Elements {
		if e.Namespace == "jxta" {
			switch e.Name {
			case elSource, elFingerprint, elHeaderSrc:
				continue
			case elDestination:
				a, err := jxta.ParseAddress(string(e.Data))
				if err != nil {
					return in, err
				}
				dest = a
				continue
			case elRouter:
				r, err := jxta.ParseRouterMessage(e.Data)
				if err != nil {
					return in, err
				}
				routed = &r
				continue
			}
		}
		in.elements = append(in.elements, e)
	}
	if routed != nil {
		// Peers speak for themselves here: nobody else relays on this LAN.
		if routed.Src != c.unique {
			return in, errForeign
		}
		dest = routed.Dest
		if dest.Host != b.me {
			in.dest = dest.Host
		}
	}
	if dest.Service == "" {
		return in, &jxta.ParseError{What: "message", Field: elDestination, Err: jxta.ErrMissing}
	}
	group, service, param := jxta.Demangle(dest.Service, dest.Param)
	if group != "" {
		if !isGroup(group) {
			return in, &jxta.ParseError{What: "message", Field: "group", Err: jxta.ErrMismatch}
		}
		in.group = group
	}
	in.service, in.param = service, param
	return in, nil
}

// isGroup reports whether an id is that of a peer group: the world's, the net's, or one that somebody made (wire 1.2).
func isGroup(id string) bool {
	return id == jxta.NetGroup || id == worldGroup || jxta.IDKind(id) == jxta.KindGroup
}

// serviceIs compares a service name with a class, URN or unique value, in whatever case.
func serviceIs(service, class string) bool {
	return strings.EqualFold(service, class) || strings.EqualFold(service, jxta.URN(class))
}

const (
	svcPropagate = "JxtaPropagate"
	svcPeerView  = "PeerView"
	svcWire      = "jxta.service.wirepipe"
	svcRouter    = "EndpointRouter"
)

// dispatch handles messages to the gateway itself.
func (b *Bridge) dispatch(in inbound) {
	switch {
	case serviceIs(in.service, jxta.ClassRendezvous):
		b.leases.lease(in)
	case serviceIs(in.service, jxta.ClassRelay):
		b.leases.relay(in)
	case in.service == svcPeerView:
		b.leases.peerView(in)
	case in.service == svcPropagate:
		b.leases.expect(in)
		b.propagated(in)
	case serviceIs(in.service, jxta.ClassResolver):
		b.leases.expect(in)
		b.resolver(in, nil)
	case in.service == svcWire:
		b.leases.expect(in)
		b.propagation.wire(in, nil)
	default:
		b.stats.Refused["service"]++
	}
}

// find is the first element of the jxta namespace whose name starts with prefix and ends with suffix.
func find(elements []jxta.Element, prefix, suffix string) *jxta.Element {
	for i := range elements {
		e := &elements[i]
		if e.Namespace == "jxta" && strings.HasPrefix(e.Name, prefix) && strings.HasSuffix(e.Name, suffix) {
			return e
		}
	}
	return nil
}

// keep copies elements out of the packet they came in.
func keep(elements []jxta.Element) []jxta.Element {
	out := make([]jxta.Element, len(elements))
	for i, e := range elements {
		e.Data = slices.Clone(e.Data)
		if e.Signature != nil {
			e.Signature = &keep([]jxta.Element{*e.Signature})[0]
		}
		out[i] = e
	}
	return out
}

// kept are the elements for as long as they wait. They stay in the body if they are most of it; otherwise few octets
// would hold the memory of many.
func (in inbound) kept() []jxta.Element {
	if sizeOf(in.elements) < in.size/2 {
		return keep(in.elements)
	}
	return slices.Clone(in.elements)
}

func sizeOf(elements []jxta.Element) int {
	n := 0
	for i := range elements {
		for e := &elements[i]; e != nil; e = e.Signature {
			n += 64 + len(e.Name) + len(e.Type) + len(e.Data)
		}
	}
	return n
}
