package tak_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/tak/cot"
)

// hour is two LANs with units that move for a while, and what it cost to show them.
type hour struct {
	reports int
	octets  int64
	worst   float64 // metres between where a device must be, by its last report, and where the other LAN shows it
	shown   int     // comparisons
	overdue int     // of them more than the bound
}

// walker is a unit that turns and changes its speed now and then, as people and boats do.
type walker struct {
	*unit
	rng *rand.Rand
	top float64
}

// step moves the unit on for a second.
func (w *walker) step() {
	if w.rng.IntN(60) == 0 {
		w.course = math.Mod(w.course+w.rng.Float64()*120-60+360, 360)
	}
	if w.rng.IntN(90) == 0 {
		w.speed = w.rng.Float64() * w.top
		if w.rng.IntN(4) == 0 {
			w.speed = 0
		}
	}
	w.move(time.Second)
}

// interval is how often ATAK reports by itself: each 2 s when fast, each 20 s when slow, each 30 s when it stands.
func (w *walker) interval() time.Duration {
	switch {
	case w.speed > 4:
		return 2 * time.Second
	case w.speed > 0.3:
		return 20 * time.Second
	}
	return 30 * time.Second
}

// play moves units on both LANs of two gateways, and compares what each device of the other LAN shows at every report.
func play(t *testing.T, name string, seed uint64, units int, length time.Duration, bound float64) (h hour) {
	w := newWorld(t, 2, name, seed)
	rng := rand.New(rand.NewPCG(seed, 15))
	watchers := []*device{w.connect(w.Nodes[0]), w.connect(w.Nodes[1])}
	w.Run(2 * time.Minute)
	serial, last := 0, map[string]int{}
	up0, down0 := w.Octets(w.Nodes[1])
	for side := range 2 {
		for i := range units {
			u := newUnit(100*side + i)
			u.lon += float64(side)
			k := &walker{unit: u, rng: rand.New(rand.NewPCG(rng.Uint64(), 1)), top: []float64{1.5, 1.8, 6, 12}[i%4]}
			k.speed = k.top / 2
			d := w.connect(w.Nodes[side])
			first := w.Now.Add(time.Duration(rng.IntN(20_000)) * time.Millisecond)
			due := first
			var tick func()
			tick = func() {
				k.step()
				if !w.Now.Before(due) {
					k.every = k.interval()
					due = w.Now.Add(k.every)
					d.say(k.report(w.Now))
					h.reports++
					if w.Now.Sub(first) > time.Minute {
						said := *k.unit
						serial++
						mine, at := serial, w.Now
						last[k.uid] = mine
						w.At(way, func() {
							if last[k.uid] == mine || k.every < way {
								h.compare(t, w, watchers[1-side], &said, w.Now.Sub(at), bound)
							}
						})
					}
				}
				w.At(time.Second, tick)
			}
			w.At(first.Sub(w.Now), tick)
		}
	}
	w.Run(length)
	up, down := w.Octets(w.Nodes[1])
	h.octets = up + down - up0 - down0
	return h
}

// way is what a report has to cross the link until the far picture is compared with it.
const way = 5 * time.Second

// compare holds what a device of the other LAN shows against where the unit said that it was, moved on since.
func (h *hour) compare(t *testing.T, w *world, d *device, k *unit, since time.Duration, bound float64) {
	k.move(since)
	e := d.newest(k.uid)
	if e == nil {
		t.Errorf("%s is not shown at %v", k.uid, w.Now.Sub(sim.Epoch))
		return
	}
	if !e.Stale.After(w.Now) {
		t.Errorf("%s is shown as stale since %v at %v", k.uid, e.Stale, w.Now)
	}
	off := apart(e, k.lat, k.lon)
	h.shown++
	h.worst = max(h.worst, off)
	if off > bound {
		h.overdue++
	}
}

func apart(e *cot.Event, lat, lon float64) float64 {
	const perDegree = 111194.9
	la, _ := e.Point.Lat.Float()
	lo, _ := e.Point.Lon.Float()
	return math.Hypot(la-lat, (lo-lon)*math.Cos(lat*math.Pi/180)) * perDegree
}

// Ten units on each LAN move for ten minutes: a report costs at most 40 octets on the link with all headers and receipts.
func TestUnitsThatMove(t *testing.T) {
	h := play(t, "iridium-dialup", 1, 10, 10*time.Minute, 50)
	t.Log(h.figures())
	if each := float64(h.octets) / float64(h.reports); each > 40 {
		t.Errorf("a report costs %.1f octets", each)
	}
}

func (h hour) figures() string {
	return fmt.Sprintf("%d reports, %d octets: %.1f a report; %d compared, worst %.0f m, %d beyond the bound", h.reports, h.octets,
		float64(h.octets)/float64(h.reports), h.shown, h.worst, h.overdue)
}

// On a radio net one transmission is for all, and nobody says what has arrived: the far picture is as old as the net is slow.
func TestUnitsThatMoveOnHF(t *testing.T) {
	h := play(t, "hf-300", 1, 10, 10*time.Minute, 1000)
	t.Log(h.figures())
	if each := float64(h.octets) / float64(h.reports); each > 40 {
		t.Errorf("a report costs %.1f octets", each)
	}
}
