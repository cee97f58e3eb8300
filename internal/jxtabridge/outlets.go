package jxtabridge

import (
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// outlets are the routes to local peers: connections, the queue of each peer, and which peers are there.
type outlets struct {
	*step
	conns   map[site.ConnID]*conn
	source  *conn // of the message being handled
	waiting map[uint64]*delivery
	// Peers are also kept in order of their ids, so that a run can be repeated, by group and by deadline: with a thousand
	// peers a Step must only touch the peers that it concerns.
	peers     map[string]*peer
	order     []*peer                  // all
	members   map[string][]*peer       // peers with a lease, by group
	timers    due.Heap[*peer]          // peers with a deadline
	openHere  map[string]int           // number of peers that have a pipe open
	listening Listening                // to propagate pipes
	named     map[untoldPipe]bool      // listeners to propagate pipes that an earlier version has named to far sites
	gone      func(*conn)              // called when a connection has closed
	untold    map[untoldPipe]time.Time // when far sites are told of a pipe; zero: never, it ends a stream
	arrivals  *arrivals                // whose messages waiting holds
	withheld  func(group string) bool  // whether some sites do not know all its members
	local     stock                    // messages of this site that wait for peers or are under way to them
}

func newOutlets(s *step) *outlets {
	return &outlets{step: s, conns: map[site.ConnID]*conn{}, waiting: map[uint64]*delivery{}, peers: map[string]*peer{},
		members: map[string][]*peer{}, openHere: map[string]int{}, listening: Listening{}, named: map[untoldPipe]bool{}, untold: map[untoldPipe]time.Time{},
		local: stock{most: maxLocal, shared: map[*byte]int{}}}
}

// conn is one TCP connection, or one poll over HTTP.
type conn struct {
	id         site.ConnID
	remote     string
	scheme     string // of the peer's address: tcp or http
	quiet      bool   // nothing can be written
	unique     string // peer id of the welcome; "" before it
	peer       *peer
	known      bool // the first message has shown the format
	signed     bool
	version    uint8 // binary message version to send
	inflight   []flight
	octets     int // of inflight
	complaints int
	verifier   jxta.Verifier
	feeds      map[*peer]bool // peers whose queues are too full for more from here
	standing
}

// flight is a message that was handed to a connection and not written yet.
type flight struct {
	token uint64
	size  int
	msg   *message // nil: not repeated on another connection
}

// peer is a local JXTA peer.
type peer struct {
	id         string
	stranger   bool // heard by multicast: without a connection, and only for one Step
	signed     bool // format of its last message
	known      bool
	identity   identity
	conns      []*conn // with standing, oldest first
	out        *conn   // carries the messages to it
	leases     map[string]*lease
	pipes      map[pipeKey]uint8 // open input pipes and their types
	relayUntil time.Time
	told       map[string]time.Time // when it was last sent Disconnect, by group
	queue      []*message
	queued     int  // octets
	recalled   bool // from the last run, and not back since the start
	jam        jam
	next       time.Time // when the next far payload may go out; see Config.Pace
	address    string    // where it takes connections; "" when that is not known
	callAt     time.Time // when it is called next, if it has no connection then
	calls      int       // calls since its last connection
	nudge      time.Time // when it is told again that it has no lease, although it sends nothing
	at         time.Time // when the Step must look after it at the latest; zero: never
	place      int       // in timers, from 1; 0: not there
	gap        gap
}

func newPeer(id string) *peer {
	return &peer{id: id, leases: map[string]*lease{}, pipes: map[pipeKey]uint8{}, told: map[string]time.Time{}}
}

type lease struct {
	expires time.Time
	doc     []byte       // the reduced advertisement of the peer in this group, for far sites
	index   []jxta.Field // of doc, to find it by
	to      []uint16     // far sites that are told of the peer, if not all are
	near    []uint16     // of these, the ones that the view chose: the others asked
}

type pipeKey struct{ group, pipe string }

// message is a message that waits for a peer.
type message struct {
	elements []jxta.Element // router element included, addresses not
	source   string         // unique value of the hop's claimed source: the gateway or a ghost
	service  string         // outer destination service and parameter
	param    string
	size     int
	expires  time.Time // when it is no longer useful; zero: the delivery says so
	group    string
	delivery *delivery
	confirms bool // Send.Confirms
	stocked
}

func (o *outlets) opened(ev Opened) {
	c := &conn{id: ev.Conn, remote: ev.Remote, scheme: "tcp"}
	o.conns[ev.Conn] = c
	if ev.HTTP {
		c.scheme = "http"
		return
	}
	o.post(Welcome{ev.Conn, jxta.Welcome{
		Dest: "tcp://" + ev.Remote, Public: "tcp://" + o.cfg.Address, Peer: jxta.URN(o.me), Version: "1.1"}})
}

func (o *outlets) closed(ev Closed) {
	c := o.conns[ev.Conn]
	if c == nil {
		return
	}
	delete(o.conns, ev.Conn)
	o.unfeed(c)
	p := c.peer
	if p == nil {
		return
	}
	p.conns = slices.DeleteFunc(p.conns, func(x *conn) bool { return x == c })
	p.unwritten(c)
	o.arrivals.leave(p) // its lease may have ended
	o.gone(c)
	o.pump(p)
	o.lost(p)
	if len(p.conns) == 0 {
		p.gap = gap{since: o.now}
	}
	o.prune(p)
}

func (o *outlets) quiet(ev Quiet) {
	c := o.conns[ev.Conn]
	if c == nil {
		return
	}
	c.quiet = true
	if p := c.peer; p != nil {
		p.unwritten(c)
		o.arrivals.leave(p)
		o.pump(p)
	}
}

// unwritten takes back the messages that a connection has not written. They go out on the next connection, before waiting ones.
func (p *peer) unwritten(c *conn) {
	if p.out == c {
		p.out = nil
	}
	var again []*message
	for _, f := range c.inflight {
		if f.msg != nil {
			again = append(again, f.msg)
			p.queued += f.msg.size
		}
	}
	c.inflight, c.octets = nil, 0
	p.queue = append(again, p.queue...)
}

// newest is the last opened connection that can be written to; nil: none can.
func (p *peer) newest() *conn {
	for _, c := range slices.Backward(p.conns) {
		if !c.quiet {
			return c
		}
	}
	return nil
}

// prune forgets a peer when nothing of it is left.
func (o *outlets) prune(p *peer) {
	if p.away() && len(p.leases) == 0 {
		o.arrivals.leave(p)
		for _, m := range p.queue {
			o.local.release(m)
		}
		p.queue, p.queued = nil, 0 // the rest is in nobody's custody
		o.letGo(p)
		o.removePeer(p)
	}
}

func (o *outlets) written(ev Written) {
	c := o.conns[ev.Conn]
	if c == nil {
		return
	}
	n := 0
	for n < len(c.inflight) && c.inflight[n].token <= ev.Token {
		c.octets -= c.inflight[n].size
		if m := c.inflight[n].msg; m != nil {
			o.finish(m)
		}
		n++
	}
	c.inflight = slices.Delete(c.inflight, 0, n)
	if c.peer != nil {
		o.pump(c.peer)
		o.arrivals.feed(c.peer)
	}
}

// enqueue hands a message to a peer, now or when it has dialled again. Its elements are not changed afterwards.
func (o *outlets) enqueue(p *peer, m *message) {
	if p.stranger {
		return
	}
	m.size = sizeOf(m.elements)
	if m.delivery == nil && m.expires.IsZero() {
		m.expires = o.now.Add(o.cfg.Linger)
	}
	if m.delivery == nil && !o.roomFor(p, m) {
		o.stats.Overrun++
		return
	}
	p.queue = append(p.queue, m)
	p.queued += m.size
	o.pump(p)
	o.throttle(p)
	for len(p.queue) > o.cfg.MaxQueue || p.queued > o.cfg.MaxQueueOctets {
		i := slices.IndexFunc(p.queue, func(m *message) bool { return m.delivery == nil })
		if i < 0 {
			i = 0
			for j, m := range p.queue {
				if m.delivery.less(p.queue[i].delivery) {
					i = j
				}
			}
			o.stats.Abandoned++
		} else {
			o.stats.Overrun++
		}
		lost := p.queue[i]
		p.queued -= lost.size
		p.queue[i] = nil
		if i == 0 {
			p.queue = p.queue[1:]
		} else {
			p.queue = slices.Delete(p.queue, i, i+1)
		}
		o.giveUp(p, lost, site.NoRoom)
	}
}

// pump moves waiting messages to the peer's connection, as far as its window allows. One connection at a time carries all
// messages, so that they stay in order. A newer one takes over when the older has nothing under way.
func (o *outlets) pump(p *peer) {
	if p.contested() {
		return
	}
	if p.out == nil || len(p.out.inflight) == 0 {
		p.out = p.newest()
	}
	c := p.out
	if c == nil {
		o.unjam(p)
		return
	}
	o.welcomeBack(p)
	n, kept := 0, 0 // kept: payloads that keep their distance, in order; answers may pass them
	for n < len(p.queue) && c.octets < o.cfg.Window {
		m := p.queue[n]
		n++
		switch {
		case m.delivery == nil:
			p.queued -= m.size
			if o.now.Before(m.expires) {
				o.transmit(c, m, true)
			} else {
				o.local.release(m)
			}
		case !o.now.Before(m.delivery.ends):
			p.queued -= m.size
			o.giveUp(p, m, site.LifeOver)
		case kept > 0 || o.now.Before(p.next):
			p.queue[kept] = m // every place before n is free
			kept++
		default:
			p.queued -= m.size
			o.transmit(c, m, true)
			pace := o.cfg.Pace
			if len(p.queue)-n < shortBacklog {
				pace *= 15
			}
			pace += time.Duration(m.size/pacedOctets) * time.Millisecond
			p.next = o.now.Add(pace)
		}
	}
	if kept > 0 {
		o.peerAt(p, p.next)
	}
	copy(p.queue[n-kept:n], p.queue[:kept])
	clear(p.queue[:n-kept])
	p.queue = p.queue[n-kept:]
	o.unjam(p)
}

// welcomeBack logs how many messages a peer of the last run gets that it may already have: messages that the gateway had sent
// and the peer had not acknowledged when the gateway stopped, and messages that had waited.
func (o *outlets) welcomeBack(p *peer) {
	if !p.recalled {
		return
	}
	p.recalled = false
	n := 0
	for _, m := range p.queue {
		if m.delivery != nil {
			n++
		}
	}
	if n > 0 {
		o.note("info", "a local peer gets messages again that it had not acknowledged when the gateway stopped", "peer", p.id, "messages", n)
	}
}

// shortBacklog is the number of waiting far messages below which they keep a longer distance.
const shortBacklog = 16

// pacedOctets of a far message add a millisecond to the distance of the next.
const pacedOctets = 4096

// transmit encodes a message for one connection: addresses, version and trailer are that connection's (ghosts 4).
func (o *outlets) transmit(c *conn, m *message, again bool) {
	service, param := m.service, m.param
	if service == "" {
		service, param = jxta.Mangle(jxta.NetGroup, svcRouter, "")
	}
	dest := jxta.Address{Scheme: c.scheme, Host: c.remote, Service: service, Param: param}
	full := jxta.Message{Version: c.version, Elements: append(append(make([]jxta.Element, 0, len(m.elements)+2), m.elements...),
		text(elSource, jxta.PeerAddress(m.source)), text(elDestination, dest.String()))}
	s, err := o.encode(c, m, full)
	if err != nil { // a far payload that no JXTA message can hold
		o.stats.Refused["encode"]++
		o.note("error", "a far message cannot be written for a local peer", "peer", c.unique, "error", err)
		if c.peer != nil {
			o.giveUp(c.peer, m, site.Unfit)
		}
		return
	}
	o.token++
	s.Conn, s.Token, s.Confirms = c.id, o.token, m.confirms
	f := flight{token: o.token, size: s.Length()}
	if again {
		f.msg = m
	}
	c.inflight = append(c.inflight, f)
	c.octets += f.size
	o.stats.Sent++
	o.post(s)
}

// encode writes the body of a message. A message that is not signed keeps its long elements without a copy.
func (o *outlets) encode(c *conn, m *message, full jxta.Message) (s Send, err error) {
	if o.cfg.SignLater && !c.signed {
		parts, err := jxta.MessageParts(full)
		if err == nil {
			s.Body, s.Rest = parts[0], parts[1:]
		}
		return s, err
	}
	room := m.size + 512
	if c.signed {
		room += jxta.TrailerRoom
	}
	s.Body, err = jxta.AppendMessage(make([]byte, 0, room), full)
	switch {
	case err != nil || !c.signed:
	case o.cfg.SignLater:
		s.Sign = jxta.URN(m.source)
	default:
		s.Body, err = jxta.SignMessage(s.Body, o.cfg.Identity.Key, o.cfg.Identity.Cert, jxta.URN(m.source))
	}
	return s, err
}

// learnFormat mirrors the peer's own way to end a message (wire 2.5).
func (o *outlets) learnFormat(c *conn, signed bool) {
	c.known, c.signed = true, signed
	p := c.peer
	for _, x := range p.conns { // over HTTP no message comes over a poll itself
		if c.scheme == "http" && x.scheme == "http" && !x.known {
			x.signed = signed
		}
	}
	if p.known && p.signed == signed {
		return
	}
	p.known, p.signed = true, signed
	for g := range p.leases {
		o.announceItem(o.peerItem(p, g))
	}
	o.rememberPeer(p)
}

const (
	mimeXML  = "text/xml;charset=UTF-8" // without quotes: a signed receiver serialises it again (baseline 3)
	mimeText = "text/plain;charset=UTF-8"
)

func text(name, value string) jxta.Element {
	return jxta.Element{Namespace: "jxta", Name: name, Type: mimeText, Data: []byte(value)}
}

func xmlElement(name string, doc []byte) jxta.Element {
	return jxta.Element{Namespace: "jxta", Name: name, Type: mimeXML, Data: doc}
}
