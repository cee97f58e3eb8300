package tak_test

import (
	"aldis/internal/adapters/files"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// world is gateways with a TAK adapter each, and devices on their LANs.
type world struct {
	*sim.World
	t        *testing.T
	adapters map[uint16]*tak.Adapter
	devices  map[uint16][]*device
	next     site.ConnID
	shouts   map[uint16][]tak.Shout
	stores   map[uint16]*store
	hands    map[uint16][]tak.Hand
	tokens   map[uint16][]uint64 // of orders
}

// device is an end of a stream: it sends the texts of the test, and keeps the events that it was given.
type device struct {
	w    *world
	node *sim.Node
	conn site.ConnID
	got  []got
	// offers of version 1 that it was given
	offers int
	saw    func(*cot.Event) // is given the device's events instead of got; nil: none
}

type got struct {
	at    time.Time
	event *cot.Event
}

func newWorld(t *testing.T, nodes int, name string, seed uint64, change ...func(*tak.Config)) *world {
	t.Helper()
	p, err := profile.Load(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	wire, err := profile.Load("wire", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, adapters: map[uint16]*tak.Adapter{}, devices: map[uint16][]*device{}, shouts: map[uint16][]tak.Shout{}, stores: map[uint16]*store{}, hands: map[uint16][]tak.Hand{}, tokens: map[uint16][]uint64{}}
	shared := p.Transport == profile.PMul
	w.World, err = sim.New(sim.Config{Nodes: nodes, Profile: p, Wire: wire, Seed: seed, Group: shared, Down: 3 * time.Second,
		Configure: func(n *sim.Node, g *gateway.Config) {
			cfg := tak.Config{Shared: shared, Twice: p.Free(), RateBps: p.SlowerBps()}
			for _, peer := range g.Peers {
				cfg.Sites = append(cfg.Sites, peer.ID)
			}
			g.Adapters[site.TAK] = func(memories []site.Memory) (gateway.Adapter, error) {
				cfg := cfg
				for _, f := range change { // at each start
					f(&cfg)
				}
				f, err := tak.New(cfg, memories)
				w.adapters[n.ID] = f
				return f, err
			}
		},
		LAN: func(n *sim.Node, out api.Output) {
			for _, o := range out.LAN {
				if o.Adapter == site.TAK {
					w.order(n, o.Order)
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) order(n *sim.Node, o site.Order) {
	w.noteToken(n, o)
	if o, ok := o.(files.Order); ok {
		w.storeOf(n).order(w, n, o)
		return
	}
	if h, ok := o.(tak.Hand); ok {
		w.hands[n.ID] = append(w.hands[n.ID], h)
	}
	if s, ok := o.(tak.Shout); ok {
		w.shouts[n.ID] = append(w.shouts[n.ID], s)
	}
	for _, d := range w.devices[n.ID] {
		xml := tak.Given(o, d.conn)
		if xml == nil || d.conn == 0 { // it has left
			continue
		}
		e, err := cot.ParseXML(xml)
		if err != nil {
			w.t.Errorf("a device was given %s: %v", xml, err)
			continue
		}
		if e.Type == "t-x-takp-v" {
			d.offers++
			continue
		}
		if d.saw != nil {
			d.saw(e)
			continue
		}
		d.got = append(d.got, got{w.Now, e})
	}
}

// connect connects a device to a node's LAN.
func (w *world) connect(n *sim.Node) *device {
	w.next++
	d := &device{w: w, node: n, conn: w.next}
	w.devices[n.ID] = append(w.devices[n.ID], d)
	w.DeliverLAN(n, site.TAK, tak.Opened{Conn: d.conn, Remote: fmt.Sprintf("10.0.0.%d:5000", d.conn)})
	return d
}

// again reconnects a device after its gateway has died.
func (d *device) again() {
	d.w.next++
	d.conn = d.w.next
	d.w.DeliverLAN(d.node, site.TAK, tak.Opened{Conn: d.conn, Remote: fmt.Sprintf("10.0.0.%d:5000", d.conn)})
}

func (d *device) leave() {
	d.w.DeliverLAN(d.node, site.TAK, tak.Closed{Conn: d.conn})
	d.conn = 0
}

func (d *device) say(xml string) {
	if d.node.GW != nil {
		d.w.DeliverLAN(d.node, site.TAK, tak.Heard{Conn: d.conn, Frame: []byte(xml)})
	}
}

// of are the events of this uid that the device was given.
func (d *device) of(uid string) (list []got) {
	for _, g := range d.got {
		if g.event.UID == uid {
			list = append(list, g)
		}
	}
	return list
}

// newest is the last event of this uid.
func (d *device) newest(uid string) *cot.Event {
	if list := d.of(uid); len(list) > 0 {
		return list[len(list)-1].event
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(cot.TimeFormat) }

// event is an event of a type that is not a position.
func (w *world) event(uid, kind, detail string, life time.Duration) string {
	return fmt.Sprintf(`<event version="2.0" uid="%s" type="%s" time="%s" start="%s" stale="%s" how="h-e"><point lat="54.3" lon="10.1" hae="1" ce="2" le="3"/><detail>%s</detail></event>`,
		uid, kind, stamp(w.Now), stamp(w.Now), stamp(w.Now.Add(life)), detail)
}

// A position of a device on one LAN is shown on the other, a ping is answered at once, and no keep-alive crosses.
func TestPositionsCross(t *testing.T) {
	for _, name := range []string{"iridium-dialup", "hf-300"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, name, 7)
			hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
			beside := w.connect(w.Nodes[1])
			w.Run(time.Minute)
			u := newUnit(1)
			ship.say(u.report(w.Now))
			if beside.newest(u.uid) == nil {
				t.Error("the device beside has not got the position")
			}
			if len(ship.got) != 0 {
				t.Errorf("a device was given its own event %s", ship.got[0].event.Canonical())
			}
			if ship.offers != 1 {
				t.Errorf("version 1 was offered %d times", ship.offers)
			}
			ship.say(w.event("ANDROID-ping", "t-x-c-t", "", 10*time.Second))
			if pong := ship.newest("takPong"); pong == nil || pong.Type != "t-x-c-t-r" {
				t.Errorf("the ping was answered with %v", ship.got)
			}
			for range 10 {
				if w.Run(5 * time.Second); hq.newest(u.uid) != nil {
					break
				}
			}
			far := hq.newest(u.uid)
			if far == nil {
				t.Fatal("the position has not crossed")
			}
			if got := far.Callsign(); got != u.callsign {
				t.Errorf("callsign %q", got)
			}
			if lat, _ := far.Point.Lat.Float(); math.Abs(lat-u.lat) > 1e-5 {
				t.Errorf("lat %v, want %v", lat, u.lat)
			}
			for _, g := range hq.got {
				if g.event.UID != u.uid {
					t.Errorf("%s has crossed", g.event.Type)
				}
			}
			late := w.connect(w.Nodes[0])
			if late.newest(u.uid) == nil {
				t.Error("a device that comes later is not given the picture")
			}
			w.Run(10 * time.Minute)
			if last := hq.newest(u.uid); last.Stale.After(w.Now) {
				t.Errorf("at %v the unit that is silent is not stale until %v", w.Now, last.Stale)
			}
		})
	}
}

// Events that are not positions cross once with all their elements; chats for one device go only to it.
func TestEventsCross(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	a, b := w.connect(w.Nodes[0]), w.connect(w.Nodes[0])
	ship := w.connect(w.Nodes[1])
	w.Run(time.Minute)
	ua, ub := newUnit(1), newUnit(2)
	a.say(ua.report(w.Now))
	b.say(ub.report(w.Now))
	w.Run(time.Minute)
	marker := w.event("m-1", "b-m-p-s-m", `<contact callsign="M1"/><strange x="1">text</strange><color argb="-1"/>`, time.Hour)
	ship.say(marker)
	chat := w.event("GeoChat.1", "b-t-f", `<__chat chatroom="FALCON 2" id="x" senderCallsign="SHIP"/><remarks>hello</remarks><marti><dest callsign="FALCON 2"/></marti>`, time.Hour)
	ship.say(chat)
	w.Run(time.Minute)
	want, _ := cot.ParseXML([]byte(marker))
	for _, d := range []*device{a, b} {
		if list := d.of("m-1"); len(list) != 1 || list[0].event.Canonical() != want.Canonical() {
			t.Errorf("the marker came as %v", list)
		}
	}
	if len(a.of("GeoChat.1")) != 0 {
		t.Error("words for another were given to a device")
	}
	list := b.of("GeoChat.1")
	if len(list) != 1 {
		t.Fatalf("words for a device came %d times", len(list))
	}
	if list[0].event.Find("marti") != nil {
		t.Error("the address was not taken off")
	}
	if late := w.connect(w.Nodes[0]); len(late.of("m-1")) != 1 || len(late.of("GeoChat.1")) != 0 {
		t.Error("a device that comes later is not given what is on the map, and no more")
	}
	w.Run(2 * time.Hour)
	if late := w.connect(w.Nodes[0]); len(late.of("m-1")) != 0 {
		t.Error("a marker that is stale is given")
	}
}

// A device that has a stream to each machine of a site is one device: its events are taken once and do not come back to it, events for it
// go on both streams, and another device with its uid is refused.
func TestDeviceByBothMachines(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7, func(c *tak.Config) { c.Beside = []string{"10.0.0.9", "10.0.0.2"} })
	direct, passed, other := w.connect(w.Nodes[0]), w.connect(w.Nodes[0]), w.connect(w.Nodes[0])
	ship := w.connect(w.Nodes[1])
	w.Run(time.Minute)
	u := newUnit(1)
	for range 3 {
		for _, d := range []*device{direct, passed} {
			d.say(u.report(w.Now))
		}
		w.Run(20 * time.Second)
	}
	passed.got = nil // its first report came back before it had identified itself
	for _, d := range []*device{direct, passed} {
		d.say(w.event("m-1", "b-m-p-s-m", "", time.Hour))
	}
	ship.say(w.event("GeoChat.1", "b-t-f", `<__chat chatroom="FALCON 1" id="x" senderCallsign="SHIP"/><remarks>hello</remarks><marti><dest callsign="FALCON 1"/></marti>`, time.Hour))
	other.say(u.report(w.Now.Add(time.Second)))
	w.Run(time.Minute)
	check.Equal(t, "markers at the other site", len(ship.of("m-1")), 1)
	check.Equal(t, "markers at another device", len(other.of("m-1")), 1)
	for _, d := range []*device{direct, passed} {
		check.Equal(t, "what comes back", len(d.of("m-1"))+len(d.of(u.uid)), 0)
		check.Equal(t, "words for it", len(d.of("GeoChat.1")), 1)
	}
	check.Equal(t, "somebody else", w.adapters[1].Counts()["refused claimed"], 1)
}

// Bad events are refused by name, counted and logged; the true picture stays.
func TestBadDevices(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	thief := w.connect(w.Nodes[1])
	w.Run(time.Minute)
	u := newUnit(1)
	ship.say(u.report(w.Now))
	w.Run(10 * time.Second)
	wrong := *u
	wrong.lat = -33
	thief.say(wrong.report(w.Now))                                                                      // another's uid
	ship.say(strings.Replace(u.report(w.Now.Add(time.Second)), `lat="`, `lat="9`, 1))                   // outside of the world
	ship.say(strings.Replace(u.report(w.Now.Add(2*time.Second)), `time="`, `tame="`, 1))                // no time
	ship.say("<!DOCTYPE x>" + u.report(w.Now.Add(3*time.Second)))                                       // a document type
	ship.say(strings.Replace(u.report(w.Now), "<detail>", "<detail>"+strings.Repeat("<a>", 10_000), 1)) // deep
	w.Run(30 * time.Second)
	if lat, _ := hq.newest(u.uid).Point.Lat.Float(); math.Abs(lat-u.lat) > 1e-5 {
		t.Errorf("the far picture has lat %v, want %v", lat, u.lat)
	}
	counts := w.adapters[2].Counts()
	for _, what := range []string{"refused claimed", "refused nowhere", "refused no_time", "refused doctype", "refused too_deep"} {
		if counts[what] != 1 {
			t.Errorf("%s was counted %d times in %v", what, counts[what], counts)
		}
	}
	// A clock that is a day ahead, or behind: the unit stays where it is reported, and goes stale all the same.
	for _, off := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		u.lat += 0.01
		ship.say(u.report(w.Now.Add(off)))
		w.Run(30 * time.Second)
		e := hq.newest(u.uid)
		if lat, _ := e.Point.Lat.Float(); math.Abs(lat-u.lat) > 1e-5 {
			t.Errorf("with a clock off by %v lat %v, want %v", off, lat, u.lat)
		}
		if e.Time.Sub(w.Now).Abs() > time.Minute || e.Stale.Sub(w.Now).Abs() > 5*time.Minute {
			t.Errorf("with a clock off by %v the far side shows %v until %v at %v", off, e.Time, e.Stale, w.Now)
		}
	}
	if counts := w.adapters[2].Counts(); counts["clock"] != 2 {
		t.Errorf("a wrong clock was counted %d times", counts["clock"])
	}
}

// chat is a chat in the form in which ATAK sends it.
func (w *world) chat(from *unit, room, id, message, text, more string) string {
	f := stamp(w.Now)
	return fmt.Sprintf(`<event version="2.0" uid="GeoChat.%s.%s.%s" type="b-t-f" time="%s" start="%s" stale="%s" how="h-g-i-g-o"><point lat="54.323312" lon="10.139411" hae="9999999.0" ce="9999999.0" le="9999999.0"/><detail><__chat parent="RootContactGroup" groupOwner="false" messageId="%s" chatroom="%s" id="%s" senderCallsign="%s"><chatgrp uid0="%s" uid1="%s" id="%s"/></__chat><link uid="%s" type="a-f-G-U-C" relation="p-p"/><remarks source="BAO.F.ATAK.%s" to="%s" time="%s">%s</remarks>%s</detail></event>`,
		from.uid, id, message, f, f, stamp(w.Now.Add(24*time.Hour)), message, room, id, from.callsign, from.uid, id, id, from.uid, from.uid, id, f, text, more)
}

// If chat may be open, it is one message for all sites, which each of them can read.
func TestWordsForAGroup(t *testing.T) {
	for _, open := range []bool{false, true} {
		w := newWorld(t, 3, "iridium-dialup", 7, func(c *tak.Config) { c.Open = open })
		var devices []*device
		for i := range 3 {
			d, u := w.connect(w.Nodes[i]), newUnit(i+1)
			devices = append(devices, d)
			w.Run(30 * time.Second)
			d.say(u.report(w.Now))
		}
		w.Run(time.Minute)
		devices[1].say(w.chat(newUnit(2), "All Chat Rooms", "All Chat Rooms", "m-1", "at the buoy", ""))
		w.Run(time.Minute)
		want := 2
		if open {
			want = 1
		}
		if got := w.adapters[2].Counts()["chats"]; got != want {
			t.Errorf("open %v: %d messages, want %d", open, got, want)
		}
		for _, i := range []int{0, 2} {
			if n := len(devices[i].of(fmt.Sprintf("GeoChat.%s.All Chat Rooms.m-1", newUnit(2).uid))); n != 1 {
				t.Errorf("open %v: it came %d times to device %d", open, n, i)
			}
		}
	}
}

// received is a receipt in the form in which ATAK sends it.
func (w *world) received(by *unit, kind, message, room string) string {
	f := stamp(w.Now)
	return fmt.Sprintf(`<event version="2.0" uid="%s" type="%s" time="%s" start="%s" stale="%s" how="h-g-i-g-o"><point lat="0" lon="0" hae="9999999.0" ce="9999999.0" le="9999999.0"/><detail><__chatreceipt parent="RootContactGroup" groupOwner="false" messageId="%s" chatroom="%s" id="%s" senderCallsign="%s"><chatgrp uid0="%s" uid1="x" id="%s"/></__chatreceipt><link uid="%s" type="a-f-G-U-C" relation="p-p"/></detail></event>`,
		message, kind, f, f, stamp(w.Now.Add(24*time.Hour)), message, room, room, by.callsign, by.uid, room, by.uid)
}

// Chats arrive once, also when the gateways are killed, and the sender gets the receipts of those who have them.
func TestWords(t *testing.T) {
	const message = "5b7a1d3e-0f2c-4d8e-9a51-6f2b8c7d9e10"
	w := newWorld(t, 2, "iridium-dialup", 7)
	a, b := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	ua, ub := newUnit(1), newUnit(2)
	ua.every, ub.every = 5*time.Minute, 5*time.Minute
	w.Run(time.Minute)
	a.say(ua.report(w.Now))
	b.say(ub.report(w.Now))
	w.Run(30 * time.Second)
	words := w.chat(ub, "All Chat Rooms", "All Chat Rooms", message, "at the buoy", "")
	b.say(words)
	if p := b.newest(message); p == nil || p.Type != "b-t-f-p" {
		t.Errorf("the sender was not told that the words wait: %v", p)
	}
	w.Kill(w.Nodes[1], time.Second)
	w.Run(2 * time.Second)
	b.again()
	b.say(ub.report(w.Now))
	w.Run(time.Minute)
	w.Kill(w.Nodes[0], time.Second)
	w.Run(2 * time.Second)
	a.again()
	a.say(ua.report(w.Now))
	w.Run(time.Minute)
	want, _ := cot.ParseXML([]byte(words))
	list := a.of(want.UID)
	if len(list) != 1 || list[0].event.Canonical() != want.Canonical() {
		t.Fatalf("the words came %d times: %v", len(list), list)
	}
	for _, kind := range []string{"b-t-f-d", "b-t-f-r"} {
		a.say(w.received(ua, kind, message, "All Chat Rooms"))
		w.Run(20 * time.Second)
		r := b.newest(message)
		if r == nil || r.Type != kind || r.Find("link").Get("uid") != ua.uid || r.Find("__chatreceipt").Get("senderCallsign") != ua.callsign {
			t.Errorf("for %s the sender has %v", kind, r)
		}
	}
	if counts := w.adapters[1].Counts(); counts["receipts"] != 2 || counts["carried"] != 0 {
		t.Errorf("receipts went otherwise: %v", counts)
	}
	// Chats for a device that is away wait for it.
	b.say(w.chat(ub, ua.callsign, ua.uid, "m-2", "for you", fmt.Sprintf(`<marti><dest callsign="%s"/></marti>`, ua.callsign)))
	a.leave()
	beside := w.connect(w.Nodes[0])
	w.Run(time.Minute)
	a.again()
	a.say(ua.report(w.Now))
	w.Run(time.Second)
	uid := fmt.Sprintf("GeoChat.%s.%s.m-2", ub.uid, ua.uid)
	if got := len(a.of(uid)); got != 1 {
		t.Errorf("words that waited came %d times", got)
	}
	if len(beside.of(uid)) != 0 {
		t.Error("words for one were given to another")
	}
}

// The sender of a chat may be a device of the LAN's own server: its receipts go there, addressed by callsign, because taky knows no
// other address.
func TestReceiptsThroughAServer(t *testing.T) {
	const message = "5b7a1d3e-0f2c-4d8e-9a51-6f2b8c7d9e10"
	w := newWorld(t, 2, "iridium-dialup", 7)
	w.next++
	server := &device{w: w, node: w.Nodes[0], conn: w.next}
	w.devices[1] = append(w.devices[1], server)
	w.DeliverLAN(w.Nodes[0], site.TAK, tak.Opened{Conn: server.conn, Remote: "10.0.0.1:8087", Server: true})
	ship := w.connect(w.Nodes[1])
	ua, ub := newUnit(1), newUnit(2)
	w.Run(time.Minute)
	server.say(ua.report(w.Now))
	ship.say(ub.report(w.Now))
	w.Run(30 * time.Second)
	server.say(w.chat(ua, "All Chat Rooms", "All Chat Rooms", message, "at the buoy", ""))
	w.Run(30 * time.Second)
	ship.say(w.received(ub, "b-t-f-d", message, "All Chat Rooms"))
	w.Run(20 * time.Second)
	r := server.newest(message)
	if r == nil || r.Type != "b-t-f-d" {
		t.Fatalf("the server has %v", r)
	}
	if dests := r.Dests(); len(dests) != 1 || dests[0].Callsign != ua.callsign {
		t.Errorf("the receipt is for %v", dests)
	}
}

// A unit that stands is still shown after kill -9 of the gateway that shows it, although its own gateway has restarted before and
// does not report it again; its chats arrive.
func TestUnitThatStandsOverARestart(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	a, b := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	ub := newUnit(2)
	ub.every = 5 * time.Minute
	stand := func(d time.Duration) {
		for range int(d / (3 * time.Minute)) {
			b.say(ub.report(w.Now))
			w.Run(3 * time.Minute)
		}
	}
	w.Run(time.Minute)
	w.Kill(w.Nodes[1], time.Second)
	w.Run(5 * time.Second)
	b.again()
	stand(6 * time.Minute)
	w.Kill(w.Nodes[0], time.Second)
	w.Run(5 * time.Second)
	a.again()
	stand(6 * time.Minute)
	if e := a.newest(ub.uid); e == nil || !e.Stale.After(w.Now) {
		t.Errorf("the unit that stands is shown as %v", e)
	}
	words := w.chat(ub, "All Chat Rooms", "All Chat Rooms", "m-9", "at the buoy", "")
	b.say(words)
	w.Run(time.Minute)
	want, _ := cot.ParseXML([]byte(words))
	if n := len(a.of(want.UID)); n != 1 {
		t.Errorf("its words came %d times", n)
	}
}

// An alert goes before everything else; its cancel replaces it while it waits.
func TestAlerts(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	w.Run(time.Minute)
	for i := range 40 { // half a minute of work for the link
		ship.say(w.event(fmt.Sprint("marker-", i), "b-m-p-s-m", fmt.Sprintf(`<contact callsign="M%d"/><remarks>%x</remarks>`, i, [200]byte{byte(i), byte(i * 7), 40: byte(i * 3)}), time.Hour))
	}
	w.Run(time.Second)
	ship.say(w.event("u-9-1-1", "b-a-o-tbl", `<emergency type="911 Alert">FALCON 1</emergency>`, time.Hour))
	begun := w.Now
	for w.Now.Sub(begun) < time.Minute && hq.newest("u-9-1-1") == nil {
		w.Run(100 * time.Millisecond)
	}
	if took := w.Now.Sub(begun); took > 5*time.Second {
		t.Errorf("an alert took %v behind 40 markers", took)
	}
	w.Run(5 * time.Minute)
	w.Outage(w.Nodes[1], 2*time.Minute)
	w.Run(10 * time.Second)
	ship.say(w.event("v-9-1-1", "b-a-o-tbl", `<emergency type="911 Alert">FALCON 2</emergency>`, time.Hour))
	w.Run(30 * time.Second)
	ship.say(w.event("v-9-1-1", "b-a-o-can", `<emergency cancel="true">FALCON 2</emergency>`, time.Hour))
	w.Run(5 * time.Minute)
	if e := hq.newest("v-9-1-1"); e == nil || e.Type != "b-a-o-can" {
		t.Errorf("the cancel came as %v", e)
	}
	t.Logf("the alert that was cancelled before the link was back came %d times", len(hq.of("v-9-1-1"))-1)
}

// The mesh, the devices with streams and the far site see each other, each event once; the mesh is sent the lowest
// version that its members read.
func TestMesh(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7, func(c *tak.Config) { c.Mesh = true })
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	u, far := newUnit(1), newUnit(2)
	say := func(data []byte) {
		w.DeliverLAN(w.Nodes[1], site.TAK, tak.Overheard{Remote: "10.0.1.9:6969", Data: data})
	}
	shouted := func(uid string) (xml, proto int) {
		for _, s := range w.shouts[2] {
			e, _, err := cot.ParseDatagram(s.Data)
			switch {
			case err != nil:
				t.Errorf("%q was said to the mesh: %v", s.Data, err)
			case e == nil || e.UID != uid:
			case s.Data[0] == '<':
				xml++
			default:
				proto++
			}
		}
		return xml, proto
	}
	w.Run(time.Minute)
	say([]byte(u.report(w.Now)))
	if list := ship.of(u.uid); len(list) != 1 {
		t.Errorf("a device with a stream was given the mesh's event %d times", len(list))
	}
	ship.say(u.report(w.Now)) // the same report, also by its stream
	hq.say(far.report(w.Now))
	w.Run(20 * time.Second)
	if hq.newest(u.uid) == nil {
		t.Error("a unit of the mesh has not crossed")
	}
	before, proto := shouted(far.uid)
	if before == 0 || proto != 0 {
		t.Errorf("a far unit was said to a mesh of XML %d times in XML, %d in version 1", before, proto)
	}
	if xml, proto := shouted(u.uid); xml+proto != 0 {
		t.Error("the mesh was told what it said itself")
	}
	var none *cot.Event
	say(none.AppendDatagram(nil, &cot.Control{Least: 1, Most: 1, UID: u.uid}))
	far.lat += 0.01
	hq.say(far.report(w.Now))
	w.Run(20 * time.Second)
	if xml, proto := shouted(far.uid); xml != before || proto == 0 {
		t.Errorf("a mesh of version 1 was told %d times in XML, %d in version 1", xml, proto)
	}
	ship.say(w.event("chat-1", "b-t-f", `<__chat id="x"/>`, time.Hour))
	chats := 0
	for _, s := range w.shouts[2] {
		if s.Chat {
			chats++
		}
	}
	if chats != 1 {
		t.Errorf("words were said %d times to the group for them", chats)
	}
	say([]byte("<event"))
	if counts := w.adapters[2].Counts(); counts["refused syntax"] != 1 {
		t.Errorf("nonsense on the mesh: %v", counts)
	}
}

// On a radio net one of three sites is silent. It sees the others' units within their age and their alerts within 15 s of an idle
// net, and is not asked for anything.
func TestSilentShip(t *testing.T) {
	w := newWorld(t, 3, "hf-300", 7)
	hq, quiet := w.connect(w.Nodes[0]), w.connect(w.Nodes[2])
	w.Run(5 * time.Minute)
	w.Give(w.Nodes[2], api.Silence{On: true, Announce: true})
	w.Run(time.Minute)
	u := newUnit(1)
	u.speed, u.course, u.every = 3, 90, 20*time.Second
	worst, seen := 0.0, 0
	for i := range 90 {
		hq.say(u.report(w.Now))
		w.Run(20 * time.Second)
		u.move(20 * time.Second)
		if i%30 == 29 {
			u.course += 60
		}
		if e := quiet.newest(u.uid); e != nil && i > 6 {
			seen++
			worst = max(worst, apart(e, u.lat, u.lon))
			if !e.Stale.After(w.Now) {
				t.Errorf("after %d reports the unit is stale", i)
			}
		}
	}
	t.Logf("seen %d of 83 times, at worst %.0f m off", seen, worst)
	if seen != 83 {
		t.Errorf("the silent ship saw the unit %d of 83 times", seen)
	}
	if worst > 3*5*60 {
		t.Errorf("the silent ship saw it %.0f m from where it was", worst)
	}
	w.Run(time.Minute)
	hq.say(w.event("u-9-1-1", "b-a-o-tbl", `<emergency type="911 Alert">FALCON 1</emergency>`, time.Hour))
	begun := w.Now
	for w.Now.Sub(begun) < 2*time.Minute && quiet.newest("u-9-1-1") == nil {
		w.Run(100 * time.Millisecond)
	}
	t.Logf("the alert took %v", w.Now.Sub(begun))
	if took := w.Now.Sub(begun); took > 15*time.Second {
		t.Errorf("an alert took %v to the silent ship", took)
	}
}

// A unit that leaves while its gateway is down goes stale at the far site, although others there live on.
func TestUnitGoneOverARestart(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq := w.connect(w.Nodes[0])
	a, b := w.connect(w.Nodes[1]), w.connect(w.Nodes[1])
	ua, ub := newUnit(1), newUnit(2)
	ua.every, ub.every = 10*time.Minute, 10*time.Minute
	w.Run(time.Minute)
	a.say(ua.report(w.Now))
	b.say(ub.report(w.Now))
	w.Run(30 * time.Second)
	w.Kill(w.Nodes[1], time.Second)
	w.Run(5 * time.Second)
	a.again()
	for range 10 {
		a.say(ua.report(w.Now))
		w.Run(30 * time.Second)
	}
	if e := hq.newest(ua.uid); !e.Stale.After(w.Now) {
		t.Error("the unit that came back is stale")
	}
	if e := hq.newest(ub.uid); e.Stale.After(w.Now) {
		t.Errorf("the unit that is gone is shown until %v at %v", e.Stale, w.Now)
	}
}
