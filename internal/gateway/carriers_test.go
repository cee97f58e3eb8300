package gateway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// carriers are the ways in which messages travel: a new one has a line here, and passes every game below.
var carriers = []struct {
	name  string
	world func(t *testing.T, seed uint64, change ...func(*sim.Config)) *sim.World
	// octets of a message that the carrier moves; every, and settles: how often one goes, and how long until all is still.
	octets         int
	every, settles time.Duration
}{
	{"datagrams", ofLink("iridium-directip"), 200, 5 * time.Second, 10 * time.Minute},
	{"datagrams on a wire", ofLink("wire"), 200, time.Second, 2 * time.Minute},
	{"NORM", ofLink("geo-satcom-128k"), 20_000, 20 * time.Second, 20 * time.Minute},
	{"P_Mul", ofGroup(3), 200, 40 * time.Second, 3 * time.Hour},
	{"P_Mul of two", ofGroup(2), 200, 40 * time.Second, 3 * time.Hour},
	{"P_Mul, long messages", ofGroup(3), 3000, 3 * time.Minute, 4 * time.Hour},
}

func ofLink(profile string) func(*testing.T, uint64, ...func(*sim.Config)) *sim.World {
	return func(t *testing.T, seed uint64, change ...func(*sim.Config)) *sim.World {
		return world(t, 3, profile, seed, change...)
	}
}

func ofGroup(nodes int) func(*testing.T, uint64, ...func(*sim.Config)) *sim.World {
	return func(t *testing.T, seed uint64, change ...func(*sim.Config)) *sim.World {
		return mulWorld(t, nodes, seed, change...)
	}
}

// voyage is a game of one carrier: HQ speaks to one ship.
type voyage struct {
	*sim.World
	hq, ship *sim.Node
	octets   int
	every    time.Duration
	settles  time.Duration
	sent     []offered
}

// say has HQ send n messages more to the ship, one every interval.
func (v *voyage) say(n int) {
	first := len(v.sent)
	for i := range n {
		m := track(v.hq.ID, pipeHQ, first+i, v.octets)
		v.At(time.Duration(i)*v.every, func() {
			v.sent = append(v.sent, offered{At: v.Now, Message: m})
			v.hq.Site.Send(v.World, m, v.ship.ID)
		})
	}
	v.Run(time.Duration(n) * v.every)
}

// peer is what HQ knows of the ship.
func (v *voyage) peer() api.PeerStatus { return v.hq.GW.Status(v.Now).Peers[0] }

// delivered wants all messages at the ship once and in order, and acknowledged at HQ.
func (v *voyage) delivered(t *testing.T) {
	t.Helper()
	v.Run(v.settles)
	once(t, v.World, v.ship.Site, v.hq.ID, v.sent)
	p := v.peer()
	check.Equal(t, "messages that wait or are under way", p.Waiting+p.UnderWay, 0)
	check.Equal(t, "messages that expired or were refused", p.Expired+p.Refused, 0)
}

// Every carrier accepts, orders, acknowledges, and bears silence, restarts, older data, a drain and a full store.
func TestEveryCarrier(t *testing.T) {
	games := []struct {
		name string
		play func(*testing.T, *voyage)
		cfg  func(*sim.Config)
	}{
		{"accepts, orders and acknowledges", acknowledges, nil},
		{"bears an outage", bearsAnOutage, nil},
		{"bears the silence of a peer", bearsSilence, nil},
		{"bears a restart of either end", bearsRestarts, nil},
		{"bears older data of the receiver", bearsOlderData, nil},
		{"drains", drains, nil},
		{"holds and cancels what waits", holdsAndCancels, nil},
		{"refuses what has no room", refuses, func(c *sim.Config) {
			c.Configure = func(_ *sim.Node, g *gateway.Config) { g.MaxWaiting = 5_000 }
		}},
	}
	for _, c := range carriers {
		for _, g := range games {
			t.Run(c.name+" "+g.name, func(t *testing.T) {
				for seed := range seeds(10) {
					var change []func(*sim.Config)
					if g.cfg != nil {
						change = append(change, g.cfg)
					}
					w := c.world(t, 40+seed, change...)
					w.Run(10 * time.Minute) // they have greeted each other
					g.play(t, &voyage{World: w, hq: w.Nodes[0], ship: w.Nodes[1], octets: c.octets, every: c.every, settles: c.settles})
				}
			})
		}
	}
}

func acknowledges(t *testing.T, v *voyage) {
	v.say(12)
	v.delivered(t)
	check.Equal(t, "messages acknowledged", int(v.peer().Delivered), 12)
}

