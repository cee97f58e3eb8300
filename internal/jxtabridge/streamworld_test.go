package jxtabridge

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// strait is two bridges with a link of some delay between them, in virtual time. Payloads stay handed in until Done and
// come again after a restart, as from a gateway's journal.
type strait struct {
	*testing.T
	nodes   [2]*node
	delay   time.Duration
	shuffle bool // every third payload takes three times as long: the other lane
	upAt    time.Time
	transit []transit
	token   uint64
	pending [2]map[uint64]site.FarMessage
	edges   []*edge
	secure  []*tlsEdge
	crossed []site.Message
}

type transit struct {
	due time.Time
	to  int
	ev  site.Event
}

func newStrait(t *testing.T, delay time.Duration) *strait {
	w := &strait{T: t, delay: delay}
	for i := range w.nodes {
		w.nodes[i] = patient(t, uint16(i+1))
		w.pending[i] = map[uint64]site.FarMessage{}
	}
	return w
}

// edge is one end of a JxtaBiDiPipe or JxtaSocket of JXSE 2.7 (impl/util/pipe/reliable), on a fake peer.
type edge struct {
	*fake
	w      *strait
	kind   streamKind
	group  string
	own    string // URN of its pipe
	server string // URN of the pipe it listens on, if it does
	refuse bool   // it answers no opening
	many   bool   // it opens several streams, one after the other
	peer   string // at the other end
	to     string // URN of the other end's pipe
	opened time.Time
	closed time.Time
	broken bool // a block was not acknowledged for a minute

	app    []string // not sent yet: the window is closed
	seq    uint32
	retr   []*under
	free   int
	repeat int // blocks sent again

	got0  int // of fake.got, handled
	deaf  bool
	lose  uint32 // blocks up to this number are lost the first time
	taken uint32
	lost  map[uint32]int
	in    map[uint32][]byte
	read  []string
	when  []time.Time
	dups  int
	acks  int
}

type under struct {
	seq       uint32
	data      []byte
	since, at time.Time
}

const edgeRTO = 5 * time.Second

func pipeURN(n int) string {
	return jxta.URN(fmt.Sprintf("uuid-59616261646162614E50472050325033%030X0104", n))
}

func (w *strait) edge(side int, name string, kind streamKind, signed bool) *edge {
	format := "uuid"
	if signed {
		format = "cbid"
	}
	e := &edge{w: w, kind: kind, group: jxta.NetGroup, fake: w.nodes[side].peer(name, format), in: map[uint32][]byte{}, lost: map[uint32]int{}, free: 100}
	e.own = pipeURN(1000 + peerNumber)
	w.edges = append(w.edges, e)
	return e
}

// listen opens a server pipe.
func (e *edge) listen() string {
	e.server = pipeURN(2000 + peerNumber)
	e.pipe(e.group, strings.TrimPrefix(e.server, "urn:jxta:"), jxta.PipeTypeUnicast, true)
	return e.server
}

func (e *edge) elem(name, value string) jxta.Element {
	return jxta.Element{Namespace: e.kind.namespace(), Name: name, Type: mimeText, Data: []byte(value)}
}

func (e *edge) connectTo(peer, pipe string) {
	e.peer = peer
	all := []jxta.Element{
		{Namespace: e.kind.namespace(), Name: "Cred", Type: mimeXML, Data: []byte("<jxta:Cred>" + e.id + "</jxta:Cred>")},
		{Namespace: e.kind.namespace(), Name: "reqPipe", Type: mimeXML, Data: pipeDoc(e.own, "p.remote")},
		{Namespace: e.kind.namespace(), Name: "remPeer", Type: mimeXML, Data: e.advertisement(e.group)},
	}
	if e.kind == streamBiDi {
		all = append(all, e.elem("reliable", "true"), e.elem("direct", "false"))
	} else {
		all = append(all, e.elem("stream", "true"))
	}
	e.say(peer, e.group, svcPipe, pipe, all...)
	e.w.settle()
}

func (e *edge) tell(elements ...jxta.Element) {
	if !e.gone {
		e.say(e.peer, e.group, svcPipe, e.to, elements...)
	}
}

// write acts like an application: it waits while the window is closed.
func (e *edge) write(texts ...string) {
	e.app = append(e.app, texts...)
	e.push()
	e.w.settle()
}

