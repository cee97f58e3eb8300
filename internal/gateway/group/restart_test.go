package group_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/mail"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// A sender that dies with messages that wait and others under way goes on with both.
func TestSenderRestarts(t *testing.T) {
	g := plain(t)
	g.a.Say(carriernet.Noise(1, 0, 0, 3000), 2, 3)
	g.said = 1
	g.say(4, 100*time.Millisecond)
	g.Run(3 * time.Second)
	g.Kill(g.a, 5*time.Second)
	g.Run(20 * time.Minute)
	g.heard("0..4")
	g.ended(5)
}

// A receiver that dies in the middle of a message goes on with the fragments that it has.
func TestReceiverRestarts(t *testing.T) {
	g := plain(t)
	before := g.Now
	g.a.Say(carriernet.Noise(1, 0, 0, 2500), 2, 3)
	g.said = 1
	g.Run(6 * time.Second)
	kept := 0
	for _, r := range g.b.Journal() {
		if r.Bucket == "pmul-frag" {
			kept++
		}
	}
	check.True(t, "fragments that node 2 keeps", kept > 0, kept)
	g.Kill(g.b, time.Second)
	g.say(2, 10*time.Second)
	g.Run(20 * time.Minute)
	g.heard("0..2")
	g.ended(3)
	all := fragments(g.since(before, g.a))
	check.True(t, "fragments on the air, copies and all", all < 2*8, all)
}

// Deaths before and after a commit, at any Step of any node: nothing is lost, nothing comes twice.
func TestDeathsAtAnyStep(t *testing.T) {
	for seed := range uint64(4) {
		cfg := config{Plain: true, Seed: seed, Profile: radio(t)}
		if seed%2 == 1 {
			for _, d := range []*direction{&cfg.Profile.Up, &cfg.Profile.Down} {
				d.GEp, d.GEr, d.GEBadPct = 0.01, 0.25, 80
			}
		}
		g := begin(t, cfg)
		g.Crash = 0.02
		for i := range 20 {
			for g.a.Say(carriernet.Report(1, i), 2, 3) == 0 {
				g.Run(time.Second)
			}
			g.Run(25 * time.Second)
		}
		g.Crash = 0
		g.Run(3 * time.Hour)
		in := check.In(t, "seed", seed)
		for _, n := range []*carriernet.Node{g.b, g.c} {
			said := n.Said(1)
			slices.Sort(said)
			check.Equal(in, n.Name+": messages that came", len(said), 20)
			check.Equal(in, n.Name+": different ones", len(slices.Compact(said)), 20)
		}
		g.ended(20)
	}
}

// A peer with a new store counts its messages anew, and still gets those that it had not acknowledged.
func TestPeerWithANewStore(t *testing.T) {
	g := plain(t)
	g.say(3, 30*time.Second)
	g.Run(3 * time.Minute)
	g.Outage(g.b, 2*time.Minute)
	g.say(2, 20*time.Second)
	g.LoseStore(g.b, time.Second)
	g.Run(20 * time.Minute)
	g.say(2, time.Minute)
	g.Run(5 * time.Minute)
	g.heard("0..6")
	check.Equal(t, "delivered to node 2", int(g.a.Peer(2).Counts.Delivered), 7) // though two could not be read there at first
	check.Equal(t, "delivered to node 3", int(g.a.Peer(3).Counts.Delivered), 7)
}

// A peer that has lost its store counts its messages from 1 again, and is heard.
func TestPeerWithNewNumbers(t *testing.T) {
	g := plain(t)
	g.say(3, 30*time.Second)
	g.Run(3 * time.Minute)
	g.LoseStore(g.a, time.Second)
	g.Run(3 * time.Minute)
	g.say(3, time.Minute)
	g.Run(5 * time.Minute)
	g.heard("0..5")
}

