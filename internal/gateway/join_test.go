package gateway_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

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

// TestJoin: a 17th gateway joins 16 on hf-2400, alone and with a message of 200 octets to all every 20 s. Nobody else is restarted or
// told by hand.
func TestJoin(t *testing.T) {
	t.Parallel()
	var beside, late []float64
	for i := range seeds(20) {
		seed := (8+i)%20 + 1 // one plays that in which a member does not hear the first two introductions
		j, err := air.Join(t.Context(), seed)
		check.NoError(check.Fatal(t), err)
		check.True(t, "octets", j.Alone <= 4000, j.Alone, seed)
		beside, late = append(beside, j.Beside), append(late, j.LatePct)
	}
	check.True(t, "octets beside messages, at the median", median(beside) <= 4000, beside)
	check.True(t, "5 % are late", median(late) <= 5 || len(late) < 20, late) // of few seeds it says little
}

// TestJoinAway: a member is off for 30 days while three join and one is revoked. When it is back it speaks after two datagrams each way.
func TestJoinAway(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 3*seeds(7); seed++ {
		a, err := air.Away(t.Context(), seed)
		check.NoError(check.Fatal(t), err)
		check.True(t, "two datagrams each way, and the message", a.From <= 3 && a.To <= 2, a)
		check.True(t, "at most 2 kB", a.Octets <= 2000, a)
	}
}

// TestJoinStar: a ship joins a star through its shore, and nothing goes to the other ships for that.
func TestJoinStar(t *testing.T) {
	t.Parallel()
	for _, link := range []string{"iridium-directip", "iridium-dialup", "iridium-certus-100"} {
		for seed := uint64(1); seed <= 20; seed++ {
			in := check.In(t, fmt.Sprint(link, ", seed ", seed))
			w := world(t, 5, link, seed, air.ByRoster(1))
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

// TestJoinTwoBearers: a node that joins is met on both bearers that the roster names.
func TestJoinTwoBearers(t *testing.T) {
	for seed := uint64(1); seed <= seeds(20); seed++ {
		in := check.In(t, fmt.Sprint("seed ", seed))
		w := world(t, 4, "iridium-directip", seed, func(c *sim.Config) {
			c.Second = &sim.Second{Name: "hf", Profile: load(t, "hf-2400"), Group: true, Price: 2 * gateway.UsualPrice}
			c.Second.Profile.Transport = profile.PMul
		}, air.ByRoster(1))
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
	t.Parallel()
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
		w = mulWorld(t, 5, 1, air.ByRoster(1), change)
	} else {
		w = world(t, 5, "iridium-directip", 1, air.ByRoster(1), change)
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

// TestJoinRefused: anything but a newer roster of the authority is refused, with one line in the log, and messages go on.
func TestJoinRefused(t *testing.T) {
	w := mulWorld(t, 5, 1, air.ByRoster(1))
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
		w := world(t, 3, "iridium-directip", seed, air.ByRoster(1), func(c *sim.Config) {
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
	w := world(t, 2, "iridium-directip", 1, air.ByRoster(0), func(c *sim.Config) {
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

// A reload that no longer names a site which the roster names keeps it, as a restart would.
func TestWhomTheRosterNamesStaysWithoutAConfiguration(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1, air.ByRoster(0), func(c *sim.Config) {
		configure := c.Configure
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			peers := g.Peers
			if configure(n, g); n.ID == 1 {
				g.Peers = peers
			}
		}
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(5 * time.Minute)
	ship.Site.Send(w, track(2, pipeHQ, 0, 200), 1)
	check.True(t, "the status says that it would stay", hq.GW.Status(w.Now).Peers[0].Enrolled)
	w.Give(hq, gateway.NewLink{})
	ship.Site.Send(w, track(2, pipeHQ, 1, 200), 1)
	hq.Site.Send(w, track(1, pipeShip, 2, 200), 2)
	w.Run(5 * time.Minute)
	check.Equal(t, "peers of HQ", len(hq.GW.Status(w.Now).Peers), 1)
	check.Equal(t, "messages at HQ", len(hq.Site.Got), 2)
	check.Equal(t, "messages at the ship", len(ship.Site.Got), 1)
}

// A ship joins a star whose shore passes on messages for others, as the roster says: it and the other ships speak to each other at once,
// without a via key, an edit or a restart. The state of its site is there as well, and all go on after restarts.
func TestJoinThroughARelay(t *testing.T) {
	for seed := uint64(1); seed <= max(5, seeds(20)); seed++ {
		in := check.In(t, fmt.Sprint("seed ", seed))
		w := world(t, 4, "iridium-certus-100", seed, air.ByRoster(1), func(c *sim.Config) {
			configure := c.Configure
			c.Configure = func(n *sim.Node, g *gateway.Config) {
				configure(n, g)
				g.Relay = n.ID == 1
			}
			c.Ways = func(n *sim.Node) ([]roster.Way, bool) {
				w := roster.Way{}
				if n.ID == 1 {
					w.Addr = n.Addr()
				}
				return []roster.Way{w}, n.ID == 1
			}
		})
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			if from.ID != 1 && to.ID != 1 {
				return nil
			}
			return [][]byte{data}
		}
		w.Run(10 * time.Minute)
		joins(t, w, w.First(), w.Nodes[3], w.Nodes...)
		w.Run(10 * time.Minute)
		for round := range 2 {
			for _, n := range w.Nodes[1:] {
				for _, to := range w.Nodes[1:] {
					if to != n {
						n.Site.Send(w, track(n.ID, pipeHQ, round, 200), to.ID)
					}
				}
			}
			w.Nodes[3].Site.Listen(w, peerID(4), fmt.Sprint(pipeHQ, round))
			w.Run(20 * time.Minute)
			for _, n := range w.Nodes[1:] {
				check.Equal(in, fmt.Sprint(n.Name, ": messages, round ", round), len(n.Site.Got), 2*(round+1))
				check.Equal(in, fmt.Sprint(n.Name, ": items of the new site, round ", round), n.ID == 4 || len(n.Site.Far[4]) == round+1, true)
			}
			w.Kill(w.Nodes[1], time.Second)
			w.Kill(w.Nodes[3], 2*time.Second)
			w.Run(10 * time.Minute)
		}
	}
}
