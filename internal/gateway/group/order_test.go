package group_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/mail"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/link/frame"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// A message goes once to all its recipients, and arrives there in the order in which it was accepted.
func TestOneTransmissionForAll(t *testing.T) {
	g := plain(t)
	before := g.Now
	g.say(6, 30*time.Second)
	g.Run(5 * time.Minute)
	g.heard("0..5")
	g.ended(6)
	seen := map[pmul.MessageID]bool{}
	for _, d := range g.since(before, g.a) {
		for _, pdu := range pdus[pmul.DataPDU](d) {
			seen[pdu.Message] = true
			check.Equal(t, "who it goes to", d.To, 0)
		}
	}
	check.Equal(t, "messages on the air", len(seen), 6)
}

// A message for one peer is for that one alone, though all hear it.
func TestMessageForOne(t *testing.T) {
	g := plain(t)
	g.a.Say(carriernet.Report(1, 0), 3)
	g.Run(3 * time.Minute)
	check.Equal(t, "what node 2 has heard", g.b.Heard(1), "")
	check.Equal(t, "what node 3 has heard", g.c.Heard(1), "0")
	check.Equal(t, "delivered to node 3", g.a.Fates(3)[mail.Delivered], 1)
}

// Acknowledgements wait for a datagram to ride on, or for others to the same sender, and end custody once for each recipient.
func TestAcknowledgementsWaitAndRide(t *testing.T) {
	g := plain(t)
	before := g.Now
	g.say(1, 5*time.Second)
	check.Equal(t, "datagrams of the receivers after five seconds", len(g.since(before, g.b))+len(g.since(before, g.c)), 0)
	g.b.Say(carriernet.Report(2, 0), 1, 3)
	g.Run(2500 * time.Millisecond)
	sent := g.since(before, g.b)
	check.Equal(check.Fatal(t), "datagrams of node 2", len(sent), 1)
	check.Equal(t, "acknowledgements in it", len(pdus[pmul.AckPDU](sent[0])), 1)
	check.Equal(t, "fragments in it", len(pdus[pmul.DataPDU](sent[0])), 1)
	g.Run(2500 * time.Millisecond)
	check.Equal(t, "delivered to node 2", g.a.Fates(2)[mail.Delivered], 1)
	check.Equal(t, "delivered to node 3", g.a.Fates(3)[mail.Delivered], 0)
	g.Run(5 * time.Minute)
	g.ended(1)
}

// Several messages are acknowledged together.
func TestAcknowledgementsShareADatagram(t *testing.T) {
	g := plain(t)
	before := g.Now
	g.say(4, time.Second)
	g.Run(5 * time.Minute)
	g.ended(4)
	check.True(t, "datagrams of the receivers for four messages", len(g.since(before, g.b))+len(g.since(before, g.c)) <= 4)
}

// A message that one receiver has lost goes again for it, and the other does not wait.
func TestLossAtOneReceiver(t *testing.T) {
	g := plain(t)
	lost := 0
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if to == g.b && len(pdus[pmul.DataPDU](d)) > 0 && lost < 2 { // the copy on idle air too
			lost++
			return true
		}
		return false
	})
	g.say(1, time.Second)
	g.Run(30 * time.Second)
	check.Equal(t, "what node 3 has heard", g.c.Heard(1), "0")
	g.say(2, 30*time.Second)
	g.Run(10 * time.Minute)
	g.heard("0..2")
	g.ended(3)
}

// Messages before their turn wait for the one that is missing.
func TestMessagesBeforeTheirTurnWait(t *testing.T) {
	g := plain(t)
	g.say(1, time.Minute)
	var missing pmul.MessageID
	lose := true
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		data := pdus[pmul.DataPDU](d)
		if len(data) > 0 && missing == 0 {
			missing = data[0].Message
		}
		return lose && to == g.b && slices.ContainsFunc(data, func(p pmul.DataPDU) bool { return p.Message == missing })
	})
	g.say(3, 10*time.Second)
	check.Equal(t, "what node 2 has heard", g.b.Heard(1), "0")
	check.Equal(t, "what node 3 has heard", g.c.Heard(1), "0..3")
	early := 0
	for _, r := range g.b.Journal() {
		if r.Bucket == mail.BucketEarly {
			early++
		}
	}
	check.Equal(t, "messages that node 2 keeps before their turn", early, 2)
	lose = false
	g.Run(10 * time.Minute)
	g.heard("0..3")
	g.ended(4)
}

