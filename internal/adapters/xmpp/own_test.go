package xmpp_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	own "aldis/internal/adapters/xmpp/server"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// client is a client of a gateway that is the server of its LAN. It has stream management.
type client struct {
	w     *world
	node  *sim.Node
	user  string
	conn  site.ConnID
	token string
	said  []string // since stream management began
	got   []string
}

// came logs a user in, on a new connection.
func (c *client) came() {
	lastConn++
	c.conn = lastConn
	c.w.clients[c.conn] = c
	c.w.DeliverLAN(c.node, site.XMPP, own.Came{Conn: c.conn, User: c.user, Seed: fmt.Appendf(nil, "%016d", c.conn)})
}

func (c *client) say(format string, args ...any) {
	c.w.t.Helper()
	c.said = append(c.said, fmt.Sprintf(format, args...))
	c.send(c.said[len(c.said)-1])
}

func (c *client) send(text string) {
	c.w.t.Helper()
	c.w.DeliverLAN(c.node, site.XMPP, own.Said{Conn: c.conn, Element: parse(c.w.t, text)})
}

// newClient logs a user in and binds a resource.
func (w *world) newClient(id uint16, user string) *client {
	c := &client{w: w, node: w.Nodes[id-1], user: user}
	c.came()
	c.send("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>x</resource></bind></iq>")
	c.send("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
	c.say("<presence/>")
	w.Run(time.Second)
	for i, got := range c.got {
		if _, rest, ok := strings.Cut(got, "<enabled xmlns='urn:xmpp:sm:3' id='"); ok {
			c.token, _, _ = strings.Cut(rest, "'")
			c.got = c.got[i+1:]
			return c
		}
	}
	w.t.Fatalf("%s has no session: %q", user, c.got)
	return nil
}

// stanzas is how many stanzas came that stream management counts.
func (c *client) stanzas() (n int) {
	for _, got := range c.got {
		if strings.HasPrefix(got, "<message") || strings.HasPrefix(got, "<presence") || strings.HasPrefix(got, "<iq") {
			n++
		}
	}
	return n
}

// resume makes the client resume its session after a kill of the gateway, and send again the stanzas that were not acknowledged.
func (c *client) resume() {
	c.w.t.Helper()
	c.came()
	had := len(c.got)
	c.send(fmt.Sprintf("<resume xmlns='urn:xmpp:sm:3' previd='%s' h='%d'/>", c.token, c.stanzas()))
	c.w.Run(time.Second)
	for _, got := range c.got[had:] {
		if _, rest, ok := strings.Cut(got, "<resumed xmlns='urn:xmpp:sm:3' previd='"+c.token+"' h='"); ok {
			h, _, _ := strings.Cut(rest, "'")
			n, err := strconv.Atoi(h)
			check.NoError(c.w.t, err)
			for _, again := range c.said[n:] {
				c.send(again)
			}
			return
		}
	}
	c.w.t.Fatalf("%s has no session any more: %q", c.user, c.got[had:])
}

// order expects that lines came once, and in order.
func order(t *testing.T, who, what string, got []string, lines int) {
	t.Helper()
	next := 0
	for _, one := range got {
		if _, rest, ok := strings.Cut(one, "<body>"+what); ok && strings.HasPrefix(one, "<message") {
			var n int
			fmt.Sscanf(rest, "%d", &n)
			if n != next {
				t.Errorf("%s has line %d of %q in the place of %d", who, n, what, next)
				return
			}
			next++
		}
	}
	check.Equal(t, who+" has lines of "+what, next, lines)
}

// A ship without a server: its clients chat with each other and the shore, in a room of the ship, and the gateway is killed with lines on
// their way in all directions. Each comes once, in order.
func TestOwnServer(t *testing.T) {
	for _, profile := range []string{"iridium-directip", "hf-2400"} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(profile, seed), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 2, profile, seed+1, func(c *xmpp.Config) {
					c.Occupants = 20
					if c.ID == 2 {
						c.Own, c.Users = true, []string{"anna", "alma"}
					}
				})
				anna, alma, shore := w.newClient(2, "anna"), w.newClient(2, "alma"), w.servers[1]
				const room = "mess@conference.ship2.example"
				enter := "<presence to='" + room + "/%s'><x xmlns='http://jabber.org/protocol/muc'/></presence>"
				anna.say(enter, "anna")
				alma.say(enter, "alma")
				shore.say("conference.ship2.example", "<presence from='%s' to='%s/bert'><x xmlns='http://jabber.org/protocol/muc'/></presence>", bert, room)
				w.Run(2 * time.Minute)
				shore.has(1, "<presence", room+"/anna", "participant")
				const lines = 20
				for i := range lines {
					anna.say("<message to='bert@hq.example' type='chat' id='o%d'><body>out %d</body></message>", i, i)
					anna.say("<message to='%s' type='groupchat' id='g%d'><body>all %d</body></message>", room, i, i)
					alma.say("<message to='anna@ship2.example' type='chat' id='h%d'><body>here %d</body></message>", i, i)
					shore.line("ship2.example", bert, "anna@ship2.example", fmt.Sprint("i", i), fmt.Sprint("in ", i), "")
					shore.say("conference.ship2.example", "<message from='%s' to='%s' type='groupchat' id='b%d'><body>shore %d</body></message>", bert, room, i, i)
					if i == lines/2 {
						w.Run(3 * time.Second)
						w.Kill(w.Nodes[1], time.Second)
						w.Run(2 * time.Second)
						anna.resume()
						alma.resume()
					}
					w.Run(time.Second)
				}
				w.Run(10 * time.Minute)
				order(t, "bert", "out ", shore.got, lines)
				order(t, "bert", "all ", shore.got, lines)
				for _, c := range []*client{anna, alma} {
					order(t, c.user, "all ", c.got, lines)
					order(t, c.user, "shore ", c.got, lines)
				}
				order(t, "anna", "here ", anna.got, lines)
				order(t, "anna", "in ", anna.got, lines)
			})
		}
	}
}

