package unicast_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// Messages arrive in the order in which they were accepted, and the acknowledgement ends custody once.
func TestMessagesArriveInOrder(t *testing.T) {
	g := plain(t)
	g.say(12, 5*time.Second)
	g.Run(time.Minute)
	g.heard("0..11")
	g.ended(12)
	check.Equal(t, "datagrams that came to nothing", len(g.a.Drops)+len(g.b.Drops), 0)
	check.Equal(t, "duplicates", int(g.b.Peer(1).Counts.Duplicates), 0)
}

// Short messages that are accepted together share a datagram.
func TestShortMessagesShareADatagram(t *testing.T) {
	g := plain(t)
	before := g.Now
	g.a.SayAll([]site.Message{carriernet.Noise(1, 0, 0, 60), carriernet.Noise(1, 0, 1, 60), carriernet.Noise(1, 0, 2, 60)}, 2)
	g.Run(20 * time.Second)
	sent := g.since(before, g.a)
	check.Equal(check.Fatal(t), "datagrams", len(sent), 1)
	check.Equal(t, "messages in it", len(carriernet.Of[frame.Data](sent[0])), 3)
	g.heard("0..2")
}

// An acknowledgement waits for a message to ride on, and goes alone when AckDelay is over.
func TestAcknowledgementRidesOrGoesAlone(t *testing.T) {
	g := plain(t)
	g.say(1, 2500*time.Millisecond) // it has arrived
	before := g.Now
	g.b.Say(carriernet.Report(2, 0), 1)
	g.Run(time.Second)
	sent := g.since(before, g.b)
	check.Equal(check.Fatal(t), "datagrams of node 2", len(sent), 1)
	data := carriernet.Of[frame.Data](sent[0])
	check.Equal(check.Fatal(t), "messages in it", len(data), 1)
	check.True(t, "the acknowledgement rides", data[0].Rides, data[0])
	g.Run(time.Minute)
	g.ended(1)

	before = g.Now
	g.say(1, time.Minute)
	sent = g.since(before, g.b)
	check.Equal(check.Fatal(t), "datagrams of node 2", len(sent), 1)
	check.True(t, "an acknowledgement alone", carriernet.Has[frame.Ack](sent[0]) && !carriernet.Has[frame.Data](sent[0]), sent[0].Frames())
	check.True(t, "it waited for AckDelay", sent[0].At.Sub(before) >= g.b.Bearer.Profile.AckDelay, sent[0].At.Sub(before))
	g.ended(2)
}

// A probe asks for a lost acknowledgement, and the message that it was for does not go again.
func TestLostAcknowledgementIsAskedFor(t *testing.T) {
	g := plain(t)
	g.say(3, 10*time.Second)
	g.Run(time.Minute)
	before := g.Now
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool { return to == g.a })
	g.say(1, 30*time.Second)
	g.Fate = nil
	g.Run(2 * time.Minute)
	probes, messages := 0, 0
	for _, d := range g.since(before, g.a) {
		probes += len(carriernet.Of[frame.Probe](d))
		messages += len(carriernet.Of[frame.Data](d))
	}
	check.True(t, "a probe", probes > 0, probes)
	check.Equal(t, "times that the message went", messages, 1)
	g.heard("0..3")
	g.ended(4)
}

// A message that is lost goes again; those behind it wait for it, and do not go again.
func TestLostMessageGoesAgainAlone(t *testing.T) {
	g := plain(t)
	lost := 0
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if to == g.b && carriernet.Has[frame.Data](d) && lost == 0 {
			lost++
			return true
		}
		return false
	})
	before := g.Now
	g.say(4, time.Second)
	check.Equal(t, "what has come before the lost one", g.b.Heard(1), "")
	g.Run(2 * time.Minute)
	g.heard("0..3")
	g.ended(4)
	times := map[uint16]int{}
	for _, d := range g.since(before, g.a) {
		for _, f := range carriernet.Of[frame.Data](d) {
			times[f.Number&0xff]++
		}
	}
	check.Same(t, "how often each number went", times, map[uint16]int{1: 2, 2: 1, 3: 1, 4: 1})
	check.Equal(t, "messages counted as repeated", int(g.a.Peer(2).Counts.Repeated), 1)
}

