package peertest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/edge/lan"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
	"aldis/internal/site"
)

const jars = "../../../field-tests/peers"

func TestMain(m *testing.M) {
	if out, err := exec.Command("make", "-s", "-C", jars, "all").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "peertest: the peers cannot be built: %v\n%s", err, out)
		os.Exit(1)
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("4") // the peers wait most of the time, 2.2 for 12 s at its start
	}
	os.Exit(m.Run())
}

// side is one gateway without its link: a LAN of its own, a bridge, and the other side called directly.
type side struct {
	t       *testing.T
	name    string
	number  uint16
	ns      string // namespace of its peers
	host    string // address of the peers
	gateway string // address of the gateway
	lan     *lan.LAN
	cfg     jxtabridge.Config
	inbox   chan site.Event
	ask     chan func(*jxtabridge.Bridge)
	stop    chan bool
	ended   chan bool
	other   *side

	mu      sync.Mutex
	trace   []string
	token   uint64
	pending map[uint64]site.FarMessage // not done
	memory  map[string][]byte
	slowest time.Duration // of one Step
	down    bool          // the link to the other side
	late    []site.Event
	delay   time.Duration // of that link; set before anything crosses
	wire    chan crossing
	octets  map[string]int // of payloads' elements given to the link, by service
	crossed map[string]int // and how many
}

// crossing is an event on its way to the other side.
type crossing struct {
	due time.Time
	to  *side
	ev  site.Event
}

// slow delays everything between two sides in both directions.
func slow(a, b *side, delay time.Duration) {
	for _, s := range []*side{a, b} {
		s.wire = make(chan crossing, 1<<16)
		s.mu.Lock()
		s.delay = delay
		s.mu.Unlock()
		go func() {
			for c := range s.wire {
				if arrives(s.t.Context(), c.due) {
					c.to.give(c.ev)
				}
			}
		}()
		s.t.Cleanup(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.delay = 0
			close(s.wire)
		})
	}
}

// arrives waits until something under way has arrived, and returns false if the test ends before.
func arrives(ctx context.Context, due time.Time) bool {
	select {
	case <-time.After(time.Until(due)):
		return true
	case <-ctx.Done():
		return false
	}
}

// post hands an event to a side after the delay of the link.
func (s *side) post(to *side, ev site.Event) {
	s.mu.Lock()
	delay := s.delay
	if delay > 0 {
		s.wire <- crossing{time.Now().Add(delay), to, ev}
	}
	s.mu.Unlock()
	if delay == 0 {
		to.give(ev)
	}
}

func (s *side) say(format string, args ...any) {
	s.mu.Lock()
	s.trace = append(s.trace, time.Now().Format("05.000 ")+s.name+" "+fmt.Sprintf(format, args...))
	s.mu.Unlock()
}

// run is the loop of a gateway.
func (s *side) run(b *jxtabridge.Bridge) {
	defer close(s.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var ev site.Event
		select {
		case <-s.stop:
			return
		case f := <-s.ask:
			f(b)
			continue
		case ev = <-s.inbox:
		case <-timer.C:
		}
		s.describe("in ", ev)
		now := time.Now()
		out := b.Step(now, ev)
		took := time.Since(now)
		if f, ok := ev.(site.FarMessage); ok && f.Message.Token != 0 {
			go s.post(s.other, site.Fate{Token: f.Message.Token}) // as the far gateway's acknowledgement
		}
		s.mu.Lock()
		s.slowest = max(s.slowest, took)
		for _, m := range out.Remember {
			s.memory[m.Key] = m.Value
			if len(m.Value) == 0 {
				delete(s.memory, m.Key)
			}
		}
		for _, d := range out.Done {
			delete(s.pending, d)
		}
		s.mu.Unlock()
		for _, n := range out.Notes {
			s.say("note %s %s %v", n.Level, n.Text, n.Attrs)
		}
		for _, o := range out.Orders {
			switch o := o.(type) {
			case jxtabridge.Send:
				s.describe("out", o)
			case jxtabridge.Dial:
				s.say("dial %s", o.Address)
			case jxtabridge.Shout:
				s.describe("out", o)
			}
			s.lan.Do(o)
		}
		for _, it := range out.Items {
			s.say("item %d %q %q %q gone=%v", it.Kind, it.Scope, it.Owner, it.ID, it.Gone)
			s.tell(site.FarItem{Site: s.number, Item: it})
		}
		for _, c := range out.Carry {
			s.carry(c)
		}
		if timer.Stop(); !out.Deadline.IsZero() {
			timer.Reset(time.Until(out.Deadline))
		}
	}
}

