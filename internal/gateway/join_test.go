package gateway_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// byRoster lets the rosters of a world say that all are on its first bearer, and the last so many come later; no configuration names a
// peer. Of a star only the shore has an address.
func byRoster(later int) func(*sim.Config) {
	return func(c *sim.Config) {
		c.Roster, c.Later = true, later
		c.Ways = func(n *sim.Node) (ways []roster.Way, relay bool) {
			w := roster.Way{}
			if n.ID == 1 && !c.Group {
				w.Addr = n.Addr()
			}
			ways = []roster.Way{w}
			if c.Second != nil {
				ways = append(ways, roster.Way{Bearer: c.Second.Name})
			}
			return ways, false
		}
		c.Configure = func(_ *sim.Node, cfg *gateway.Config) {
			cfg.Peers = nil
			for i := range cfg.More {
				cfg.More[i].Peers = map[uint16]netip.AddrPort{}
			}
		}
	}
}

// joins starts a node with the next roster, which names the nodes.
func joins(t *testing.T, w *sim.World, old *roster.Roster, n *sim.Node, nodes ...*sim.Node) *roster.Roster {
	t.Helper()
	r := w.Roster(old, time.Time{}, nodes...)
	check.NoError(check.Fatal(t), w.Begin(n, r))
	return r
}

// up is how many peers of a node answer.
func up(w *sim.World, n *sim.Node) (count int) {
	for _, p := range n.GW.Status(w.Now).Peers {
		if p.Link == "up" {
			count++
		}
	}
	return count
}

// took is how long the messages took that were sent from one time to another, of all receivers; lost is how many did not come.
func took(nodes []*sim.Node, from uint16, sent []offered, begin, end time.Time) (list []time.Duration, lost int) {
	for _, n := range nodes {
		at := map[string]time.Time{}
		for _, g := range n.Site.Got {
			if key := string(g.Payload.Parts[0].Data); g.From == from {
				if !at[key].IsZero() {
					lost += 1 << 16 // it came twice
				}
				at[key] = g.At
			}
		}
		for _, o := range sent {
			if o.At.Before(begin) || !o.At.Before(end) {
				continue
			}
			if came := at[string(o.Message.Parts[0].Data)]; came.IsZero() {
				lost++
			} else {
				list = append(list, came.Sub(o.At))
			}
		}
	}
	slices.Sort(list)
	return list, lost
}

// TestJoin: a 17th gateway joins 16 on hf-2400, alone and beside a message of 200 octets to all every 20 s. Nobody else is restarted or
// told by hand.
func TestJoin(t *testing.T) {
	var alone, beside []int64
	var late, all int
	for seed := uint64(1); seed <= seeds(20); seed++ {
		in := check.In(t, fmt.Sprint("seed ", seed))
		w := mulWorld(t, 17, seed, byRoster(1))
		w.Run(20 * time.Minute)
		idle := sentByAll(w)
		joins(t, w, w.First(), w.Nodes[16], w.Nodes...)
		w.Run(20 * time.Minute)
		alone = append(alone, sentByAll(w)-idle)
		for _, n := range w.Nodes {
			check.Equal(in, "peers up at "+n.Name, up(w, n), 16)
		}
		w.Nodes[16].Site.Send(w, track(17, pipeHQ, 1, 200), 1, 5)
		w.Nodes[4].Site.Send(w, track(5, pipeHQ, 1, 200), 17)
		w.Run(5 * time.Minute)
		check.True(in, "it is heard and told", len(w.Nodes[0].Site.Got) == 1 && len(w.Nodes[4].Site.Got) == 1 && len(w.Nodes[16].Site.Got) == 1)

		for i := range 2 {
			var w *sim.World
			octets, counts := int64(0), false
			w = mulWorld(t, 17, seed+100, byRoster(1), func(c *sim.Config) {
				c.Committed = func(n *sim.Node, out api.Output) {
					for _, d := range out.Datagrams { // introductions, greetings and HELLOs, and all that is from it or for it alone
						if counts && (n.ID == 17 || d.Addr == w.Nodes[16].Addr() || d.Data[0]&0x10 != 0 && len(d.Data) < 250) {
							octets += int64(len(d.Data) + profile.IPUDPOctets)
						}
					}
				}
			})
			w.Run(20 * time.Minute)
			var to []uint16
			for id := uint16(2); id <= 16; id++ {
				to = append(to, id)
			}
			begin := w.Now
			sent := tracks(w, w.Nodes[0], to, 150, 200, 20*time.Second)
			w.Run(30 * time.Minute)
			if counts = true; i == 1 {
				joins(t, w, w.First(), w.Nodes[16], w.Nodes...)
			}
			joined := w.Now
			w.Run(20 * time.Minute)
			counts = false
			w.Run(20 * time.Minute)
			was, lost := took(w.Nodes[1:16], 1, *sent, begin, joined)
			is, more := took(w.Nodes[1:16], 1, *sent, joined, joined.Add(19*time.Minute))
			check.Equal(in, "lost or twice", lost+more, 0)
			if i == 1 {
				p95 := was[len(was)*95/100]
				for _, d := range is {
					if all++; d > p95 {
						late++
					}
				}
				check.Equal(in, "peers up at the new one", up(w, w.Nodes[16]), 16)
				beside = append(beside, octets)
			} else {
				check.Equal(in, "octets that are counted without it", octets, 0)
			}
		}
	}
	slices.Sort(alone)
	slices.Sort(beside)
	t.Logf("octets for joining: alone %v, beside messages %v; later than the 95th percentile before: %d of %d", alone, beside, late, all)
	check.True(t, "octets", alone[len(alone)-1] <= 4000, alone)
	check.True(t, "octets beside messages, at the median", beside[len(beside)/2] <= 4000, beside)
	check.True(t, "5 % are late", 20*late <= all || len(beside) < 20, late, all) // of few seeds it says little
}

