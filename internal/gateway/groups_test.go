package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

const ops = "fleet/squadron/ops"

// inGroup has every node in a group, and messages that peers publish go to it.
func inGroup(c *sim.Config) {
	c.Roster, c.Ashore = true, true
	c.Configure = func(_ *sim.Node, g *gateway.Config) {
		g.Groups = []gateway.GroupConfig{{Name: ops}}
		g.Messages = []mark.Rule{{Open: ops}}
	}
}

// saidBy are how often each node's peers got the message number i of a node, the node's own left out.
func saidBy(w *sim.World, n *sim.Node, i int) (counts []int) {
	want := string(track(n.ID, pipeHQ, i, 200).Parts[0].Data)
	for _, other := range w.Nodes {
		if other == n {
			continue
		}
		got := 0
		for _, g := range other.Site.Got {
			if g.From == n.ID && string(g.Payload.Parts[0].Data) == want {
				got++
			}
		}
		counts = append(counts, got)
	}
	return counts
}

func all(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = 1
	}
	return list
}

func TestOpenMessageReachesWhoeverIsInTheGroup(t *testing.T) {
	for _, p := range []string{"iridium-certus-100", "hf-2400"} {
		t.Run(p, func(t *testing.T) {
			w := world(t, 5, p, 1, inGroup, func(c *sim.Config) { c.Group = p == "hf-2400" })
			w.Run(10 * time.Minute)
			ship := w.Nodes[1]
			ship.Site.Send(w, track(2, pipeHQ, 1, 200), 1) // its listeners are known at one site alone
			w.Run(5 * time.Minute)
			check.Equal(t, "how often the others have it", fmt.Sprint(saidBy(w, ship, 1)), fmt.Sprint(all(4)))
			s := ship.GW.Status(w.Now)
			for _, p := range s.Peers {
				check.Equal(t, "messages in custody for "+p.Name, p.Waiting+p.UnderWay, 0)
			}
			check.Equal(t, "groups", len(s.Groups), 3)
			sent, got := byAdapter(ship, w.Now), byAdapter(w.Nodes[0], w.Now)
			check.True(t, "the message counts for its adapter where it is said", sent["sent jxta payload"] >= 200, sent)
			check.True(t, "and where it is read", got["received jxta payload"] >= 200, got)
			check.True(t, "digests are the gateway's", sent["sent gateway state"] > 0, sent)
		})
	}
}

// A site that opens a pipe after others gets the messages sent before: the whole group does not get them again.
func TestOpenMessageIsSaidOnceWhereSitesOpenThePipeLate(t *testing.T) {
	w := world(t, 5, "iridium-certus-100", 1, inGroup)
	w.Run(10 * time.Minute)
	ship := w.Nodes[1]
	for i, c := range []struct {
		to    uint16
		again bool
	}{{1, false}, {3, true}, {4, true}} {
		ship.Site.Carry(w, site.Carry{Sites: []uint16{c.to}, Message: track(2, pipeHQ, 1, 200), Again: c.again})
		w.Run(time.Duration(10+i) * time.Second)
	}
	ship.Site.Carry(w, site.Carry{Sites: []uint16{3}, Message: track(2, pipeHQ, 2, 200), Again: true}) // the rule let it go to nobody before
	w.Run(5 * time.Minute)
	for i := range 2 {
		check.Equal(t, "how often the others have it", fmt.Sprint(saidBy(w, ship, 1+i)), fmt.Sprint(all(4)))
	}
}

func TestWhatASunkenShipSaidIsRepairedByANeighbour(t *testing.T) {
	w := world(t, 4, "iridium-certus-100", 2, inGroup)
	w.Run(10 * time.Minute)
	hq, ship, away := w.Nodes[0], w.Nodes[1], w.Nodes[3]
	w.Cut(0, away, true)
	ship.Site.Send(w, track(2, pipeHQ, 7, 200), 1)
	for len(hq.Site.Got) == 0 {
		w.Run(time.Second)
	}
	w.Kill(ship, 1000*time.Hour)
	w.Run(10 * time.Minute)
	w.Cut(0, away, false)
	w.Run(20 * time.Minute)
	check.Equal(t, "how often the others have it", fmt.Sprint(saidBy(w, ship, 7)), fmt.Sprint(all(3)))
}

