package gateway_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// copies lets a profile use idle air so long after a datagram; 0: it does not.
func copies(after time.Duration) func(*sim.Config) {
	return func(cfg *sim.Config) { cfg.Profile.CopyAfter = after }
}

// onIdleAir is how long single messages took, by seeds, and the octets of the ship's leg.
func onIdleAir(t *testing.T, name string, seeds uint64, every time.Duration, change ...func(*sim.Config)) (all []time.Duration, octets int64) {
	t.Helper()
	for seed := range seeds {
		took, n, err := air.Singles(context.Background(), name, 900+seed, 100, every, change...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, took...)
		octets += n
	}
	slices.Sort(all)
	return all, octets
}

// TestIdleAirRepeats: where octets during a call cost nothing, a message that is lost is there again before anybody asks.
func TestIdleAirRepeats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		link       string
		after      time.Duration
		with, even time.Duration // the slowest takes at most so long with copies, and more than that without
	}{
		{"iridium-dialup", 300 * time.Millisecond, 5 * time.Second, 15 * time.Second},
		{"vhf-cnr-16k", load(t, "vhf-cnr-16k").CopyAfter, 6 * time.Second, 8 * time.Second},
	} {
		worst := func(l []time.Duration) time.Duration { return l[len(l)-1] }
		with, octets := onIdleAir(t, c.link, 4, 20*time.Second, copies(c.after))
		without, octetsWithout := onIdleAir(t, c.link, 4, 20*time.Second, copies(0))
		t.Logf("%s: with copies median %v, 99 %% %v, worst %v, %d octets; without %v, %v, %v, %d octets", c.link,
			with[len(with)/2], with[len(with)*99/100], with[len(with)-1], octets,
			without[len(without)/2], without[len(without)*99/100], without[len(without)-1], octetsWithout)
		if worst(with) > c.with || worst(without) < c.even {
			t.Errorf("%s: the slowest took %v with copies and %v without; want at most %v, and more than %v",
				c.link, worst(with), worst(without), c.with, c.even)
		}
		if octets > octetsWithout*21/10 {
			t.Errorf("%s: %d octets with copies, %d without: each goes again once at most", c.link, octets, octetsWithout)
		}
	}
}

// TestIdleAirIsNotAlwaysFree: no copy goes where octets are paid for, while more waits, and while this node is silent.
func TestIdleAirIsNotAlwaysFree(t *testing.T) {
	datagrams := func(change func(*sim.Config), every time.Duration, act func(w *sim.World, ship *sim.Node)) uint64 {
		w := world(t, 2, "iridium-dialup", 7, func(cfg *sim.Config) {
			cfg.Profile.Up.LossPct, cfg.Profile.Down.LossPct = 0, 0
			cfg.Profile.CopyAfter = 300 * time.Millisecond
			change(cfg)
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		hq.Site.Put(w, pipeItem(1, pipeHQ))
		w.Run(time.Minute)
		before := ship.GW.Status(w.Now).Peers[0].DatagramsSent
		sent := tracks(w, ship, []uint16{1}, 4, 200, every)
		w.Run(time.Second + 4*every)
		act(w, ship)
		w.Run(time.Minute)
		if !ship.GW.Status(w.Now).Silence.On {
			once(t, w, hq.Site, 2, *sent)
		}
		return ship.GW.Status(w.Now).Peers[0].DatagramsSent - before
	}
	same, none := func(*sim.Config) {}, func(*sim.World, *sim.Node) {}
	silent := func(w *sim.World, ship *sim.Node) { order(w, ship, api.Silence{On: true}) }
	for _, c := range []struct {
		name   string
		change func(*sim.Config)
		every  time.Duration
		act    func(*sim.World, *sim.Node)
		want   uint64
	}{
		{"each alone", same, 10 * time.Second, none, 8},
		{"octets are paid for", func(cfg *sim.Config) { cfg.Profile.Tariff = "octets" }, 10 * time.Second, none, 4},
		{"two in each datagram", func(cfg *sim.Config) { cfg.Profile.LargeOctets = 0 }, 0, none, 2},
		{"silent before the first leaves again", same, 50 * time.Millisecond, silent, 1},
	} {
		if got := datagrams(c.change, c.every, c.act); got != c.want {
			t.Errorf("%s: %d datagrams, want %d", c.name, got, c.want)
		}
	}
}

// TestIdleAirOfSeveral: on hf-2400 a message that stands alone goes twice more where several receive it. Of two sites, the acknowledgement of
// the other tells as much for less air.
func TestIdleAirOfSeveral(t *testing.T) {
	for _, c := range []struct {
		sites int
		most  int64
	}{{2, 4}, {3, 12}} {
		w := onChannel(t, c.sites, 1, func(cfg *sim.Config) { cfg.Profile.Up.GEBadPct, cfg.Profile.Down.GEBadPct = 0, 0 })
		var to []uint16
		for _, n := range w.Nodes[1:] {
			to = append(to, n.ID)
		}
		before := frames(w, w.Nodes[0])
		sent := tracks(w, w.Nodes[0], to, 4, 200, time.Minute)
		w.Run(5 * time.Minute)
		for _, n := range w.Nodes[1:] {
			once(t, w, n.Site, 1, *sent)
		}
		check.Equal(t, "datagrams of four messages", frames(w, w.Nodes[0])-before, c.most)
	}
}

// TestIdleAirForTheSilent: a silent ship cannot ask for a message that it lost, and those after it wait. Where air is free, one
// of ten frames may be lost, and the ship sees nearly every message as it comes.
func TestIdleAirForTheSilent(t *testing.T) {
	for _, link := range []string{"iridium-dialup", "vhf-cnr-16k"} {
		late, all := 0, 0
		for seed := range uint64(3) {
			w := world(t, 3, link, 70+seed, func(cfg *sim.Config) {
				cfg.Profile.Up.LossPct, cfg.Profile.Down.LossPct = 10, 10
				cfg.Group = cfg.Profile.Shared
				if cfg.Profile.CopyAfter == 0 {
					cfg.Profile.CopyAfter = 300 * time.Millisecond
				}
			})
			hq, ship := w.Nodes[0], w.Nodes[2]
			ship.Site.Put(w, pipeItem(3, pipeHQ))
			w.Run(5 * time.Minute)
			order(w, ship, api.Silence{On: true, Announce: true})
			w.Run(time.Minute)
			sent := tracks(w, hq, []uint16{3}, 100, 200, 20*time.Second)
			w.Run(35 * time.Minute)
			order(w, ship, api.Silence{})
			w.Run(10 * time.Minute)
			took, err := air.Each(ship.Site.Got, 1, *sent)
			if err != nil {
				t.Fatalf("%s: %v", link, err)
			}
			for _, d := range took {
				if all++; d > 15*time.Second {
					late++
				}
			}
		}
		if t.Logf("%s: %d of %d came late", link, late, all); late > all/100 {
			t.Errorf("%s: %d of %d messages came more than 15 s late to a silent ship, want at most one in 100", link, late, all)
		}
	}
}