// TestJoinAway: a member is off for 30 days while three join and one is revoked. When it is back it speaks after two datagrams each way.
func TestJoinAway(t *testing.T) {
	for seed := uint64(1); seed <= 3*seeds(7); seed++ {
		in := check.In(t, fmt.Sprint("seed ", seed))
		counts, last := map[uint16]int{}, 0
		octets := 0
		var w *sim.World
		w = world(t, 7, "iridium-directip", seed, byRoster(3), func(c *sim.Config) {
			for _, d := range []*profile.Direction{&c.Profile.Up, &c.Profile.Down, &c.Wire.Up, &c.Wire.Down} {
				d.LossPct, d.Fades = 0, profile.Fades{}
			}
			c.Committed = func(n *sim.Node, out api.Output) {
				for _, d := range out.Datagrams {
					if w != nil && (n.ID == 4 || n.ID == 1 && d.Addr == w.Nodes[3].Addr()) {
						counts[n.ID]++
						octets += len(d.Data) + profile.IPUDPOctets
					}
				}
			}
		})
		hq, away := w.Nodes[0], w.Nodes[3]
		w.Run(10 * time.Minute)
		w.Kill(away, 30*24*time.Hour)
		r, nodes := w.First(), slices.Clone(w.Nodes[:4])
		for _, n := range w.Nodes[4:] {
			nodes = append(nodes, n)
			w.Run(5 * 24 * time.Hour)
			r = joins(t, w, r, n, nodes...)
			w.Run(time.Hour)
			check.Equal(in, "met", up(w, n), 1)
		}
		r = w.Roster(r, time.Time{}, slices.Delete(nodes, 2, 3)...)
		w.Give(hq, gateway.NewRoster{Roster: r})
		w.Run(30*24*time.Hour - w.Now.Sub(sim.Epoch) + 10*time.Minute - time.Second)
		clear(counts)
		octets = 0
		got := len(hq.Site.Got)
		away.Site.Send(w, track(4, pipeHQ, 1, 200), 1)
		for last = 0; last < 1200 && len(hq.Site.Got) == got; last++ {
			w.Run(100 * time.Millisecond)
		}
		up4, down1, at := counts[4], counts[1], octets
		w.Run(10 * time.Minute)
		t.Logf("seed %d: its first message is there after %d datagrams from it and %d to it, %d octets; %d in ten minutes", seed, up4, down1, at, octets)
		check.True(in, "two datagrams each way, and the message", up4 <= 3 && down1 <= 2, up4, down1)
		check.Equal(in, "its message has come", len(hq.Site.Got), got+1)
		check.Equal(in, "its roster", away.GW.Status(w.Now).Roster.Serial, r.Serial)
		check.True(in, "at most 2 kB", octets <= 2000, octets)
		check.Equal(in, "peers of HQ that are up", up(w, hq), 5)
	}
}

