package xmpp_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/files"
	"aldis/internal/adapters/xmpp"
	own "aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// world is gateways with an XMPP adapter each, and a server on each LAN: the users of node 1 are at hq.example, those of node n at
// shipN.example.
type world struct {
	*sim.World
	t        *testing.T
	adapters map[uint16]*xmpp.Adapter
	servers  map[uint16]*server
	lines    map[uint16][]xmpp.Line // for clients of other adapters
	units    map[uint16][]xmpp.Unit // of them
	clients  map[site.ConnID]*client
}

// server stands for the server of a LAN: it keeps the stanzas that it was given, and answers pings.
type server struct {
	w    *world
	node *sim.Node
	up   bool
	deaf bool                   // it answers no pings
	conn map[string]site.ConnID // by domain
	muc  *muc                   // nil: nobody has used a room
	got  []string
	disk map[string][]byte // of its file room: by hash, and parts by number
}

func domainOf(id uint16) string {
	if id == 1 {
		return "hq.example"
	}
	return fmt.Sprintf("ship%d.example", id)
}

var lastConn site.ConnID

func newWorld(t *testing.T, nodes int, name string, seed uint64, change ...func(*xmpp.Config)) *world {
	t.Helper()
	p, err := profile.Load(name, nil)
	check.NoError(check.Fatal(t), err)
	wire, err := profile.Load("wire", nil)
	check.NoError(check.Fatal(t), err)
	w := &world{t: t, adapters: map[uint16]*xmpp.Adapter{}, servers: map[uint16]*server{}, lines: map[uint16][]xmpp.Line{}, units: map[uint16][]xmpp.Unit{}, clients: map[site.ConnID]*client{}}
	w.World, err = sim.New(sim.Config{Nodes: nodes, Profile: p, Wire: wire, Seed: seed, Group: p.Transport == profile.PMul, Down: 3 * time.Second,
		Configure: func(n *sim.Node, g *gateway.Config) {
			cfg := xmpp.Config{ID: n.ID, Domain: domainOf(n.ID), Rooms: "conference." + domainOf(n.ID), PubSub: "pubsub." + domainOf(n.ID), Occupants: -1}
			for _, peer := range g.Peers {
				cfg.Sites = append(cfg.Sites, xmpp.Site{ID: peer.ID, Domain: domainOf(peer.ID), Rooms: "conference." + domainOf(peer.ID), PubSub: "pubsub." + domainOf(peer.ID)})
			}
			for _, f := range change {
				f(&cfg)
			}
			cfg.Suit(p.Gathers())
			g.Adapters[site.XMPP] = func(memories []site.Memory) (gateway.Adapter, error) {
				f, err := xmpp.New(cfg, memories)
				w.adapters[n.ID] = f
				return f, err
			}
		},
		LAN: func(n *sim.Node, out api.Output) {
			for _, o := range out.LAN {
				if line, ok := o.Order.(xmpp.Line); ok {
					w.lines[n.ID] = append(w.lines[n.ID], line)
				} else if unit, ok := o.Order.(xmpp.Unit); ok {
					w.units[n.ID] = append(w.units[n.ID], unit)
				} else if s, ok := o.Order.(own.Send); ok {
					w.clients[s.Conn].got = append(w.clients[s.Conn].got, string(s.XML))
				} else if file, ok := o.Order.(files.Order); ok {
					w.servers[n.ID].file(file)
				} else if o.Adapter == site.XMPP {
					w.servers[n.ID].order(o.Order.(xmpp.Send))
				}
			}
		}})
	check.NoError(check.Fatal(t), err)
	for _, n := range w.Nodes {
		w.servers[n.ID] = &server{w: w, node: n, disk: map[string][]byte{}}
	}
	for _, n := range w.Nodes {
		w.servers[n.ID].connect()
	}
	return w
}

// connect makes the server accept the gateway's components, as after a restart of either.
func (s *server) connect() {
	s.up, s.conn = true, map[string]site.ConnID{}
	for _, n := range s.w.Nodes {
		for _, domain := range []string{domainOf(n.ID), "conference." + domainOf(n.ID), "pubsub." + domainOf(n.ID), "upload." + domainOf(n.ID)} {
			if (n != s.node) != strings.HasPrefix(domain, "upload.") {
				lastConn++
				s.conn[domain] = lastConn
				s.w.DeliverLAN(s.node, site.XMPP, xmpp.Opened{Conn: lastConn, Domain: domain})
			}
		}
	}
}