// A receiver is put back to older data: its sender says how many acknowledged messages it has lost, and sends none of them again.
func TestReceiverIsPutBack(t *testing.T) {
	g := plain(t)
	g.say(2, 30*time.Second)
	g.Run(3 * time.Minute)
	older := g.b.Copy()
	g.say(3, 30*time.Second)
	g.Run(3 * time.Minute)
	g.ended(5)
	g.PutBack(g.b, older, time.Second)
	g.Run(3 * time.Minute)
	g.say(2, time.Minute)
	g.Run(10 * time.Minute)
	g.heard("0..6")
	g.ended(7)
	check.Contains(t, "the log", strings.Join(g.Notes, "\n"), "[peer node2 it_may_have_lost 3]")
}

// A sender is put back to older data: its new messages arrive all the same.
func TestSenderIsPutBack(t *testing.T) {
	g := plain(t)
	g.say(2, 30*time.Second)
	g.Run(3 * time.Minute)
	older := g.a.Copy()
	g.say(3, 30*time.Second)
	g.Run(3 * time.Minute)
	g.PutBack(g.a, older, time.Second)
	g.Run(2 * time.Minute)
	g.say(3, time.Minute)
	g.Run(30 * time.Minute)
	for _, n := range []*carriernet.Node{g.b, g.c} {
		said := n.Said(1)
		slices.Sort(said)
		check.Equal(t, n.Name+": messages that came", len(said), 8)
		check.Equal(t, n.Name+": different ones", len(slices.Compact(said)), 8)
	}
}

// A silent node hears and keeps the messages that come, says nothing, and acknowledges them when its silence ends.
func TestSilentReceiver(t *testing.T) {
	for _, announced := range []bool{false, true} {
		g := plain(t)
		in := check.In(t, "announced", announced)
		g.c.Silent(true, announced)
		g.Run(10 * time.Second)
		before := g.Now
		g.say(3, 30*time.Second)
		g.Run(time.Hour)
		check.Equal(in, "datagrams of the silent node", len(g.since(before, g.c)), 0)
		check.Equal(in, "what it has heard", g.c.Heard(1), "0..2")
		check.Equal(in, "delivered to the other", g.a.Fates(2)[mail.Delivered], 3)
		check.Equal(in, "delivered to it", g.a.Fates(3)[mail.Delivered], 0)
		owed := g.c.Bearer.Carriers[0].Owed(g.Now)
		check.True(in, "acknowledgements that it owes", owed.Acks > 0 && owed.Datagrams > 0 && owed.Airtime > 0, owed)
		g.c.Silent(false, false)
		g.Run(10 * time.Minute)
		check.Equal(in, "delivered to it at the end", g.a.Fates(3)[mail.Delivered], 3)
	}
}

// A message for a peer that has announced its silence goes several times, so that it arrives though one transmission is lost.
func TestBlindRepetitions(t *testing.T) {
	g := plain(t)
	g.c.Silent(true, true)
	g.Run(10 * time.Second)
	n := 0
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if to != g.c || len(pdus[pmul.DataPDU](d)) == 0 {
			return false
		}
		n++
		return n <= 2
	})
	before := g.Now
	g.say(1, time.Hour)
	check.Equal(t, "what the silent one has heard", g.c.Heard(1), "0")
	counters := map[uint32]bool{}
	for _, d := range g.since(before, g.a) {
		if len(pdus[pmul.DataPDU](d)) > 0 || len(pdus[pmul.ParityPDU](d)) > 0 {
			counters[d.Counter] = true
		}
	}
	check.True(t, "transmissions besides copies", len(counters) >= 3, len(counters))
}

// A silent sender sends nothing of its own until its silence ends.
func TestSilentSender(t *testing.T) {
	g := plain(t)
	g.a.Silent(true, true)
	g.Run(10 * time.Second)
	before := g.Now
	g.say(2, 30*time.Second)
	g.b.Say(carriernet.Report(2, 0), 1, 3)
	g.Run(30 * time.Minute)
	check.Equal(t, "datagrams of the silent node", len(g.since(before, g.a)), 0)
	check.Equal(t, "what it has heard", g.a.Heard(2), "0")
	g.a.Silent(false, false)
	g.Run(20 * time.Minute)
	g.heard("0..1")
	g.ended(2)
}