func bearsAnOutage(t *testing.T, v *voyage) {
	v.say(3)
	v.Outage(v.ship, 5*time.Minute)
	v.say(6)
	v.Run(5 * time.Minute)
	v.delivered(t)
}

func bearsSilence(t *testing.T, v *voyage) {
	v.say(3)
	v.Run(v.settles)
	order(v.World, v.ship, api.Silence{On: true, Announce: true})
	v.Run(time.Minute)
	before, _ := v.Octets(v.ship)
	v.say(6)
	v.Run(v.settles)
	now, _ := v.Octets(v.ship)
	check.Equal(t, "octets of a silent ship", now-before, 0)
	order(v.World, v.ship, api.Silence{})
	v.Run(v.settles)
	slices.SortStableFunc(v.ship.Site.Got, func(a, b sim.Got) int { // messages that a silent receiver lacks come after hours: no others wait for them
		return strings.Compare(string(a.Payload.Parts[0].Data), string(b.Payload.Parts[0].Data))
	})
	v.delivered(t)
}

func bearsRestarts(t *testing.T, v *voyage) {
	v.say(4)
	v.Kill(v.ship, 10*time.Second)
	v.say(4)
	v.Kill(v.hq, 10*time.Second)
	v.Run(time.Minute)
	v.say(4)
	v.delivered(t)
}

// bearsOlderData has a ship go on with older data. Messages that it had acknowledged after the copy are no longer known there, and were
// handed over: they do not come twice.
func bearsOlderData(t *testing.T, v *voyage) {
	v.say(4)
	v.Run(v.settles)
	copied := v.ship.Journal()
	v.say(4)
	v.Run(v.settles)
	v.Give(v.ship, api.Stop{})
	v.ship.SetJournal(copied)
	v.Kill(v.ship, 10*time.Second)
	v.Run(time.Minute)
	v.say(4)
	v.Run(v.settles)
	v.say(4)
	v.delivered(t)
	check.True(t, "the log of one end says that data was put back", said(v.World, "older copy") > 0, v.Notes)
}

func drains(t *testing.T, v *voyage) {
	v.say(4)
	v.Give(v.hq, api.Drain{On: true})
	v.hq.Site.Send(v.World, track(v.hq.ID, pipeHQ, 99, v.octets), v.ship.ID)
	v.Run(v.settles)
	status := v.hq.GW.Status(v.Now)
	check.Equal(t, "messages refused in a drain", int(status.Drain.Refused), 1)
	check.Equal(t, "messages left at its end", status.Drain.Messages, 0)
	once(t, v.World, v.ship.Site, v.hq.ID, v.sent)
}

// A message that is held stays while others go; one that is cancelled never comes.
func holdsAndCancels(t *testing.T, v *voyage) {
	v.Outage(v.ship, 30*time.Minute)
	v.say(1) // the first is on the air
	v.Run(time.Minute)
	v.Give(v.hq, gateway.ClassOrder{Ref: 1, Precedence: site.Routine, Do: gateway.DoHold, By: "test"})
	v.say(3)
	v.Run(40 * time.Minute)
	held := v.waiting()
	check.Equal(t, "messages held", len(held), 3)
	check.Equal(t, "messages that came before the release", len(v.ship.Site.Got), 1)
	v.Give(v.hq, gateway.MessageOrder{Ref: 2, Message: held[1], Do: gateway.DoCancel, By: "test"})
	v.Give(v.hq, gateway.ClassOrder{Ref: 3, Precedence: site.Routine, Do: gateway.DoRelease, By: "test"})
	v.sent = append(v.sent[:2], v.sent[3])
	v.delivered(t)
}

// waiting are HQ's messages of which nothing has been on the air, by age.
func (v *voyage) waiting() (list []uint64) {
	m := v.hq.GW.Messages()
	for _, row := range m.Rows(m.IDs()) {
		if row.State == api.StateWaiting {
			list = append(list, row.Number)
		}
	}
	slices.Sort(list)
	return list
}

func refuses(t *testing.T, v *voyage) {
	v.Outage(v.ship, 10*time.Minute)
	for i := range 40 {
		v.hq.Site.Send(v.World, track(v.hq.ID, pipeHQ, i, v.octets), v.ship.ID)
	}
	v.Run(10*time.Minute + v.settles)
	p := v.peer()
	if !v.hq.GW.Status(v.Now).Link.Shared { // P_Mul has a bound of its own: 8,192 messages, 64 MiB (TestSenderBadInput)
		check.Differ(t, "messages refused or given up", p.Refused+p.Cancelled, 0)
	}
	check.Equal(t, "messages that arrived", uint64(len(v.ship.Site.Got)), p.Delivered)
	check.Equal(t, "messages accounted for", p.Accepted, p.Delivered+p.Cancelled)
}
