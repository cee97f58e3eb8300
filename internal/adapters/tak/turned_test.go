package tak_test

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/gateway/api"
)

// marks are the changes of a unit or of a marker, as texts before and after.
var marks = []struct{ what, from, to string }{
	{"type", "a-f-G-U-C", "a-h-G-U-C"},
	{"lane", "a-h-G-U-C", "a-n-G-U-C"},
	{"callsign", `callsign="`, `callsign="RE`},
	{"team", `name="Cyan"`, `name="Red"`},
	{"role", "Team Member", "Medic"},
}

// turns are the links on which a change is timed, and the time that it may take.
var turns = []struct {
	link  string
	most  time.Duration
	quiet int // a site that is silent; 0: none
}{{"wire", time.Second, 0}, {"iridium-dialup", 4 * time.Second, 0}, {"hf-300", 20 * time.Second, 2}}

// until is how long after begun a device is shown the event of a uid that a test wants; more than most: it was not.
func (w *world) until(d *device, uid string, begun time.Time, most time.Duration, is func(*cot.Event) bool) time.Duration {
	for ; ; w.Run(50 * time.Millisecond) {
		if e := d.newest(uid); e != nil && is(e) || w.Now.Sub(begun) > most {
			return w.Now.Sub(begun)
		}
	}
}

// A unit that changes its type, affiliation, callsign, team or role is shown changed at once, among others that move.
func TestTurnedAtOnce(t *testing.T) {
	for _, turn := range turns {
		for seed := range uint64(3) {
			w := newWorld(t, 2+min(1, turn.quiet), turn.link, seed+1)
			ship := w.connect(w.Nodes[1])
			w.Run(5 * time.Minute)
			watchers := []*device{w.connect(w.Nodes[0])}
			if turn.quiet > 0 {
				w.Give(w.Nodes[turn.quiet], api.Silence{On: true, Announce: true})
				watchers = append(watchers, w.connect(w.Nodes[turn.quiet]))
				w.Run(time.Minute)
			}
			var around []*unit
			for i := range 4 {
				around = append(around, newUnit(i))
				around[i].speed, around[i].course = 5, float64(90*i)
			}
			drift := func(d time.Duration) {
				for range d / (5 * time.Second) {
					for i, u := range around {
						u.move(5 * time.Second)
						u.course += float64(20 * i)
						ship.say(u.report(w.Now))
					}
					w.Run(5 * time.Second)
				}
			}
			u, changed := newUnit(9), ""
			u.every = time.Hour
			said := func() string {
				text := u.report(w.Now)
				for _, m := range marks {
					if text = strings.Replace(text, m.from, m.to, 1); m.what == changed {
						break
					}
				}
				return text
			}
			ship.say(u.report(w.Now))
			drift(5 * time.Minute)
			for i, m := range marks {
				changed = m.what
				drift(time.Minute + time.Duration(7*i)*time.Second)
				text, begun := said(), w.Now
				ship.say(text)
				want, _ := cot.ParseXML([]byte(text))
				for n, d := range watchers {
					took := w.until(d, u.uid, begun, 2*turn.most, func(e *cot.Event) bool { return code.Marks(e) == code.Marks(want) })
					t.Logf("%s, seed %d, watcher %d: a new %s is shown after %v", turn.link, seed+1, n, m.what, took)
					if took > turn.most {
						t.Errorf("%s, seed %d, watcher %d: a new %s is shown after %v", turn.link, seed+1, n, m.what, took)
					}
				}
			}
		}
	}
}
