package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// serials are the rosters that each node goes by, and by which it seals for all.
func serials(w *sim.World) string {
	var text []string
	for _, n := range w.Nodes {
		s := n.GW.Status(w.Now).Roster
		text = append(text, fmt.Sprintf("%d/%d", s.Serial, s.Sealing))
	}
	return strings.Join(text, " ")
}

func same(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+" ", n), " ") }

// A new roster is given to one node of a star; the others have it from that, and messages go on meanwhile, whoever crashes.
func TestRolloverStar(t *testing.T) {
	for seed := range uint64(6) {
		w := world(t, 4, "iridium-directip", seed, withRoster, func(c *sim.Config) {
			if seed%2 == 1 {
				c.CrashBeforeCommit, c.CrashAfterCommit = 0.01, 0.01
			}
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(time.Minute)
		hq.Site.Put(w, pipeItem(1, pipeHQ))
		sent := tracks(w, hq, []uint16{2, 3, 4}, 30, 200, 5*time.Second)
		up := tracks(w, ship, []uint16{1}, 30, 200, 5*time.Second)
		next := w.Roster(w.First(), time.Time{}, w.Nodes...)
		w.At(30*time.Second, func() { w.Give(hq, gateway.NewRoster{Roster: next}) })
		w.At(60*time.Second, func() {
			if hq.GW != nil {
				w.Give(hq, gateway.NewRoster{Roster: next})
			}
		})
		w.Run(5 * time.Minute)
		w.EndCrashes()
		w.Run(5 * time.Minute)
		if seed%2 == 0 {
			for _, n := range w.Nodes[1:] {
				once(t, w, n.Site, 1, *sent)
			}
			once(t, w, hq.Site, 2, *up)
		}
		for _, n := range w.Nodes {
			check.Equal(check.In(t, fmt.Sprint(seed)), "serial of "+n.Name, n.GW.Status(w.Now).Roster.Serial, uint32(2))
		}
	}
}

// On an HF channel one transmission tells sixteen nodes; one of them is silent for a week. Nobody is locked out, and no message
// is lost.
func TestRolloverSixteen(t *testing.T) {
	w := mulWorld(t, 16, 1, withRoster)
	hq, quiet := w.Nodes[0], w.Nodes[15]
	w.Run(20 * time.Minute)
	order(w, quiet, api.Silence{On: true, Until: w.Now.Add(7 * 24 * time.Hour), Announce: true})
	w.Run(10 * time.Minute)
	before := sentByAll(w)
	hqBefore, _ := w.Octets(hq)
	var sizes []string
	heard, forQuiet := map[string]int{}, map[string]bool{} // by how many nodes; by the silent one
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if heard[string(data)]++; to == quiet {
			forQuiet[string(data)] = true
			sizes = append(sizes, fmt.Sprintf("%s:%d", from.Name, len(data)))
		}
		return [][]byte{data}
	}
	next := w.Roster(w.First(), w.Now.Add(24*time.Hour), w.Nodes...)
	w.Give(hq, gateway.NewRoster{Roster: next})
	w.Run(time.Hour)
	up0, _ := w.Octets(hq)
	t.Logf("roster of %d octets: %d octets from who gives it, %d acknowledgements of 14", len(next.Append(nil)), up0-hqBefore, sentByAll(w)-before-up0+hqBefore)
	t.Logf("%d datagrams: %v", len(sizes), sizes)
	for data := range forQuiet {
		check.True(t, "nothing is for the silent node's own address", heard[data] > 1, len(data))
	}
	w.Tap = nil
	check.Equal(t, "by which, and for all", serials(w), same(16, "2/1"))
	w.Run(25 * time.Hour)
	check.Equal(t, "a day later", serials(w), same(16, "2/2"))
	w.Run(5 * 24 * time.Hour)
	everyone := []uint16{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	sent := tracks(w, hq, everyone, 10, 200, time.Minute)
	w.Run(2 * 24 * time.Hour)
	for _, n := range w.Nodes[1:] {
		once(t, w, n.Site, 1, *sent)
	}
	up := tracks(w, quiet, []uint16{1}, 5, 200, time.Minute)
	w.Run(time.Hour)
	once(t, w, hq.Site, 16, *up)
}

// A node that has missed all of a rollover is told when it speaks again, also when messages for all are sealed by the new roster already;
// and a clock that is a day ahead locks nobody out.
func TestRolloverMissed(t *testing.T) {
	for _, ahead := range []time.Duration{0, 24 * time.Hour} {
		w := mulWorld(t, 4, 1, withRoster)
		hq, lost := w.Nodes[0], w.Nodes[3]
		w.Run(10 * time.Minute)
		w.Outage(lost, 30*time.Hour)
		first := w.Roster(w.First(), w.Now.Add(2*time.Hour), w.Nodes...)
		w.Give(hq, gateway.NewRoster{Roster: first})
		w.Run(8 * time.Hour)
		check.Equal(t, "after one", serials(w), "2/2 2/2 2/2 1/1")
		second := w.Roster(first, w.Now.Add(ahead), w.Nodes...)
		w.Give(w.Nodes[1], gateway.NewRoster{Roster: second})
		w.Run(ahead + 23*time.Hour)
		w.Kill(lost, time.Second) // it greets
		w.Run(2 * time.Hour)
		check.Equal(t, "when it is back", serials(w), same(4, "3/3"))
		sent := tracks(w, hq, []uint16{2, 3, 4}, 5, 200, time.Minute)
		up := tracks(w, lost, []uint16{1}, 5, 200, time.Minute)
		w.Run(time.Hour)
		for _, n := range w.Nodes[1:] {
			once(t, w, n.Site, 1, *sent)
		}
		once(t, w, hq.Site, 4, *up)
	}
}

// Without a time, messages for all are sealed by the new roster as soon as all have it, and not before.
func TestRolloverWhenAllHaveIt(t *testing.T) {
	w := mulWorld(t, 4, 2, withRoster)
	hq, quiet := w.Nodes[0], w.Nodes[3]
	w.Run(10 * time.Minute)
	order(w, quiet, api.Silence{On: true, Until: w.Now.Add(3 * time.Hour), Announce: true})
	w.Run(time.Minute)
	w.Give(hq, gateway.NewRoster{Roster: w.Roster(w.First(), time.Time{}, w.Nodes...)})
	w.Run(2 * time.Hour)
	check.Equal(t, "while one is silent", serials(w), "2/1 2/1 2/1 2/1")
	w.Run(2 * time.Hour)
	tracks(w, hq, []uint16{2, 3, 4}, 1, 200, time.Minute)
	w.Run(time.Hour)
	check.Equal(t, "when it has said that it has it", serials(w), same(4, "2/2"))
}

// A node that the roster no longer names is not heard, gets nothing, and messages that wait for it are refused.
func TestRevocation(t *testing.T) {
	for _, group := range []bool{false, true} {
		var w *sim.World
		if group {
			w = mulWorld(t, 4, 1, withRoster)
		} else {
			w = world(t, 4, "iridium-directip", 1, withRoster)
		}
		in := check.In(t, fmt.Sprint("group ", group))
		hq, friend, bad := w.Nodes[0], w.Nodes[1], w.Nodes[3]
		w.Run(10 * time.Minute)
		next := w.Roster(w.First(), time.Time{}, w.Nodes[:3]...)
		w.Give(hq, gateway.NewRoster{Roster: next})
		w.Run(30 * time.Minute)
		_, down := w.Octets(bad)
		got := len(hq.Site.Got)
		tracks(w, bad, []uint16{1, 2}, 5, 200, 10*time.Second)
		sent := tracks(w, hq, []uint16{2, 3}, 5, 200, 10*time.Second)
		w.Run(10 * time.Minute)
		check.Equal(in, "messages of the one that is gone", len(hq.Site.Got), got)
		once(t, w, friend.Site, 1, *sent)
		s := hq.GW.Status(w.Now)
		check.True(in, "counted", s.Dropped["gone"] > 0, s.Dropped)
		check.True(in, "named", strings.Contains(strings.Join(w.Notes, "\n"), "hq warn: a node that the roster no longer names"))
		if _, is := w.Octets(bad); !group {
			check.Equal(in, "octets for it", is, down)
		}
		check.Equal(in, "serial of the one that is gone", bad.GW.Status(w.Now).Roster.Serial, uint32(1))
		w.Kill(hq, time.Second) // the roster that it goes by is durable
		w.Run(5 * time.Minute)
		check.Equal(in, "after a restart", hq.GW.Status(w.Now).Roster.Serial, uint32(2))
		more := tracks(w, bad, []uint16{1}, 2, 200, 10*time.Second)
		w.Run(5 * time.Minute)
		check.Equal(in, "messages of it after a restart", len(hq.Site.Got), got)
		_ = more
	}
}

// Messages that wait for a node when the roster no longer names it are refused there and then, over P_Mul too, also after a restart;
// for the others they go on.
func TestRevocationRefusesWhatWaits(t *testing.T) {
	for _, group := range []bool{false, true} {
		for _, restart := range []bool{false, true} {
			var w *sim.World
			if group {
				w = mulWorld(t, 4, 1, withRoster)
			} else {
				w = world(t, 4, "iridium-directip", 1, withRoster)
			}
			in := check.In(t, fmt.Sprint("group ", group, ", restart ", restart))
			hq, friend, bad := w.Nodes[0], w.Nodes[1], w.Nodes[3]
			w.Run(10 * time.Minute)
			w.Outage(bad, 24*time.Hour)
			sent := tracks(w, hq, []uint16{2, 4}, 10, 200, 30*time.Second)
			alone := tracks(w, hq, []uint16{4}, 10, 210, 30*time.Second)
			w.Run(20 * time.Minute)
			once(t, w, friend.Site, 1, *sent)
			p := hq.GW.Status(w.Now).Peers[2]
			check.Equal(in, "for it wait or are under way", p.Waiting+p.UnderWay, len(*sent)+len(*alone))
			w.Give(hq, gateway.NewRoster{Roster: w.Roster(w.First(), time.Time{}, w.Nodes[:3]...)})
			if restart {
				w.Kill(hq, 0)
			}
			w.Run(time.Second)
			p = hq.GW.Status(w.Now).Peers[2]
			check.Equal(in, "wait afterwards", p.Waiting+p.UnderWay, 0)
			if !restart {
				check.Equal(in, "given up", p.Cancelled, uint64(len(*sent)+len(*alone)))
			}
			w.Run(26 * time.Hour)
			p = hq.GW.Status(w.Now).Peers[2]
			check.Equal(in, "expired", p.Expired, uint64(0))
			more := tracks(w, hq, []uint16{2, 3}, 3, 220, 10*time.Second)
			w.Run(20 * time.Minute)
			*sent = append(*sent, *more...)
			once(t, w, friend.Site, 1, *sent)
		}
	}
}

// A roster that is not signed, of another network, older, or that does not name the node is not taken, whoever brings it.
func TestRostersThatAreNotTaken(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1, withRoster)
	hq := w.Nodes[0]
	w.Run(time.Minute)
	nodes := func() (list []roster.Node) {
		for _, n := range w.Nodes {
			list = append(list, roster.Node{ID: n.ID, Name: n.Name, Public: sim.NodeKey(n.ID).Public()})
		}
		return list
	}
	evil, err := roster.Issue("sim", w.First(), nodes(), w.Now, time.Time{}, [roster.RandomForIssue]byte{}, seal.NewSigningKey([32]byte{7}))
	check.NoError(t, err)
	red, err := roster.Issue("red", nil, nodes(), w.Now, time.Time{}, [roster.RandomForIssue]byte{}, sim.Authority())
	check.NoError(t, err)
	for name, r := range map[string]*roster.Roster{"not signed": evil, "of another network": red, "the same": w.First(),
		"without this node": w.Roster(w.First(), time.Time{}, w.Nodes[1])} {
		w.Give(hq, gateway.NewRoster{Roster: r})
		w.Run(time.Minute)
		check.Equal(check.In(t, name), "serial", serials(w), "1/1 1/1")
	}
	check.Equal(t, "refusals in the log", strings.Count(strings.Join(w.Notes, "\n"), "a roster was rejected; nothing has changed"), 4)
}

// A checker that has everybody's keys sees all datagrams: no two of one start have the same counter, over crashes and epochs.
// So no key has a nonce twice, since each start of each node has keys of its own.
func TestNonceOverRollovers(t *testing.T) {
	for seed := range uint64(3) {
		w := mulWorld(t, 4, seed, withRoster, func(c *sim.Config) { c.CrashBeforeCommit, c.CrashAfterCommit = 0.02, 0.02 })
		rosters := []*roster.Roster{w.First()}
		type way struct{ from, to uint16 }
		openers := map[way]*seal.Opener{}
		type use struct {
			from        uint16
			incarnation seal.Incarnation
			counter     uint32
		}
		seen := map[use]string{}
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			at := way{from.ID, to.ID}
			if openers[at] == nil {
				ring, err := roster.Ring(to.ID, sim.NodeKey(to.ID), rosters...)
				check.NoError(check.Fatal(t), err)
				openers[at] = seal.NewOpener(ring, to.ID, seal.Incarnation{}, map[uint16]seal.PeerState{from.ID: {}})
			}
			_, _, info, err := openers[at].Open(data)
			if err != nil {
				return [][]byte{data}
			}
			u := use{from.ID, info.Incarnation, info.Counter}
			if was, ok := seen[u]; ok && was != string(data) {
				t.Errorf("seed %d: node %d, start %v: counter %d twice", seed, u.from, u.incarnation, u.counter)
			}
			seen[u] = string(data)
			return [][]byte{data}
		}
		for i := range 4 {
			tracks(w, w.Nodes[i], []uint16{uint16(i+1)%4 + 1}, 20, 200, 20*time.Second)
			w.Run(5 * time.Minute)
			rosters = append([]*roster.Roster{w.Roster(rosters[0], time.Time{}, w.Nodes...)}, rosters...)
			rosters = rosters[:min(len(rosters), seal.MaxEpochs)]
			openers = map[way]*seal.Opener{}
			if w.Nodes[i].GW != nil {
				w.Give(w.Nodes[i], gateway.NewRoster{Roster: rosters[0]})
			}
		}
		w.Run(10 * time.Minute)
		check.True(check.In(t, fmt.Sprint(seed)), "many datagrams were looked at", len(seen) > 200, len(seen))
	}
}