// A report is read although a long message of another local peer is missing before it, and so is a second report although a receiver
// starts again meanwhile. The long message is delivered when it is complete.
func TestReadBeforeALongMessageOfAnother(t *testing.T) {
	g := begin(t, config{})
	g.a.Say(carriernet.Noise(1, 1, 50, 6000), 2, 3)
	g.Run(5 * time.Second)
	g.say(2, 6*time.Second)
	check.Equal(t, "what node 2 has heard", g.b.Heard(1), "0..1")
	g.Kill(g.b, time.Second)
	g.say(1, 12*time.Second)
	check.Equal(t, "what node 3 has heard", g.c.Heard(1), "0..2")
	g.Run(20 * time.Minute)
	for _, n := range []*carriernet.Node{g.b, g.c} {
		heard := strings.Fields(strings.NewReplacer("0..1 2", "0..2").Replace(n.Heard(1)))
		check.True(t, "the reports in order, and the long message once", slices.Equal(slices.Sorted(slices.Values(heard)), []string{"0..2", "50"}), n.Heard(1))
	}
	g.ended(4)
}

// A receiver waits for a missing message, but not for ever. If the message comes late, it is delivered then.
func TestGapIsNotWaitedForForEver(t *testing.T) {
	g := plain(t)
	g.say(1, time.Minute)
	var missing pmul.MessageID
	lose := true
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		data := pdus[pmul.DataPDU](d)
		if len(data) > 0 && missing == 0 {
			missing = data[0].Message
		}
		return lose && to == g.b && slices.ContainsFunc(data, func(p pmul.DataPDU) bool { return p.Message == missing })
	})
	g.say(2, 10*time.Second)
	timing, p := g.b.Bearer.Common.Timing, g.b.Bearer.Profile
	g.Run(4*timing.RoundTrip + 3*p.AckDelay - 30*time.Second)
	check.Equal(t, "what node 2 has heard before its patience ends", g.b.Heard(1), "0")
	g.Run(time.Minute)
	check.Equal(t, "what node 2 has heard after that", g.b.Heard(1), "0 2")
	lose = false
	g.Run(30 * time.Minute)
	check.Equal(t, "what node 2 has heard at the end", g.b.Heard(1), "0 2 1")
	g.ended(3)
}

// A turn of the loop reads the messages that it has room for: many long texts behind one that was missing are read in later turns, in
// order.
func TestReadingTakesTurns(t *testing.T) {
	g := begin(t, config{})
	g.say(1, time.Minute)
	var missing pmul.MessageID
	lose := true
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		data := pdus[pmul.DataPDU](d)
		if len(data) > 0 && missing == 0 {
			missing = data[0].Message
		}
		return lose && to == g.b && slices.ContainsFunc(data, func(p pmul.DataPDU) bool { return p.Message == missing })
	})
	g.say(1, 10*time.Second)
	for i := range 12 {
		g.a.Say(carriernet.Prose(1, 2+i, 4000), 2, 3)
	}
	g.Run(40 * time.Second)
	check.Equal(t, "what node 2 has heard", g.b.Heard(1), "0")
	lose = false
	g.Run(10 * time.Minute)
	g.heard("0..13")
	g.ended(14)
	turns := map[time.Time]bool{}
	for _, a := range g.b.Got[1:] {
		turns[a.At] = true
	}
	check.True(t, "turns in which they were read", len(turns) > 1, len(turns))
}

// An urgent message is read before its turn, and the missing one before it afterwards.
func TestUrgentIsReadAtOnce(t *testing.T) {
	g := plain(t)
	g.say(1, time.Minute)
	n := 0
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if to == g.b && len(pdus[pmul.DataPDU](d)) > 0 {
			n++
		}
		return to == g.b && n > 0 && n <= 2 && len(pdus[pmul.DataPDU](d)) > 0
	})
	g.say(1, 8*time.Second)
	m := carriernet.Report(1, 50)
	m.Precedence = site.Flash
	g.a.Say(m, 2, 3)
	g.Run(4 * time.Second)
	check.Equal(t, "what node 2 has heard", g.b.Heard(1), "0 50")
	g.Run(10 * time.Minute)
	check.Equal(t, "what node 2 has heard at the end", g.b.Heard(1), "0 50 1")
}

