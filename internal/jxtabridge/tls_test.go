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
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// tlsEdge is a peer's TLS over the endpoint of JXSE 2.7 (impl/endpoint/tls): blocks, acknowledgements, repeats.
type tlsEdge struct {
	*fake
	w      *strait
	peer   string
	seq    uint32
	retr   []*under
	repeat int
	got0   int
	taken  uint32
	in     map[uint32]string
	read   []string
	when   []time.Time
	dups   int
	acks   int
	deaf   bool // acknowledges nothing, takes nothing
	mute   bool // its acknowledgements are lost

	opens  bool // waits for the answer to its ClientHello
	failed int
	letGo  time.Time // when a connection that has failed is gone; until then nothing new is taken
	retry  time.Time // when it opens again, unless the other side has
}

func secureEdges(w *strait) (a, b *tlsEdge) {
	if first, second := signerOf(peerNumber+1), signerOf(peerNumber+2); first.Peer > second.Peer { // a's id sorts first
		signers[peerNumber+1], signers[peerNumber+2] = second, first
	}
	for side, e := range []**tlsEdge{&a, &b} {
		*e = &tlsEdge{fake: w.nodes[side].peer(fmt.Sprint("T", side), "cbid"), w: w, in: map[uint32]string{}}
		w.secure = append(w.secure, *e)
	}
	a.peer, b.peer = b.id, a.id
	w.settle()
	return a, b
}

func tlsElement(n uint32, data string) jxta.Element {
	return jxta.Element{Namespace: nsTLS, Name: strconv.FormatUint(uint64(n), 10), Type: mimeTLSBlock, Data: []byte(data)}
}

func (e *tlsEdge) tell(elements ...jxta.Element) {
	if !e.gone {
		e.say(e.peer, jxta.NetGroup, svcTransport, "", elements...)
	}
}

func (e *tlsEdge) write(texts ...string) {
	for _, t := range texts {
		e.seq++
		u := &under{e.seq, []byte(t), e.n.now, e.n.now}
		e.retr = append(e.retr, u)
		e.tell(tlsElement(u.seq, t))
	}
	e.w.settle()
}

// begin starts a new connection as client.
func (e *tlsEdge) begin(name string) {
	e.reset()
	e.write(hello(name))
}

func hello(name string) string { return "\x16\x03\x01\x00\x40\x01" + name }

func (e *tlsEdge) reset() {
	e.seq, e.taken, e.retr = 0, 0, nil
	clear(e.in)
}

func (e *tlsEdge) hear() bool {
	heard := false
	for ; e.got0 < len(e.got); e.got0++ {
		h := e.got[e.got0]
		if h.erm == nil || !strings.HasPrefix(h.erm.Dest.Service, svcTransport) {
			continue
		}
		heard = true
		if h.erm.Src != e.peer {
			e.n.Errorf("%s: message of %s", e.name, h.erm.Src)
		}
		for _, el := range h.elements {
			switch {
			case e.deaf || el.Namespace != nsTLS:
			case el.Name == tlsAck:
				e.acks++
				n := binary.BigEndian.Uint32(el.Data)
				e.retr = slices.DeleteFunc(e.retr, func(u *under) bool { return u.seq <= n })
			case el.Type == mimeTLSBlock:
				e.block(el)
			}
		}
	}
	return heard
}