func (e *edge) push() {
	for len(e.app) > 0 && e.to != "" && !e.broken && len(e.retr) <= min(map[streamKind]int{streamBiDi: 50, streamSocket: 20}[e.kind], 2*e.free) {
		e.seq++
		u := &under{e.seq, e.block(e.app[0]), e.n.now, e.n.now}
		e.app = e.app[1:]
		e.retr = append(e.retr, u)
		e.free--
		e.transmit(u, false)
	}
}

func (e *edge) transmit(u *under, again bool) {
	all := []jxta.Element{{Namespace: nsRel, Name: strconv.Itoa(int(u.seq)), Type: mimeBlock, Data: u.data}}
	if again {
		e.repeat++
		all = append(all, jxta.Element{Namespace: nsRel, Name: "retry", Type: mimeText, Data: []byte("RETRY")})
	}
	e.tell(all...)
}

// block is a socket's octets, or a BiDi pipe's whole message.
func (e *edge) block(text string) []byte {
	if e.kind == streamSocket {
		return []byte(text)
	}
	el := body(text)
	if text == "close" {
		el = e.elem("close", "close")
	}
	m, err := jxta.AppendMessage(nil, jxta.Message{Elements: []jxta.Element{el}})
	if err != nil {
		e.n.Fatal(err)
	}
	if e.signed {
		id := identities()[3]
		if m, err = jxta.SignMessage(m, id.Key, id.Cert, jxta.URN(e.id)); err != nil {
			e.n.Fatal(err)
		}
	}
	return m
}

// shut closes the edge like its application.
func (e *edge) shut() {
	if e.kind == streamBiDi {
		e.write("close")
	} else {
		e.tell(e.elem("close", "close"))
	}
	e.w.settle()
}

// hear handles messages that have come. It reports whether there were any.
func (e *edge) hear() bool {
	heard := false
	for e.got0 < len(e.got) {
		h := e.got[e.got0]
		e.got0++
		if h.erm == nil {
			continue
		}
		group, service, param := jxta.Demangle(h.erm.Dest.Service, h.erm.Dest.Param)
		if service != svcPipe {
			continue
		}
		if group != e.group && e.group != jxta.NetGroup {
			e.n.Errorf("%s: message in group %s", e.name, group)
		}
		heard = true
		if h.erm.Src != e.peer && e.server == "" {
			e.n.Errorf("%s: message of %s", e.name, h.erm.Src)
		}
		m := jxta.Message{Elements: h.elements}
		ns := e.kind.namespace()
		if req := m.Find(ns, "reqPipe"); req != nil && param == e.server {
			e.request(h, &m)
			continue
		}
		if param != e.own && !e.many {
			e.n.Errorf("%s: message to pipe %s", e.name, param)
		}
		if rem := m.Find(ns, "remPipe"); rem != nil && e.to == "" {
			urn, _, _, err := parsePipeDoc(rem.Data)
			if err != nil || m.Find(ns, "remPeer") == nil {
				e.n.Errorf("%s: accept: %v: %s", e.name, err, h.body)
			}
			e.to, e.opened = urn, e.n.now
			e.push()
		}
		if c := m.Find(ns, "close"); c != nil {
			if string(c.Data) == "close" {
				e.tell(e.elem("close", "closeACK"))
			}
			e.closed = e.n.now
		}
		for _, el := range h.elements {
			switch {
			case el.Namespace != nsRel:
			case el.Name == relAck:
				e.acked(el.Data)
			case el.Type == mimeBlock:
				e.block27(el)
			}
		}
	}
	return heard
}

func (e *edge) request(h heard, m *jxta.Message) {
	ns := e.kind.namespace()
	if m.Find(ns, "Cred") == nil || m.Find(ns, "remPeer") == nil || !is(m.Find(ns, map[streamKind]string{streamBiDi: "reliable", streamSocket: "stream"}[e.kind]), "true") {
		e.n.Errorf("%s: request %q", e.name, h.body)
	}
	if e.refuse {
		return
	}
	e.peer, e.opened = h.erm.Src, e.n.now
	e.to, _, _, _ = parsePipeDoc(m.Find(ns, "reqPipe").Data)
	e.accept()
	e.push()
}

