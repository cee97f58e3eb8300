package tak_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/lab/sim"
)

// hour is two LANs with units that move for a while, and the cost of showing them.
type hour struct {
	reports int
	octets  int64
	worst   float64 // metres between the position of a device, by one of its reports of the last 5 s, and its position on the other LAN
	shown   int     // comparisons
	overdue int     // of them more than the bound
}

// walker is a unit that turns and changes its speed now and then, like people and boats.
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

// interval is the time between two reports of ATAK: 2 s when fast, 20 s when slow, 30 s when it stands.
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
func play(t *testing.T, name string, seed uint64, units int, length time.Duration, bound float64, meanwhile ...func(w *world, watchers []*device)) (h hour) {
	w := newWorld(t, 2, name, seed)
	rng := rand.New(rand.NewPCG(seed, 15))
	watchers := []*device{w.connect(w.Nodes[0]), w.connect(w.Nodes[1])}
	w.Run(2 * time.Minute)
	serial, last := 0, map[string]int{}
	said := map[string][]saying{}
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
						serial++
						mine := serial
						last[k.uid] = mine
						said[k.uid] = append(said[k.uid], saying{*k.unit, w.Now})
						w.At(way, func() {
							if last[k.uid] == mine || k.every < way {
								h.compare(t, w, watchers[1-side], said[k.uid], bound)
							}
							said[k.uid] = said[k.uid][1:]
						})
					}
				}
				w.At(time.Second, tick)
			}
			w.At(first.Sub(w.Now), tick)
		}
	}
	for _, f := range meanwhile {
		f(w, watchers)
	}
	w.Run(length)
	up, down := w.Octets(w.Nodes[1])
	h.octets = up + down - up0 - down0
	return h
}

// way is the time that a report has to cross the link before the far picture is compared with it.
const way = 5 * time.Second

// saying is a report of a unit: its state, and the time.
type saying struct {
	unit
	at time.Time
}

// compare compares the position that a device of the other LAN shows with the position of the unit by its report of 5 s ago, moved on by
// course and speed, or by a report since then.
func (h *hour) compare(t *testing.T, w *world, d *device, list []saying, bound float64) {
	k := &list[0].unit
	e := d.newest(k.uid)
	if e == nil {
		t.Errorf("%s is not shown at %v", k.uid, w.Now.Sub(sim.Epoch))
		return
	}
	if !e.Stale.After(w.Now) {
		t.Errorf("%s is shown as stale since %v at %v", k.uid, e.Stale, w.Now)
	}
	off := math.Inf(1)
	for _, s := range list {
		s.move(w.Now.Sub(s.at))
		off = min(off, apart(e, s.lat, s.lon))
	}
	h.shown++
	h.worst = max(h.worst, off)
	if off > bound {
		if h.overdue < 10 {
			t.Logf("%v after the start %s is shown %.0f m off, at %.1f m/s", w.Now.Sub(sim.Epoch).Round(time.Second), k.uid, off, k.speed)
		}
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
	if h.overdue > 0 {
		t.Errorf("%d positions of %d are shown more than 50 m off, at worst %.0f m", h.overdue, h.shown, h.worst)
	}
}

func (h hour) figures() string {
	return fmt.Sprintf("%d reports, %d octets: %.1f a report; %d compared, worst %.0f m, %d beyond the bound", h.reports, h.octets,
		float64(h.octets)/float64(h.reports), h.shown, h.worst, h.overdue)
}

// On a radio net one transmission is for all, and nobody confirms what has arrived: the far picture is as old as the network is slow.
func TestUnitsThatMoveOnHF(t *testing.T) {
	h := play(t, "hf-300", 1, 10, 10*time.Minute, 1000)
	t.Log(h.figures())
	if each := float64(h.octets) / float64(h.reports); each > 40 {
		t.Errorf("a report costs %.1f octets", each)
	}
}

// Alerts among units that move arrive within 5 s at the 95th percentile.
func TestAlertsAmongUnits(t *testing.T) {
	var took []time.Duration
	play(t, "iridium-dialup", 1, 10, 10*time.Minute, 50, func(w *world, watchers []*device) {
		for i := range 40 {
			w.At(time.Duration(i)*13*time.Second+time.Minute, func() {
				uid, said := fmt.Sprint("alert-", i), w.Now
				watchers[1].say(w.event(uid, "b-a-o-tbl", `<emergency type="911 Alert">SHIP</emergency>`, time.Hour))
				var look func()
				look = func() {
					if watchers[0].newest(uid) == nil {
						w.At(50*time.Millisecond, look)
						return
					}
					took = append(took, w.Now.Sub(said))
				}
				look()
			})
		}
	})
	slices.Sort(took)
	if len(took) != 40 {
		t.Fatalf("%d of 40 alerts arrived", len(took))
	}
	t.Logf("median %v, 95th percentile %v, worst %v", took[20], took[38], took[39])
	if took[38] > 5*time.Second {
		t.Errorf("the 95th percentile is %v", took[38])
	}
}