func TestGroupSurvivesARestartAndTakesNothingTwice(t *testing.T) {
	w := world(t, 3, "iridium-certus-100", 3, inGroup)
	w.Run(5 * time.Minute)
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Keep = true // its peers are away
	for i := range 5 {
		ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
		w.Run(10 * time.Second)
	}
	for _, n := range w.Nodes {
		w.Kill(n, time.Second)
	}
	w.Run(30 * time.Minute)
	hq.Site.Release(w)
	ship.Site.Send(w, track(2, pipeHQ, 5, 200), 1)
	w.Run(5 * time.Minute)
	for i := range 6 {
		check.Equal(t, fmt.Sprintf("how often the others have message %d", i), fmt.Sprint(saidBy(w, ship, i)), fmt.Sprint(all(2)))
	}
}

func TestGroupsAreJoinedAndLeftByOrder(t *testing.T) {
	w := world(t, 3, "iridium-certus-100", 4, inGroup, func(c *sim.Config) {
		named := c.Configure
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			named(n, g)
			if n.ID == 3 {
				g.Groups = nil
			}
		}
	})
	w.Run(5 * time.Minute)
	ship, late := w.Nodes[1], w.Nodes[2]
	ship.Site.Send(w, track(2, pipeHQ, 0, 200), 1)
	w.Run(time.Minute)
	check.Equal(t, "messages at who is not in the group", len(late.Site.Got), 0)
	order(w, late, gateway.GroupOrder{Name: ops, In: true})
	w.Run(10 * time.Minute)
	check.Equal(t, "messages at who has joined", len(late.Site.Got), 1)
	order(w, late, gateway.GroupOrder{Name: "fleet/squadron"})
	check.Equal(t, "groups, with one inside of what was to be left", len(late.GW.Status(w.Now).Groups), 3)
	order(w, late, gateway.GroupOrder{Name: ops})
	check.Equal(t, "groups, with none inside", len(late.GW.Status(w.Now).Groups), 0)
	w.Kill(late, time.Second)
	w.Run(time.Minute)
	check.Equal(t, "groups after a restart", len(late.GW.Status(w.Now).Groups), 0)
	ship.Site.Send(w, track(2, pipeHQ, 1, 200), 1)
	w.Run(10 * time.Minute)
	check.Equal(t, "messages at who has left", len(late.Site.Got), 1)
}

func TestASilentShipHearsTheGroup(t *testing.T) {
	w := world(t, 4, "hf-2400", 5, inGroup, func(c *sim.Config) { c.Group = true })
	w.Run(10 * time.Minute)
	mute := w.Nodes[2]
	order(w, mute, api.Silence{On: true})
	w.Run(time.Minute)
	before, _ := w.Octets(mute)
	w.Nodes[1].Site.Send(w, track(2, pipeHQ, 0, 200), 1)
	w.Run(20 * time.Minute)
	after, _ := w.Octets(mute)
	check.Equal(t, "octets that the silent ship sent", after-before, 0)
	order(w, mute, api.Silence{})
	w.Run(10 * time.Minute)
	check.Equal(t, "how often the others have it", fmt.Sprint(saidBy(w, w.Nodes[1], 0)), fmt.Sprint(all(3)))
}

// Gateways that are killed around commits lose no open message and hand none over twice.
func TestGroupSurvivesCrashes(t *testing.T) {
	w := world(t, 4, "iridium-certus-100", 6, inGroup, func(c *sim.Config) { c.CrashBeforeCommit, c.CrashAfterCommit = 0.02, 0.02 })
	w.Run(5 * time.Minute)
	for i := range 20 {
		w.Nodes[1].Site.Send(w, track(2, pipeHQ, i, 200), 1)
		w.Run(20 * time.Second)
	}
	w.EndCrashes()
	w.Run(45 * time.Minute)
	for i := range 20 {
		check.Equal(t, fmt.Sprintf("how often the others have message %d", i), fmt.Sprint(saidBy(w, w.Nodes[1], i)), fmt.Sprint(all(3)))
	}
}

// A gateway that was put back to an older copy of its data uses no number twice once a neighbour has told it.
func TestAPutBackGatewayGoesOnInItsGroup(t *testing.T) {
	w := world(t, 3, "iridium-certus-100", 7, inGroup)
	w.Run(5 * time.Minute)
	ship := w.Nodes[1]
	for i := range 5 {
		ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
		w.Run(10 * time.Second)
	}
	w.PutBack(ship, 6)
	w.Run(10 * time.Minute)
	ship.Site.Send(w, track(2, pipeHQ, 50, 200), 1)
	w.Run(10 * time.Minute)
	check.Equal(t, "how often the others have what it says then", fmt.Sprint(saidBy(w, ship, 50)), fmt.Sprint(all(2)))
}

// keyed has every node in a group with a key of its own.
func keyed(c *sim.Config) {
	inGroup(c)
	configure := c.Configure
	c.Configure = func(n *sim.Node, g *gateway.Config) {
		configure(n, g)
		g.Groups[0].Key = true
	}
}