// stop ends the server like kill -9.
func (s *server) stop() {
	s.up = false
	for _, n := range s.w.Nodes {
		for _, domain := range []string{domainOf(n.ID), "conference." + domainOf(n.ID), "pubsub." + domainOf(n.ID)} {
			if c := s.conn[domain]; c != 0 {
				s.w.DeliverLAN(s.node, site.XMPP, xmpp.Closed{Conn: c})
			}
		}
	}
	s.conn = nil
}

var ping = regexp.MustCompile(`^<iq type='get' id='(aldis-ping-[0-9]+)' from='([^']*)' to='([^']*)'>`)

// order takes a stanza that the gateway writes.
func (s *server) order(o xmpp.Send) {
	for domain, conn := range s.conn {
		if conn != o.Conn || !s.up {
			continue
		}
		if m := ping.FindSubmatch(o.XML); m == nil {
			if e := parse(s.w.t, string(o.XML)); strings.Contains(e.Get("to"), "@conference."+domainOf(s.node.ID)) {
				s.room().take(e)
				continue
			}
			s.got = append(s.got, string(o.XML))
		} else if !s.deaf {
			s.w.At(0, func() { s.say(domain, "<iq type='result' id='%s' from='%s' to='%s'/>", m[1], m[3], m[2]) })
		}
	}
}

// say gives the gateway a stanza on the connection of a domain.
func (s *server) say(domain, format string, args ...any) {
	s.w.t.Helper()
	if s.node.GW == nil || s.conn[domain] == 0 {
		return
	}
	s.w.DeliverLAN(s.node, site.XMPP, xmpp.Heard{Conn: s.conn[domain], Element: parse(s.w.t, fmt.Sprintf(format, args...))})
}

func parse(t testing.TB, text string) (e stanza.Element) {
	t.Helper()
	var s stanza.Splitter
	err := s.Feed([]byte("<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'>"+text), func(got *stanza.Element, f *stanza.Fault) {
		if f != nil {
			t.Errorf("%s: %v", text, f)
		} else {
			e = *got
		}
	})
	check.NoError(t, err)
	return e
}

// kill kills a gateway; the server accepts the components of the next run.
func (w *world) kill(id uint16) {
	w.Kill(w.Nodes[id-1], time.Second)
	w.Run(2 * time.Second)
	w.servers[id].connect()
}

// count is how many stanzas have all of these texts.
func (s *server) count(texts ...string) (n int) {
stanzas:
	for _, one := range s.got {
		for _, text := range texts {
			if !strings.Contains(one, text) {
				continue stanzas
			}
		}
		n++
	}
	return n
}

// has expects so many stanzas with all of these texts.
func (s *server) has(n int, texts ...string) {
	s.w.t.Helper()
	if got := s.count(texts...); got != n {
		s.w.t.Errorf("the server of %s has %d stanzas with %q, want %d, among\n%s", domainOf(s.node.ID), got, texts, n, strings.Join(s.got[max(0, len(s.got)-10):], "\n"))
	}
}

const (
	anna = "anna@ship2.example/Gajim.1"
	bert = "bert@hq.example/home"
)

// line gives the gateway a chat message.
func (s *server) line(domain, from, to, id, text, more string) {
	s.w.t.Helper()
	s.say(domain, "<message from='%s' to='%s' type='chat' id='%s' xml:lang='en'><body>%s</body>%s</message>", from, to, id, text, more)
}