// A client of the gateway's own server finds the upload service, gets a slot, and is asked for far nodes like a client of any server.
func TestOwnServerHasUploads(t *testing.T) {
	w := newWorld(t, 2, "iridium-directip", 1, func(c *xmpp.Config) {
		c.Files = xmpp.Files{Domain: "upload." + c.Domain, URL: roomOf(c.ID), Most: 100_000, Cross: 50_000}
		if c.ID == 2 {
			c.Own, c.Users = true, []string{"anna"}
		}
	})
	anna := w.newClient(2, "anna")
	w.Run(time.Minute)
	anna.say("<iq type='get' id='i1' to='ship2.example'><query xmlns='http://jabber.org/protocol/disco#items'/></iq>")
	anna.say("<iq type='get' id='i2' to='upload.ship2.example'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>")
	anna.say("<iq type='get' id='i3' to='upload.ship2.example'><request xmlns='urn:xmpp:http:upload:0' filename='quay.jpg' size='40000' content-type='image/jpeg'/></iq>")
	w.Run(time.Second)
	has := func(what ...string) {
		t.Helper()
		check.True(t, strings.Join(what, " "), slices.ContainsFunc(anna.got, func(one string) bool {
			return !slices.ContainsFunc(what, func(part string) bool { return !strings.Contains(one, part) })
		}), anna.got)
	}
	has("id='i1'", "jid='upload.ship2.example'")
	has("id='i2'", "category='store'", "urn:xmpp:http:upload:0")
	has("id='i3'", "<slot ", roomOf(2))
}