// TestJoinStar: a ship joins a star through its shore, and nothing goes to the other ships for that.
func TestJoinStar(t *testing.T) {
	for _, link := range []string{"iridium-directip", "iridium-dialup", "iridium-certus-100"} {
		for seed := uint64(1); seed <= 20; seed++ {
			in := check.In(t, fmt.Sprint(link, ", seed ", seed))
			w := world(t, 5, link, seed, byRoster(1))
			hq, ship, new := w.Nodes[0], w.Nodes[1], w.Nodes[4]
			hq.Site.Put(w, pipeItem(1, pipeHQ))
			w.Run(20 * time.Minute)
			quiet, _ := w.Octets(ship)
			begin, _ := w.Octets(hq)
			joins(t, w, w.First(), new, w.Nodes...)
			w.Run(20 * time.Minute)
			check.Equal(in, "HQ and the ship have met", up(w, new), 1)
			check.Equal(in, "peers of the ship", len(new.GW.Status(w.Now).Peers), 1)
			is, _ := w.Octets(ship)
			check.Equal(in, "octets from another ship", is, quiet)
			down, _ := w.Octets(hq)
			upwards, _ := w.Octets(new)
			check.True(in, "octets", down-begin+upwards <= 2000, down-begin+upwards)
			sent := tracks(w, hq, []uint16{2, 5}, 5, 200, 20*time.Second)
			back := tracks(w, new, []uint16{1}, 5, 200, 20*time.Second)
			w.Run(10 * time.Minute)
			once(t, w, new.Site, 1, *sent)
			once(t, w, ship.Site, 1, *sent)
			once(t, w, hq.Site, 5, *back)
			w.Kill(hq, time.Second) // it has no configuration of the ship
			more := tracks(w, new, []uint16{1}, 5, 200, 20*time.Second)
			w.Run(20 * time.Minute)
			once(t, w, hq.Site, 5, append(*back, *more...))
		}
	}
}

// TestJoinTwoBearers: who joins is met on both bearers that the roster names.
func TestJoinTwoBearers(t *testing.T) {
	for seed := uint64(1); seed <= seeds(20); seed++ {
		in := check.In(t, fmt.Sprint("seed ", seed))
		w := world(t, 4, "iridium-directip", seed, func(c *sim.Config) {
			c.Second = &sim.Second{Name: "hf", Profile: load(t, "hf-2400"), Group: true, Price: 2 * gateway.UsualPrice}
			c.Second.Profile.Transport = profile.PMul
		}, byRoster(1))
		hq, new := w.Nodes[0], w.Nodes[3]
		w.Run(20 * time.Minute)
		joins(t, w, w.First(), new, w.Nodes...)
		w.Run(10 * time.Minute)
		check.True(in, "met by satellite", up(w, new) >= 1)
		sent := tracks(w, hq, []uint16{4}, 20, 200, 30*time.Second)
		back := tracks(w, new, []uint16{1}, 20, 200, 30*time.Second)
		w.Run(3 * time.Minute)
		w.Cut(0, new, true)
		w.Run(time.Hour)
		each(t, w, new.Site, 1, *sent)
		each(t, w, hq.Site, 4, *back)
		check.True(in, "HF has carried some", octetsOn(w, 1, new) > 2000, octetsOn(w, 1, new))
	}
}

// each is once where messages may overtake each other.
func each(t *testing.T, w *sim.World, at *sim.Site, from uint16, sent []offered) {
	t.Helper()
	if _, err := air.Each(at.Got, from, sent); err != nil {
		t.Fatalf("%v\n%v", err, tail(w.Notes))
	}
}

// TestJoinKilledAtEveryCommit kills the new node, HQ or another member before or after each of its commits while it joins. Messages go on,
// none is lost or comes twice, and no nonce comes twice.
func TestJoinKilledAtEveryCommit(t *testing.T) {
	for _, group := range []bool{true, false} {
		for _, who := range []uint16{5, 1, 2} {
			most := 0
			for kill := 0; kill <= most; kill++ {
				for _, before := range []bool{false, true} {
					commits := joinKilled(t, group, who, kill, before)
					if kill == 0 {
						most = commits
					}
				}
			}
			t.Logf("group %v: node %d killed at each of %d commits, before and after", group, who, most)
		}
	}
}