func (e *tlsEdge) block(el jxta.Element) {
	n64, _ := strconv.ParseUint(el.Name, 10, 32)
	n := uint32(n64)
	if e.n.now.Before(e.letGo) {
		return
	}
	if e.opens && n == 1 {
		if e.opens = false; el.Data[0] == 21 || clientHello(el.Data) {
			e.tell(jxta.Element{Namespace: nsTLS, Name: tlsAck, Type: mimeTLSAck, Data: []byte{0, 0, 0, 1}})
			e.reset()
			e.failed++
			e.letGo, e.retry = e.n.now.Add(4*time.Millisecond), e.n.now.Add(20*time.Millisecond)
			return
		}
	}
	if n == 1 && clientHello(el.Data) && !slices.Contains(e.read, string(el.Data)) {
		e.reset() // its server side has been idle for long enough
	}
	if n == 1 && clientHello(el.Data) && !e.retry.IsZero() {
		e.retry = time.Time{}
		defer e.write("server hello")
	}
	if _, have := e.in[n]; n <= e.taken || have {
		e.dups++ // 2.7 does not answer it
		return
	}
	e.in[n] = string(el.Data)
	for text, ok := e.in[e.taken+1]; ok; text, ok = e.in[e.taken+1] {
		e.taken++
		delete(e.in, e.taken)
		e.read, e.when = append(e.read, text), append(e.when, e.n.now)
		if !e.mute {
			e.tell(jxta.Element{Namespace: nsTLS, Name: tlsAck, Type: mimeTLSAck, Data: binary.BigEndian.AppendUint32(nil, e.taken)})
		}
	}
}

func (e *tlsEdge) next() (t time.Time) {
	if t = e.retry; e.gone {
		return time.Time{}
	}
	for _, u := range e.retr {
		if at := u.at.Add(edgeRTO); t.IsZero() || at.Before(t) {
			t = at
		}
	}
	return t
}

func (e *tlsEdge) tick() {
	if !e.retry.IsZero() && !e.n.now.Before(e.retry) {
		e.retry, e.opens = time.Time{}, true
		e.begin(fmt.Sprint(e.name, " again ", e.failed))
	}
	for _, u := range e.retr {
		if e.n.now.Sub(u.at) >= edgeRTO {
			u.at = e.n.now
			e.repeat++
			e.tell(tlsElement(u.seq, string(u.data)), jxta.Element{Namespace: nsTLS, Name: "MARKRetr", Type: mimeText, Data: []byte("TLSRET")})
		}
	}
}

// once checks the texts that an edge has read, and that only blocks crossed, each once.
func (e *tlsEdge) once(want ...string) {
	e.n.Helper()
	if !slices.Equal(e.read, want) {
		e.n.Errorf("%s read %q, want %q", e.name, e.read, want)
	}
	seen := map[string]bool{}
	for _, pl := range e.w.crossed {
		if pl.Service == svcTransport || pl.Service == svcTLS && seen[string(pl.Parts[0].Data)+pl.From] {
			e.n.Errorf("%q crosses twice, or as it is", pl.Parts[0].Data)
		}
		seen[string(pl.Parts[0].Data)+pl.From] = true
	}
	for i := range e.w.nodes {
		if len(e.w.pending[i]) > 0 {
			e.n.Errorf("%d payloads are never done", len(e.w.pending[i]))
		}
	}
}

func TestSecureOverAnyDelay(t *testing.T) {
	for _, delay := range []time.Duration{0, 5 * time.Second, 35 * time.Second} {
		for _, shuffle := range []bool{false, true} {
			w := newStrait(t, delay)
			w.shuffle = shuffle
			a, b := secureEdges(w)
			a.begin("1")
			a.write(texts("a", 1, 40)...)
			w.pass(delay)
			b.write(append([]string{"server hello"}, texts("b", 1, 40)...)...)
			w.pass(4*delay + time.Minute)
			b.once(append([]string{hello("1")}, texts("a", 1, 40)...)...)
			a.once(append([]string{"server hello"}, texts("b", 1, 40)...)...)
			if a.repeat+b.repeat+a.dups+b.dups > 0 {
				t.Errorf("%v: %d and %d repeats, %d and %d duplicates", delay, a.repeat, b.repeat, a.dups, b.dups)
			}
			if !shuffle && !b.when[40].Equal(t0.Add(delay)) {
				t.Errorf("%v: the last is there at %v", delay, b.when[40])
			}
		}
	}
}