// Everything that a message may hold arrives unchanged, with ids that fit on both sides; elements that do not cross are left out.
func TestMessagesCross(t *testing.T) {
	for _, name := range []string{"iridium-dialup", "hf-300"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, name, 7)
			hq, ship := w.servers[1], w.servers[2]
			w.Run(time.Minute)
			ship.line("hq.example", anna, "bert@hq.example", "a1", "Request permission to come alongside",
				"<subject>S</subject><thread parent='p'>t</thread><request xmlns='urn:xmpp:receipts'/><markable xmlns='urn:xmpp:chat-markers:0'/>"+
					"<securitylabel xmlns='urn:xmpp:sec-label:0'><displaymarking fgcolor='black' bgcolor='red'>SECRET</displaymarking><label/></securitylabel>"+
					"<x xmlns='jabber:x:oob'><url>https://ship2.example/f</url></x><active xmlns='http://jabber.org/protocol/chatstates'/><origin-id xmlns='urn:xmpp:sid:0' id='q'/>")
			w.Run(2 * time.Minute)
			hq.has(1, "<body>")
			got := hq.got[len(hq.got)-1]
			e := parse(t, got)
			id := e.Get("id")
			want := "<message from='anna@ship2.example' to='bert@hq.example' id='" + id + "' type='chat' xml:lang='en'><subject>S</subject><body>Request permission to come alongside</body>" +
				"<thread parent='p'>t</thread><request xmlns='urn:xmpp:receipts'/><markable xmlns='urn:xmpp:chat-markers:0'/><x xmlns='jabber:x:oob'><url>https://ship2.example/f</url></x>" +
				"<securitylabel xmlns='urn:xmpp:sec-label:0'><displaymarking fgcolor='black' bgcolor='red'>SECRET</displaymarking></securitylabel></message>"
			if got != want {
				t.Errorf("it came as\n%s\nwant\n%s", got, want)
			}
			hq.say("ship2.example", "<message from='%s' to='anna@ship2.example' id='r'><received xmlns='urn:xmpp:receipts' id='%s'/></message>", bert, id)
			hq.say("ship2.example", "<message from='%s' to='anna@ship2.example' id='d'><displayed xmlns='urn:xmpp:chat-markers:0' id='%s'/></message>", bert, id)
			hq.say("ship2.example", "<message from='eve@hq.example/x' to='anna@ship2.example' id='d'><displayed xmlns='urn:xmpp:chat-markers:0' id='%s'/></message>", id)
			hq.line("ship2.example", bert, "anna@ship2.example", "b1", "Granted", "<reply xmlns='urn:xmpp:reply:0' to='anna@ship2.example/Gajim.1' id='"+id+"'/>")
			hq.line("ship2.example", bert, "anna@ship2.example", "b2", "Denied", "<replace xmlns='urn:xmpp:message-correct:0' id='b1'/>")
			hq.say("ship2.example", "<message from='%s' to='anna@ship2.example' type='chat' id='b3'><reactions xmlns='urn:xmpp:reactions:0' id='%s'><reaction>&#x1F44D;</reaction></reactions></message>", bert, id)
			hq.say("ship2.example", "<message from='%s' to='anna@ship2.example' type='chat' id='b4'><retract xmlns='urn:xmpp:message-retract:1' id='b2'/></message>", bert)
			hq.say("ship2.example", "<message from='%s' to='anna@ship2.example' type='chat' id='b5'><retract xmlns='urn:xmpp:message-retract:1' id='never'/></message>", bert)
			w.Run(4 * time.Minute)
			ship.has(1, "to='"+anna+"'", "<received xmlns='urn:xmpp:receipts' id='a1'/>")
			ship.has(1, "to='"+anna+"'", "<displayed xmlns='urn:xmpp:chat-markers:0' id='a1'/>")
			ship.has(1, "<body>Granted</body>", "<reply xmlns='urn:xmpp:reply:0' id='a1'")
			granted := parse(t, ship.got[indexOf(ship.got, "<body>Granted")])
			ship.has(1, "<body>Denied</body>", "<replace xmlns='urn:xmpp:message-correct:0' id='"+granted.Get("id")+"'/>")
			ship.has(1, "<reactions xmlns='urn:xmpp:reactions:0' id='a1'><reaction>\U0001F44D</reaction></reactions>")
			denied := parse(t, ship.got[indexOf(ship.got, "<body>Denied")])
			ship.has(1, "<retract xmlns='urn:xmpp:message-retract:1' id='"+denied.Get("id")+"'/>")
			hq.has(1, "type='error'", "id='b5'", "item-not-found")
			if counts := w.adapters[2].Counts(); counts["stripped"] != 2 {
				t.Errorf("what was left out is counted as %v", counts)
			}
		})
	}
}