// A node that was put back to a time before the roster is told again.
func TestRolloverPutBack(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1, withRoster)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(5 * time.Minute)
	w.Give(hq, gateway.NewRoster{Roster: w.Roster(w.First(), time.Time{}, w.Nodes...)})
	w.Run(5 * time.Minute)
	check.Equal(t, "told", serials(w), "2/2 2/2")
	w.LoseBucket(ship, "roster")
	w.Kill(ship, time.Second)
	w.Run(30 * time.Minute)
	check.Equal(t, "told again", serials(w), "2/2 2/2")
}

// A ship misses one roster and is given the next while the one after that begins: it lacks the one in the middle, by which messages
// for all are sealed. Nobody is locked out, whenever that happens and whoever starts again meanwhile.
func TestRolloverGap(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 20 * time.Second, 40 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute} {
		for _, restarts := range []int{-1, 0, 3} {
			in := check.In(t, fmt.Sprintf("%v after, restart of %d", after, restarts))
			w := mulWorld(t, 4, 1, withRoster)
			hq, lost := w.Nodes[0], w.Nodes[3]
			w.Run(10 * time.Minute)
			w.Outage(lost, 3*time.Hour)
			second := w.Roster(w.First(), w.Now.Add(time.Hour), w.Nodes...)
			w.Give(hq, gateway.NewRoster{Roster: second})
			w.Run(2 * time.Hour)
			check.Equal(in, "while it is away", serials(w), "2/2 2/2 2/2 1/1")
			third := w.Roster(second, time.Time{}, w.Nodes...)
			w.Give(w.Nodes[1], gateway.NewRoster{Roster: third})
			w.Run(time.Hour + time.Minute)
			w.Kill(lost, time.Second) // it greets
			w.Run(after)
			fourth := w.Roster(third, time.Time{}, w.Nodes...)
			w.Give(hq, gateway.NewRoster{Roster: fourth})
			w.Run(3 * time.Minute)
			if restarts >= 0 {
				w.Kill(w.Nodes[restarts], time.Second)
			}
			w.Run(3 * time.Hour)
			sent := tracks(w, hq, []uint16{2, 3, 4}, 5, 200, time.Minute)
			up := tracks(w, lost, []uint16{1}, 5, 200, time.Minute)
			w.Run(2 * time.Hour)
			for _, n := range w.Nodes[1:] {
				once(t, w, n.Site, 1, *sent)
			}
			once(t, w, hq.Site, 4, *up)
			check.Equal(in, "in the end", serials(w), same(4, "4/4"))
		}
	}
}

