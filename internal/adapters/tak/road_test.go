package tak_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/site"
)

// The tags that a TAK server gives each event stay on its LAN: a report that differs only by them is no news, and chats with
// such tags cross in their short form.
func TestFlowTags(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	u := newUnit(1)
	u.speed = 0
	w.Run(time.Minute)
	tagged := func(text string) string {
		return strings.Replace(text, "</detail>", fmt.Sprintf(`<_flow-tags_ TAK-Server-9c1d="%s"/></detail>`, stamp(w.Now)), 1)
	}
	ship.say(tagged(u.report(w.Now)))
	w.Run(30 * time.Second)
	begun, _ := w.Octets(w.Nodes[1])
	for range 20 {
		ship.say(tagged(u.report(w.Now)))
		w.Run(10 * time.Second)
	}
	ended, _ := w.Octets(w.Nodes[1])
	each := (ended - begun) / 20
	t.Logf("%d octets a report", each)
	if each > 20 {
		t.Errorf("a report of a unit that stands costs %d octets", each)
	}
	if e := hq.newest(u.uid); e == nil || e.Find("_flow-tags_") != nil {
		t.Errorf("headquarters is shown %v", e)
	}
	ship.say(tagged(w.chat(u, "All Chat Rooms", "All Chat Rooms", "m-6", "at the buoy", "")))
	w.Run(20 * time.Second)
	if c := w.adapters[2].Counts(); c["chats"] != 1 || c["carried"] != 0 {
		t.Errorf("words went otherwise: %v", c)
	}
}

// Chats for a device behind the LAN's own server are given to that server, under the device's callsign; chats from there are
// not given back.
func TestWordsThroughServer(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	ship := w.connect(w.Nodes[1])
	server := &device{w: w, node: w.Nodes[0], conn: 900}
	w.devices[1] = append(w.devices[1], server)
	w.DeliverLAN(w.Nodes[0], site.TAK, tak.Opened{Conn: server.conn, Remote: "10.0.0.1:8087", Server: true})
	a, b, c := newUnit(1), newUnit(2), newUnit(3)
	a.every, b.every, c.every = 5*time.Minute, 5*time.Minute, 5*time.Minute
	w.Run(time.Minute)
	server.say(a.report(w.Now))
	server.say(c.report(w.Now))
	ship.say(b.report(w.Now))
	w.Run(30 * time.Second)
	for i, dest := range []string{fmt.Sprintf(`callsign="%s"`, a.callsign), fmt.Sprintf(`uid="%s"`, a.uid)} {
		message := fmt.Sprintf("m-%d", 20+i)
		ship.say(w.chat(b, a.callsign, a.uid, message, "for you", "<marti><dest "+dest+"/></marti>"))
		w.Run(20 * time.Second)
		list := server.of(fmt.Sprintf("GeoChat.%s.%s.%s", b.uid, a.uid, message))
		if len(list) != 1 {
			t.Fatalf("the server was given words for %s %d times", dest, len(list))
		}
		if d := list[0].event.Dests(); len(d) != 1 || d[0].Callsign != a.callsign {
			t.Errorf("they are for %v", d)
		}
	}
	before := len(server.got)
	server.say(w.chat(c, a.callsign, a.uid, "m-30", "beside", fmt.Sprintf(`<marti><dest callsign="%s"/></marti>`, a.callsign)))
	w.Run(20 * time.Second)
	for _, g := range server.got[before:] {
		if g.event.Is("b-t-f") {
			t.Errorf("the server was given its own words: %v", g.event)
		}
	}
	if c := w.adapters[1].Counts(); c["chats"]+c["carried"]+c["dest_unknown"] != 0 {
		t.Errorf("words between two devices of one LAN have crossed: %v", c)
	}
}

// Chats for a team reach each of its devices once, here and at the far site, and no other.
func TestWordsForTeam(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	var all []*device
	report := func(i int, color string) *device {
		u := newUnit(i)
		u.every = 5 * time.Minute
		d := w.connect(w.Nodes[i%2])
		d.say(strings.Replace(u.report(w.Now), `name="Cyan"`, `name="`+color+`"`, 1))
		return d
	}
	w.Run(time.Minute)
	for i, color := range []string{"Cyan", "Cyan", "Cyan", "Cyan", "Red", "Red"} {
		all = append(all, report(i+1, color))
	}
	w.Run(time.Minute)
	from := newUnit(1)
	all[0].say(w.chat(from, "Cyan", "Cyan", "m-40", "for us", `<marti><dest group="Cyan"/></marti>`))
	w.Run(time.Minute)
	for i, d := range all {
		want := 0
		if i > 0 && i < 4 {
			want = 1
		}
		if got := len(d.of(fmt.Sprintf("GeoChat.%s.Cyan.m-40", from.uid))); got != want {
			t.Errorf("device %d was given the words %d times, want %d", i+1, got, want)
		}
	}
}
