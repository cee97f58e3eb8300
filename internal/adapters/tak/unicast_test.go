package tak_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/site"
)

// meshed is a ship with a mesh, on which a device has an endpoint, and headquarters with a device that has a stream.
type meshed struct {
	*world
	hq   *device
	a, m *unit // at headquarters, on the mesh
}

const meshEndpoint = "10.0.1.9:4242"

func newMeshed(t *testing.T) *meshed {
	w := newWorld(t, 2, "iridium-dialup", 7, func(c *tak.Config) { c.Mesh, c.Unicast = true, "10.0.1.1:4242" })
	x := &meshed{world: w, hq: w.connect(w.Nodes[0]), a: newUnit(1), m: newUnit(2)}
	x.a.every, x.m.every = 5*time.Minute, 5*time.Minute
	w.Run(time.Minute)
	x.hq.say(x.a.report(w.Now))
	x.report(meshEndpoint + ":tcp")
	w.Run(30 * time.Second)
	return x
}

// report makes the device on the mesh report its position, and its endpoint.
func (x *meshed) report(endpoint string) {
	text := strings.Replace(x.m.report(x.Now), "*:-1:stcp", endpoint, 1)
	x.DeliverLAN(x.Nodes[1], site.TAK, tak.Overheard{Remote: "10.0.1.9:50000", Data: []byte(text)})
}

// direct makes it send an event to the gateway's endpoint.
func (x *meshed) direct(text string) {
	x.DeliverLAN(x.Nodes[1], site.TAK, tak.Direct{Remote: "10.0.1.9:50001", Frame: []byte(text)})
}

// handed are the events of this uid that were on their way to its endpoint, the number of the last, and its type.
func (x *meshed) handed(t *testing.T, uid string) (count int, id uint64, last *cot.Event) {
	t.Helper()
	for _, h := range x.hands[2] {
		e, err := cot.ParseXML(h.XML)
		if err != nil || h.To != meshEndpoint {
			t.Errorf("%q for %s: %v", h.XML, h.To, err)
		} else if e.UID == uid {
			count, id, last = count+1, h.ID, e
		}
	}
	return count, id, last
}

func endpointOf(e *cot.Event) string {
	if e == nil {
		return "no event"
	}
	return e.Find("contact").Get("endpoint")
}

// Units that are not on the mesh have the gateway's endpoint there; for devices with streams, far ones are behind the server.
func TestEndpoints(t *testing.T) {
	x := newMeshed(t)
	beside := x.connect(x.Nodes[1])
	b := newUnit(3)
	beside.say(b.report(x.Now))
	x.Run(10 * time.Second)
	for _, uid := range []string{x.a.uid, b.uid} {
		shown := ""
		for _, s := range x.shouts[2] {
			if e, _, _ := cot.ParseDatagram(s.Data); e != nil && e.UID == uid {
				shown = endpointOf(e)
			}
		}
		if shown != "10.0.1.1:4242:tcp" {
			t.Errorf("%s has the endpoint %q on the mesh", uid, shown)
		}
	}
	if got := endpointOf(x.hq.newest(x.m.uid)); got != "*:-1:stcp" {
		t.Errorf("the mesh's device has the endpoint %q at headquarters", got)
	}
	late := x.connect(x.Nodes[0])
	if got := endpointOf(late.newest(x.m.uid)); got != "*:-1:stcp" {
		t.Errorf("a device that came later was given the endpoint %q", got)
	}
}

// A chat that a device of the mesh sends to the endpoint of a far unit reaches only that unit, once, and the receipts come back to the
// endpoint of the device that sent it.
func TestDirectWords(t *testing.T) {
	const message = "5b7a1d3e-0f2c-4d8e-9a51-6f2b8c7d9e10"
	x := newMeshed(t)
	beside := x.connect(x.Nodes[0])
	words := x.chat(x.m, x.a.callsign, x.a.uid, message, "for you alone", "")
	x.direct(words)
	x.direct(words)
	x.Run(30 * time.Second)
	want, _ := cot.ParseXML([]byte(words))
	list := x.hq.of(want.UID)
	if len(list) != 1 || list[0].event.Canonical() != want.Canonical() {
		t.Fatalf("the words came %d times: %v", len(list), list)
	}
	if len(beside.of(want.UID)) != 0 {
		t.Error("words for one were given to another")
	}
	n, id, p := x.handed(t, message)
	if n != 1 || p.Type != "b-t-f-p" {
		t.Errorf("the sender was told %d times that the words wait: %v", n, p)
	}
	x.DeliverLAN(x.Nodes[1], site.TAK, tak.Handed{ID: id})
	for i, kind := range []string{"b-t-f-d", "b-t-f-r"} {
		x.hq.say(x.received(x.a, kind, message, x.a.callsign))
		x.Run(20 * time.Second)
		n, id, r := x.handed(t, message)
		if n != i+2 || r.Type != kind || r.Find("link").Get("uid") != x.a.uid {
			t.Errorf("for %s the sender has %v, the %d. time", kind, r, n)
		}
		x.DeliverLAN(x.Nodes[1], site.TAK, tak.Handed{ID: id})
	}
	if c := x.adapters[2].Counts(); c["twice"] != 1 || c["unicast_in"] != 2 || c["unicast_out"] != 3 || c["unicast_failed"] != 0 {
		t.Errorf("counts %v", c)
	}
}