// keyOf is the key by which a node seals for the group, as its status tells it from others.
func keyOf(w *sim.World, n *sim.Node) string {
	for _, g := range n.GW.Status(w.Now).Groups {
		if g.Name == ops {
			return g.Key
		}
	}
	return "none"
}

func TestGroupWithAKeyOfItsOwn(t *testing.T) {
	for _, p := range []string{"iridium-certus-100", "hf-2400"} {
		t.Run(p, func(t *testing.T) {
			w := world(t, 5, p, 8, keyed, func(c *sim.Config) { c.Group = p == "hf-2400" })
			ship, leaver := w.Nodes[1], w.Nodes[3]
			ship.Site.Send(w, track(2, pipeHQ, 0, 200), 1) // it waits for the first key, which on HF is not yet for all
			w.Run(20 * time.Minute)
			check.True(t, "somebody has what was said before there was a key", strings.Contains(fmt.Sprint(saidBy(w, ship, 0)), "1"))
			first := keyOf(w, ship)
			for _, n := range w.Nodes {
				check.Equal(t, "the key at "+n.Name, keyOf(w, n), first)
			}
			order(w, leaver, gateway.GroupOrder{Name: ops})
			check.Equal(t, "the key at who has left", keyOf(w, leaver), "none")
			w.Run(5 * time.Minute)
			second := keyOf(w, ship)
			check.True(t, "the key is another", second != first && second != "")
			ship.Site.Send(w, track(2, pipeHQ, 1, 200), 1)
			w.Run(5 * time.Minute)
			check.Equal(t, "how often the others have what is said then", fmt.Sprint(saidBy(w, ship, 1)), fmt.Sprint([]int{1, 1, 0, 1}))
			order(w, leaver, gateway.GroupOrder{Name: ops, In: true, Key: true})
			w.Run(10 * time.Minute)
			check.True(t, "the key is a third", keyOf(w, ship) != second && keyOf(w, leaver) == keyOf(w, ship))
			ship.Site.Send(w, track(2, pipeHQ, 2, 200), 1)
			w.Run(5 * time.Minute)
			check.Equal(t, "how often the others have the next", fmt.Sprint(saidBy(w, ship, 2)), fmt.Sprint(all(4)))
			check.Equal(t, "how often they have what was said before it joined", fmt.Sprint(saidBy(w, ship, 1)), fmt.Sprint([]int{1, 1, 0, 1}))
		})
	}
}

// A message that waits until it can be sealed outlives a restart, and a drain counts it.
func TestWhatWaitsForAKeyOutlivesARestart(t *testing.T) {
	w := world(t, 4, "iridium-certus-100", 8, keyed)
	ship := w.Nodes[1]
	w.Run(20 * time.Minute)
	w.Cut(0, ship, true)
	w.Run(2 * time.Minute)
	ship.Site.Send(w, track(2, pipeHQ, 0, 200), 1)
	w.Run(time.Second)
	order(w, ship, api.Drain{On: true})
	check.Equal(t, "messages that wait", ship.GW.Status(w.Now).Drain.Messages, 1)
	w.Kill(ship, time.Second)
	w.Run(2 * time.Minute)
	w.Cut(0, ship, false)
	w.Run(time.Hour)
	check.Equal(t, "how often the others have it", fmt.Sprint(saidBy(w, ship, 0)), fmt.Sprint(all(3)))
	check.Equal(t, "messages for which no key came", ship.GW.Status(w.Now).Dropped["group_keyless"], 0)

	w.Cut(0, ship, true)
	w.Run(2 * time.Minute)
	ship.Site.Send(w, track(2, pipeHQ, 1, 200), 1)
	w.Run(gateway.DefaultGroupLife / 2)
	w.Kill(ship, time.Second)
	w.Run(gateway.DefaultGroupLife)
	check.Equal(t, "messages for which no key came", ship.GW.Status(w.Now).Dropped["group_keyless"], 1)
	w.Cut(0, ship, false)
	w.Run(time.Hour)
	check.Equal(t, "how often the others have what has expired", fmt.Sprint(saidBy(w, ship, 1)), fmt.Sprint([]int{0, 0, 0}))
}