// A new connection begins with 1 again; late blocks of the one before are not mixed into it.
func TestSecureNewConnection(t *testing.T) {
	w := newStrait(t, 5*time.Second)
	w.shuffle = true
	a, b := secureEdges(w)
	a.begin("1")
	w.pass(30 * time.Second)
	b.write("server hello 1")
	a.write("a 1", "a 2")
	w.pass(30 * time.Second)
	a.write("a 3", "a 4", "a 5")
	b.write("b 1", "b 2", "b 3")
	a.begin("2")
	w.pass(30 * time.Second)
	b.write("server hello 2", "b 4")
	a.write("a 6")
	w.pass(2 * time.Minute)
	if n := len(b.read); b.read[n-2] != hello("2") || b.read[n-1] != "a 6" {
		t.Errorf("B read %q", b.read)
	}
	if n := len(a.read); a.read[n-2] != "server hello 2" || a.read[n-1] != "b 4" {
		t.Errorf("A read %q", a.read)
	}
	a.once(a.read...)
	// So may the other side, and a repeated block 1 does not begin a connection.
	b.begin("3")
	b.tell(tlsElement(1, hello("3")))
	w.pass(30 * time.Second)
	a.write("server hello 3")
	w.pass(30 * time.Second)
	if a.read[len(a.read)-1] != hello("3") || b.read[len(b.read)-1] != "server hello 3" {
		t.Errorf("read %q and %q", a.read, b.read)
	}
	if s := w.nodes[1].b.Stats(); s.SecureBegun != 3 || s.Secure.Duplicates != 1 {
		t.Errorf("%+v", s)
	}
}

// Both open at once: one connection is kept, and the other edge is told once that its own has failed, before it hears of that connection.
func TestSecureCrossed(t *testing.T) {
	for _, delay := range []time.Duration{time.Second, 35 * time.Second} {
		for _, apart := range []time.Duration{0, 300 * time.Millisecond} {
			w := newStrait(t, delay)
			a, b := secureEdges(w) // a's id sorts first
			a.opens, b.opens = true, true
			b.begin("b")
			w.pass(apart)
			a.begin("a")
			w.pass(3 * delay)
			a.write("a 1")
			b.write("b 1")
			w.pass(2*delay + time.Minute)
			b.once(hello("a"), "a 1")
			a.once("server hello", "b 1")
			if a.failed != 0 || b.failed != 1 {
				t.Errorf("%v: %d and %d attempts failed", delay, a.failed, b.failed)
			}
		}
	}
}

func TestSecureOutageAndRestart(t *testing.T) {
	for side := range 2 {
		w := newStrait(t, 5*time.Second)
		a, b := secureEdges(w)
		a.begin("1")
		a.write("a 1")
		w.pass(10 * time.Second)
		w.outage(3 * time.Minute)
		a.write("a 2", "a 3")
		w.restart(side, 20*time.Second)
		a.write("a 4")
		w.pass(4 * time.Minute)
		b.write("server hello")
		w.restart(1-side, 20*time.Second)
		a.write("a 5")
		w.pass(2 * time.Minute)
		b.once(append([]string{hello("1")}, texts("a", 1, 5)...)...)
		a.once("server hello")
		if len(a.retr)+len(b.retr) > 0 {
			t.Errorf("%d and %d blocks without an acknowledgement", len(a.retr), len(b.retr))
		}
	}
}

// The edge loses its connection with blocks and acknowledgements under way.
func TestSecureEdgeDialsAgain(t *testing.T) {
	w := newStrait(t, time.Second)
	a, b := secureEdges(w)
	a.begin("1")
	w.pass(2 * time.Second)
	b.mute = true
	a.write("a 1", "a 2")
	w.pass(2 * time.Second)
	b.hangUp()
	a.write("a 3")
	w.pass(90 * time.Second)
	b.mute = false
	b.redial("")
	w.pass(10 * time.Second)
	b.once(append([]string{hello("1")}, texts("a", 1, 3)...)...)
	if s := w.nodes[1].b.Stats(); s.Secure.Repeats == 0 || s.Secure.Delivered != 4 {
		t.Errorf("%+v", s)
	}
	before := b.dups
	w.pass(10 * time.Minute)
	if b.dups != before {
		t.Errorf("%d repeats of what is acknowledged", b.dups-before)
	}
}