// A silent node does not wait long for a missing message: it cannot ask for it.
func TestSilentNodeSkipsGaps(t *testing.T) {
	g := plain(t)
	g.say(1, time.Minute)
	g.c.Silent(true, true)
	g.Run(10 * time.Second)
	var missing pmul.MessageID
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		data := pdus[pmul.DataPDU](d)
		if len(data) > 0 && missing == 0 {
			missing = data[0].Message
		}
		return to == g.c && slices.ContainsFunc(data, func(p pmul.DataPDU) bool { return p.Message == missing })
	})
	g.say(2, 15*time.Second)
	g.Run(2 * time.Minute)
	check.Equal(t, "what node 3 has heard", g.c.Heard(1), "0 2")
}

// A silent node reads a message though it has lost all before it: each spells its flow out, as long as the node does not know the flow.
func TestSilentNodeLosesTheFirst(t *testing.T) {
	g := plain(t)
	g.c.Silent(true, true)
	g.Run(10 * time.Second)
	var lost []pmul.MessageID
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		return to == g.c && slices.ContainsFunc(pdus[pmul.DataPDU](d), func(p pmul.DataPDU) bool {
			if len(lost) < 3 && !slices.Contains(lost, p.Message) {
				lost = append(lost, p.Message)
			}
			return slices.Contains(lost, p.Message)
		})
	})
	g.say(4, 15*time.Second)
	g.Run(3 * time.Minute)
	check.Equal(t, "messages that are lost", len(lost), 3)
	check.Equal(t, "what node 2 has heard", g.b.Heard(1), "0..3")
	check.Equal(t, "what node 3 has heard", g.c.Heard(1), "3")
	g.Fate = nil
	g.c.Silent(false, false)
	g.Run(30 * time.Minute)
	check.Equal(t, "messages that node 3 has heard at the end", len(g.c.Said(1)), 4)
	g.ended(4)
	g.c.Silent(true, true)
	g.Run(10 * time.Second)
	check.Equal(t, "the next one spells it out", g.a.Entry(g.a.Say(carriernet.Report(1, 4), 2, 3), 3).Defines, false)
}

// busyAir is a game in which a has the air with a long message, and three others wait.
func busyAir(t *testing.T) (g *game, ids []uint64) {
	g = plain(t)
	g.a.Say(carriernet.Noise(1, 0, 0, 3000), 2, 3)
	for i := range 3 {
		ids = append(ids, g.a.Say(carriernet.Noise(1, 0, 1+i, 300), 2, 3))
	}
	return g, ids
}

func (g *game) orders() mail.Orders { return g.a.Bearer.Carrier().Orders() }

// A message that the operator holds is held for all recipients of its number, also over a restart.
func TestHold(t *testing.T) {
	g, ids := busyAir(t)
	check.Equal(t, "one transmission serves several", g.orders().Together(), true)
	check.Equal(t, "it waits", g.orders().Waits(g.a.Entry(ids[1], 2)), true)
	g.a.Do(func(now time.Time) { g.orders().Hold(now, g.a.Entry(ids[1], 2), true) })
	check.Equal(t, "it is held for the other too", g.a.Entry(ids[1], 3).OnHold, true)
	g.Run(10 * time.Minute)
	g.heard("0..1 3")
	g.Kill(g.a, time.Second)
	g.Run(10 * time.Minute)
	g.heard("0..1 3")
	check.Equal(t, "it is held", g.a.Entry(ids[1], 3).OnHold, true)
	g.a.Do(func(now time.Time) { g.orders().Hold(now, g.a.Entry(ids[1], 3), false) })
	g.Run(10 * time.Minute)
	g.heard("0..1 3 2")
	g.ended(4)
}

