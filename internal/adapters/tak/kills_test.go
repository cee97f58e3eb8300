package tak_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// campaign is two LANs on iridium-dialup whose units move while the link fails and gateways are killed, and the pictures that
// each LAN shows of the other's units, from a while after each trouble on.
type campaign struct {
	w        *world
	rng      *rand.Rand
	server   *server // of headquarters; nil: the gateway is
	watchers [2]*device
	troubles []trouble

	compared, beyond int
	worst            float64 // metres
}

// trouble is a time in which the link is out or a gateway dead.
type trouble struct {
	what     string
	from, to time.Time
}

// recovers is how long after a trouble the picture may still be wrong because of it.
const recovers = 30 * time.Second

// server is the TAK server of a LAN, like taky: it gives the events of one client to all others, keeps the newest event of each
// unit until that is stale, and gives the kept events to a client that has reported a unit for the first time. The gateway is
// one of its clients.
type server struct {
	w      *world
	gw     *device // the stream of the gateway
	kept   map[string]*cot.Event
	knows  bool // the gateway has reported a unit since it has connected
	viewer *device
}

// serve makes a node's gateway the client of a server.
func (w *world) serve(n *sim.Node) *server {
	s := &server{w: w, kept: map[string]*cot.Event{}, viewer: &device{w: w, node: n}}
	s.gw = &device{w: w, node: n, saw: s.saw}
	w.devices[n.ID] = append(w.devices[n.ID], s.gw)
	s.call()
	return s
}

// call connects the gateway to the server.
func (s *server) call() {
	s.w.next++
	s.gw.conn, s.knows = s.w.next, false
	s.w.DeliverLAN(s.gw.node, site.TAK, tak.Opened{Conn: s.gw.conn, Remote: "10.0.0.1:8087", Server: true})
}

// saw takes an event of the gateway.
func (s *server) saw(e *cot.Event) {
	if s.gw.conn == 0 {
		return
	}
	s.viewer.got = append(s.viewer.got, got{s.w.Now, e})
	if !e.Is("a") {
		return
	}
	if !s.knows && e.Find("takv") != nil {
		s.knows = true
		for _, uid := range slices.Sorted(maps.Keys(s.kept)) {
			if old := s.kept[uid]; s.w.Now.Before(old.Stale) {
				s.w.At(10*time.Millisecond, func() { s.gw.say(string(old.AppendXML(nil))) })
			}
		}
	}
	s.kept[e.UID] = e
}

// hear takes an event of another client.
func (s *server) hear(xml string) {
	e, err := cot.ParseXML([]byte(xml))
	if err != nil {
		s.w.t.Fatal(err)
	}
	s.kept[e.UID] = e
	s.gw.say(xml)
}

// strike plays troubles, each two minutes after the last was over: an outage, a kill ashore, a kill aboard. Besides the units there
// are alerts and a data package, as in the acceptance with real processes. With served, headquarters has a server.
func strike(t *testing.T, seed uint64, served bool, units, troubles int) (c campaign) {
	w := newWorld(t, 2, "iridium-dialup", seed, withFiles)
	c.w, c.rng = w, rand.New(rand.NewPCG(seed, 17))
	ship := w.connect(w.Nodes[1])
	c.watchers[1] = ship
	if served {
		c.server = w.serve(w.Nodes[0])
		c.watchers[0] = c.server.viewer
	} else {
		c.watchers[0] = w.connect(w.Nodes[0])
	}
	w.Run(time.Minute)
	for side := range 2 {
		for i := range units {
			c.march(t, side, i)
		}
	}
	for i := range troubles * 9 {
		w.At(time.Duration(i)*20*time.Second, func() {
			ship.say(w.event(fmt.Sprint("alert-", i), "b-a-o-tbl", `<emergency type="911 Alert">SHIP</emergency>`, time.Hour))
		})
	}
	data, hash := parcel(200_000)
	w.storeOf(w.Nodes[1]).devices[hash] = data
	ship.say(w.offer("dp-1", hash, len(data), ""))
	w.Run(2 * time.Minute)
	w.ask(w.Nodes[0], hash)
	w.Run(time.Minute)
	for i := range troubles {
		w.Run(time.Duration(c.rng.IntN(10_000)) * time.Millisecond)
		w.Run(c.next(i%3) + 2*time.Minute)
	}
	return c
}