// Messages at the bounds of what a client may send wait in the journal and are there after a restart. A memory of a client that cannot be
// read is left out.
func TestRestartWithOddMessages(t *testing.T) {
	w := newWorld(t, 2, "iridium-directip", 1, func(c *xmpp.Config) {
		if c.ID == 2 {
			c.Own, c.Users = true, []string{"anna", "alma"}
		}
	})
	anna := w.newClient(2, "anna")
	anna.say("<message to='alma@ship2.example' type='chat'><body>deep</body>%s%s</message>", strings.Repeat("<a>", 31), strings.Repeat("</a>", 31))
	anna.say("<message to='alma@ship2.example' type='chat' xmlns:p='urn:p'><body>wide</body>%s</message>", strings.Repeat("<p:a/>", 9_990))
	w.Run(time.Second)
	w.Kill(w.Nodes[1], time.Second)
	w.Run(2 * time.Second)
	alma := w.newClient(2, "alma")
	for _, text := range []string{"deep", "wide"} {
		check.True(t, text, slices.ContainsFunc(alma.got, func(one string) bool { return strings.Contains(one, "<body>"+text+"</body>") }))
	}

	cfg := xmpp.Config{ID: 2, Domain: "ship.example", Rooms: "conference.ship.example", Own: true, Users: []string{"anna"}}
	f, err := xmpp.New(cfg, []site.Memory{{Key: "Slanna\x000000000000000001", Value: []byte("<l at='1'><1/></l>")}, {Key: "Saanna\x000000000000000002", Value: []byte("<l")},
		{Key: "amess\x000000000000000003", Value: []byte("<l at='1'><message>")}})
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "left out", f.Counts()["memory_unreadable"], 3)
}

