package edgepeer_test

import (
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/site"
)

var t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var identity = sync.OnceValue(func() jxtabridge.Identity {
	id, err := jxtabridge.NewIdentity(rand.Reader)
	if err != nil {
		panic(err)
	}
	return id
})

// lan is one bridge with edge peers in front of it, in virtual time.
type lan struct {
	*testing.T
	b     *jxtabridge.Bridge
	cfg   jxtabridge.Config
	now   time.Time
	peers []*edge
	wake  time.Time
	items []site.Item
	carry []site.Carry
	conns site.ConnID
	site  uint16
	spy   func(to *edge, body []byte)
}

// edge is a peer and its connection.
type edge struct {
	*edgepeer.Peer
	lan     *lan
	conn    site.ConnID
	wake    time.Time
	notices []edgepeer.Notice
}

func newLAN(t *testing.T, siteID uint16) *lan {
	l := &lan{T: t, now: t0, site: siteID, cfg: jxtabridge.Config{Name: "gw", Address: fmt.Sprintf("10.0.%d.1:9701", siteID), Identity: identity()}}
	l.cfg.Identity.Peer = fmt.Sprintf("uuid-59616261646162614A78746150325033%030X%02X03", 0xABC, siteID+1)
	l.b = jxtabridge.New(l.cfg, nil)
	return l
}

func (l *lan) peer(cfg edgepeer.Config) *edge {
	l.Helper()
	cfg.Rand = mrand.New(mrand.NewPCG(uint64(l.site), uint64(len(l.peers))))
	e := &edge{Peer: edgepeer.New(cfg), lan: l}
	l.peers = append(l.peers, e)
	e.dial()
	return e
}

func (e *edge) dial() {
	e.lan.Helper()
	l := e.lan
	l.conns++
	e.conn = l.conns
	local := fmt.Sprintf("10.0.%d.%d:4711", l.site, 10+len(l.peers))
	out := e.Step(l.now, edgepeer.Dialled{Remote: l.cfg.Address, Local: local})
	line := *out.Welcome
	greeting := check.Only[jxtabridge.Welcome](l.b.Step(l.now, jxtabridge.Opened{Conn: e.conn, Remote: local}).Orders)[0].Line
	l.step(jxtabridge.Welcomed{Conn: e.conn, Welcome: line})
	e.do(edgepeer.Welcomed{Welcome: greeting})
}

// do gives the peer an event and carries out its output.
func (e *edge) do(ev edgepeer.Event) int {
	e.lan.Helper()
	out := e.Step(e.lan.now, ev)
	e.wake = out.Deadline
	e.notices = append(e.notices, out.Notices...)
	for _, body := range out.Send {
		e.lan.step(jxtabridge.Received{Conn: e.conn, Body: body})
	}
	return out.QueryID
}

func (l *lan) step(ev site.Event) {
	l.Helper()
	out := l.b.Step(l.now, ev)
	l.wake = out.Deadline
	l.items = append(l.items, out.Items...)
	l.carry = append(l.carry, out.Carry...)
	for _, n := range out.Notes {
		if n.Level == "warn" || n.Level == "error" {
			l.Errorf("the bridge complains: %s %v", n.Text, n.Attrs)
		}
	}
	at := func(c site.ConnID) *edge {
		return l.peers[slices.IndexFunc(l.peers, func(e *edge) bool { return e.conn == c })]
	}
	for _, s := range check.Only[jxtabridge.Send](out.Orders) {
		if l.spy != nil {
			l.spy(at(s.Conn), slices.Clone(s.Body))
		}
		at(s.Conn).do(edgepeer.Received{Body: slices.Clone(s.Body)})
		l.step(jxtabridge.Written{Conn: s.Conn, Token: s.Token})
	}
}

// pass lets time pass for all.
func (l *lan) pass(d time.Duration) {
	l.Helper()
	for end := l.now.Add(d); ; {
		next := end
		for _, e := range l.peers {
			if !e.wake.IsZero() && e.wake.Before(next) {
				next = e.wake
			}
		}
		if !l.wake.IsZero() && l.wake.Before(next) {
			next = l.wake
		}
		l.now = next
		if next.Equal(end) {
			return
		}
		if !l.wake.IsZero() && !l.now.Before(l.wake) {
			l.step(nil)
		}
		for _, e := range l.peers {
			if !e.wake.IsZero() && !l.now.Before(e.wake) {
				e.do(nil)
			}
		}
	}
}