// An edge that takes nothing is given up after a while; a gateway that does not know a connection adopts it; pairs
// that are not used are forgotten.
func TestSecureBounds(t *testing.T) {
	w := newStrait(t, time.Second)
	a, b := secureEdges(w)
	b.deaf = true
	a.begin("1")
	w.pass(10 * time.Minute)
	if s := w.nodes[1].b.Stats(); s.Refused["tls_not_taken"] != 1 || s.Secure.Repeats > 10 || len(w.pending[1]) > 0 {
		t.Errorf("%+v", s)
	}
	w.pass(2 * time.Hour)
	for i, n := range w.nodes {
		if len(n.b.secure.pairs) > 0 {
			t.Errorf("gateway %d keeps %d pairs", i, len(n.b.secure.pairs))
		}
		for k := range n.memory {
			if strings.HasPrefix(k, memTLS) {
				t.Errorf("gateway %d remembers %s", i, k)
			}
		}
	}
	b.deaf = false
	b.taken, a.seq = 1, 1
	a.write("a 1", "a 2")
	w.pass(10 * time.Second)
	b.once("a 1", "a 2")

	// Blocks are not acknowledged while too many wait for the link, and none is lost.
	w = newStrait(t, time.Second)
	for _, n := range w.nodes {
		n.cfg.StreamBlocks = 4
		n.b = New(n.cfg, nil)
	}
	a, b = secureEdges(w)
	w.outage(time.Minute)
	a.begin("1")
	a.write(texts("a", 1, 10)...)
	if len(a.retr) != 7 || w.nodes[0].b.Stats().Refused["tls_full"] != 7 {
		t.Errorf("%d blocks without an acknowledgement, %v", len(a.retr), w.nodes[0].b.Stats().Refused)
	}
	w.pass(5 * time.Minute)
	b.once(append([]string{hello("1")}, texts("a", 1, 10)...)...)
}