// Clients of other adapters hear and speak in a room that the gateway serves itself.
func TestMetInOwnRoom(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7, func(c *xmpp.Config) {
		if c.ID == 2 {
			c.Own, c.Users = true, []string{"anna"}
		}
	})
	const room = "mess@conference.ship2.example"
	w.DeliverLAN(w.Nodes[1], site.XMPP, xmpp.Ears{Rooms: []string{room}})
	anna, shore := w.newClient(2, "anna"), w.servers[1]
	anna.say("<presence to='" + room + "/anna'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
	shore.say("conference.ship2.example", "<presence from='%s' to='%s/bert'><x xmlns='http://jabber.org/protocol/muc'/></presence>", bert, room)
	w.Run(time.Minute)
	shore.has(1, "<presence", room+"/TAK")
	w.DeliverLAN(w.Nodes[1], site.XMPP, xmpp.Met{Room: room, From: "FALCON 1", Text: "on our way", ID: "t1"})
	anna.say("<message to='%s' type='groupchat' id='1'><body>all 0</body></message>", room)
	shore.say("conference.ship2.example", "<message from='%s' to='%s' type='groupchat' id='2'><body>shore 0</body></message>", bert, room)
	w.Run(time.Minute)
	shore.has(1, "<body>FALCON 1: on our way</body>", room+"/TAK")
	heard := 0
	for _, got := range anna.got {
		if strings.Contains(got, "<body>FALCON 1: on our way</body>") && strings.Contains(got, room+"/TAK") {
			heard++
		}
	}
	check.Equal(t, "anna hears TAK", heard, 1)
	var lines []string
	for _, l := range w.lines[2] {
		lines = append(lines, l.From+" "+l.Text)
	}
	check.Equal(t, "TAK hears", strings.Join(lines, ", "), "anna all 0, bert shore 0")
	// The room remembers its lines and its subject when nobody was in it, and after a kill.
	anna.say("<message to='%s' type='groupchat' id='3'><subject>watches</subject></message>", room)
	anna.say("<presence to='%s/anna' type='unavailable'/>", room)
	w.Run(time.Minute)
	w.Kill(w.Nodes[1], time.Second)
	w.Run(2 * time.Second)
	anna.resume()
	had := len(anna.got)
	anna.say("<presence to='" + room + "/anna'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
	w.Run(time.Second)
	text := strings.Join(anna.got[had:], "\n")
	for _, want := range []string{"<body>FALCON 1: on our way</body>", "<body>all 0</body>", "<body>shore 0</body>", "<subject>watches</subject>"} {
		check.Equal(t, want, strings.Count(text, want), 1)
	}
}

// A user who says something in thousands of rooms, one after the other, makes no room forget in which somebody is, or that is kept.
func TestManyRoomsForgetNothing(t *testing.T) {
	for _, kept := range []bool{false, true} {
		f, err := xmpp.New(xmpp.Config{ID: 2, Domain: "ship.example", Rooms: "conference.ship.example", Own: true, Users: []string{"captain", "mallory"}}, nil)
		check.NoError(check.Fatal(t), err)
		now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
		say := func(conn site.ConnID, format string, args ...any) (got []string) {
			now = now.Add(time.Second)
			for _, o := range f.Step(now, own.Said{Conn: conn, Element: parse(t, fmt.Sprintf(format, args...))}).Orders {
				got = append(got, string(o.(own.Send).XML))
			}
			return got
		}
		for i, user := range []string{"captain", "mallory"} {
			f.Step(now, own.Came{Conn: site.ConnID(i + 1), User: user, Seed: fmt.Appendf(nil, "%016d", i)})
			say(site.ConnID(i+1), "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
		}
		const enter = "<presence to='%s@conference.ship.example/x'><x xmlns='http://jabber.org/protocol/muc'/></presence>"
		const line, leave = "<message to='%s@conference.ship.example' type='groupchat'><body>%06d %s</body></message>", "<presence to='%s@conference.ship.example/x' type='unavailable'/>"
		text := strings.Repeat("x", 8000)
		say(1, enter, "ops")
		if kept {
			say(1, "<iq type='set' id='k' to='ops@conference.ship.example'><query xmlns='http://jabber.org/protocol/muc#owner'><x xmlns='jabber:x:data' type='submit'><field var='muc#roomconfig_persistentroom'><value>1</value></field></x></query></iq>")
		}
		for i := range 60 {
			say(1, line, "ops", i, text)
		}
		if kept {
			say(1, leave, "ops")
		}
		for i := range 2200 {
			other := fmt.Sprintf("room%04d", i)
			say(2, enter, other)
			say(2, line, other, i, text)
			say(2, leave, other)
		}
		count := func(room string) (lines int) {
			got := say(1, "<iq type='set' id='q' to='%s@conference.ship.example'><query xmlns='urn:xmpp:mam:2'><set xmlns='http://jabber.org/protocol/rsm'><max>100</max></set></query></iq>", room)
			return len(got) - 1
		}
		check.Equal(t, "lines of the room of operations", count("ops"), 60)
		check.Equal(t, "lines of the first room that was left", count("room0000"), 0)
		check.Equal(t, "lines of the last", count("room2199"), 1)
	}
}

// BenchmarkOwnRoomLine is a line of a client in a room of fifty that the gateway serves itself.
func BenchmarkOwnRoomLine(b *testing.B) {
	const clients = 50
	cfg := xmpp.Config{ID: 2, Domain: "ship.example", Rooms: "conference.ship.example", Own: true}
	for i := range clients {
		cfg.Users = append(cfg.Users, fmt.Sprint("u", i))
	}
	f, err := xmpp.New(cfg, nil)
	if err != nil {
		b.Fatal(err)
	}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	say := func(conn site.ConnID, text string) int {
		out := f.Step(now, own.Said{Conn: conn, Element: parse(b, text)})
		return len(out.Orders)
	}
	for i := range clients {
		conn := site.ConnID(i + 1)
		f.Step(now, own.Came{Conn: conn, User: cfg.Users[i], Seed: fmt.Appendf(nil, "%016d", i)})
		say(conn, "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>x</resource></bind></iq>")
		say(conn, "<presence to='mess@conference.ship.example/"+cfg.Users[i]+"'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
	}
	line := parse(b, "<message to='mess@conference.ship.example' type='groupchat' id='1'><body>The second boat is back, all are well aboard.</body></message>")
	for b.Loop() {
		now = now.Add(time.Second)
		if got := len(f.Step(now, own.Said{Conn: 1, Element: line}).Orders); got != clients {
			b.Fatalf("%d copies", got)
		}
	}
}