// join carries between two bridges until nothing moves.
func join(a, b *lan) {
	for token := uint64(1); len(a.items)+len(b.items)+len(a.carry)+len(b.carry) > 0; {
		for _, x := range [][2]*lan{{a, b}, {b, a}} {
			items, carry := x[0].items, x[0].carry
			x[0].items, x[0].carry = nil, nil
			for _, it := range items {
				x[1].step(site.FarItem{Site: x[0].site, Item: it})
			}
			for _, c := range carry {
				token++
				c.Message.ID = ""
				x[1].step(site.FarMessage{Site: x[0].site, Token: token, Message: c.Message})
			}
		}
	}
}

// take returns the notices of type T since the last time and forgets all notices.
func take[T edgepeer.Notice](e *edge) (found []T) {
	for _, n := range e.notices {
		if v, ok := n.(T); ok {
			found = append(found, v)
		}
	}
	e.notices = nil
	return found
}

func one[T edgepeer.Notice](e *edge) T {
	e.lan.Helper()
	all := e.notices
	found := take[T](e)
	if len(found) != 1 {
		e.lan.Fatalf("%d of %T, want 1; heard %+v", len(found), *new(T), all)
	}
	return found[0]
}

func body(s string) []jxta.Element {
	return []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte(s)}}
}

const (
	wirePipe = "uuid-59616261646162614E50472050325033000000000000000000000000000000A104"
	uniPipe  = "uuid-59616261646162614E50472050325033000000000000000000000000000000A204"
	ops      = "uuid-0102030405060708090A0B0C0D0E0F1002"
)

var signers = map[string]jxtabridge.Identity{}

// signer is the key of a signed peer.
func signer(t *testing.T, name string) jxtabridge.Identity {
	id, known := signers[name]
	if !known {
		var err error
		if id, err = jxtabridge.NewIdentity(rand.Reader); err != nil {
			t.Fatal(err)
		}
		signers[name] = id
	}
	return id
}

// formats are the peers that every test plays.
func formats(t *testing.T, test func(t *testing.T, cfg func(name string) edgepeer.Config)) {
	for _, signed := range []bool{false, true} {
		t.Run(map[bool]string{false: "unsigned", true: "signed"}[signed], func(t *testing.T) {
			test(t, func(name string) edgepeer.Config {
				cfg := edgepeer.Config{Name: name, Relay: time.Hour}
				if signed {
					own := signer(t, name) // the id is derived from the certificate
					cfg.Key, cfg.Cert = own.Key, own.Cert
				}
				return cfg
			})
		})
	}
}

func TestLease(t *testing.T) {
	formats(t, func(t *testing.T, cfg func(string) edgepeer.Config) {
		l := newLAN(t, 1)
		c := cfg("a")
		c.Groups = []string{"", ops}
		a := l.peer(c)
		if r := one[edgepeer.Relayed](a); r.Lease != time.Hour {
			t.Errorf("relay lease %v", r.Lease)
		}
		a = l.peer(cfg("b"))
		if got := one[edgepeer.Leased](a); got.Lease != 20*time.Minute || got.Renewed || got.Rendezvous != l.cfg.Identity.Peer {
			t.Errorf("%+v", got)
		}
		a = l.peers[0]
		if !a.Leased("") || !a.Leased(ops) {
			t.Error("no lease in one of its groups")
		}
		l.pass(15*time.Minute - time.Second)
		if got := take[edgepeer.Leased](a); len(got) != 0 {
			t.Errorf("renewed early: %+v", got)
		}
		l.pass(2 * time.Second)
		if got := take[edgepeer.Leased](a); len(got) != 2 || !got[0].Renewed {
			t.Errorf("renewals after 15 min: %+v", got)
		}
		l.pass(3 * time.Hour)
		if !a.Leased("") || l.b.Stats().Refused["address"] != 0 {
			t.Error("lost its lease")
		}
		a.do(edgepeer.Leave{Group: ops})
		if a.Leased(ops) {
			t.Error("left, and still there")
		}
	})
}