func (s *side) carry(c site.Carry) {
	for _, n := range c.Sites {
		if n != s.other.number {
			s.t.Errorf("%s: payload for site %d, which does not exist", s.name, n)
			continue
		}
		o := s.other
		pl := c.Message
		o.mu.Lock()
		o.token++
		token := o.token
		o.pending[token] = site.FarMessage{Site: s.number, Token: token, Message: pl}
		o.mu.Unlock()
		if pl.ID != "" {
			pl.ID = fmt.Sprintf("%08x-0000-4000-8000-%012x", s.number, token)
		}
		for _, e := range pl.Parts {
			if e.Namespace == "jxta" && !strings.HasSuffix(e.Name, "Res") {
				s.t.Errorf("%s: hop element %s crosses the link", s.name, e.Name)
			}
		}
		s.mu.Lock()
		s.crossed[pl.Service]++
		for _, e := range pl.Parts {
			s.octets[pl.Service] += len(e.Data)
		}
		s.mu.Unlock()
		s.say("carry %s %s->%s %s/%s %d elements", pl.Topic, pl.From, pl.To, pl.Service, pl.Param, len(pl.Parts))
		s.tell(site.FarMessage{Site: s.number, Token: token, Message: pl})
	}
}

// tell hands an event to the other side.
func (s *side) tell(ev site.Event) {
	o := s.other
	s.mu.Lock()
	down := s.down
	if down {
		s.late = append(s.late, ev)
	}
	s.mu.Unlock()
	if !down {
		s.post(o, ev)
	}
}

// link takes the link to the other side down and up again; waiting events then go at once, in order.
func (s *side) link(up bool) {
	s.mu.Lock()
	s.down = !up
	late := s.late
	s.late = nil
	s.mu.Unlock()
	for _, ev := range late {
		s.post(s.other, ev)
	}
}

func (s *side) give(ev site.Event) {
	select {
	case s.inbox <- ev:
	case <-s.stop:
	}
}

func (s *side) describe(dir string, v any) {
	var conn site.ConnID
	var body []byte
	switch v := v.(type) {
	case nil:
		return
	case jxtabridge.Received:
		conn, body = v.Conn, v.Body
	case jxtabridge.Send:
		conn, body = v.Conn, bytes.Join(append([][]byte{v.Body}, v.Rest...), nil)
	case jxtabridge.Heard:
		body = v.Body
	case jxtabridge.Shout:
		body = v.Body
	case jxtabridge.Welcomed:
		s.say("%s welcome %d %+v", dir, v.Conn, v.Welcome)
		return
	case jxtabridge.Written:
		return
	case site.FarItem, site.FarMessage:
		return
	default:
		s.say("%s %T %+v", dir, v, v)
		return
	}
	m, rest, err := jxta.ParseMessage(body, jxta.DefaultLimits)
	line := fmt.Sprintf("%s conn %d, %d octets, %d after the message, %v:", dir, conn, len(body), len(rest), err)
	for _, e := range m.Elements {
		line += fmt.Sprintf(" [%s:%s %s %d", e.Namespace, e.Name, e.Type, len(e.Data))
		data := e.Data
		if un, err := jxta.Gunzip(data); err == nil {
			data = un
		}
		switch {
		case len(data) < 300, strings.HasSuffix(e.Name, "Srdi"), strings.HasSuffix(e.Name, "Res"), e.Name == "EndpointRouterMsg", strings.HasPrefix(e.Name, "PeerView"), strings.HasPrefix(e.Name, "RendezVous"):
			line += fmt.Sprintf(" %q", data)
		}
		line += "]"
	}
	s.say("%s", line)
}