// Messages of a kind that the operator holds wait from the start.
func TestHeldFromTheStart(t *testing.T) {
	cfg := config{Plain: true}
	cfg.Bearer = func(_ *carriernet.Node, c *carriage.Config) {
		c.Holds = func(m *site.Message) bool { return m.Precedence == site.Deferred }
	}
	g := begin(t, cfg)
	m := carriernet.Report(1, 0)
	m.Precedence = site.Deferred
	id := g.a.Say(m, 2, 3)
	g.said = 1
	g.say(1, 5*time.Minute)
	g.heard("1")
	g.a.Do(func(now time.Time) { g.orders().Hold(now, g.a.Entry(id, 2), false) })
	g.Run(5 * time.Minute)
	g.heard("1 0")
}

// A message that is canceled goes to nobody, and those behind it are read.
func TestCancel(t *testing.T) {
	g, ids := busyAir(t)
	check.Equal(t, "a peer may have all of it", g.orders().Whole(g.a.Entry(ids[0], 2)), false)
	g.a.Do(func(now time.Time) { g.orders().Cancel(now, g.a.Entry(ids[0], 2)) })
	g.Run(15 * time.Minute)
	g.heard("0 2..3")
	check.Equal(t, "canceled for node 2", g.a.Fates(2)[mail.Cancelled], 1)
	check.Equal(t, "canceled for node 3", g.a.Fates(3)[mail.Cancelled], 1)
}

// A message that is given another precedence goes before those that waited before it, to all, and arrives with it.
func TestPrecede(t *testing.T) {
	g, ids := busyAir(t)
	g.a.Do(func(now time.Time) {
		check.NoError(t, g.orders().Precede(now, g.a.Entry(ids[2], 2), site.Flash))
	})
	g.Run(10 * time.Minute)
	for _, n := range []*carriernet.Node{g.b, g.c} {
		at := slices.IndexFunc(n.Got, func(a carriernet.Arrival) bool { return a.Payload.Precedence == site.Flash })
		check.True(t, n.Name+": it came before the others that waited", at == 0 || at == 1, at)
		check.Equal(t, n.Name+": messages that came", len(n.Got), 4)
	}
	g.ended(4)
}

// Queue tells the messages that wait, in their order. Ahead is negative for octets that have left and are not acknowledged.
func TestQueue(t *testing.T) {
	g, ids := busyAir(t)
	q := g.orders().Queue(g.Now, g.a.Peer(2))
	check.Equal(t, "in the order in which they go", q.Ordered, true)
	check.Equal(t, "how many wait", len(q.Places), 3)
	for i, p := range q.Places {
		check.Equal(check.In(t, i), "who waits", p.ID, ids[i])
	}
	check.True(t, "octets under way", q.UnderWay > 0, q.UnderWay)
	g.Run(25 * time.Second)
	ahead := g.orders().Ahead(g.Now, g.a.Peer(2))
	check.True(t, "what has left counts as gone", ahead < 0, ahead)
}

// A peer that the roster does not name any more gets nothing: its messages end as refused, and the other peer has them.
func TestPeerIsGone(t *testing.T) {
	g := plain(t)
	g.Outage(g.c, time.Hour)
	g.say(2, 30*time.Second)
	g.Run(2 * time.Minute)
	g.a.Do(func(now time.Time) {
		g.a.Peer(3).Gone = true
		g.a.Bearer.Channels[0].Gone(now, g.a.Peer(3))
	})
	g.Run(5 * time.Minute)
	check.Equal(t, "delivered to node 2", g.a.Fates(2)[mail.Delivered], 2)
	check.Equal(t, "refused for node 3", g.a.Fates(3)[mail.Refused], 2)
	waiting, underWay := g.a.Held(3)
	check.Equal(t, "held for node 3", waiting+underWay, 0)
}