// next begins a trouble and returns how long it is.
func (c *campaign) next(kind int) (long time.Duration) {
	w, what := c.w, "an outage"
	if long = 2 * time.Minute; kind == 0 {
		w.Outage(w.Nodes[1], long)
	} else {
		n := w.Nodes[kind-1]
		long, what = 5*time.Second, "a kill of "+n.Name
		if w.crash(n, long); kind == 1 && c.server != nil {
			w.At(long+time.Second, c.server.call)
		}
	}
	c.troubles = append(c.troubles, trouble{what, w.Now, w.Now.Add(long)})
	return long
}

// troubled says whether a trouble is on, or was a moment ago.
func (c *campaign) troubled() bool {
	return slices.ContainsFunc(c.troubles, func(x trouble) bool {
		return !c.w.Now.Before(x.from.Add(-way)) && c.w.Now.Before(x.to.Add(recovers))
	})
}

// march makes the i-th unit of a side move and report.
func (c *campaign) march(t *testing.T, side, i int) {
	w := c.w
	u := newUnit(100*side + i)
	u.lon += float64(side)
	k := &walker{unit: u, rng: rand.New(rand.NewPCG(c.rng.Uint64(), 1)), top: []float64{1.5, 1.8, 6, 12}[i%4]}
	k.speed = k.top / 2
	var say func(string)
	if side == 0 && c.server != nil {
		say = c.server.hear
	} else {
		say = w.connect(w.Nodes[side]).say
	}
	first := w.Now.Add(time.Duration(c.rng.IntN(20_000)) * time.Millisecond)
	due := first
	var said []saying
	var tick func()
	tick = func() {
		if k.step(); !w.Now.Before(due) {
			k.every = k.interval()
			due = w.Now.Add(k.every)
			say(k.report(w.Now))
			said = append(said, saying{*k.unit, w.Now})
			known := w.Now.Sub(first) > time.Minute
			w.At(way, func() {
				if known && !c.troubled() {
					c.compare(t, c.watchers[1-side], said)
				}
				said = said[1:]
			})
		}
		w.At(time.Second, tick)
	}
	w.At(first.Sub(w.Now), tick)
}

// crash kills a gateway for a while; its devices come back a second after it. It connects to a server only when a test makes it do so.
func (w *world) crash(n *sim.Node, d time.Duration) {
	w.Kill(n, d)
	for _, one := range w.devices[n.ID] {
		if one.saw != nil {
			one.conn = 0
		}
	}
	w.At(d+time.Second, func() {
		for _, one := range w.devices[n.ID] {
			if one.conn != 0 && one.saw == nil {
				one.again()
			}
		}
	})
}

// compare compares the shown position of a unit with the true one, like hour.compare.
func (c *campaign) compare(t *testing.T, d *device, list []saying) {
	w, k := c.w, &list[0].unit
	e := d.newest(k.uid)
	off := math.Inf(1)
	if e != nil {
		for _, s := range list {
			s.move(w.Now.Sub(s.at))
			off = min(off, apart(e, s.lat, s.lon))
		}
	}
	c.compared++
	c.worst = max(c.worst, off)
	if off <= 50 {
		return
	}
	c.beyond++
	if e == nil {
		t.Errorf("%s is not shown at %v", k.uid, w.Now.Sub(sim.Epoch))
		return
	}
	after := "before all troubles"
	if len(c.troubles) > 0 {
		last := c.troubles[len(c.troubles)-1]
		after = fmt.Sprint(w.Now.Sub(last.to).Round(time.Second), " after ", last.what)
	}
	t.Logf("%v: %s is shown %.0f m off at node %d, at %.1f m/s, as of %v ago", after, k.uid, off, d.node.ID, k.speed, w.Now.Sub(e.Time).Round(time.Second))
}

// right checks that the picture is as the acceptance with real processes demands.
func (c *campaign) right(t *testing.T) {
	t.Helper()
	t.Logf("%d compared, %d beyond 50 m, worst %.0f m", c.compared, c.beyond, c.worst)
	if c.beyond > c.compared/1000 {
		t.Errorf("from %v after each trouble on %d of %d positions are more than 50 m off, at worst %.0f m", recovers, c.beyond, c.compared, c.worst)
	}
}

// Three outages of two minutes and three kills of each gateway while twenty units move, alerts are raised and a data package crosses:
// from half a minute after each of them on, both pictures are right. Headquarters has a TAK server.
func TestPictureOverOutagesAndKills(t *testing.T) {
	c := strike(t, 1, true, 10, 9)
	c.right(t)
}