// A gateway that has forgotten its peers sends Disconnect to those that talk.
func TestDisownedAsksAgain(t *testing.T) {
	l := newLAN(t, 1)
	a := l.peer(edgepeer.Config{Name: "a"})
	a.do(edgepeer.Listen{Pipe: uniPipe, Kind: jxta.PipeTypeUnicast})
	l.b = jxtabridge.New(l.cfg, nil)
	l.items = nil
	a.do(edgepeer.Lost{})
	a.dial()
	l.pass(time.Second) // far sites learn of a unicast pipe a moment later
	take[edgepeer.Leased](a)
	if it := l.items[len(l.items)-1]; it.Kind != site.Listener || it.ID != uniPipe || it.Gone {
		t.Errorf("the pipe is not said again: %+v", l.items)
	}
	a.do(edgepeer.Leave{})
	a.do(edgepeer.Join{})
	a.do(edgepeer.Query{Type: jxta.TypeAdv})
	l.pass(3 * time.Second)
	if !a.Leased("") {
		t.Error("no lease again")
	}
}

func TestPublishAndQuery(t *testing.T) {
	formats(t, func(t *testing.T, cfg func(string) edgepeer.Config) {
		for _, index := range []bool{false, true} {
			l := newLAN(t, 1)
			a, b := l.peer(cfg("a")), l.peer(cfg("b"))
			take[edgepeer.Leased](b)
			early := b.do(edgepeer.Query{Type: jxta.TypeAdv, Attr: "Name", Value: "trk-*"})
			a.do(edgepeer.Publish{Doc: edgepeer.Specification("trk-1", wirePipe, jxta.PipeTypePropagate), Index: index})
			if got := one[edgepeer.Answer](b); got.QueryID != early {
				t.Errorf("late answer to %d, asked %d", got.QueryID, early)
			}
			id := b.do(edgepeer.Query{Type: jxta.TypeAdv, Attr: "Name", Value: "trk-1"})
			got := one[edgepeer.Answer](b)
			found, err := got.Found()
			in := check.In(t, "index", index)
			check.NoError(check.Fatal(in), err)
			check.Equal(in, "got.QueryID", got.QueryID, id)
			check.Equal(check.Fatal(in), "len(found)", len(found), 1)
			check.Contains(in, "found[0].Doc", found[0].Doc, wirePipe)
			check.True(in, "found[0].Life <= 2*time.Hour", found[0].Life <= 2*time.Hour, found[0].Life)
			b.do(edgepeer.Query{Type: jxta.TypePeer, Attr: "Name", Value: "a"})
			if found, err := one[edgepeer.Answer](b).Found(); err != nil || len(found) != 1 || !strings.Contains(found[0].Doc, a.ID()) {
				t.Errorf("peer a: %v, %v", found, err)
			}
			if s := a.Stats(); s.Bad+s.Unsent > 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}

func TestPropagatePipe(t *testing.T) {
	formats(t, func(t *testing.T, cfg func(string) edgepeer.Config) {
		near, far := newLAN(t, 1), newLAN(t, 2)
		a, b, c := near.peer(cfg("a")), near.peer(cfg("b")), far.peer(cfg("c"))
		for _, e := range []*edge{b, c} {
			e.do(edgepeer.Listen{Pipe: wirePipe, Kind: jxta.PipeTypePropagate})
		}
		join(near, far)
		for i := range 3 {
			a.do(edgepeer.Send{Pipe: wirePipe, Kind: jxta.PipeTypePropagate, Elements: body(fmt.Sprint("track ", i))})
		}
		join(near, far)
		far.pass(time.Second) // of its pace
		for _, e := range []*edge{b, c} {
			got := take[edgepeer.Message](e)
			if len(got) != 3 {
				t.Fatalf("%d messages, want 3", len(got))
			}
			for i, m := range got {
				in := check.In(t, "message", i)
				check.Equal(in, "m.Src", m.Src, a.ID())
				check.Equal(in, "m.Pipe", m.Pipe, wirePipe)
				check.Equal(check.Fatal(in), "len(m.Elements)", len(m.Elements), 1)
				check.Equal(in, "string(m.Elements[0].Data)", string(m.Elements[0].Data), fmt.Sprint("track ", i))
			}
			e.do(edgepeer.Unlisten{Pipe: wirePipe})
		}
		join(near, far)
		a.do(edgepeer.Send{Pipe: wirePipe, Kind: jxta.PipeTypePropagate, Elements: body("late")})
		if got := take[edgepeer.Message](b); len(got) > 0 || len(near.carry) > 0 {
			t.Errorf("heard after closing: %+v %+v", got, near.carry)
		}
	})
}

func TestUnicastPipe(t *testing.T) {
	formats(t, func(t *testing.T, cfg func(string) edgepeer.Config) {
		near, far := newLAN(t, 1), newLAN(t, 2)
		a, b := near.peer(cfg("a")), near.peer(cfg("b"))
		c := far.peer(cfg("c"))
		b.do(edgepeer.Listen{Pipe: uniPipe, Kind: jxta.PipeTypeUnicast})
		near.pass(time.Second) // far sites learn of a unicast pipe a moment later
		join(near, far)
		for _, e := range []*edge{a, c} {
			e.do(edgepeer.Send{Pipe: uniPipe, Kind: jxta.PipeTypeUnicast, Elements: body("first")})
			if got := one[edgepeer.PipeResolved](e); got.Peer != b.ID() {
				t.Errorf("resolved to %+v", got)
			}
			e.do(edgepeer.Send{Pipe: uniPipe, Kind: jxta.PipeTypeUnicast, Elements: body("second")})
			join(near, far)
			near.pass(time.Second)
			got := take[edgepeer.Message](b)
			if len(got) != 2 || got[0].Src != e.ID() || string(got[1].Elements[0].Data) != "second" {
				t.Errorf("%+v", got)
			}
		}
	})
}

// A pipe that cannot be resolved is queried four times, and given up after a minute; one that opens late gets its messages.
func TestUnicastPipeThatIsNotThere(t *testing.T) {
	l := newLAN(t, 1)
	a, b := l.peer(edgepeer.Config{Name: "a", MaxWaiting: 2}), l.peer(edgepeer.Config{Name: "b"})
	for range 3 {
		a.do(edgepeer.Send{Pipe: uniPipe, Elements: body("x")})
	}
	if s := a.Stats(); s.Unsent != 1 {
		t.Errorf("unsent %d, want the third", s.Unsent)
	}
	l.pass(20 * time.Second)
	b.do(edgepeer.Listen{Pipe: uniPipe, Kind: jxta.PipeTypeUnicast})
	if got := take[edgepeer.Message](b); len(got) != 2 {
		t.Errorf("%d delivered late, want 2", len(got))
	}
	a.do(edgepeer.Send{Pipe: wirePipe, Elements: body("x")})
	l.pass(time.Minute + time.Second)
	if got := one[edgepeer.PipeLost](a); got.Waiting != 1 {
		t.Errorf("%+v", got)
	}
}

func TestHostileRendezvous(t *testing.T) {
	l := newLAN(t, 1)
	a := l.peer(edgepeer.Config{Name: "a"})
	a.do(edgepeer.Listen{Pipe: uniPipe, Kind: jxta.PipeTypeUnicast})
	r := mrand.New(mrand.NewPCG(1, 2))
	seed, err := jxta.AppendMessage(nil, jxta.Message{Elements: []jxta.Element{
		{Namespace: "jxta", Name: "jxta-NetGroupIRes", Data: []byte("<a><HandlerName>x</HandlerName><QueryID>9</QueryID></a>")},
		{Namespace: "jxta", Name: "JxtaWireHeader", Data: []byte("<JxtaWire><PipeId>&amp;</PipeId></JxtaWire>")},
		{Namespace: "jxta", Name: "ConnectedLease", Data: []byte("99999999999999999999")},
		{Namespace: "jxta", Name: "EndpointRouterMsg", Data: []byte("<jxta:ERM><Src>jxta://</Src><Dest>jxta://x</Dest></jxta:ERM>")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 20000 {
		b := slices.Clone(seed)
		for range 1 + r.IntN(4) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		a.Step(l.now, edgepeer.Received{Body: b[:r.IntN(len(b)+1)]})
	}
	if s := a.Stats(); s.Bad < 10000 {
		t.Errorf("only %d of 20000 refused", s.Bad)
	}
	if !a.Leased("") {
		t.Error("the lease is gone")
	}
}