// eightOnce checks that both receivers have the eight messages of node 1, each once.
func eightOnce(t check.T, g *game) {
	t.Helper()
	said := g.b.Said(1)
	slices.Sort(said)
	check.Equal(t, "messages that node 2 has", len(slices.Compact(said)), 8)
	check.Equal(t, "and none twice", len(g.b.Said(1)), 8)
	check.Equal(t, "what node 3 has heard", g.c.Heard(1), "0..7")
}

// A receiver that has lost its coding history asks for the messages that it cannot read, and has them once.
func TestReceiverThatHasForgottenHistory(t *testing.T) {
	for _, lost := range []string{"before", "before inflow"} {
		g := begin(t, config{})
		in := check.In(t, "without", lost)
		g.say(5, 30*time.Second)
		g.Run(3 * time.Minute)
		journal := slices.DeleteFunc(g.b.Journal(), func(r api.Record) bool { return slices.Contains(strings.Fields(lost), r.Bucket) })
		check.NoError(check.Fatal(t), g.StartWith(g.b, journal))
		g.Run(time.Second)
		g.say(3, 20*time.Second)
		g.Run(20 * time.Minute)
		eightOnce(in, g)
		check.Equal(in, "delivered to node 2", int(g.a.Peer(2).Counts.Delivered), 8)
		check.Contains(in, "the log", strings.Join(g.Notes, "\n"), "asks for it again")
	}
}

// A receiver that has lost its coding history acknowledges messages that it cannot read. Its sender dies before it hears that they are asked
// for, and has them all the same: the receiver gets each once.
func TestSenderRestartsBeforeItIsAsked(t *testing.T) {
	g := begin(t, config{})
	g.say(5, 30*time.Second)
	g.Run(3 * time.Minute)
	journal := slices.DeleteFunc(g.b.Journal(), func(r api.Record) bool { return r.Bucket == "before" })
	check.NoError(check.Fatal(t), g.StartWith(g.b, journal))
	g.Run(time.Minute)
	g.lose(func(d carriernet.Datagram, _ *carriernet.Node) bool {
		return d.From == g.b.ID && len(pdus[pmul.DataPDU](d)) > 0
	})
	g.say(3, 20*time.Second)
	g.Run(3 * time.Minute)
	g.ended(8)
	check.True(check.Fatal(t), "node 2 has read no more than some", len(g.b.Said(1)) < 8, len(g.b.Said(1)))
	g.Kill(g.a, time.Second)
	g.Fate = nil
	g.Run(20 * time.Minute)
	eightOnce(t, g)
	check.Equal(t, "messages that nobody has", len(g.a.Lacked), 0)
}

// A message that is asked for again before its acknowledgement has come begins anew, and is delivered under another number.
func TestAskedForAgainBeforeItsAcknowledgement(t *testing.T) {
	g := plain(t)
	g.say(1, 4*time.Second)
	number := uint32(0)
	for _, d := range g.Sent {
		for _, pdu := range pdus[pmul.DataPDU](d) {
			number = uint32(pdu.Message)
		}
	}
	g.a.Do(func(now time.Time) {
		g.a.Bearer.Channels[0].Resend(now, g.a.Peer(2), []uint32{number})
		g.a.Bearer.Channels[0].Resend(now, g.a.Peer(2), []uint32{number}) // the first is on its way
	})
	g.Run(10 * time.Minute)
	g.ended(1)
	check.Equal(t, "what node 2 has heard", g.b.Heard(1), "0 0")
	check.Equal(t, "what node 3 has heard", g.c.Heard(1), "0")
}

// A message that a peer asks for again, and that nobody keeps any more, is reported as lost.
func TestAskedForWhatNobodyHas(t *testing.T) {
	g := plain(t)
	g.a.Do(func(now time.Time) { g.a.Bearer.Channels[0].Resend(now, g.a.Peer(2), []uint32{4711}) })
	check.Equal(check.Fatal(t), "messages that nobody has", len(g.a.Lacked), 1)
	check.Equal(t, "its number", g.a.Lacked[0].Number, 4711)
}