// Loss, reordering and duplicates: everything arrives once, in order, on each link and with each seed.
func TestRoughLinks(t *testing.T) {
	for seed := range uint64(4) {
		for name, cfg := range map[string]config{"rough": rough(t, seed), "wild": wild(t, seed)} {
			g := begin(t, cfg)
			in := check.In(t, name, "seed", seed)
			for i := range 15 {
				g.say(1, 4*time.Second)
				g.b.Say(carriernet.Report(2, i), 1)
			}
			g.Run(10 * time.Minute)
			check.Equal(in, "what node 2 has heard", g.b.Heard(1), "0..14")
			check.Equal(in, "what node 1 has heard", g.a.Heard(2), "0..14")
			check.Equal(in, "messages of node 1 delivered", g.a.Fates(2)[mail.Delivered], 15)
			check.Equal(in, "messages of node 2 delivered", g.b.Fates(1)[mail.Delivered], 15)
		}
	}
}

// A peer that does not answer is sent probes alone, and they become rarer. The messages for it go when it answers.
func TestDeadLinkGetsProbesAlone(t *testing.T) {
	g := plain(t)
	g.say(1, time.Minute)
	g.Outage(g.b, time.Hour)
	g.say(20, time.Second)
	g.Run(5 * time.Minute)
	check.True(t, "the peer counts as dead", g.a.Peer(2).Link.Dead())
	before := g.Now
	g.Run(10 * time.Minute)
	sent := g.since(before, g.a)
	for _, d := range sent {
		check.True(t, "probes alone", carriernet.Has[frame.Probe](d) && !carriernet.Has[frame.Data](d), d.Frames())
	}
	check.True(t, "some probes, and few", len(sent) > 5 && len(sent) <= 45, len(sent))
	g.Run(time.Hour)
	g.heard("0..20")
	g.ended(21)
}

// The window bounds the messages under way to a peer that acknowledges nothing.
func TestWindowBoundsWhatIsUnderWay(t *testing.T) {
	g := plain(t)
	g.lose(func(_ carriernet.Datagram, to *carriernet.Node) bool { return to == g.a })
	for range 40 {
		g.noise(300)
	}
	g.Run(12 * time.Second)
	octets, largest := 0, 0
	for _, e := range g.a.Peer(2).Box.UnderWay(frame.Direct) {
		octets, largest = octets+e.Weight, max(largest, e.Weight)
	}
	window := g.a.Bearer.Common.Timing.Window[frame.Direct]
	check.True(t, "octets under way fill the window", octets >= window, octets, window)
	check.True(t, "the last began within it", octets < window+largest, octets, window)
	g.Fate = nil
	g.Run(5 * time.Minute)
	g.heard("0..39")
	g.ended(40)
}

// Urgent messages go beyond a window that is full, and before all messages that wait.
func TestUrgentGoesBeyondTheWindow(t *testing.T) {
	g := plain(t)
	g.lose(func(_ carriernet.Datagram, to *carriernet.Node) bool { return to == g.a })
	for range 30 {
		g.noise(300)
	}
	g.Run(12 * time.Second)
	_, full := g.a.Held(2)
	id := g.a.Say(as(site.Immediate, carriernet.Noise(1, 0, g.said, 40)), 2)
	g.Run(5 * time.Second)
	_, underWay := g.a.Held(2)
	check.Equal(t, "messages under way", underWay, full+1)
	check.True(t, "others wait", full < 30, full)
	check.Differ(t, "the urgent one's number", g.a.Entry(id, 2).At.Number, 0)
}

// The more urgent message goes first, and of two as urgent ones the older.
func TestPrecedenceDecidesTheOrder(t *testing.T) {
	g := plain(t)
	g.Outage(g.b, 5*time.Minute)
	g.say(9, time.Second) // they fill the window, and find the link dead
	g.Run(time.Minute)
	for _, p := range []site.Precedence{site.Deferred, site.Routine, site.Flash, site.Priority, site.Flash, site.Immediate} {
		g.a.Say(as(p, carriernet.Report(1, g.said)), 2)
		g.said++
	}
	g.Run(10 * time.Minute)
	var order []string
	for _, text := range g.b.Said(1) {
		order = append(order, text[2:4])
	}
	at := func(i string) int { return slices.Index(order, i) }
	check.Equal(check.Fatal(t), "messages that came", len(order), 15)
	check.True(t, "flash in order", at("11") < at("13"), order)
	check.True(t, "flash before immediate", at("13") < at("14"), order)
	check.True(t, "immediate before priority", at("14") < at("12"), order)
	check.True(t, "priority before routine", at("12") < at("10"), order)
	check.True(t, "routine before deferred", at("10") < at("9;"), order)
}

// A flash message goes twice by itself, and is read once.
func TestFlashGoesTwice(t *testing.T) {
	g := plain(t)
	before := g.Now
	g.a.Say(as(site.Flash, carriernet.Report(1, 0)), 2)
	g.Run(time.Second)
	check.Equal(t, "datagrams with it in the first second", len(g.since(before, g.a)), 2)
	g.Run(time.Minute)
	g.heard("0")
	g.ended(1)
}