// start opens the gateway's socket and starts its loop, with its memories.
func (s *side) start() {
	s.t.Helper()
	ln, err := lan.Listen(s.cfg.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	poll, err := lan.Listen(s.cfg.HTTP)
	if err != nil {
		s.t.Fatal(err)
	}
	s.inbox = make(chan site.Event, 64)
	s.ask = make(chan func(*jxtabridge.Bridge))
	s.stop, s.ended = make(chan bool), make(chan bool)
	stop, inbox := s.stop, s.inbox
	post := func(ev site.Event) {
		select {
		case inbox <- ev:
		case <-stop:
		}
	}
	s.cfg.SignLater = true // as gateway run has it
	sign := func(m []byte, source string) ([]byte, error) {
		return jxta.SignMessage(m, s.cfg.Identity.Key, s.cfg.Identity.Cert, source)
	}
	s.lan = lan.New(lan.Config{Peer: s.cfg.Identity.Peer, Sign: sign}, post, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	var memories []site.Memory
	for k, v := range s.memory {
		memories = append(memories, site.Memory{Key: k, Value: v})
	}
	if s.cfg.Multicast != "" {
		group := netip.MustParseAddrPort(s.cfg.Multicast)
		conn, err := lan.ListenMulticast(group, netip.MustParseAddr(s.gateway))
		if err != nil {
			s.t.Fatal(err)
		}
		go s.lan.ServeMulticast(conn, group)
	}
	b := jxtabridge.New(s.cfg, memories)
	go s.lan.Serve(ln)
	go s.lan.ServePolling(poll)
	go s.run(b)
}

// halt ends the gateway like a killed process: only its memories are left.
func (s *side) halt() {
	close(s.stop)
	<-s.ended
	s.lan.Shutdown()
}

// restart starts a halted gateway again and lets the other side send it the items that a gateway keeps of far sites.
func (s *side) restart() {
	s.t.Helper()
	var items []site.Item
	done := make(chan bool)
	s.other.ask <- func(b *jxtabridge.Bridge) {
		items = b.Items()
		close(done)
	}
	<-done
	s.start()
	for _, it := range items {
		s.inbox <- site.FarItem{Site: s.other.number, Item: it}
	}
	s.mu.Lock()
	pending := slices.SortedFunc(maps.Values(s.pending), func(a, b site.FarMessage) int { return cmp.Compare(a.Token, b.Token) })
	s.mu.Unlock()
	for _, f := range pending {
		s.inbox <- f
	}
}

// settle waits until n payloads wait for the link.
func (s *side) settle(n int) {
	s.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(time.Minute)
	for {
		count := 0
		s.mu.Lock()
		for _, ev := range s.late {
			if _, ok := ev.(site.FarMessage); ok {
				count++
			}
		}
		s.mu.Unlock()
		if count >= n {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			s.t.Fatalf("%s: %d of %d payloads wait for the link", s.name, count, n)
		}
	}
}

// status asks the running bridge.
func (s *side) status() (st jxtabridge.Status, stats jxtabridge.Stats) {
	done := make(chan bool)
	s.ask <- func(b *jxtabridge.Bridge) {
		st, stats = b.Status(), b.Stats()
		close(done)
	}
	<-done
	return st, stats
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

var (
	netMu sync.Mutex
	nets  int
)

// newSide makes a LAN: a namespace for its peers, and the gateway's address on this side of it.
func newSide(t *testing.T, name string, number uint16) *side {
	t.Helper()
	netMu.Lock()
	nets++
	n := nets
	netMu.Unlock()
	tag := fmt.Sprintf("aldis-jx-%x-%d", os.Getpid()&0xffff, n)
	link := fmt.Sprintf("ajx%x-%d", os.Getpid()&0xffff, n)
	ip(t, "netns", "add", tag)
	t.Cleanup(func() { exec.Command("ip", "netns", "del", tag).Run() })
	ip(t, "-n", tag, "link", "set", "lo", "up")
	ip(t, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", tag)
	t.Cleanup(func() { exec.Command("ip", "link", "del", link).Run() })
	network := fmt.Sprintf("10.%d.%d", 200+os.Getpid()&31, n)
	ip(t, "addr", "add", network+".1/24", "dev", link)
	ip(t, "link", "set", link, "up")
	ip(t, "-n", tag, "addr", "add", network+".2/24", "dev", "eth0")
	ip(t, "-n", tag, "link", "set", "eth0", "up")
	id, err := jxtabridge.NewIdentity(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &side{t: t, name: name, number: number, ns: tag, host: network + ".2", gateway: network + ".1",
		cfg:     jxtabridge.Config{Name: "gw-" + name, Address: network + ".1:9701", HTTP: network + ".1:9700", Identity: id},
		pending: map[uint64]site.FarMessage{}, memory: map[string][]byte{}, octets: map[string]int{}, crossed: map[string]int{}}
}

// pair makes two LANs that see each other's gateways only through the bridges.
func pair(t *testing.T, configure ...func(*jxtabridge.Config)) (a, b *side) {
	t.Helper()
	a, b = newSide(t, "A", 1), newSide(t, "B", 2)
	a.other, b.other = b, a
	for _, f := range configure {
		f(&a.cfg)
		f(&b.cfg)
	}
	a.start()
	b.start()
	t.Cleanup(func() {
		a.halt()
		b.halt()
		if t.Failed() || os.Getenv("ALDIS_TRACE") != "" {
			t.Logf("%s\n%s", strings.Join(a.trace, "\n"), strings.Join(b.trace, "\n"))
		}
	})
	return a, b
}

type world struct {
	*testing.T
	ctx context.Context
}

func newWorld(t *testing.T, limit time.Duration) world {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return world{t, ctx}
}

func (w world) peer(s *side, kind, name string, port int) *field.Peer {
	w.Helper()
	return w.start(s, field.PeerConfig{Kind: kind, Name: name, Port: port, Seed: "tcp://" + s.cfg.Address})
}

// pollingPeer is a peer over HTTP.
func (w world) pollingPeer(s *side, kind, name string, port int) *field.Peer {
	w.Helper()
	return w.start(s, field.PeerConfig{Kind: kind, Name: name, Port: port, Seed: "http://" + s.cfg.HTTP, HTTP: true})
}

func (w world) start(s *side, cfg field.PeerConfig) *field.Peer {
	w.Helper()
	cfg.JarDir, cfg.Netns, cfg.Host = jars, s.ns, s.host
	p, err := field.StartPeer(w.ctx, cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := p.Stop(); err != nil {
			w.Error(err)
		}
		if w.Failed() {
			var lines []string
			for _, e := range p.Events() {
				lines = append(lines, fmt.Sprintf("%s %+v", e.At().Format("05.000"), e))
			}
			w.Logf("%s said:\n%s\nlibrary.log:\n%s", p.Name(), strings.Join(lines, "\n"), p.Log())
		}
	})
	return p
}

func (w world) tell(p *field.Peer, lines ...string) {
	w.Helper()
	for _, line := range lines {
		if err := p.Command(line); err != nil {
			w.Fatal(err)
		}
	}
}

func (w world) await(p *field.Peer, ev, name string) field.Event {
	w.Helper()
	e, err := p.Wait(w.ctx, func(e field.Event) bool { return e.Ev == ev && (name == "" || e.Name == name) })
	if err != nil {
		w.Fatalf("%s: no %s %s: %v", p.Name(), ev, name, err)
	}
	return e
}

// inTime is the events of a peer in the order of their stamps, which listeners make; the peer prints them after it has
// checked the content, and threads may overtake each other there.
func inTime(p *field.Peer) []field.Event {
	return slices.SortedStableFunc(slices.Values(p.Events()), func(a, b field.Event) int { return cmp.Compare(a.T, b.T) })
}

// receives waits until p has messages 1 to n of from, and checks that each came once, in order, unchanged.
func (w world) receives(p *field.Peer, name, from string, n int64, size, elements int) {
	w.Helper()
	if _, err := p.Wait(w.ctx, func(e field.Event) bool {
		return e.Ev == "received" && e.Name == name && e.From == from && e.Seq == n
	}); err != nil {
		w.Fatalf("%s: message %d of %s on %s: %v", p.Name(), n, from, name, err)
	}
	next := int64(1)
	for _, e := range inTime(p) {
		if e.Ev != "received" || e.Name != name || e.From != from {
			continue
		}
		in := check.In(w, p.Name(), "with message", next, "of", from, "on", name)
		check.Equal(in, "e.Seq", e.Seq, next)
		check.True(in, "the message unchanged", e.OK)
		check.Equal(in, "e.Size", e.Size, size)
		check.Equal(in, "e.Elements", e.Elements, elements)
		next++
	}
}
