package tak_test

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// A site that states its wants gets no other events, except alerts and events for its devices; it states them once, and they hold after a
// restart of either gateway until the site states others.
func TestSiteThatWantsLess(t *testing.T) {
	wants := []rule.Want{{Type: "a-f", Box: &rule.Box{South: 54, West: 9, North: 55, East: 11}}}
	w := newWorld(t, 2, "iridium-dialup", 7, func(c *tak.Config) {
		if c.Sites[0] == 2 { // HQ
			c.Wants = wants
		}
	})
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	w.Run(time.Minute)
	in, out, neutral := newUnit(1), newUnit(2), newUnit(3)
	out.lat = 57
	for _, u := range []*unit{in, out, neutral} {
		u.every = 5 * time.Minute
	}
	of := func(u *unit) string {
		if u == neutral {
			return strings.Replace(u.report(w.Now), "a-f-G-U-C", "a-n-G-U-C", 1)
		}
		return u.report(w.Now)
	}
	hear := func() {
		for _, u := range []*unit{in, out, neutral} {
			ship.say(of(u))
		}
		w.Run(30 * time.Second)
	}
	hear()
	ship.say(w.event("m-1", "b-m-p-s-m", "", time.Hour))
	ship.say(w.event("u-9-1-1", "b-a-o-tbl", `<emergency type="911 Alert">X</emergency>`, time.Hour))
	u9 := newUnit(9)
	hq.say(u9.report(w.Now))
	ship.say(w.event("m-2", "b-m-p-s-m", `<marti><dest callsign="FALCON 9"/></marti>`, time.Hour))
	w.Run(30 * time.Second)
	gets := func(when string, want map[string]bool) {
		t.Helper()
		for uid, yes := range want {
			if got := hq.newest(uid) != nil; got != yes {
				t.Errorf("%s: %s has come: %v", when, uid, got)
			}
		}
	}
	gets("at first", map[string]bool{in.uid: true, out.uid: false, neutral.uid: false, "m-1": false, "u-9-1-1": true, "m-2": true})
	if counts := w.adapters[2].Counts(); counts["not_wanted"] != 1 {
		t.Errorf("what is not wanted was counted %d times", counts["not_wanted"])
	}
	in.lat, out.lat = 57, 54.2 // one leaves the box, the other comes
	hear()
	gets("later", map[string]bool{out.uid: true})
	if e := hq.newest(in.uid); e.Stale.After(w.Now) {
		t.Errorf("a unit that is not wanted any more is shown until %v at %v", e.Stale, w.Now)
	}
	for i, d := range []*device{ship, hq} {
		w.Kill(w.Nodes[1-i], time.Second)
		w.Run(5 * time.Second)
		d.again()
	}
	hear()
	gets("after restarts", map[string]bool{neutral.uid: false})
	wants = nil
	w.Kill(w.Nodes[0], time.Second)
	w.Run(30 * time.Second)
	hq.again()
	hear()
	gets("when all is wanted again", map[string]bool{neutral.uid: true})
}

// A rule's octets a minute bound the events and units that it lets through to each site.
func TestOctetsAMinute(t *testing.T) {
	w := newWorld(t, 2, "wire", 7, func(c *tak.Config) {
		c.Rules = []rule.Rule{{Type: "b-m", Rate: 200}, {Type: "a", Rate: 300}}
	})
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	w.Run(time.Minute)
	for i := range 60 {
		ship.say(w.event("m-"+string(rune('A'+i)), "b-m-p-s-m", "", time.Hour))
		u := newUnit(i)
		u.every = 5 * time.Minute
		ship.say(u.report(w.Now))
	}
	w.Run(20 * time.Second)
	count := func() (markers, units int) {
		seen := map[string]bool{}
		for _, g := range hq.got {
			if !seen[g.event.UID] {
				seen[g.event.UID] = true
				if g.event.Is("b-m") {
					markers++
				} else if g.event.Is("a") {
					units++
				}
			}
		}
		return markers, units
	}
	markers, units := count()
	if markers < 3 || markers > 10 || units < 2 || units > 8 {
		t.Errorf("in the first minute %d markers and %d units have crossed", markers, units)
	}
	if w.adapters[2].Counts()["over_rate"] != 60-markers {
		t.Errorf("%v", w.adapters[2].Counts())
	}
	for range 10 {
		for i := range 60 {
			u := newUnit(i)
			u.every = 5 * time.Minute
			ship.say(u.report(w.Now))
		}
		w.Run(time.Minute)
	}
	if _, later := count(); later < units+10 {
		t.Errorf("after ten minutes %d units have crossed, after one %d", later, units)
	}
}

// A rule for one site sets the expiry and the precedence of a chat for that site alone.
func TestRuleForOneSite(t *testing.T) {
	flash := site.Flash
	w := newWorld(t, 2, "wire", 1)
	for _, cfg := range []tak.Config{{}, {Open: true}, {Shared: true}} {
		cfg.Sites, cfg.Rules = []uint16{2, 3, 4}, []rule.Rule{{Site: 3, Expires: time.Minute, Precedence: &flash}}
		f, err := tak.New(cfg, nil)
		check.Equal(t, "error", err, nil)
		f.Step(w.Now, tak.Opened{Conn: 1, Remote: "10.0.0.1:5000"})
		text := w.chat(newUnit(1), "All Chat Rooms", "All Chat Rooms", "m-1", "man overboard", "")
		told := map[uint16]site.Mark{}
		for _, c := range f.Step(w.Now, tak.Heard{Conn: 1, Frame: []byte(text)}).Carry {
			for _, to := range c.Sites {
				told[to] = c.Message.Mark
			}
		}
		check.Equal(t, "sites", len(told), 3)
		for to, m := range told {
			check.Equal(t, "precedence", m.Precedence == site.Flash, to == 3)
			check.Equal(t, "a short life", m.Expires.Equal(w.Now.Add(time.Minute)), to == 3)
		}
	}
}