// Chats for a device of the mesh come to its endpoint. A device that does not answer is tried again; a chat is done when the device has
// taken it, and not given twice.
func TestWordsToTheMesh(t *testing.T) {
	x := newMeshed(t)
	uid := fmt.Sprintf("GeoChat.%s.%s.m-3", x.a.uid, x.m.uid)
	x.hq.say(x.chat(x.a, x.m.callsign, x.m.uid, "m-3", "for you", fmt.Sprintf(`<marti><dest callsign="%s"/></marti>`, x.m.callsign)))
	x.Run(20 * time.Second)
	n, id, e := x.handed(t, uid)
	if n != 1 || e.Find("marti") != nil {
		t.Fatalf("the words were on their way %d times: %v", n, e)
	}
	x.DeliverLAN(x.Nodes[1], site.TAK, tak.Handed{ID: id, Err: "connection refused"})
	x.Run(20 * time.Second)
	if n, _, _ := x.handed(t, uid); n != 1 {
		t.Errorf("they were tried %d times within half a minute", n)
	}
	x.Run(15 * time.Second)
	n, id, _ = x.handed(t, uid)
	if n != 2 {
		t.Fatalf("they were tried %d times", n)
	}
	x.DeliverLAN(x.Nodes[1], site.TAK, tak.Handed{ID: id})
	x.DeliverLAN(x.Nodes[1], site.TAK, tak.Handed{ID: id})
	x.Run(2 * time.Minute)
	if n, _, _ := x.handed(t, uid); n != 2 {
		t.Errorf("they were given again: %d times in all", n)
	}
	x.Kill(x.Nodes[1], time.Second)
	x.Run(2 * time.Second)
	x.report(meshEndpoint + ":tcp")
	x.Run(time.Minute)
	if n, _, _ := x.handed(t, uid); n != 2 {
		t.Errorf("after a restart they were given again: %d times in all", n)
	}
	// A receipt of the device comes by the gateway's endpoint.
	x.direct(x.received(x.m, "b-t-f-d", "m-3", x.m.callsign))
	x.Run(20 * time.Second)
	if r := x.hq.newest("m-3"); r == nil || r.Type != "b-t-f-d" || r.Find("link").Get("uid") != x.m.uid {
		t.Errorf("the sender has %v", r)
	}
}

// Nobody can make the gateway call another host or a service; a device that has named no endpoint gets its events in the group.
func TestEndpointsElsewhere(t *testing.T) {
	for _, endpoint := range []string{"10.0.1.77:4242:tcp", "10.0.1.9:22:tcp", "10.0.1.9:99999:tcp", "10.0.1.9::tcp", "*:-1:stcp", "[10.0.1.9]x:4242:tcp"} {
		x := newMeshed(t)
		x.report(endpoint)
		before := len(x.shouts[2])
		x.hq.say(x.chat(x.a, x.m.callsign, x.m.uid, "m-4", "for you", fmt.Sprintf(`<marti><dest uid="%s"/></marti>`, x.m.uid)))
		x.Run(20 * time.Second)
		if len(x.hands[2]) != 0 {
			t.Errorf("%s: the gateway has called %s", endpoint, x.hands[2][0].To)
		}
		heard := 0
		for _, s := range x.shouts[2][before:] {
			if s.Chat && strings.Contains(string(s.Data), "m-4") {
				heard++
			}
		}
		if heard != 1 {
			t.Errorf("%s: the group has heard the words %d times", endpoint, heard)
		}
	}
}

// An event to the gateway's endpoint that names nobody is refused by name, like unreadable ones.
func TestDirectToNobody(t *testing.T) {
	x := newMeshed(t)
	x.direct(x.event("spot", "b-m-p-s-m", `<contact callsign="spot"/>`, time.Hour))
	x.direct("<event")
	x.direct(x.event("ping", "t-x-c-t", "", time.Minute))
	x.Run(20 * time.Second)
	if c := x.adapters[2].Counts(); c["refused nobody"] != 1 || c["refused syntax"] != 1 || c["local"] != 1 {
		t.Errorf("counts %v", c)
	}
	if x.hq.newest("spot") != nil {
		t.Error("what was for one was given to all")
	}
	// As many devices as are allowed; then no more are known, and nothing breaks.
	for i := range 1100 {
		u := newUnit(1000 + i)
		text := strings.Replace(u.report(x.Now), "*:-1:stcp", fmt.Sprintf("10.1.%d.%d:4242:tcp", i/250, i%250), 1)
		x.DeliverLAN(x.Nodes[1], site.TAK, tak.Overheard{Remote: fmt.Sprintf("10.1.%d.%d:6969", i/250, i%250), Data: []byte(text)})
	}
}

// If a chat is for two devices, the one that has it does not get it again when another device comes.
func TestWordsForTwo(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	a, away, from := newUnit(1), newUnit(2), newUnit(3)
	a.every, from.every = 5*time.Minute, 5*time.Minute
	w.Run(time.Minute)
	hq.say(a.report(w.Now))
	ship.say(from.report(w.Now))
	w.Run(30 * time.Second)
	ship.say(w.chat(from, "Cyan", "Cyan", "m-5", "for two", fmt.Sprintf(`<marti><dest uid="%s"/><dest uid="%s"/></marti>`, a.uid, away.uid)))
	w.Run(20 * time.Second)
	w.connect(w.Nodes[0])
	later := w.connect(w.Nodes[0])
	later.say(away.report(w.Now))
	uid := fmt.Sprintf("GeoChat.%s.Cyan.m-5", from.uid)
	if n, m := len(hq.of(uid)), len(later.of(uid)); n != 1 || m != 1 {
		t.Errorf("the words came %d times to one, %d times to the other", n, m)
	}
}