func TestHostileSecure(t *testing.T) {
	w := newStrait(t, time.Second)
	a, b := secureEdges(w)
	a.begin("1")
	w.pass(5 * time.Second)
	n := w.nodes[0]
	for _, tt := range []struct {
		what   string
		e      jxta.Element
		reason string
	}{
		{"number 0", tlsElement(0, "x"), "tls_block"},
		{"no number", jxta.Element{Namespace: nsTLS, Name: "one", Type: mimeTLSBlock, Data: []byte("x")}, "tls_block"},
		{"too large a number", jxta.Element{Namespace: nsTLS, Name: "4294967297", Type: mimeTLSBlock, Data: []byte("x")}, "tls_block"},
		{"a jump", tlsElement(5000, "x"), "tls_block"},
		{"an empty block", tlsElement(2, ""), "tls_block"},
		{"a huge block", tlsElement(2, strings.Repeat("x", tlsBlock+1)), "tls_block"},
		{"nothing of TLS", body("x"), "tls_block"},
		{"an empty acknowledgement", jxta.Element{Namespace: nsTLS, Name: tlsAck, Type: mimeTLSAck}, "tls_ack"},
		{"half an acknowledgement", jxta.Element{Namespace: nsTLS, Name: tlsAck, Type: mimeTLSAck, Data: []byte("12345")}, "tls_ack"},
	} {
		before, acks, crossed := n.b.Stats().Refused[tt.reason], a.acks, len(w.crossed)
		a.tell(tt.e)
		w.settle()
		if got := n.b.Stats().Refused[tt.reason]; got != before+1 || a.acks != acks || len(w.crossed) != crossed {
			t.Errorf("%s: refused %d times, %d acknowledgements, %d payloads", tt.what, got-before, a.acks-acks, len(w.crossed)-crossed)
		}
	}
	for i := range uint32(200) { // beyond a gap: kept to a bound, not acknowledged
		a.tell(tlsElement(3+i, "x"))
	}
	a.tell(jxta.Element{Namespace: nsTLS, Name: tlsAck, Type: mimeTLSAck, Data: []byte{0xff, 0xff, 0xff, 0xff}})
	w.settle()
	full := n.b.Stats().Refused["tls_full"]
	if taken, _ := n.b.secure.pairs[tlsKey{a.id, b.id}].Position(); full != 200-tlsReorder || taken != 1 || a.acks != 1 {
		t.Errorf("%d blocks kept, %d taken, %d acknowledged", 200-full, taken, a.acks)
	}
	// From the link.
	payload := func(data string) site.Message {
		return site.Message{Scope: jxta.NetGroup, From: a.id, To: b.id, Service: svcTLS, Parts: []jxta.Element{{Namespace: nsTLS, Data: []byte(data)}}}
	}
	far := w.nodes[1]
	many := payload("abc\x00\x02x")
	many.Parts = append(many.Parts, many.Parts...)
	nobody := payload("abc\x00\x02x")
	nobody.To = peerName("uuid", 4444)
	for i, pl := range []site.Message{payload(""), payload("ab"), payload("abc"), payload("abc\x00"), payload("abc\x00\x01"), payload("abc\x05\x05x"),
		payload("\x00\x00\x00\x00\x01x"), payload("abc\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), payload("abc\x00\xff\xff\xff\xff\xff\xff\xff\x01x"),
		payload("abc\x00\xff\xff\x03x"), many, nobody} {
		far.ended = nil
		far.step(site.FarMessage{Site: 1, Token: uint64(1e6 + i), Message: pl})
		if !slices.Equal(far.ended, []uint64{uint64(1e6 + i)}) {
			t.Errorf("payload %d: ended %v", i, far.ended)
		}
		far.ended = nil
	}
	// Many pairs of one peer: a quarter of all.
	w.secure = nil
	n.cfg.MaxStreams = 8
	n.b.cfg.MaxStreams = 8
	for range 5 {
		c := w.nodes[1].peer("many", "cbid")
		w.settle()
		a.say(c.id, jxta.NetGroup, svcTransport, "", tlsElement(1, hello(c.id)))
	}
	if len(n.b.secure.pairs) != 2 || n.b.Stats().Refused["tls_pairs"] != 4 {
		t.Errorf("%d pairs, %v", len(n.b.secure.pairs), n.b.Stats().Refused)
	}
}

// Between two peers of one LAN nothing is touched.
func TestSecureLocal(t *testing.T) {
	w := newStrait(t, 0)
	a := w.nodes[0].peer("A", "cbid")
	b := w.nodes[0].peer("B", "cbid")
	a.say(b.id, jxta.NetGroup, svcTransport, "", tlsElement(7, "x"))
	if h := b.one(); string(h.find(nsTLS+":7")) != "x" {
		t.Errorf("%q", h.body)
	}
	a.silence("nobody answers for B")
}

// A rule judges a connection as a whole, on either side; blocks that it keeps back are not acknowledged.
func TestSecureDenied(t *testing.T) {
	for side, direction := range []site.Direction{site.Out, site.In} {
		w := newStrait(t, time.Second)
		w.nodes[side].cfg.Filter = filter.New([]filter.Rule{{Type: filter.Message, Direction: direction, Action: filter.Deny}})
		w.nodes[side].b = New(w.nodes[side].cfg, nil)
		a, b := secureEdges(w)
		a.begin("1")
		w.pass(10 * time.Second)
		b.once()
		if got := w.nodes[side].b.Stats().Refused["tls_filter"]; got == 0 || (a.acks > 0) != (direction == site.In) || len(w.crossed) != side {
			t.Errorf("%v: refused %d times, %d acknowledgements, %d crossed", direction, got, a.acks, len(w.crossed))
		}
	}
}