func (e *edge) accept() {
	ns := e.kind.namespace()
	e.tell(jxta.Element{Namespace: ns, Name: "Cred", Type: mimeXML, Data: []byte("<jxta:Cred/>")},
		jxta.Element{Namespace: ns, Name: "remPipe", Type: mimeXML, Data: pipeDoc(e.own, "p")},
		jxta.Element{Namespace: ns, Name: "remPeer", Type: mimeXML, Data: e.advertisement(e.group)})
}

func (e *edge) acked(data []byte) {
	e.acks++
	cum := binary.BigEndian.Uint32(data)
	var sacks []uint32
	for data = data[4:]; len(data) >= 4; data = data[4:] {
		sacks = append(sacks, binary.BigEndian.Uint32(data))
	}
	e.retr = slices.DeleteFunc(e.retr, func(u *under) bool { return u.seq <= cum || slices.Contains(sacks, u.seq) })
	e.free = 100 - len(sacks)
	e.push()
}

func (e *edge) block27(el jxta.Element) {
	n64, err := strconv.ParseUint(el.Name, 10, 32)
	n := uint32(n64)
	if err != nil {
		e.n.Errorf("%s: block %q", e.name, el.Name)
		return
	}
	if n <= e.lose && e.lost[n] == 0 {
		e.lost[n]++
		return
	}
	if n <= e.taken || e.in[n] != nil {
		e.dups++ // not answered
		return
	}
	e.in[n] = el.Data
	if !e.deaf {
		e.drain()
	}
}

// drain is the application reading; only that acknowledges.
func (e *edge) drain() {
	for data := e.in[e.taken+1]; data != nil; data = e.in[e.taken+1] {
		e.taken++
		delete(e.in, e.taken)
		text := string(data)
		if e.kind == streamBiDi {
			text = e.inner(data)
		}
		e.tell(jxta.Element{Namespace: nsRel, Name: relAck, Type: mimeAck, Data: binary.BigEndian.AppendUint32(nil, e.taken)})
		if text == "close" {
			e.closed = e.n.now
			continue
		}
		e.read = append(e.read, text)
		e.when = append(e.when, e.n.now)
	}
}

func (e *edge) inner(data []byte) string {
	m, rest, err := jxta.ParseMessage(data, jxta.DefaultLimits)
	if err != nil {
		e.n.Fatalf("%s: inner message: %v", e.name, err)
	}
	if e.signed {
		tr, err := jxta.ParseTrailer(rest)
		if err == nil {
			err = tr.Verify(data[:len(data)-len(rest)])
		}
		if err != nil || tr.Source != jxta.URN(e.peer) {
			e.n.Errorf("%s: inner trailer: %v, source %s", e.name, err, tr.Source)
		}
	} else if len(rest) > 0 {
		e.n.Errorf("%s: a trailer that it does not understand", e.name)
	}
	if m.Find("JXTABIP", "close") != nil {
		return "close"
	}
	return string(m.Elements[0].Data)
}

// tick is the retransmitter.
func (e *edge) tick() {
	for _, u := range e.retr {
		if e.n.now.Sub(u.since) > time.Minute {
			e.broken = true
			return
		}
		if e.n.now.Sub(u.at) >= edgeRTO {
			u.at = e.n.now
			e.transmit(u, true)
		}
	}
}

func (e *edge) next() (t time.Time) {
	if e.broken {
		return t
	}
	for _, u := range e.retr {
		if at := u.at.Add(edgeRTO); t.IsZero() || at.Before(t) {
			t = at
		}
	}
	return t
}

// settle lets everything happen that takes no time, and puts messages to the other side on their way.
func (w *strait) settle() {
	w.Helper()
	for moved := true; moved; {
		moved = false
		for _, e := range w.edges {
			moved = e.hear() || moved
		}
		for _, e := range w.secure {
			moved = e.hear() || moved
		}
		for i, n := range w.nodes {
			for _, t := range n.ended {
				if _, ok := w.pending[i][t]; !ok {
					w.Errorf("token %d is done again, or never was", t)
				}
				delete(w.pending[i], t)
			}
			n.ended = nil
			from := w.nodes[i].now
			if from.Before(w.upAt) {
				from = w.upAt
			}
			for _, it := range n.takeItems() { // items are not tested here
				if !it.Home || slices.Contains(it.To, w.nodes[1-i].site) {
					w.nodes[1-i].step(site.FarItem{Site: n.site, Item: it})
				}
				moved = true
			}
			for _, c := range n.takeCarry() {
				moved = true
				w.token++
				late := w.delay
				if w.shuffle && w.token%3 == 0 {
					late *= 3
				}
				w.crossed = append(w.crossed, c.Message)
				ev := site.FarMessage{Site: n.site, Token: w.token, Message: c.Message}
				ev.Message.Token = 0
				w.transit = append(w.transit, transit{from.Add(late), 1 - i, ev})
				if c.Message.Token != 0 {
					w.transit = append(w.transit, transit{from.Add(late + w.delay), i, site.Fate{Token: c.Message.Token}})
				}
			}
		}
	}
}