// Loss in bursts at each receiver: everything arrives once, and with patience in order.
func TestLossyChannel(t *testing.T) {
	for seed := range uint64(3) {
		cfg := config{Plain: true, Seed: seed, Profile: radio(t)}
		for _, d := range []*direction{&cfg.Profile.Up, &cfg.Profile.Down} {
			d.GEp, d.GEr, d.GEBadPct = 0.02, 0.25, 80
		}
		g := begin(t, cfg)
		for i := range 12 {
			g.say(1, 20*time.Second)
			g.b.Say(carriernet.Report(2, i), 1, 3)
		}
		g.Run(2 * time.Hour)
		in := check.In(t, "seed", seed)
		for _, of := range []struct {
			n    *carriernet.Node
			from uint16
		}{{g.b, 1}, {g.c, 1}, {g.a, 2}, {g.c, 2}} {
			said := of.n.Said(of.from)
			slices.Sort(said)
			check.Equal(in, of.n.Name+": messages that came", len(said), 12)
			check.Equal(in, of.n.Name+": different ones", len(slices.Compact(said)), 12)
		}
		g.ended(12)
	}
}

// The most urgent of the waiting messages goes first.
func TestPrecedenceDecidesTheOrder(t *testing.T) {
	g := plain(t)
	g.a.Say(carriernet.Noise(1, 0, 9, 3000), 2, 3) // it has the air
	var list []site.Message
	for i, p := range []site.Precedence{site.Routine, site.Deferred, site.Flash, site.Priority, site.Immediate, site.Flash} {
		m := carriernet.Noise(1, 0, i, 300)
		m.Precedence = p
		list = append(list, m)
	}
	g.a.SayAll(list, 2, 3)
	g.Run(10 * time.Minute)
	var said []string
	for _, text := range g.b.Said(1) {
		said = append(said, text[2:3])
	}
	check.Equal(t, "messages that came", len(g.b.Said(1)), 7)
	at := func(i string) int {
		return slices.Index(said, i)
	}
	check.True(t, "flash before priority", at("2") < at("3"), said)
	check.True(t, "flash before immediate", at("5") < at("4"), said)
	check.True(t, "priority before deferred", at("3") < at("1"), said)
	g.ended(7)
}

// A long message goes in fragments, and is whole for all.
func TestLongMessage(t *testing.T) {
	g := plain(t)
	before := g.Now
	m := carriernet.Noise(1, 0, 0, 3000)
	g.a.Say(m, 2, 3)
	g.Run(5 * time.Minute)
	for _, n := range []*carriernet.Node{g.b, g.c} {
		check.Equal(check.Fatal(t), n.Name+": messages that came", len(n.Got), 1)
		check.Equal(t, n.Name+": its octets", string(n.Got[0].Payload.Parts[0].Data), string(m.Parts[0].Data))
	}
	check.True(t, "fragments on the air", fragments(g.since(before, g.a)) >= 7, fragments(g.since(before, g.a)))
	g.ended(1)
}

// A short message goes again on idle air, as long as nobody has acknowledged it; a peer that missed the first need not ask.
func TestCopyOnIdleAir(t *testing.T) {
	g := plain(t)
	n := 0
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if to == g.b && len(pdus[pmul.DataPDU](d)) > 0 {
			n++
			return n == 1
		}
		return false
	})
	before := g.Now
	g.say(1, 20*time.Second)
	g.heard("0")
	sent := g.since(before, g.a)
	check.True(check.Fatal(t), "the message and its copy", len(sent) >= 2, len(sent))
	check.Equal(t, "the copy's counter", sent[1].Counter, sent[0].Counter)
	check.True(t, "the copy came so much later", sent[1].At.Sub(sent[0].At) >= g.a.Bearer.Profile.CopyAfter, sent[1].At.Sub(sent[0].At))
	check.Equal(t, "what node 3 refused as a replay", g.c.Drops["replay"] > 0, true)
}