func joinKilled(t *testing.T, group bool, who uint16, kill int, before bool) (commits int) {
	t.Helper()
	joining := false
	change := func(c *sim.Config) {
		c.Crash = func(n *sim.Node, _ int) (bool, bool) {
			if !joining || n.ID != who {
				return false, false
			}
			commits++
			return commits == kill && before, commits == kill && !before
		}
	}
	var w *sim.World
	if group {
		w = mulWorld(t, 5, 1, byRoster(1), change)
	} else {
		w = world(t, 5, "iridium-directip", 1, byRoster(1), change)
	}
	hq, member, new := w.Nodes[0], w.Nodes[1], w.Nodes[4]
	w.Run(10 * time.Minute)
	r := w.Roster(w.First(), time.Time{}, w.Nodes...)
	nonces := watchNonces(t, w, r, w.First())
	joining = true
	check.NoError(check.Fatal(t), w.Begin(new, r))
	sent := tracks(w, hq, []uint16{2, 3}, 4, 200, 20*time.Second)
	w.Run(3 * time.Minute)
	count := commits
	joining = false
	w.Run(20 * time.Minute)
	more := tracks(w, new, []uint16{1}, 2, 210, 20*time.Second)
	down := tracks(w, hq, []uint16{5, 2}, 2, 220, 20*time.Second)
	w.Run(10 * time.Minute)
	in := check.In(t, fmt.Sprintf("group %v, node %d, commit %d, before %v", group, who, kill, before))
	lost := func(at *sim.Node, from uint16, lists ...[]offered) {
		if _, err := air.Each(at.Site.Got, from, slices.Concat(lists...)); err != nil {
			check.NoError(in, err)
			t.Log(tail(w.Notes))
		}
	}
	lost(member, 1, *sent, *down)
	lost(w.Nodes[2], 1, *sent)
	lost(new, 1, *down)
	lost(hq, 5, *more)
	check.Equal(in, "nonces that came twice", *nonces, 0)
	check.Equal(in, "serial of HQ", hq.GW.Status(w.Now).Roster.Serial, uint32(2))
	return count
}

// watchNonces counts datagrams that have the key and nonce of another one.
func watchNonces(t *testing.T, w *sim.World, rosters ...*roster.Roster) *int {
	type use struct {
		from, to    uint16
		incarnation seal.Incarnation
		counter     uint32
	}
	twice, seen := new(int), map[use]string{}
	openers := map[[2]uint16]*seal.Opener{}
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		at := [2]uint16{from.ID, to.ID}
		if openers[at] == nil {
			ring, err := roster.Ring(to.ID, sim.NodeKey(to.ID), rosters...)
			check.NoError(check.Fatal(t), err)
			openers[at] = seal.NewOpener(ring, to.ID, seal.Incarnation{}, map[uint16]seal.PeerState{from.ID: {}})
		}
		if _, _, info, err := openers[at].Open(data); err == nil {
			u := use{from.ID, to.ID, info.Incarnation, info.Counter}
			if info.Group {
				u.to = seal.Group
			}
			if was, ok := seen[u]; ok && was != string(data) {
				*twice++
			}
			seen[u] = string(data)
		}
		return [][]byte{data}
	}
	return twice
}