// One local peer that floods the link does not hold up another.
func TestSourcesTakeTurns(t *testing.T) {
	g := plain(t)
	for i := range 30 {
		g.a.Say(carriernet.Noise(1, 1, i, 300), 2)
	}
	g.Run(time.Second)
	g.a.Say(carriernet.Noise(1, 2, 99, 300), 2)
	g.Run(2 * time.Minute)
	said := g.b.Said(1)
	at := slices.IndexFunc(said, func(text string) bool { return text[:5] == "1;99;" })
	check.Equal(check.Fatal(t), "messages that came", len(said), 31)
	check.True(t, "the quiet one's among the first", at >= 0 && at < 15, at)
}

// In a flood, a message that depends on none of those missing is read before its turn, and in its own source's order.
func TestOthersAreReadBeforeTheirTurn(t *testing.T) {
	g := plain(t)
	lost := false
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if to == g.b && !lost && carriernet.Has[frame.Data](d) {
			lost = true
			return true
		}
		return false
	})
	for i := range 12 {
		g.a.Say(carriernet.Noise(1, 1, i, 300), 2)
	}
	for i := range 2 {
		g.a.Say(carriernet.Noise(1, 2, 50+i, 300), 2)
	}
	g.Run(3 * time.Minute)
	var flood, quiet []int
	for place, a := range g.b.Got {
		if a.Payload.From == carriernet.Noise(1, 1, 0, 20).From {
			flood = append(flood, place)
		} else {
			quiet = append(quiet, place)
		}
	}
	check.Equal(check.Fatal(t), "messages of the flood", len(flood), 12)
	check.Equal(check.Fatal(t), "messages of the other", len(quiet), 2)
	check.True(t, "the other's first is read before the flood's, which was lost", quiet[0] < flood[0], quiet, flood)
	g.ended(14)
}

// A full store refuses routine messages, and gives some up for one that is more urgent.
func TestFullStoreRefuses(t *testing.T) {
	g := begin(t, config{Plain: true, Most: 3000})
	g.Outage(g.b, 10*time.Minute)
	for range 20 {
		g.noise(300)
	}
	check.Equal(t, "who refused the last", len(g.a.Refused), 1)
	waiting, underWay := g.a.Held(2)
	held := waiting + underWay
	check.True(t, "some are held", held > 3 && held < 12, held)
	id := g.a.Say(as(site.Flash, carriernet.Noise(1, 0, 90, 300)), 2)
	check.Equal(t, "who refused a flash message", len(g.a.Refused), 0)
	check.True(t, "it is held", g.a.Entry(id, 2) != nil)
	check.True(t, "what it took the place of", g.a.Fates(2)[mail.Cancelled] > 0, g.a.Fates(2))
	g.Run(20 * time.Minute)
	fates := g.a.Fates(2)
	check.Equal(t, "messages that came", len(g.b.Said(1)), fates[mail.Delivered])
	check.Equal(t, "messages accounted for", total(fates), held+1)
}

// A message that has expired when its turn comes is not sent.
func TestExpiredIsNotSent(t *testing.T) {
	g := plain(t)
	g.Outage(g.b, 5*time.Minute)
	g.say(10, time.Second)
	g.Run(time.Minute)
	late := carriernet.Report(1, 50)
	late.Expires = g.Now.Add(time.Minute)
	g.a.Say(late, 2)
	g.Run(10 * time.Minute)
	g.heard("0..9")
	check.Equal(t, "expired", g.a.Fates(2)[mail.Expired], 1)
}

// A newer message of the same key takes the place of the one that waits.
func TestNewerReplacesOlder(t *testing.T) {
	g := plain(t)
	g.Outage(g.b, 5*time.Minute)
	g.say(10, time.Second)
	g.Run(time.Minute)
	for i := range 3 {
		m := carriernet.Report(1, 50+i)
		m.LastValue, m.Key = "position", 7
		g.a.Say(m, 2)
	}
	g.Run(10 * time.Minute)
	g.heard("0..9 52")
	check.Equal(t, "superseded", g.a.Fates(2)[mail.Superseded], 2)
}

// A message that cannot be encoded is refused at once.
func TestRefusesWhatCannotBeEncoded(t *testing.T) {
	g := plain(t)
	m := carriernet.Report(1, 0)
	m.Parts[0].Name = string([]byte{0xff})
	id := g.a.Say(m, 2)
	check.Equal(t, "its ID", id, 0)
	check.Equal(t, "who refused", len(g.a.Refused), 1)
}

