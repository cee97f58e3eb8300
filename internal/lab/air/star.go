package air

import (
	"fmt"
	"time"

	"aldis/internal/link/profile"
)

// stars are rows of star links that no other table has: down to the ship, with 40 octets, the slowest few of single messages.
func stars() (list []Scenario) {
	const directip, certus, geo = "iridium-directip", "iridium-certus-100", "geo-satcom-128k"
	var loads []traffic
	for _, b := range []struct {
		link      string
		from      int
		before    string
		must, aim float64
	}{{directip, 0, "1.28", 1.2, 1.12}, {certus, 0, "1.78", 1.2, 1.12}, {geo, 1, "1.48", 1.15, 1.12}} {
		what := "128 of 200 octets at once: the last, worst of the seeds"
		if b.from == 0 {
			what = "128 of 200 octets at once to the ship: the last, worst of the seeds"
		}
		loads = append(loads, traffic{link: b.link, sites: 2, rest: time.Hour, posts: apart(b.from, 128, 200, 0),
			figures: []figure{{Row: asked(what, flat, b.before, 1, b.must, b.aim), of: timesOf(all, 1, true),
				bound: func(p profile.Profile) float64 { return burstOf(p, 128, 200, b.from == 0) }}}})
	}
	const lasting = time.Minute
	for _, s := range []struct {
		link         string
		from         int
		before, over string
	}{{certus, 0, "28", "59"}, {geo, 1, "36", "68"}} {
		what := "40 octets, 60 % offered: "
		if s.from == 0 {
			what = "40 octets to the ship, 60 % offered: "
		}
		loads = append(loads, traffic{link: s.link, sites: 2, lasting: lasting, rest: time.Hour, posts: steady([]int{s.from}, 40, 0.6, lasting),
			figures: []figure{
				{Row: asked(what+"goodput", ofRate, s.before, 0.5, 59, 59.5), of: goodputOf(0, lasting)}, // some are under way at the end
				{Row: asked(what+"median", flat, s.over, 0.5, 2, 1.5), of: timesOf(all, 0.5, true)},
			}})
	}
	const n, every, ten = 1000, 5 * time.Second, 10 * time.Minute
	loads = append(loads,
		traffic{link: directip, sites: 2, lasting: n * every, rest: time.Hour, posts: apart(1, n, 200, every),
			figures: []figure{
				{Row: asked("200 octets every 5 s, 1 % loss: 99 of 100", flat, "2.83", 0.5, 1.8, 1.4), of: timesOf(all, 0.99, true)},
				{Row: asked("200 octets every 5 s, 1 % loss: 995 of 1,000", flat, "5.6", 0.5, 2.6, 1.8), of: timesOf(all, 0.995, true)},
			}},
		traffic{link: directip, sites: 2, lasting: ten, posts: steady([]int{1}, 200, 1, ten),
			figures: []figure{{Row: asked("200 octets, 100 % offered for ten minutes, 1 % loss: goodput", ofRate, "86", 0.5, 91, 93), of: goodputOf(0, ten),
				bound: func(p profile.Profile) float64 { return 100 * filled(p, 200) * (1 - p.Up.LossPct/100) }}}})
	for _, t := range loads {
		list = append(list, t.scenario())
	}
	const ships = 16
	return append(list, greeting(directip, ships+1,
		measured(fmt.Sprintf("%d ships start together: quiet after", ships), "s", 0.5),
		asked(fmt.Sprintf("%d ships start together: octets", ships), "kB", "103 (15 ships)", 0.5, 25, 12)))
}