// A start goes on with the roster that was sealed with for all before it: a node that was taken out does not read
// messages for all again.
func TestRolloverIsNotTakenBackByAStart(t *testing.T) {
	w := mulWorld(t, 4, 1, withRoster)
	hq := w.Nodes[0]
	w.Run(10 * time.Minute)
	w.Give(hq, gateway.NewRoster{Roster: w.Roster(w.First(), time.Time{}, w.Nodes[:3]...)})
	w.Run(2 * time.Hour)
	tracks(w, hq, []uint16{2, 3}, 1, 200, time.Minute)
	w.Run(10 * time.Minute)
	check.Equal(t, "when all have it", serials(w), "2/2 2/2 2/2 1/1")
	for _, n := range w.Nodes[:3] {
		w.Kill(n, time.Second)
		w.Run(time.Second + time.Millisecond)
		check.Equal(t, n.Name+" seals with", n.GW.Status(w.Now).Roster.Sealing, uint32(2))
	}
}

// The cost of a rollover of sixteen nodes on an HF channel when nobody is silent: all that anybody sends, acknowledgements too. With the
// losses of the channel something goes again.
func TestRolloverOctets(t *testing.T) {
	type tap = func(from, to *sim.Node, data []byte) [][]byte
	octets := func(seed uint64, lost tap, change ...func(*sim.Config)) int64 {
		w := mulWorld(t, 16, seed, append(change, withRoster)...)
		w.Run(20 * time.Minute)
		before := sentByAll(w)
		w.Tap = lost
		w.Give(w.Nodes[0], gateway.NewRoster{Roster: w.Roster(w.First(), time.Time{}, w.Nodes...)})
		w.Run(time.Hour)
		check.Equal(t, "by which, and for all", serials(w), "2/2"+strings.Repeat(" 2/1", 15)) // the others follow when it is used
		return sentByAll(w) - before
	}
	lossless := func(c *sim.Config) { c.Profile.Up.LossPct, c.Profile.Up.Fades = 0, profile.Fades{} }
	// first loses the first datagram between two nodes.
	first := func(from, to uint16) tap {
		lost := false
		return func(f, n *sim.Node, data []byte) [][]byte {
			if !lost && f.ID == from && n.ID == to {
				lost = true
				return nil
			}
			return [][]byte{data}
		}
	}
	good := octets(0, nil, lossless)
	message, ack := octets(0, first(1, 5), lossless), octets(0, first(5, 1), lossless)
	var list []int64
	for seed := range max(5, seeds(20)) {
		list = append(list, octets(seed, nil))
	}
	slices.Sort(list)
	t.Logf("octets in all: %d without losses, %d and %d where one loses it or its acknowledgement is lost, else %v", good, message, ack, list)
	check.True(t, "1,340 in all without losses", good <= 1340, good)
	check.True(t, "1,770 where one loses it", message <= 1770, message)
	check.True(t, "1,830 where one acknowledgement is lost", ack <= 1830, ack)
	check.True(t, "1,500 in all at the median", list[len(list)/2] <= 1500, list)
}