// A message that was delivered, and that a peer asks for again, goes to that peer alone, under another number and once.
func TestAskedForAgain(t *testing.T) {
	g := plain(t)
	g.say(2, time.Minute)
	g.Run(3 * time.Minute)
	number := uint32(0)
	for _, d := range g.Sent {
		for _, pdu := range pdus[pmul.DataPDU](d) {
			number = uint32(pdu.Message)
		}
	}
	g.a.Do(func(now time.Time) { g.a.Bearer.Channels[0].Resend(now, g.a.Peer(2), []uint32{number, number}) })
	g.Run(5 * time.Minute)
	check.Equal(t, "what node 2 has heard", g.b.Heard(1), "0..1 1")
	check.Equal(t, "what node 3 has heard", g.c.Heard(1), "0..1")
	check.Equal(t, "counted as delivered to node 2", int(g.a.Peer(2).Counts.Delivered), 2)
}

// A message that is of use only now is not repeated for silent peers, and does not wait for one before it.
func TestFleeting(t *testing.T) {
	g := plain(t)
	g.c.Silent(true, true)
	g.Run(10 * time.Second)
	before := g.Now
	m := carriernet.Report(1, 0)
	m.Fleeting = true
	g.a.Say(m, 2, 3)
	g.Run(time.Hour)
	counters := map[uint32]bool{}
	for _, d := range g.since(before, g.a) {
		if len(pdus[pmul.DataPDU](d)) > 0 {
			counters[d.Counter] = true
		}
	}
	check.Equal(t, "transmissions", len(counters), 1)
	check.Equal(t, "what node 2 has heard", g.b.Heard(1), "0")
	check.Equal(t, "what node 3 has heard", g.c.Heard(1), "0")
}

// The journal of a carrier at rest has no record of a message, but for the last ones of its own that have ended.
func TestJournalAtRest(t *testing.T) {
	g := plain(t)
	g.say(3, 30*time.Second)
	g.Run(30 * time.Minute)
	g.ended(3)
	for _, n := range g.Nodes {
		for _, r := range n.Journal() {
			for _, of := range []string{"mail", "to", "early", "pmul-out", "pmul-frag", "pmul-in"} {
				check.Differ(check.In(t, n.Name, fmt.Sprintf("%x", r.Key)), "bucket", r.Bucket, of)
			}
		}
	}
}

// Early messages of version 0.1 are read in their turn.
func TestEarlyMessageOfVersion01(t *testing.T) {
	g := plain(t)
	g.say(1, time.Minute)
	lose := true
	n := 0
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if len(pdus[pmul.DataPDU](d)) > 0 && to == g.b {
			n++
		}
		return lose && to == g.b && n <= 2 && len(pdus[pmul.DataPDU](d)) > 0
	})
	g.say(2, 4*time.Second)
	journal := g.b.Journal()
	changed := 0
	for i, r := range journal {
		if r.Bucket == mail.BucketEarly { // peer, queue, place -> number, body
			changed++
			journal[i] = api.Record{Bucket: "mul-early", Key: slices.Concat(r.Key[:2], r.Key[len(r.Key)-4:]), Value: r.Value[4:]}
		}
	}
	check.True(check.Fatal(t), "a message before its turn", changed > 0)
	check.NoError(check.Fatal(t), g.StartWith(g.b, journal))
	lose = false
	g.Run(30 * time.Minute)
	said := g.b.Said(1)
	slices.Sort(said)
	check.Equal(t, "messages that node 2 has", len(said), 3)
	check.Equal(t, "different ones", len(slices.Compact(said)), 3)
}

// A peer that is off the air for hours holds up no news of a site: those that answer are told.
func TestSilentPeerHoldsUpNoNews(t *testing.T) {
	g := plain(t)
	g.Outage(g.c, 3*time.Hour)
	for i := range 6 {
		g.a.Put(carriernet.Item(1, i))
		g.Run(5 * time.Minute)
	}
	check.Equal(t, "items at the other peer", len(g.b.Far[1]), 6)
}