// Duplicates and numbers beyond the window deliver nothing.
func TestNumbersBeyondTheWindow(t *testing.T) {
	g := plain(t)
	g.say(3, 5*time.Second)
	g.Run(time.Minute)
	body, err := envelope.Append(nil, envelope.Message{Payload: new(carriernet.Report(1, 9))}, 0, true)
	check.NoError(check.Fatal(t), err)
	receive := func(number uint16, newest bool) {
		g.b.Do(func(now time.Time) {
			p := g.b.Peer(1)
			p.Stamp.Counter++
			g.b.Bearer.Carriers[0].Receive(now, p, frame.Data{Number: number, Body: body}, len(body), newest)
		})
	}
	receive(2, true)
	check.Equal(t, "duplicates", int(g.b.Peer(1).Counts.Duplicates), 1)
	receive(2060, true)
	check.Equal(t, "numbers beyond the window", g.b.Drops["beyond_window"], 1)
	receive(6, true) // of which two before are missing
	g.heard("0..2")
	receive(5, true)
	receive(4, true)
	g.heard("0..2 9 9 9")
}

// A short number of a datagram that many others have overtaken is not guessed.
func TestShortNumberOfALateDatagram(t *testing.T) {
	g := plain(t)
	held := 0
	g.Fate = func(d carriernet.Datagram, to *carriernet.Node) (time.Duration, bool) {
		if to == g.b && carriernet.Has[frame.Data](d) {
			if held++; held == 2 {
				return 40 * time.Second, false
			}
		}
		return 0, false
	}
	g.say(6, 4*time.Second)
	g.Run(2 * time.Minute)
	g.heard("0..5")
	g.ended(6)
	check.Equal(t, "duplicates", int(g.b.Peer(1).Counts.Duplicates), 1) // the late one is understood, and was sent again meanwhile
	check.Equal(t, "late ones that nobody knows", g.b.Drops["late"], 0)

	g.b.Do(func(now time.Time) {
		p := g.b.Peer(1)
		p.Stamp = mail.Stamp{Incarnation: p.Stamp.Incarnation - 1, Counter: 1} // of another start
		g.b.Bearer.Carriers[0].Receive(now, p, frame.Data{Number: 9, Short: true}, 3, false)
	})
	check.Equal(t, "late ones that nobody knows", g.b.Drops["late"], 1)
}

// A frame of another carrier is not taken.
func TestOtherCarriersFramesAreNotTaken(t *testing.T) {
	g := plain(t)
	taken := true
	g.b.Do(func(now time.Time) {
		taken = g.b.Bearer.Carriers[0].Receive(now, g.b.Peer(1), frame.PMul{Body: []byte{1}}, 2, true)
	})
	check.Equal(t, "taken", taken, false)
}

// A message that cannot be read is dropped, and its sender gets to know that.
func TestUnreadableIsDroppedAndTold(t *testing.T) {
	g := plain(t)
	g.say(1, time.Minute)
	g.b.Do(func(now time.Time) {
		p := g.b.Peer(1)
		p.Stamp.Counter++
		g.b.Bearer.Carriers[0].Receive(now, p, frame.Data{Number: 2, Body: []byte{0xff, 0xff}}, 5, true)
	})
	check.Equal(t, "unread", len(g.b.Unreadable), 1)
	check.Equal(t, "counted as unreadable", int(g.b.Peer(1).Counts.Unreadable), 1)
}

// To a peer that says so, short messages fill a fast link: their numbers go beyond what 8 bits of an acknowledgement name. Of an older
// peer no more than 255 are under way.
func TestNumbersFarAhead(t *testing.T) {
	for _, old := range []bool{false, true} {
		p := load(t, "iridium-certus-100")
		g := begin(t, config{Plain: true, Old: old, Profile: p, Seed: 5})
		in := check.In(t, "an older peer", old)
		most, lost := 0, 0
		g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
			under := g.a.Peer(2).Box.UnderWay(frame.Direct)
			if len(under) > 0 {
				most = max(most, int(under[len(under)-1].At.Number-under[0].At.Number))
			}
			gone := to == g.b && most > 100 && lost < 3 && carriernet.Has[frame.Data](d)
			if gone {
				lost++
			}
			return gone
		})
		for range 10 {
			for range 200 {
				g.noise(20)
			}
			g.Run(time.Second)
		}
		g.Run(2 * time.Minute)
		g.heard("0..1999")
		g.ended(2000)
		check.Equal(in, "datagrams lost", lost, 3)
		if old {
			check.True(in, "numbers between the oldest and the newest", most < custody.ByteAhead, most)
		} else {
			check.True(in, "numbers between the oldest and the newest", most > custody.ByteAhead, most)
		}
		check.Equal(in, "numbers that were not taken", g.b.Drops["beyond_window"], 0)
	}
}