// A node that says that it has a roster, but was put back since and no longer has it, cannot read the changes, and gets the whole.
func TestRolloverPutBackWhole(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1, withRoster)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(5 * time.Minute)
	second := w.Roster(w.First(), time.Time{}, w.Nodes...)
	w.Give(hq, gateway.NewRoster{Roster: second})
	w.Run(5 * time.Minute)
	w.Outage(ship, 20*time.Minute)
	w.LoseBucket(ship, "roster")
	w.Kill(ship, time.Second)
	w.Give(hq, gateway.NewRoster{Roster: w.Roster(second, time.Time{}, w.Nodes...)})
	w.Run(2 * time.Hour)
	check.Equal(t, "told", serials(w), "3/3 3/3")
	check.True(t, "nobody is accused", !strings.Contains(strings.Join(w.Notes, "\n"), "in_the_name_of"))
}

// Clocks that are wrong by a day, either way, set while a gateway runs or before it starts, and given the roster or told of it: the
// roster gets to all, messages for all are read before and after its time, whoever thinks that it has come, and nothing is lost.
func TestRolloverWrongClock(t *testing.T) {
	const day = 24 * time.Hour
	for _, group := range []bool{false, true} {
		for _, wrong := range []time.Duration{day, -day} {
			for _, restart := range []bool{false, true} {
				for whose := range 2 {
					in := check.In(t, fmt.Sprintf("group %v, wrong by %v, restart %v, node %d", group, wrong, restart, whose))
					var w *sim.World
					if group {
						w = mulWorld(t, 4, 1, withRoster)
					} else {
						w = world(t, 4, "iridium-certus-100", 1, withRoster)
					}
					hq, ship := w.Nodes[0], w.Nodes[1]
					w.Run(10 * time.Minute)
					w.SetClock(w.Nodes[whose], wrong)
					if restart {
						w.Kill(w.Nodes[whose], time.Second)
					}
					w.Run(10 * time.Minute)
					w.Give(hq, gateway.NewRoster{Roster: w.Roster(w.First(), w.Now.Add(2*time.Hour), w.Nodes...)})
					down := tracks(w, hq, []uint16{2, 3, 4}, 8, 200, 20*time.Minute)
					up := tracks(w, ship, []uint16{1}, 8, 210, 20*time.Minute)
					w.Run(4 * time.Hour)
					for _, n := range w.Nodes {
						check.Equal(in, "serial of "+n.Name, n.GW.Status(w.Now).Roster.Serial, uint32(2))
					}
					w.Run(25 * time.Hour)
					check.Equal(in, "when a day is over", serials(w), same(4, "2/2"))
					for _, n := range w.Nodes[1:] {
						once(t, w, n.Site, 1, *down)
					}
					once(t, w, hq.Site, 2, *up)
					more := tracks(w, ship, []uint16{1}, 3, 220, time.Minute)
					w.Run(time.Hour)
					*up = append(*up, *more...)
					once(t, w, hq.Site, 2, *up)
				}
			}
		}
	}
}
