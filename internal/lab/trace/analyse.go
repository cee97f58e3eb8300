package trace

import (
	"fmt"
	"math"
	"net/netip"

	"aldis/internal/link/seal"
)

const (
	maxNames    = 4096    // distinct element names, hosts
	maxServices = 1 << 16 // services, counted for every host that speaks or hears of them
	maxProblems = 20      // said in words; the rest is counted
	maxDisorder = 1e9     // ns; less is how capture programs write what several processors saw
)

// Options of an Analyser.
type Options struct {
	Edge  netip.Addr  // whose application octets and discovery are reported, and whose packets alone count; not valid: guess
	Key   *seal.Key   // of gateways' datagrams; nil: they are only counted
	Nodes []uint16    // ids of the gateways; empty: found out, which is quick for ids below 256
	Sink  func(Event) // gets the application's events in the order of the capture; may be nil
}

// Analyser takes in the packets of one capture.
type Analyser struct {
	opt       Options
	packets   int64
	start     int64 // time of the first packet that counts
	end       int64
	lastAt    int64
	conns     map[connKey]*conn
	order     []*conn
	connCount int64
	jumped    bool // the clock did
	services  int  // in hosts
	held      int  // octets kept out of order
	bodies    int  // octets of unfinished messages

	totals       totals
	duration     spread
	perConn      spread
	setup        spread
	opened       map[netip.Addr]int64
	halfSeen     int64
	failedSetups int64

	streamOctets, unread, httpOctets, welcomeOctets int64
	framing, trailers, trailerCount                 int64
	httpRequests, httpAnswers, welcomes             int64
	gaps, cutMessages, foreign, damages             int64
	fragments, cut, bad, backwards, other           int64
	unknownLink                                     map[LinkType]int64
	kinds                                           map[Kind]*Tally
	elements                                        map[string]*Tally
	hosts                                           map[netip.Addr]*host
	link                                            *linkAnalyser

	line    timeline
	charged charged // of it, so far
	setups  samples
	kept    int64 // octets of segments that wait for others
	unacked int64 // octets

	problems []string
	unsaid   int64
}

// charged are counters of streams at the time when the timeline was last told.
type charged struct{ stream, kept, http, welcome, unread int64 }

type totals struct {
	first, last                              int64 // times
	packets, octets, dataPackets, dataOctets int64
	retransmissions, lostOctets              int64
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

// spread is least, most and mean of values.
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
		opt: opt, conns: map[connKey]*conn{}, opened: map[netip.Addr]int64{}, unknownLink: map[LinkType]int64{},
		kinds: map[Kind]*Tally{}, elements: map[string]*Tally{}, hosts: map[netip.Addr]*host{},
	}
}

// Add takes in the next packet.
func (a *Analyser) Add(p Packet) {
	a.packets++
	if a.lastAt != 0 && p.At < a.lastAt {
		if a.backwards++; a.lastAt-p.At > maxDisorder && !a.jumped {
			a.jumped = true
			a.problem("packet %d: the clock runs backwards by %.6f s", p.Number, float64(a.lastAt-p.At)/1e9)
		}
	}
	a.lastAt = p.At
	var s segment
	switch decode(p, &s) {
	case isTransport:
	case isFragment:
		if a.fragments++; a.fragments == 1 {
			a.problem("packet %d: an IP fragment, which is not put together", p.Number)
		}
		return
	case isCut:
		if a.cut++; a.cut == 1 {
			a.problem("packet %d: cut within its headers", p.Number)
		}
		return
	case isBad:
		if a.bad++; a.bad == 1 {
			a.problem("packet %d: its headers contradict themselves", p.Number)
		}
		return
	case isUnknownLink:
		if len(a.unknownLink) < 16 || a.unknownLink[p.Link] > 0 {
			a.unknownLink[p.Link]++
		}
		return
	default:
		a.other++
		return
	}
	if a.opt.Edge.IsValid() && s.src.Addr() != a.opt.Edge && s.dst.Addr() != a.opt.Edge {
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
		if a.cut++; a.cut == 1 {
			a.problem("packet %d: %d of %d octets of TCP payload were captured (snap length)", p.Number, len(s.data), s.length)
		}
	}
	a.tcp(&s)
	if len(a.order) > 2*len(a.conns)+1024 {
		a.compactOrder()
	}
}

// compactOrder forgets connections that are over for good.
func (a *Analyser) compactOrder() {
	live := make([]*conn, 0, len(a.conns))
	for _, c := range a.order {
		if a.conns[c.key] == c {
			live = append(live, c)
		}
	}
	a.order = live
}

// problem notes what makes the report partial.
func (a *Analyser) problem(format string, args ...any) {
	if len(a.problems) >= maxProblems {
		a.unsaid++
		return
	}
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// damaged notes something in a stream that could not be read.
func (a *Analyser) damaged(what string, packet int64, err error) {
	a.damages++
	if err != nil {
		a.problem("packet %d: %s: %v", packet, what, err)
		return
	}
	a.problem("packet %d: %s", packet, what)
}

// Broken notes that the capture could not be read to its end.
func (a *Analyser) Broken(err error) { a.problem("%v", err) }

// Finish ends all connections and answers the figures. The Analyser is used up.
func (a *Analyser) Finish() *Report {
	for _, c := range a.order {
		if a.conns[c.key] == c {
			a.retire(c)
		}
	}
	a.settle(a.end - a.start)
	for link, n := range a.unknownLink {
		a.problem("%d packets of link type %d, which is not read", n, link)
	}
	if a.unsaid > 0 {
		a.problems = append(a.problems, fmt.Sprintf("and %d problems more", a.unsaid))
	}
	return a.report()
}