// P_Mul bounds the messages that it holds, and refuses further ones for all recipients.
func TestFullEngineRefuses(t *testing.T) {
	cfg := config{Plain: true, Profile: radio(t)}
	cfg.Profile.PMulUse.Messages = 5
	g := begin(t, cfg)
	for i := range 8 {
		g.a.Say(carriernet.Report(1, i), 2, 3)
	}
	check.Equal(t, "who refused the last", len(g.a.Refused), 2)
	check.Contains(t, "the log", strings.Join(g.Notes, "\n"), "a message was refused by P_Mul")
	g.Run(10 * time.Minute)
	g.heard("0..4")
	g.ended(5)
	g.said = 20
	g.say(1, 5*time.Minute)
	g.heard("0..4 20")
}

// A message that cannot be encoded is refused at once.
func TestRefusesWhatCannotBeEncoded(t *testing.T) {
	g := plain(t)
	m := carriernet.Report(1, 0)
	m.Parts[0].Name = string([]byte{0xff})
	check.Equal(t, "its ID", g.a.Say(m, 2, 3), 0)
	check.Equal(t, "who refused", len(g.a.Refused), 2)
}

// A message that has expired before it reached a peer ends so.
func TestExpires(t *testing.T) {
	g := plain(t)
	g.Outage(g.c, 30*time.Minute)
	m := carriernet.Report(1, 0)
	m.Expires = g.Now.Add(10 * time.Minute)
	g.a.Say(m, 2, 3)
	g.Run(40 * time.Minute)
	check.Equal(t, "delivered to node 2", g.a.Fates(2)[mail.Delivered], 1)
	check.Equal(t, "expired for node 3", g.a.Fates(3)[mail.Expired], 1)
	check.Equal(t, "what node 3 has heard", g.c.Heard(1), "")
}

// A newer message of the same key takes the place of one of which no part has been on the air.
func TestNewerReplacesOlder(t *testing.T) {
	g := plain(t)
	g.a.Say(carriernet.Noise(1, 0, 9, 3000), 2, 3) // it has the air
	for i := range 3 {
		m := carriernet.Report(1, 50+i)
		m.LastValue, m.Key = "position", 7
		g.a.Say(m, 2, 3)
	}
	g.Run(10 * time.Minute)
	check.True(t, "superseded ones do not arrive", strings.HasSuffix(g.b.Heard(1), "52"), g.b.Heard(1))
	check.True(t, "some are superseded", g.a.Fates(2)[mail.Superseded] >= 1, g.a.Fates(2))
	check.Equal(t, "as many for the other", g.a.Fates(3)[mail.Superseded], g.a.Fates(2)[mail.Superseded])
}

// State of the site is one message to all that lack the same items.
func TestStateOfTheSite(t *testing.T) {
	g := plain(t)
	before := g.Now
	for i := range 5 {
		g.a.Put(carriernet.Item(1, i))
	}
	g.Run(5 * time.Minute)
	check.Equal(t, "items at node 2", len(g.b.Far[1]), 5)
	check.Equal(t, "items at node 3", len(g.c.Far[1]), 5)
	seen := map[pmul.MessageID]bool{}
	for _, d := range g.since(before, g.a) {
		for _, pdu := range pdus[pmul.DataPDU](d) {
			seen[pdu.Message] = true
		}
	}
	check.True(t, "messages with state", len(seen) <= 5, len(seen))
	g.a.Put(carriernet.Item(1, 2).Withdrawal())
	g.Run(5 * time.Minute)
	check.Equal(t, "items at node 2", len(g.b.Far[1]), 4)
	check.Equal(t, "items at node 3", len(g.c.Far[1]), 4)
}