// pass lets the time d go by.
func (w *strait) pass(d time.Duration) {
	w.Helper()
	end := w.nodes[0].now.Add(d)
	for steps := 0; ; steps++ {
		if steps > 200000 {
			w.Fatal("no end of events")
		}
		w.settle()
		next := end
		earlier := func(t time.Time) {
			if !t.IsZero() && t.Before(next) {
				next = t
			}
		}
		for _, n := range w.nodes {
			earlier(n.wake)
		}
		for _, e := range w.edges {
			earlier(e.next())
		}
		for _, e := range w.secure {
			earlier(e.next())
		}
		first := -1
		for i, tr := range w.transit {
			if first < 0 || tr.due.Before(w.transit[first].due) {
				first = i
			}
			earlier(tr.due)
		}
		for _, n := range w.nodes {
			if n.now.Before(next) {
				n.now = next
			}
		}
		if first >= 0 && !w.transit[first].due.After(next) {
			tr := w.transit[first]
			w.transit = slices.Delete(w.transit, first, first+1)
			if f, ok := tr.ev.(site.FarMessage); ok {
				w.pending[tr.to][f.Token] = f
			}
			w.nodes[tr.to].step(tr.ev)
			continue
		}
		for _, n := range w.nodes {
			if !n.wake.IsZero() && !n.wake.After(next) {
				n.step(nil)
			}
		}
		for _, e := range w.edges {
			e.tick()
		}
		for _, e := range w.secure {
			e.tick()
		}
		if !next.Before(end) {
			w.settle()
			return
		}
	}
}

// outage takes the link away.
func (w *strait) outage(d time.Duration) { w.upAt = w.nodes[0].now.Add(d) }

// restart kills one gateway; its edges dial again after a while.
func (w *strait) restart(side int, away time.Duration) {
	n := w.nodes[side]
	n.restart()
	kept := w.transit[:0]
	for _, tr := range w.transit {
		if _, ok := tr.ev.(site.Fate); !ok || tr.to != side {
			kept = append(kept, tr)
		}
	}
	w.transit = kept
	for _, it := range w.nodes[1-side].b.Items() {
		n.step(site.FarItem{Site: w.nodes[1-side].site, Item: it})
	}
	tokens := make([]uint64, 0)
	for t := range w.pending[side] {
		tokens = append(tokens, t)
	}
	slices.Sort(tokens)
	for _, t := range tokens {
		n.step(w.pending[side][t])
	}
	w.pass(away)
	for _, e := range w.edges {
		if e.n == n && e.gone {
			e.redial("")
		}
	}
	for _, e := range w.secure {
		if e.n == n && e.gone {
			e.redial("")
		}
	}
	w.settle()
}

// bare checks that nothing of the reliability layer crosses except blocks, and messages that open, hold and close.
func (w *strait) bare() {
	w.Helper()
	for _, pl := range w.crossed {
		for _, e := range pl.Parts {
			check.True(w, "of the reliability layer only blocks on the link", e.Namespace != nsRel || e.Name == "", e.Name)
			check.Differ(w, "an element on the link", e.Name, "remPeer")
			check.Differ(w, "an element on the link", e.Name, "remPipe")
			check.Differ(w, "an element on the link", e.Name, "reqPipe")
		}
	}
	for i := range w.nodes {
		if len(w.pending[i]) > 0 {
			w.Errorf("%d payloads are never done", len(w.pending[i]))
		}
	}
}

func texts(from string, first, last int) (out []string) {
	for i := first; i <= last; i++ {
		out = append(out, fmt.Sprintf("%s %d", from, i))
	}
	return out
}