// TestJoinRefused: what is not a newer roster of the authority is not taken, with one line, and messages go on.
func TestJoinRefused(t *testing.T) {
	w := mulWorld(t, 5, 1, byRoster(1))
	hq, evil := w.Nodes[0], seal.NewSigningKey([32]byte{7})
	w.Run(10 * time.Minute)
	second := w.Roster(w.First(), time.Time{}, w.Nodes[:4]...)
	w.Give(hq, gateway.NewRoster{Roster: second})
	w.Run(2 * time.Hour)
	sent := tracks(w, hq, []uint16{2, 3, 4}, 30, 200, time.Minute)
	var list []roster.Node
	for _, n := range w.Nodes {
		list = append(list, roster.Node{ID: n.ID, Name: n.Name, Public: sim.NodeKey(n.ID).Public(), Ways: []roster.Way{{}}})
	}
	forged, err := roster.Issue("sim", second, list, w.Now, time.Time{}, [roster.RandomForIssue]byte{9}, evil)
	check.NoError(check.Fatal(t), err)
	older, err := roster.Issue("sim", nil, list, w.Now, time.Time{}, [roster.RandomForIssue]byte{8}, sim.Authority())
	check.NoError(check.Fatal(t), err)
	intro := func(r *roster.Roster, from uint32) [][]byte {
		e, err := r.Epoch(5, sim.NodeKey(5))
		check.NoError(check.Fatal(t), err)
		return seal.IntroParts(r.Introduction(from, e.Secret), 480)
	}
	junk := [][]byte{{0x40, 1, 2, 0, 1, 0}, append([]byte{0x40, 1, 2, 0, 1}, make([]byte, 400)...), {0x40, 9, 9, 0, 255, 1, 2, 3}, {0x40, 1, 2, 5, 1, 0}}
	for _, parts := range [][][]byte{intro(forged, 2), intro(forged, 0), intro(older, 0), junk} {
		for range 50 {
			for _, data := range parts {
				w.Inject(hq, data)
			}
			w.Run(2 * time.Second)
		}
	}
	w.Run(time.Hour)
	check.Equal(t, "serial", hq.GW.Status(w.Now).Roster.Serial, uint32(2))
	check.Equal(t, "peers", len(hq.GW.Status(w.Now).Peers), 3)
	lines := strings.Count(strings.Join(w.Notes, "\n"), "a new node brought a roster that was rejected")
	check.Equal(t, "lines", lines, 1)
	check.True(t, "counted", hq.GW.Status(w.Now).Dropped["introduction"] > 50, hq.GW.Status(w.Now).Dropped)
	for _, n := range w.Nodes[1:4] {
		each(t, w, n.Site, 1, *sent)
	}
	third := joins(t, w, second, w.Nodes[4], w.Nodes...)
	w.SetClock(w.Nodes[4], 24*time.Hour)
	w.Run(30 * time.Minute)
	check.Equal(t, "serial with the true one", hq.GW.Status(w.Now).Roster.Serial, third.Serial)
}

// TestJoinBehindARelay: a ship joins a star whose shore is willing to pass on. The other ship, which does not hear it, knows what it
// has, and they talk; nobody is restarted or told by hand.
func TestJoinBehindARelay(t *testing.T) {
	for seed := uint64(1); seed <= seeds(20); seed++ {
		w := world(t, 3, "iridium-directip", seed, byRoster(1), func(c *sim.Config) {
			by, configure := c.Ways, c.Configure
			c.Ways = func(n *sim.Node) ([]roster.Way, bool) { ways, _ := by(n); return ways, n.ID == 1 }
			c.Configure = func(n *sim.Node, cfg *gateway.Config) { configure(n, cfg); cfg.Relay = n.ID == 1 }
		})
		shore, ship, late := w.Nodes[0], w.Nodes[1], w.Nodes[2]
		w.Run(5 * time.Minute)
		joins(t, w, w.First(), late, w.Nodes...)
		ship.Site.Put(w, pipeItem(1, pipeHQ))
		late.Site.Put(w, pipeItem(1, pipeHQ))
		w.Run(time.Minute)
		in := check.In(t, fmt.Sprint("seed ", seed))
		check.Equal(in, "items of the ship at the new one", linkTo(w, late, 2).FarItems, 1)
		check.Equal(in, "items of the new one at the ship", linkTo(w, ship, 3).FarItems, 1)
		there, back := tracks(w, ship, []uint16{3}, 10, 200, 20*time.Second), tracks(w, late, []uint16{1, 2}, 10, 200, 20*time.Second)
		w.Run(10 * time.Minute)
		each(t, w, late.Site, 2, *there)
		each(t, w, ship.Site, 3, *back)
		each(t, w, shore.Site, 3, *back)
	}
}

// A roster that calls a bearer as other gateways are called says nothing about these: the relay's gateway starts, and meets its peers.
func TestJoinByABearerCalledRelay(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1, byRoster(0), func(c *sim.Config) {
		configure, ways := c.Configure, c.Ways
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			configure(n, g)
			g.Relay = true
		}
		c.Ways = func(n *sim.Node) ([]roster.Way, bool) {
			list, relay := ways(n)
			return append(list, roster.Way{Bearer: "relay", Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n.ID)}), 7)}), relay
		}
	})
	w.Nodes[1].Site.Send(w, track(2, pipeHQ, 1, 200), 1)
	w.Run(5 * time.Minute)
	check.Equal(t, "messages at HQ", len(w.Nodes[0].Site.Got), 1)
}
