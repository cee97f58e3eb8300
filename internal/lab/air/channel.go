package air

import (
	"fmt"
	"math/rand/v2"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

const (
	hf     = "hf-2400"
	ofRate = "% of the rate"
	ratio  = "octets for an octet"
)

// channels are the scenarios of a radio channel that all sites share.
func channels() (list []Scenario) {
	for _, loads := range [][]traffic{fullChannel(), besideOnChannel(), burstsOnChannel(), singlesOnChannel(), troubleOnChannel(),
		filesOnChannel(), dayOnChannel()} {
		for _, t := range loads {
			list = append(list, t.scenario())
		}
	}
	list = append(list, silentShip()...)
	for _, sites := range []int{2, 16} {
		list = append(list, quietDay(hf, sites))
	}
	return append(list, greeting(hf, 16,
		asked("16 sites start together: quiet after", "s", "130", 0.5, 120, 60), measured("16 sites start together: octets", "octets", 0.5)))
}

// fullChannel offers as much as the channel can carry, or more, or less.
func fullChannel() (list []traffic) {
	const lasting = 10 * time.Minute
	bound := func(sites, octets, talkers int, offered float64) func(profile.Profile) float64 {
		return func(p profile.Profile) float64 {
			return spoken{p, octets, sites - 1, talkers}.goodput(offered, lasting)
		}
	}
	forOne := func(sites, octets int) func(profile.Profile) float64 {
		return func(p profile.Profile) float64 { return 1 / spoken{p, octets, sites - 1, 1}.wired(lasting) }
	}
	for _, r := range []struct {
		sites     int
		froms     []int
		offered   float64
		before    string
		must, aim float64
	}{
		{2, []int{0, 1}, 0.8, "51", 70, 74},
		{2, []int{0, 1}, 1, "53 to 66", 70, 74},
		{2, []int{0, 1}, 3, "53", 70, 74},
		{2, []int{0}, 1, "54", 80, 84},
		{4, upTo(4), 1, "61", 70, 74},
		{8, upTo(8), 1, "54", 66, 70},
		{16, upTo(16), 1, "", 60, 66},
	} {
		what := fmt.Sprintf("%d sites, each to all", r.sites)
		switch {
		case len(r.froms) < r.sites:
			what = "2 sites, one talks"
		case r.sites == 2:
			what = "2 sites, both talk"
		}
		what = fmt.Sprintf("%s, %.0f %% offered: goodput", what, 100*r.offered)
		list = append(list, traffic{link: hf, sites: r.sites, lasting: lasting, live: r.offered == 1 && r.sites <= 8,
			posts: steady(r.froms, 200, r.offered, lasting),
			figures: []figure{{Row: asked(what, ofRate, r.before, 0.5, r.must, r.aim), of: goodputOf(0, lasting),
				bound: bound(r.sites, 200, len(r.froms), r.offered)}}})
	}
	return append(list,
		traffic{link: hf, sites: 16, lasting: lasting, rest: 2 * time.Hour, posts: steady(upTo(16), 200, 0.5, lasting),
			figures: []figure{
				{Row: asked("16 sites, each to all, 50 % offered: goodput", ofRate, "38", 0.5, 48, 50), of: goodputOf(0, lasting),
					bound: bound(16, 200, 16, 0.5)},
				{Row: asked("16 sites, each to all, 50 % offered: on the air", ratio, "2.2", 0.5, 1.4, 1.25), of: octetsForOne, bound: forOne(16, 200)},
				{Row: measured("16 sites, each to all, 50 % offered: median", flat, 0.5), of: timesOf(all, 0.5, true)},
			}},
		traffic{link: hf, sites: 2, lasting: 3 * lasting, rest: 4 * time.Hour, posts: poisson(upTo(2), 900, 0.5, 3*lasting),
			figures: []figure{
				{Row: asked("2 sites, 900 octets by chance, 50 % offered: median", flat, "84", 0.5, 2.5, 1.7), of: timesOf(all, 0.5, true)},
				{Row: asked("2 sites, 900 octets by chance, 50 % offered: on the air", ratio, "2.26", 0.5, 1.35, 1.25), of: octetsForOne,
					bound: forOne(2, 900)},
			}})
}

// besideOnChannel sends short messages during a long one, and urgent ones on a full channel.
func besideOnChannel() (list []traffic) {
	const bulk, routine, flash = "bulk", "routine", "flash"
	const octets, every = 200_000, 5 * time.Second
	for _, from := range []int{0, 1} {
		what := "40 octets every 5 s beside 200 kB of another peer, to 3"
		ask := func(what, before string, must, aim float64) Row { return asked(what, flat, before, 0.5, must, aim) }
		if from == 1 {
			what = "40 octets every 5 s beside 200 kB of another site, to 3"
			ask = func(what, _ string, _, _ float64) Row { return measured(what, flat, 0.5) }
		}
		lasting := profile.Airtime(octets, 2400)
		list = append(list, traffic{link: hf, sites: 4, lasting: lasting, rest: 4 * time.Hour,
			posts: both(apart(0, 1, octets, 0).as(bulk, 1, site.Routine), apart(from, int(lasting/every), 40, every).as(routine, 2, site.Routine)),
			figures: []figure{
				{Row: ask(what+": their median", "621", 3, 1.5), of: timesOf(routine, 0.5, true)},
				{Row: ask(what+": 95 of 100", "", 6, 3), of: timesOf(routine, 0.95, true)},
				{Row: ask(what+": the end of the 200 kB", "", 1.25, 1.1), of: timesOf(bulk, 1, true)},
			}})
	}
	const lasting = 10 * time.Minute
	chance := func(rng *rand.Rand, _ profile.Profile) (posts []Post) {
		for range 36 {
			posts = append(posts, Post{At: time.Duration(rng.Int64N(int64(lasting))), From: rng.IntN(4), Data: make([]byte, 100)})
		}
		return posts
	}
	what := "4 sites, 100 % routine, 36 flash in ten minutes: "
	urgent := func(share float64) func(profile.Profile) float64 {
		return func(p profile.Profile) float64 { return spoken{p, 100, 3, 4}.urgent(share) }
	}
	return append(list, traffic{link: hf, sites: 4, lasting: lasting, rest: 4 * time.Hour,
		posts: both(steady(upTo(4), 200, 1, lasting).as(routine, 1, site.Routine), load(chance).as(flash, 2, site.Flash)),
		figures: []figure{
			{Row: asked(what+"flash, median", "s", "16", 0.5, 6, 4), of: secondsOf(flash, 0.5), bound: urgent(0.5)},
			{Row: asked(what+"flash, 95 of 100", "s", "153", 0.5, 20, 10), of: secondsOf(flash, 0.95), bound: urgent(0.95)},
			{Row: asked(what+"flash, the slowest", "s", "428", 0.5, 45, 25), of: secondsOf(flash, 1), bound: urgent(0.99)},
			{Row: asked(what+"goodput of all", ofRate, "42", 0.5, 58, 64), of: goodputOf(0, lasting),
				bound: func(p profile.Profile) float64 { return spoken{p, 200, 3, 4}.goodput(1, lasting) }},
		}})
}

// burstsOnChannel sends many messages of one site at once.
func burstsOnChannel() (list []traffic) {
	for _, b := range []struct {
		link                 string
		n, octets, receivers int
		before               string
		must, aim            float64
	}{
		{hf, 40, 900, 3, "3.26", 1.5, 1.35},
		{hf, 40, 900, 1, "1.97", 1.4, 1.25},
		{hf, 12, 3000, 3, "2.52", 1.5, 1.35},
		{hf, 128, 200, 1, "1.56", 1.4, 1.25},
		{hf, 128, 200, 3, "2.73", 1.6, 1.4},
		{"vhf-cnr-16k", 128, 200, 3, "3.4", 1.7, 1.4},
		{"hf-300", 128, 200, 2, "2.0", 1.6, 1.4},
	} {
		what := fmt.Sprintf("%d of %d octets at once to %d: the last, worst of the seeds", b.n, b.octets, b.receivers)
		list = append(list, traffic{link: b.link, sites: b.receivers + 1, rest: 12 * time.Hour, posts: apart(0, b.n, b.octets, 0),
			live: b.link == hf && (b.octets == 200 || b.octets == 900 && b.receivers == 3),
			figures: []figure{{Row: asked(what, flat, b.before, 1, b.must, b.aim), of: timesOf(all, 1, true),
				bound: burstOnChannel(b.n, b.octets, b.receivers)}}})
	}
	return list
}

// filesOnChannel sends one long message to many sites.
func filesOnChannel() (list []traffic) {
	for _, f := range []struct {
		octets, receivers int
		before            string
		must              float64
	}{{20_000, 1, "", 0}, {20_000, 4, "1.23", 1.25}, {20_000, 16, "1.54 to 1.74", 1.45}, {20_000, 64, "not finished", 1.7},
		{100_000, 64, "not finished", 1.4}} {
		what := fmt.Sprintf("%d kB to %d: until all have it", f.octets/1000, f.receivers)
		row, bound := measured(what, flat, 0.5), burstOnChannel(1, f.octets, f.receivers)
		if p, err := profile.Load(hf, nil); err == nil && f.must > 0 {
			row = asked(what, flat, f.before, 0.5, f.must, min(f.must, near*bound(p)))
		}
		if f.octets == 20_000 {
			row = row.in("receivers", "20 kB", float64(f.receivers))
		}
		list = append(list, traffic{link: hf, sites: f.receivers + 1, rest: 4 * time.Hour, posts: apart(0, 1, f.octets, 0),
			figures: []figure{{Row: row, of: timesOf(all, 1, true), bound: bound}}})
	}
	return list
}

// burstOnChannel is the bound of a burst as a multiple of its limit.
func burstOnChannel(n, octets, receivers int) func(profile.Profile) float64 {
	return func(p profile.Profile) float64 {
		return spoken{p, octets, receivers, 1}.burst(n) / Limit(p, n*octets).Seconds()
	}
}

// singlesOnChannel sends one message at a time.
func singlesOnChannel() []traffic {
	single := func(receivers, n int, every time.Duration, figures ...figure) traffic {
		return traffic{link: hf, sites: receivers + 1, lasting: time.Duration(n) * every, rest: 4 * time.Hour,
			posts: apart(0, n, 200, every), live: receivers == 4, figures: figures}
	}
	alone := func(receivers int, share float64) func(profile.Profile) float64 {
		return func(p profile.Profile) float64 { return spoken{p, 200, receivers, 1}.alone(share) }
	}
	const (
		sparse = "200 octets to 15, one in 5 min: the last has it, "
		dense  = "200 octets to 15 every 20 s: the last has it, "
		few    = "200 octets to 4 every 20 s: each receiver, "
	)
	return []traffic{
		single(15, 24, 5*time.Minute,
			figure{Row: asked(sparse+"median", "s", "1.9", 0.5, 3, 2), of: lastOf(all, 0.5), bound: alone(15, 0.5)},
			figure{Row: asked(sparse+"95 of 100", "s", "125", 0.5, 40, 15), of: lastOf(all, 0.95), bound: alone(15, 0.95)}),
		single(15, 60, 20*time.Second,
			figure{Row: asked(dense+"median", "s", "9", 0.5, 9, 5), of: lastOf(all, 0.5), bound: alone(15, 0.5)},
			figure{Row: asked(dense+"95 of 100", "s", "53", 0.5, 45, 25), of: lastOf(all, 0.95), bound: alone(15, 0.95)}),
		single(4, 100, 20*time.Second,
			figure{Row: asked(few+"median", "s", "5.3", 0.5, 3, 2), of: secondsOf(all, 0.5), bound: alone(1, 0.5)},
			figure{Row: asked(few+"95 of 100", "s", "18.5", 0.5, 12, 8), of: secondsOf(all, 0.95), bound: alone(1, 0.95)},
			figure{Row: asked(few+"the slowest", "s", "128", 0.5, 45, 25), of: secondsOf(all, 1), bound: alone(1, 0.9975)}),
	}
}

// troubleOnChannel has a rate that differs from the profile's, and outages.
func troubleOnChannel() []traffic {
	trueRate := func(rate float64) func(*sim.Config) {
		return func(c *sim.Config) {
			told := c.Profile
			c.Profile.Up.RateBps = int(rate * float64(told.Up.RateBps))
			c.Profile.Down.RateBps = int(rate * float64(told.Down.RateBps))
			c.Configure = func(_ *sim.Node, g *sim.Setup) { g.Profile = told }
		}
	}
	const ten, every = 10 * time.Minute, 20 * time.Second
	bound := func(p profile.Profile) float64 { return spoken{p, 200, 3, 4}.goodput(0.7, ten) }
	list := []traffic{
		{link: hf, sites: 4, change: trueRate(0.5), lasting: ten, rest: 4 * time.Hour, posts: steady(upTo(4), 200, 0.7, ten),
			figures: []figure{
				{Row: asked("4 sites, half the profile's rate, 70 % of that offered: goodput", ofRate, "33", 0.5, 62, 62), of: goodputOf(0, ten),
					bound: bound},
				{Row: asked("4 sites, half the profile's rate, 70 % of that offered: median", flat, "142", 0.5, 6, 6), of: timesOf(all, 0.5, true)},
			}},
		{link: hf, sites: 4, change: trueRate(2), lasting: 2 * ten, posts: steady(upTo(4), 200, 0.7, 2*ten),
			figures: []figure{{Row: asked("4 sites, twice the profile's rate, 70 % of that offered: goodput after ten minutes", ofRate,
				"never found", 0.5, 60, 60), of: goodputOf(ten, 2*ten), bound: bound}}},
	}
	for _, o := range []struct {
		lasting   time.Duration
		before    string
		must, aim float64
	}{{time.Minute, "47", 25, 12}, {5 * time.Minute, "93", 60, 40}, {time.Hour, "721", 400, 300}} {
		n := int((outageBefore + o.lasting + outageBefore) / every)
		posts := func(rng *rand.Rand, _ profile.Profile) (posts []Post) {
			for from := range 2 {
				shift := time.Duration(rng.Int64N(int64(every)))
				for i := range n {
					posts = append(posts, Post{At: time.Duration(i)*every + shift, From: from, Data: make([]byte, 200)})
				}
			}
			return posts
		}
		what := fmt.Sprintf("outage of %.0f s, 200 octets every 20 s each way: the last", o.lasting.Seconds())
		list = append(list, traffic{link: hf, sites: 2, lasting: outageBefore + o.lasting + outageBefore, rest: 4 * time.Hour, posts: posts,
			outages: []outage{{outageBefore, o.lasting}},
			figures: []figure{{Row: asked(what, "s", o.before, 0.5, o.must, o.aim), of: afterOutage,
				bound: func(p profile.Profile) float64 {
					return spoken{p, 200, 1, 1}.burst(2*int(o.lasting/every+1)) + p.Turnaround.Seconds()
				}}}})
	}
	return list
}

// dayOnChannel is a day of mixed traffic, about 9 % of the rate, with twelve outages.
func dayOnChannel() []traffic {
	const day, sites = 24 * time.Hour, 4
	const report = "report"
	posts := func(rng *rand.Rand, p profile.Profile) (posts []Post) {
		by := func(class string, n, octets int) {
			for i := range n {
				posts = append(posts, Post{At: time.Duration(rng.Int64N(int64(day))), From: i % sites, Data: make([]byte, octets), Class: class})
			}
		}
		for from := range sites {
			shift := time.Duration(rng.Int64N(int64(time.Minute)))
			for at := shift; at < day; at += time.Minute {
				posts = append(posts, Post{At: at, From: from, Data: make([]byte, 110), Class: report})
			}
		}
		by("text", 350, 1500)
		by("file", 52, 20_000)
		for range 12 { // crises
			at, from := time.Duration(rng.Int64N(int64(day))), rng.IntN(sites)
			for range 30 {
				posts = append(posts, Post{At: at, From: from, Data: make([]byte, 100), Class: "crisis", Precedence: site.Immediate})
			}
		}
		return posts
	}
	t := traffic{link: hf, sites: sites, lasting: day, rest: 4 * time.Hour, posts: posts,
		figures: []figure{
			{Row: asked("a day of mixed traffic with twelve outages: reports, 95 of 100", flat, "36", 0.5, 8, 4), of: timesOf(report, 0.95, false)},
			{Row: asked("a day of mixed traffic with twelve outages: on the air", ratio, "2.17", 0.5, 1.6, 1.4), of: octetsForOne},
			{Row: asked("a day of mixed traffic with twelve outages: deliveries lost or twice", "", "0", 1, 0, 0),
				of: func(o *outcome) float64 { return float64(o.missing + o.wrong) }},
		}}
	for i, minutes := range []time.Duration{1, 3, 2, 10, 1, 4, 2, 20, 1, 5, 3, 2} { // too short in all to hold 95 of 100 messages
		t.outages = append(t.outages, outage{time.Duration(2*i+1) * time.Hour, minutes * time.Minute})
	}
	return []traffic{t}
}

// silentShip repeats loads with one more receiver that transmits nothing, and compares them with the loads without it.
func silentShip() (list []Scenario) {
	const lasting = 10 * time.Minute
	for _, r := range []struct {
		what string
		traffic
	}{
		{"4 sites, each to all, 100 % offered", traffic{sites: 4, lasting: lasting, posts: steady(upTo(4), 200, 1, lasting)}},
		{"40 of 900 octets at once to 3", traffic{sites: 4, posts: apart(0, 40, 900, 0)}},
		{"200 octets to 4 every 20 s", traffic{sites: 5, lasting: 2000 * time.Second, posts: apart(0, 100, 200, 20*time.Second)}},
	} {
		without := r.traffic
		without.link, without.rest = hf, 4*time.Hour
		with := without
		with.sites++
		with.silent = true
		what := r.what + ", and a silent ship: "
		more := Row{What: what + "more octets than without it", Unit: "%", Share: 0.5, Aim: 10, Asked: true}
		list = append(list, Scenario{Link: hf, counts: true,
			Rows: []Row{asked(what+"deliveries that never came", "", "", 1, 0, 0), measured(what+"that came when it spoke again", "", 0.5), more},
			play: func(ctx Context, seed uint64) ([][]float64, error) {
				a, err := with.play(ctx, seed)
				if err != nil {
					return nil, err
				}
				b, err := without.play(ctx, seed)
				if err != nil {
					return nil, err
				}
				figures := one(float64(a.missing-a.spoke), float64(a.spoke), 100*(float64(a.octets)/float64(b.octets)-1))
				return append(figures, []float64{float64(a.missing), float64(a.wrong)}), nil
			}})
	}
	return list
}