// A peer whose roster is too old to read datagrams to all gets copies of its own.
func TestPeerBehindGetsACopy(t *testing.T) {
	behind := true
	cfg := config{Plain: true}
	cfg.Bearer = func(n *carriernet.Node, c *carriage.Config) {
		if n.ID == 1 {
			c.Behind = func(peer uint16) bool { return behind && peer == 3 }
		}
	}
	g := begin(t, cfg)
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool { return behind && to == g.c && d.To == 0 })
	before := g.Now
	g.say(3, 30*time.Second)
	g.Run(5 * time.Minute)
	g.heard("0..2")
	g.ended(3)
	copies := 0
	for _, d := range g.since(before, g.a) {
		if d.To == 3 && len(pdus[pmul.DataPDU](d)) > 0 {
			copies++
		}
		check.True(t, "nothing for node 2 alone", d.To != 2, d)
	}
	check.True(t, "copies for node 3", copies >= 3, copies)
	behind = false
	before = g.Now
	g.say(1, 2*time.Minute)
	for _, d := range g.since(before, g.a) {
		check.True(t, "no copy any more", d.To != 3 || len(pdus[pmul.DataPDU](d)) == 0, d)
	}
	g.heard("0..3")
}

// Without an address for all, each peer gets a copy of each datagram.
func TestChannelWithoutGroupAddress(t *testing.T) {
	cfg := config{Plain: true}
	cfg.Bearer = func(_ *carriernet.Node, c *carriage.Config) { c.Group = carriernet.NoAddress }
	g := begin(t, cfg)
	before := g.Now
	g.say(3, 30*time.Second)
	g.Run(10 * time.Minute)
	g.heard("0..2")
	g.ended(3)
	for _, d := range g.since(before, g.a) {
		check.Differ(t, "who a datagram is for", d.To, 0)
	}
}

// Two nodes on a channel: messages arrive as among three, with nobody else to wait for.
func TestPairOnAChannel(t *testing.T) {
	g := begin(t, config{Nodes: 2, Plain: true})
	for i := range 5 {
		g.a.Say(carriernet.Report(1, i), 2)
		g.b.Say(carriernet.Report(2, i), 1)
		g.Run(20 * time.Second)
	}
	g.Run(5 * time.Minute)
	check.Equal(t, "what node 2 has heard", g.b.Heard(1), "0..4")
	check.Equal(t, "what node 1 has heard", g.a.Heard(2), "0..4")
	check.Equal(t, "delivered", g.a.Fates(2)[mail.Delivered], 5)
}

// Where proofs make a datagram to all long, an acknowledgement goes to its one peer alone.
func TestProofsMakeAcksGoApart(t *testing.T) {
	cfg := config{Plain: true}
	cfg.Bearer = func(_ *carriernet.Node, c *carriage.Config) { c.Proven = func() int { return 100 } }
	g := begin(t, cfg)
	before := g.Now
	g.say(1, 2*time.Minute)
	g.ended(1)
	for _, d := range g.since(before, g.b) {
		if len(pdus[pmul.AckPDU](d)) > 0 && len(pdus[pmul.DataPDU](d)) == 0 {
			check.Equal(t, "who an acknowledgement is for", d.To, 1)
		}
	}
}

// The status counts the octets that went to all.
func TestReport(t *testing.T) {
	g := plain(t)
	g.say(2, time.Minute)
	s := api.Status{Dropped: map[string]uint64{}}
	g.a.Bearer.Carriers[0].Report(&s)
	octets := map[string]uint64{}
	for _, row := range s.Ledger {
		check.Equal(t, "who it went to", row.Peer, "group")
		octets[row.Kind] += row.Octets
	}
	check.True(t, "octets of messages", octets["payload"] > 150, octets)
}

// Octets that are no PDU, and frames of another carrier, come to nothing.
func TestWhatIsNoPDU(t *testing.T) {
	g := plain(t)
	g.b.Do(func(now time.Time) {
		c, p := g.b.Bearer.Carriers[0], g.b.Peer(1)
		check.Equal(t, "taken", c.Receive(now, p, frame.PMul{Body: []byte{0xff, 0xff, 0xff}}, 4, true), true)
		check.Equal(t, "a frame of another carrier is taken", c.Receive(now, p, frame.Probe{}, 2, true), false)
		c.Event(now, api.NormUp{}) // no process works for P_Mul
		c.Settle(now)
	})
	check.Equal(t, "what came to nothing", g.b.Drops["p_mul"], 1)
}
