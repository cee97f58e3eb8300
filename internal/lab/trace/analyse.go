package trace

import (
	"fmt"
	"math"
	"net/netip"

	"aldis/internal/link/compact"
	"aldis/internal/link/seal"
)

const (
	maxNames    = 4096    // distinct element names, hosts
	maxServices = 1 << 16 // services, counted for every host that sends or receives them
	maxProblems = 20      // written as sentences; the rest is counted
	maxDisorder = 1e9     // ns; steps back by less come from capture programs that write the packets of several processors
)

// Options of an Analyser.
type Options struct {
	Edge netip.Addr // the peer whose application octets and discovery are reported, and whose packets alone count; not valid: guess
	Key  *seal.Key  // of gateways' datagrams; nil: they are only counted
	// Ring is, in place of Key, the keys of node Self: for its own datagrams, and those to it or to all.
	Ring *seal.Keyring
	Self uint16
	// Bearer is the name of the bearer whose datagrams are opened: those of other bearers need other keys.
	Bearer string
	// Corpus is the network's corpus that its gateways had; nil: messages coded by one count as unread, with its name.
	Corpus *compact.NetworkCorpus
	Nodes  []uint16 // ids of the gateways; empty: to be found out, which is quick for ids below 256
	// Clear gets the datagrams of gateways in the order of the capture; it must not keep them. May be nil.
	Clear func(Clear)
	XMPP  func(XMPP)  // gets the stanzas of XMPP users to each other and to rooms, in the order of the capture; may be nil
	CoT   func(CoT)   // gets events of TAK devices in the order of the capture, each with its copies; may be nil
	Sink  func(Event) // gets the application's events in the order of the capture; may be nil
}

// Analyser takes in the packets of one capture.
type Analyser struct {
	opt Options
	captured
	lost      losses
	strangers strangers
	fragments fragments
	connections
	streams
	contents
	accounts
	problems
	link *linkAnalyser
	cot  *cotWatch   // nil: no CoT yet
	xmpp *XMPPReport // nil: no XMPP yet
}

// captured is the findings about the capture itself, whatever its packets are.
type captured struct {
	packets     int64
	start, end  int64 // times of the first packet that counts, and of the last
	lastAt      int64
	backwards   int64 // packets that are earlier than the one before
	jumped      bool  // the clock jumped back
	other       int64
	ofOthers    int64 // packets that are not of the requested edge
	unknownLink map[LinkType]int64
}

// clock notes the time of a packet. When the clock jumps back for the first time, it returns by how much.
func (c *captured) clock(at int64) (back int64) {
	if c.lastAt != 0 && at < c.lastAt {
		c.backwards++
		if c.lastAt-at > maxDisorder && !c.jumped {
			c.jumped, back = true, c.lastAt-at
		}
	}
	c.lastAt = at
	return back
}

// connections are those of TCP, and figures of all connections of the capture.
type connections struct {
	conns        map[connKey]*conn
	order        []*conn
	connCount    int64
	totals       totals
	duration     spread
	perConn      spread
	setup        spread
	setups       samples
	lengths      [len(lengthEdges) + 1]Length
	opened       map[netip.Addr]int64 // and set up, by opener
	halfSeen     int64
	failedSetups int64
	refused      int64
}

// ended adds a connection to the figures.
func (l *connections) ended(c *conn) {
	if l.conns[c.key] == c {
		delete(l.conns, c.key)
	}
	l.duration.add(float64(c.last-c.first) / 1e9)
	l.perConn.add(float64(c.packets))
	l.length(c)
	switch {
	case c.setup >= 0:
		l.setup.add(float64(c.setup) / 1e9)
		l.setups.add(float64(c.setup) / 1e9)
		l.opened[c.opening().Addr()]++
	case c.opener < 0:
		l.halfSeen++
	case c.refused:
		l.refused++
	default:
		l.failedSetups++
	}
}

// forgetEnded keeps the order short by removing connections that are over for good.
func (l *connections) forgetEnded() {
	live := make([]*conn, 0, len(l.conns))
	for _, c := range l.order {
		if l.conns[c.key] == c {
			live = append(live, c)
		}
	}
	l.order = live
}

// streams counts what connections carry below the messages, in octets unless the field says otherwise.
type streams struct {
	read         charged
	framing      int64
	trailers     int64
	trailerCount int64 // trailers
	httpRequests int64 // requests
	gaps         int64 // places
	missed       missed
	cutMessages  int64 // messages
	foreign      int64 // streams
	held         int   // kept out of order, with the cost of keeping them
	bodies       int   // of unfinished messages
}

// missed is TCP payload that its receiver acknowledged and that is not in the capture.
type missed struct{ places, octets int64 }

// contents is the contents of the messages.
type contents struct {
	kinds    map[Kind]*Tally
	elements map[string]*Tally
	hosts    map[netip.Addr]*host
	services int // in hosts
}

// accounts are the amounts given to the timeline.
type accounts struct {
	line    timeline
	charged charged // so far
	unacked int64   // octets
}

// charged are octets of streams by their contents; kept is of segments that wait for others.
type charged struct{ stream, kept, http, welcome, cot, xmpp, unread int64 }