func indexOf(list []string, text string) int {
	for i, one := range list {
		if strings.Contains(one, text) {
			return i
		}
	}
	return 0
}

// Each message arrives once and in order, although gateways and servers are killed; a message that the link never carried ends at its
// sender's client, also in a later run of the gateway; a message that the far server refuses ends with its reason.
func TestMessagesEnd(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		w := newWorld(t, 2, "iridium-dialup", seed, func(c *xmpp.Config) { c.Life = time.Hour })
		hq, ship := w.servers[1], w.servers[2]
		w.Run(time.Minute)
		said := 0
		say := func(n int) {
			for range n {
				said++
				ship.line("hq.example", anna, "bert@hq.example", fmt.Sprint("a", said), fmt.Sprintf("line %03d.", said), "")
				w.Run(300 * time.Millisecond)
			}
		}
		say(10)
		hq.stop()
		say(10)
		w.kill(2)
		say(10)
		w.kill(1) // connects the server, too
		say(10)
		hq.stop()
		hq.connect()
		w.Run(2 * time.Minute)
		last := 0
		for _, one := range hq.got {
			var n int
			if i := strings.Index(one, "<body>line "); i >= 0 {
				fmt.Sscanf(one[i:], "<body>line %03d.", &n)
				if n != last+1 {
					t.Errorf("seed %d: line %d came behind line %d", seed, n, last)
				}
				last = n
			}
		}
		check.Equal(t, "lines", last, said)
		hq.deaf = true // it stops before it has read the stanzas that it was given
		say(3)
		w.Run(5 * time.Second)
		hq.stop()
		hq.deaf = false
		hq.connect()
		w.Run(time.Minute)
		for i := range 3 {
			hq.has(2, fmt.Sprintf("<body>line %03d.", said-i))
		}
		first := parse(t, hq.got[indexOf(hq.got, "line 001")])
		hq.say("ship2.example", "<message from='bert@hq.example' to='anna@ship2.example' type='error' id='%s'><error type='cancel'><service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>", first.Get("id"))
		w.Run(time.Minute)
		ship.has(1, "to='"+anna+"'", "id='a1'", "type='error'", "<service-unavailable ")
		w.Outage(w.Nodes[1], 3*time.Hour)
		for range 80 { // more than a window; the first of them go on the air and are carried through
			ship.line("hq.example", anna, "bert@hq.example", "air", "it was before", "")
		}
		ship.line("hq.example", anna, "bert@hq.example", "late", "too late", "")
		w.Run(30 * time.Minute)
		w.kill(2)
		ship.stop()
		w.Run(time.Hour)
		ship.connect()
		w.Run(time.Minute)
		ship.has(1, "to='"+anna+"'", "id='late'", "type='error'", "<remote-server-timeout ", "from='bert@hq.example'")
		w.kill(2)
		w.Run(3 * time.Hour)
		ship.has(1, "id='late'")
		hq.has(0, "too late")
		if came, ended := hq.count("it was before"), ship.count("id='air'", "<remote-server-timeout "); came == 0 || came+ended != 80 {
			t.Errorf("seed %d: of 80 messages %d came and %d ended", seed, came, ended)
		}
	}
}

// A hundred messages wait, and the far server refuses them all: each ends once, with its reason.
func TestHundredRefusals(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	w.Outage(w.Nodes[1], time.Minute)
	for i := range 100 {
		ship.line("hq.example", anna, "gone@hq.example", fmt.Sprintf("m%03d.", i), "to nobody", "")
	}
	w.Run(3 * time.Minute)
	hq.has(100, "to nobody")
	for _, one := range hq.got {
		if e := parse(t, one); e.Name == "message" {
			hq.say("ship2.example", "<message from='gone@hq.example' to='anna@ship2.example' type='error' id='%s'><error type='cancel'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>", e.Get("id"))
		}
	}
	w.Run(3 * time.Minute)
	for i := range 100 {
		ship.has(1, fmt.Sprintf("id='m%03d.'", i), "<item-not-found ", "to='"+anna+"'")
	}
}