// A member that hears nothing of a leaving seals nothing a minute later. Its messages are there when it hears the others again.
func TestADeafMemberSealsNothingForWhoHasLeft(t *testing.T) {
	for _, p := range []string{"iridium-certus-100", "hf-2400"} {
		t.Run(p, func(t *testing.T) {
			w := world(t, 5, p, 8, keyed, func(c *sim.Config) { c.Group = p == "hf-2400" })
			deaf, leaver := w.Nodes[1], w.Nodes[3]
			w.Run(20 * time.Minute)
			old := keyOf(w, deaf)
			w.Cut(0, deaf, true)
			order(w, leaver, gateway.GroupOrder{Name: ops})
			w.Run(time.Minute)
			check.Equal(t, "the key at who heard nothing", keyOf(w, deaf), old)
			deaf.Site.Send(w, track(2, pipeHQ, 1, 200), 1)
			w.Run(5 * time.Minute)
			for _, g := range deaf.GW.Status(w.Now).Groups {
				if g.Name == ops {
					check.True(t, "it is not sure of its key", !g.Sure)
				}
			}
			w.Cut(0, deaf, false)
			w.Run(2 * time.Hour)
			check.True(t, "it has the new key", keyOf(w, deaf) != old && keyOf(w, deaf) == keyOf(w, w.Nodes[0]))
			check.Equal(t, "how often the others have what it said", fmt.Sprint(saidBy(w, deaf, 1)), fmt.Sprint([]int{1, 1, 0, 1}))
		})
	}
}

// Gateways of a group with a key that are killed around commits lose no message, and a node that was away for a day reads again.
func TestGroupKeysSurviveCrashes(t *testing.T) {
	w := world(t, 4, "iridium-certus-100", 9, keyed, func(c *sim.Config) { c.CrashBeforeCommit, c.CrashAfterCommit = 0.02, 0.02 })
	w.Run(20 * time.Minute)
	for i := range 10 {
		w.Nodes[1].Site.Send(w, track(2, pipeHQ, i, 200), 1)
		w.Run(20 * time.Second)
	}
	w.EndCrashes()
	w.Run(45 * time.Minute)
	for i := range 10 {
		check.Equal(t, fmt.Sprintf("how often the others have message %d", i), fmt.Sprint(saidBy(w, w.Nodes[1], i)), fmt.Sprint(all(3)))
	}
	away := w.Nodes[3]
	w.Cut(0, away, true)
	order(w, w.Nodes[2], gateway.GroupOrder{Name: ops})
	w.Run(26 * time.Hour)
	w.Cut(0, away, false)
	w.Run(time.Hour)
	w.Nodes[1].Site.Send(w, track(2, pipeHQ, 50, 200), 1)
	w.Run(time.Hour + 30*time.Minute)
	w.Nodes[1].Site.Send(w, track(2, pipeHQ, 51, 200), 1)
	w.Run(10 * time.Minute)
	check.Equal(t, "how often the others have what is said after a day", fmt.Sprint(saidBy(w, w.Nodes[1], 51)), fmt.Sprint([]int{1, 0, 1}))
}

// Three gateways on HF, of which the first and the third do not hear each other: the one between them passes on the messages of each to the
// other, and tells its operator who hears whom.
func TestOpenMessageWhereHFSkips(t *testing.T) {
	w := world(t, 3, "hf-2400", 10, inGroup, func(c *sim.Config) { c.Group = true })
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if from.ID+to.ID == 4 && from != to {
			return nil
		}
		return [][]byte{data}
	}
	w.Run(20 * time.Minute)
	first := w.Nodes[0]
	first.Site.Send(w, track(1, pipeHQ, 0, 200), 2)
	w.Run(25 * time.Second) // a digest would take half a minute or more
	check.Equal(t, "how often the others have it", fmt.Sprint(saidBy(w, first, 0)), fmt.Sprint(all(2)))
	channel := w.Nodes[1].GW.Status(w.Now).Channels[0]
	names := []string{first.Name, w.Nodes[1].Name, w.Nodes[2].Name}
	check.Equal(t, "components", fmt.Sprint(channel.Components), fmt.Sprint([][]string{names}))
	check.Equal(t, "whom the first does not hear", fmt.Sprint(channel.Sites[0].HearsNot), fmt.Sprint(names[2:]))
	check.Equal(t, "whom the one between hears", fmt.Sprint(channel.Sites[1].Hears), fmt.Sprint([]string{names[0], names[2]}))
	check.Equal(t, "who speaks first", channel.Speaks[0], names[1])

	w.Tap = nil // the sky changes, and the third starts anew
	w.Kill(w.Nodes[2], time.Second)
	w.Run(20 * time.Minute)
	channel = w.Nodes[1].GW.Status(w.Now).Channels[0]
	check.Equal(t, "whom the first hears now", fmt.Sprint(channel.Sites[0].Hears), fmt.Sprint(names[1:]))
}