// settle gives the timeline the octets read since the last call.
func (c *accounts) settle(at int64, read charged) {
	c.line.spend(at, spentHTTP, read.http-c.charged.http)
	c.line.spend(at, spentWelcome, read.welcome-c.charged.welcome)
	c.line.spend(at, spentCoT, read.cot-c.charged.cot)
	c.line.spend(at, spentXMPP, read.xmpp-c.charged.xmpp)
	c.line.spend(at, spentUnread, read.unread-c.charged.unread)
	c.charged = read
}

// problems are the reasons for which the report is partial.
type problems struct {
	said   []string
	unsaid int64
	once   map[verdict]bool
}

// problem notes a problem.
func (p *problems) problem(format string, args ...any) {
	if len(p.said) >= maxProblems {
		p.unsaid++
		return
	}
	p.said = append(p.said, fmt.Sprintf(format, args...))
}

// first notes a fault of a packet, unless an earlier packet had the same.
func (p *problems) first(v verdict, format string, args ...any) {
	if !p.once[v] {
		p.once[v] = true
		p.problem(format, args...)
	}
}

type totals struct {
	first, last                              int64 // times
	packets, octets, dataPackets, dataOctets int64
	retransmissions                          int64
}

// Tally counts messages or elements, and their octets.
type Tally struct {
	Count  int64 `json:"count"`
	Octets int64 `json:"octets"`
}

func (t *Tally) add(octets int) {
	t.Count++
	t.Octets += int64(octets)
}

// spread is the least, the greatest and the mean of values.
type spread struct {
	n             int64
	min, max, sum float64
}

func (s *spread) add(v float64) {
	if s.n == 0 {
		s.min, s.max = v, v
	}
	s.n++
	s.min, s.max, s.sum = math.Min(s.min, v), math.Max(s.max, v), s.sum+v
}

func (s *spread) mean() float64 {
	if s.n == 0 {
		return 0
	}
	return s.sum / float64(s.n)
}

// New makes an Analyser.
func New(opt Options) *Analyser {
	return &Analyser{
		opt: opt, captured: captured{unknownLink: map[LinkType]int64{}}, problems: problems{once: map[verdict]bool{}},
		connections: connections{conns: map[connKey]*conn{}, opened: map[netip.Addr]int64{}},
		contents:    contents{kinds: map[Kind]*Tally{}, elements: map[string]*Tally{}, hosts: map[netip.Addr]*host{}},
	}
}

// Add takes in the next packet.
func (a *Analyser) Add(p Packet) {
	a.packets++
	if back := a.clock(p.At); back > 0 {
		a.problem("packet %d: the clock runs backwards by %.6f s", p.Number, float64(back)/1e9)
	}
	var s tcpSegment
	d := decoder{s: &s, fragments: &a.fragments}
	v := d.packet(p)
	if v != isTransport && v != isFragment {
		a.strangers.sample(p)
	}
	switch v {
	case isTransport:
	case isFragment:
		return
	case isCut:
		a.lost.cut(p.Number, p.Length-len(p.Data))
		a.lost.beheaded++
		return
	case isBad:
		a.first(isBad, "packet %d: its headers contradict themselves", p.Number)
		return
	case isUnknownLink:
		if len(a.unknownLink) < 16 || a.unknownLink[p.Link] > 0 {
			a.unknownLink[p.Link]++
		}
		return
	default:
		a.other++
		a.strangers.kind(d.other)
		return
	}
	if a.opt.Edge.IsValid() && s.src.Addr() != a.opt.Edge && s.dst.Addr() != a.opt.Edge {
		a.ofOthers++
		a.strangers.end(s.src.Addr())
		a.strangers.end(s.dst.Addr())
		return
	}
	if s.proto == protoUDP {
		a.udp(&s)
		return
	}
	if a.totals.packets == 0 {
		a.totals.first = s.at
		if a.link == nil || a.link.r.Datagrams == 0 {
			a.start = s.at
		}
	}
	a.totals.last = max(a.totals.last, s.at)
	a.end = max(a.end, s.at)
	if len(s.data) < s.length && s.length > 0 {
		a.lost.cut(p.Number, s.length-len(s.data))
	}
	a.tcp(&s)
	if len(a.order) > 2*len(a.conns)+1024 {
		a.forgetEnded()
	}
}

// damaged notes a part of a stream that could not be read.
func (p *problems) damaged(what string, packet int64, err error) {
	if err != nil {
		p.problem("packet %d: %s: %v", packet, what, err)
		return
	}
	p.problem("packet %d: %s", packet, what)
}

// Broken notes that the capture could not be read to its end.
func (a *Analyser) Broken(err error) { a.problem("%v", err) }

// Finish ends all connections and returns the figures. The Analyser cannot be used afterwards.
func (a *Analyser) Finish() *Report {
	for _, c := range a.order {
		if a.conns[c.key] == c {
			a.retire(c)
		}
	}
	a.settle(a.end-a.start, a.read)
	for link, n := range a.unknownLink {
		a.problem("%d packets of link type %d, which is not read", n, link)
	}
	a.fragments.finish()
	a.lacks()
	if a.unsaid > 0 {
		a.said = append(a.said, fmt.Sprintf("and %d problems more", a.unsaid))
	}
	return a.report()
}