// A server to which the gateway connects again gives it the events from before the gateway's death. They are older than the
// events that have come over the link since, and do not turn a far unit into one of this site; a report that is older than the
// last one moves no unit.
func TestOlderReports(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.serve(w.Nodes[0]), w.connect(w.Nodes[1])
	u := newUnit(2)
	u.speed, u.every = 5, 10*time.Minute
	w.Run(time.Minute)
	ship.say(u.report(w.Now))
	w.Run(30 * time.Second)
	old := w.Now
	w.crash(w.Nodes[0], time.Second)
	w.Run(2 * time.Second)
	before := *u
	u.lat += 0.01
	ship.say(u.report(w.Now))
	w.Run(12 * time.Second) // the server keeps a far unit for twenty
	hq.call()
	w.Run(30 * time.Second)
	if !hq.knows {
		t.Fatal("the gateway has told the server of no unit")
	}
	for _, m := range w.adapters[1].Metrics() {
		if m.Name == "tak_near_units" && m.Value != 0 {
			t.Errorf("headquarters has %v units of its own", m.Value)
		}
	}
	if c := w.adapters[1].Counts(); c["loops"] == 0 {
		t.Errorf("the server told nothing again: %v", c)
	}
	ship.say(before.report(old))
	w.Run(30 * time.Second)
	if e := hq.viewer.newest(u.uid); e == nil || apart(e, u.lat, u.lon) > 500 { // it moves on at 5 m/s
		t.Errorf("after an old report headquarters is shown %v", e)
	}
}

// Units of a site that fell silent go stale, also for devices that come after a kill of the gateway that shows them. When the site is
// heard again they are there with its first batch, and nobody has to ask for their events.
func TestUnitsComeBack(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	stands, goes := newUnit(1), newUnit(2)
	stands.every, goes.every, goes.speed = 10*time.Minute, 10*time.Minute, 5
	say := func() {
		goes.move(10 * time.Second)
		ship.say(stands.report(w.Now))
		ship.say(goes.report(w.Now))
		w.Run(10 * time.Second)
	}
	w.Run(time.Minute)
	for range 6 {
		say()
	}
	w.Outage(w.Nodes[1], 10*time.Minute)
	for range 30 {
		say()
	}
	if a, b := hq.newest(stands.uid), hq.newest(goes.uid); a.Stale.After(w.Now) || b.Stale.After(w.Now) {
		t.Errorf("after five minutes without a word they are shown until %v and %v", a.Stale, b.Stale)
	}
	w.crash(w.Nodes[0], time.Second)
	say()
	if late := w.connect(w.Nodes[0]); len(late.got) != 0 {
		t.Errorf("a device that comes meanwhile is given %v", late.got)
	}
	for range 19 {
		say()
	}
	goes.course = 90
	for range 14 {
		say()
	}
	for _, u := range []*unit{stands, goes} {
		if e := hq.newest(u.uid); !e.Stale.After(w.Now) || apart(e, u.lat, u.lon) > 80 {
			t.Errorf("%s is shown %.0f m off until %v at %v", u.callsign, apart(e, u.lat, u.lon), e.Stale, w.Now)
		}
	}
	if c := w.adapters[1].Counts(); c["asked"] != 0 {
		t.Errorf("headquarters asked %d times who they are", c["asked"])
	}
}

// A chat to two devices, one of which is away when the gateway is killed, comes once to each of them.
func TestChatToTwoOverAKill(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	talker := w.connect(w.Nodes[0])
	here, away := w.connect(w.Nodes[1]), w.connect(w.Nodes[1])
	uh, ua := newUnit(2), newUnit(3)
	w.Run(time.Minute)
	talker.say(newUnit(1).report(w.Now))
	here.say(uh.report(w.Now))
	away.say(ua.report(w.Now))
	w.Run(time.Minute)
	away.leave()
	talker.say(w.chat(newUnit(1), "pair", "pair", "m-1", "for you", fmt.Sprintf(`<marti><dest callsign="%s"/><dest callsign="%s"/></marti>`, uh.callsign, ua.callsign)))
	w.Run(time.Minute)
	w.Kill(w.Nodes[1], time.Second)
	w.Run(5 * time.Second)
	for _, d := range []*device{here, away} {
		d.again()
	}
	here.say(uh.report(w.Now))
	w.Run(time.Second)
	away.say(ua.report(w.Now))
	w.Run(time.Minute)
	uid := fmt.Sprintf("GeoChat.%s.pair.m-1", newUnit(1).uid)
	check.Equal(t, "at the device that was there", len(here.of(uid)), 1)
	check.Equal(t, "at the device that was away", len(away.of(uid)), 1)
	w.Kill(w.Nodes[1], time.Second)
	w.Run(5 * time.Second)
	here.again()
	here.say(uh.report(w.Now))
	w.Run(time.Minute)
	check.Equal(t, "after another kill", len(here.of(uid)), 1)
}
