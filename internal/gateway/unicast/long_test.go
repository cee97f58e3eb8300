package unicast_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// bare is the calm link to a peer of an older version, so that long messages go over libnorm.
func bare(t *testing.T) *game { return begin(t, config{Plain: true, Old: true}) }

// A long message goes in segments that fill datagrams, and arrives whole.
func TestLongMessageGoesInSegments(t *testing.T) {
	g := plain(t)
	before := g.Now
	m := carriernet.Noise(1, 0, 0, 5000)
	id := g.a.Say(m, 2)
	g.Run(3 * time.Second)
	there, all := g.a.Peer(2).Link.Progress(g.a.Entry(id, 2))
	check.True(t, "octets of it as coded", all > 5000 && all < 5200, all)
	check.True(t, "octets at the peer so far", there >= 0 && there < all, there)
	g.Run(time.Minute)
	check.Equal(check.Fatal(t), "messages that came", len(g.b.Got), 1)
	check.Equal(t, "its octets", string(g.b.Got[0].Payload.Parts[0].Data), string(m.Parts[0].Data))
	g.ended(1)
	segments, full := 0, 0
	for _, d := range g.since(before, g.a) {
		segments += len(carriernet.Of[frame.Segment](d))
		if d.Octets > g.a.Bearer.Profile.Largest()-40 {
			full++
		}
	}
	check.True(t, "segments", segments >= 10 && segments <= 16, segments)
	check.True(t, "full datagrams", full >= 5000/g.a.Bearer.Profile.Largest(), full)
}

// Segments that are lost go again by themselves, and those alone.
func TestLostSegmentsGoAgain(t *testing.T) {
	g := plain(t)
	n := 0
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if to != g.b || !carriernet.Has[frame.Segment](d) {
			return false
		}
		n++
		return n == 3 || n == 4 || n == 8
	})
	before := g.Now
	g.noise(5000)
	g.Run(2 * time.Minute)
	g.heard("0")
	g.ended(1)
	segments := 0
	for _, d := range g.since(before, g.a) {
		segments += len(carriernet.Of[frame.Segment](d))
	}
	check.True(t, "segments", segments >= 13 && segments <= 17, segments)
}

// Short messages do not wait for a long one.
func TestShortMessagesGoBetweenSegments(t *testing.T) {
	g := plain(t)
	g.a.Say(carriernet.Noise(1, 1, 0, 20_000), 2)
	g.Run(5 * time.Second)
	g.a.Say(carriernet.Noise(1, 2, 1, 100), 2)
	g.Run(10 * time.Second)
	g.heard("1")
	g.Run(2 * time.Minute)
	g.heard("1 0")
}

// A long message that is more urgent than one that is half sent is sent and read before it.
func TestUrgentLongMessageOvertakes(t *testing.T) {
	g := plain(t)
	g.a.Say(carriernet.Noise(1, 1, 0, 20_000), 2)
	g.Run(5 * time.Second)
	g.a.Say(as(site.Immediate, carriernet.Noise(1, 2, 1, 3000)), 2)
	g.Run(3 * time.Minute)
	g.heard("1 0")
	g.ended(2)
}

// A long message goes on after a death of either end in its middle: the segments that the peer has do not go again.
func TestLongMessageSurvivesDeaths(t *testing.T) {
	for _, who := range []int{0, 1} {
		g := plain(t)
		in := check.In(t, "node", who+1, "dies")
		before := g.Now
		g.noise(10_000)
		g.Run(6 * time.Second)
		g.Kill(g.Nodes[who], time.Second)
		g.Run(3 * time.Minute)
		check.Equal(in, "what node 2 has heard", g.b.Heard(1), "0")
		check.Equal(in, "delivered", g.a.Fates(2)[mail.Delivered], 1)
		octets := 0
		for _, d := range g.since(before, g.a) {
			octets += d.Octets
		}
		check.True(in, "octets on the air", octets < 16_500, octets)
		for _, r := range slices.Concat(g.a.Journal(), g.b.Journal()) {
			check.True(in, "no record of segments at the end", r.Bucket != "cut" && r.Bucket != "coded" && r.Bucket != "piece", r)
		}
	}
}

// Long messages of several sources take turns.
func TestLongMessagesTakeTurns(t *testing.T) {
	g := plain(t)
	for i := range 4 {
		g.a.Say(carriernet.Noise(1, 1, i, 6000), 2)
	}
	g.a.Say(carriernet.Noise(1, 2, 9, 6000), 2)
	g.Run(5 * time.Minute)
	said := g.b.Heard(1)
	check.True(t, "the other's is not the last", strings.Contains(said, "9") && !strings.HasSuffix(said, "9"), said)
	g.ended(5)
}

// A peer says that it has another version now, in the middle of a long message of which segments are lost: the message goes over libnorm,
// and empty messages take the places of the segments for which the peer waits.
func TestPeerChangesToAnOlderVersion(t *testing.T) {
	g := plain(t)
	n := 0
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if to == g.b && carriernet.Has[frame.Segment](d) {
			n++
		}
		return to == g.b && n > 0 && n%3 == 0 && carriernet.Has[frame.Segment](d)
	})
	g.noise(10_000)
	g.Run(6 * time.Second)
	g.a.Do(func(now time.Time) {
		g.a.Peer(2).Handshake.Segments = false // as a HELLO of that version says
	})
	g.Run(5 * time.Minute)
	g.heard("0")
	g.ended(1)
}

// A peer begins anew in the middle of a long message: all of it goes again.
func TestNewStoreInTheMiddleOfALongMessage(t *testing.T) {
	g := plain(t)
	g.noise(10_000)
	g.Run(6 * time.Second)
	g.LoseStore(g.b, time.Second)
	g.Run(3 * time.Minute)
	g.heard("0")
	g.ended(1)
}

// The sender begins anew in the middle of a long message: the segments that had come are forgotten.
func TestNewNumbersInTheMiddleOfALongMessage(t *testing.T) {
	g := plain(t)
	g.noise(10_000)
	g.Run(6 * time.Second)
	g.LoseStore(g.a, time.Second)
	g.Run(2 * time.Minute)
	g.heard("")
	for _, r := range g.b.Journal() {
		check.Differ(check.In(t, r.Key), "bucket", r.Bucket, "piece")
	}
	g.say(2, 10*time.Second)
	g.Run(time.Minute)
	g.heard("1..2")
}

// A readable text of several kilobytes that the model makes small enough goes in one datagram; it is sized in slices.
func TestLargeTextIsSized(t *testing.T) {
	g := begin(t, config{})
	before := g.Now
	g.a.Say(carriernet.Prose(1, 0, 3000), 2)
	g.Run(30 * time.Second)
	g.heard("0")
	for _, d := range g.since(before, g.a) {
		check.Equal(t, "segments", len(carriernet.Of[frame.Segment](d)), 0)
	}
	g.ended(1)
}

// A text that stays too long for a datagram is moved to the bulk queue when it has been sized, and those behind it go first.
func TestLongTextIsMoved(t *testing.T) {
	g := begin(t, config{})
	id := g.a.Say(carriernet.Noise(1, 1, 0, 2500), 2)
	check.Equal(t, "its queue at first", g.a.Entry(id, 2).Queue, frame.Direct)
	check.Equal(t, "it is not sized", g.a.Entry(id, 2).Unsized, true)
	there, all := g.a.Peer(2).Link.Progress(g.a.Entry(id, 2))
	check.Equal(t, "octets that are known of its way", there+all, 0)
	longer := g.a.Say(carriernet.Noise(1, 3, 2, 30_000), 2)
	check.Equal(t, "the queue of one that no model makes short enough", g.a.Entry(longer, 2).Queue, frame.Bulk)
	g.Run(time.Second)
	check.Equal(t, "its queue", g.a.Entry(id, 2).Queue, frame.Bulk)
	g.a.Say(carriernet.Noise(1, 2, 1, 60), 2)
	g.Run(3 * time.Minute)
	g.ended(3)
}

// A message that fits a datagram only without a HELLO waits for the peer's answer, or is moved to the bulk queue.
func TestMessageThatFillsADatagram(t *testing.T) {
	for _, octets := range []int{380, 400, 410, 420, 430, 440, 450} {
		g := plain(t)
		g.Kill(g.a, time.Second) // it does not know that the peer knows it
		g.Run(1100 * time.Millisecond)
		g.noise(octets)
		g.noise(20)
		g.Run(2 * time.Minute)
		check.Equal(check.In(t, octets), "messages that came", len(g.b.Said(1)), 2)
		check.Equal(check.In(t, octets), "delivered", g.a.Fates(2)[mail.Delivered], 2)
	}
}

// Later messages of a flow are coded after earlier ones. A receiver that has forgotten the earlier ones says so, and is sent the later
// ones coded otherwise, also those that came behind a missing one.
func TestReceiverThatHasForgottenHistory(t *testing.T) {
	for _, lost := range []string{"before", "before inflow"} {
		for _, missing := range []bool{false, true} {
			g := begin(t, config{})
			in := check.In(t, "without", lost, "the first is missing", missing)
			g.say(6, 5*time.Second)
			g.Run(time.Minute)
			g.forget(g.b, strings.Fields(lost)...)
			g.Run(time.Minute)
			n := 0
			g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
				if to == g.b && carriernet.Has[frame.Data](d) {
					n++
				}
				return missing && to == g.b && n == 1
			})
			g.say(4, time.Second)
			g.Run(5 * time.Minute)
			check.Equal(in, "what node 2 has heard", g.b.Heard(1), "0..9")
			check.Equal(in, "messages delivered", g.a.Fates(2)[mail.Delivered], 10)
			check.Contains(in, "the log", strings.Join(g.Notes, "\n"), "asks for it again")
			check.Equal(in, "unreadable", int(g.b.Peer(1).Counts.Unreadable), 0)
		}
	}
}

// A receiver that has acknowledged segments and lost them gets the message anew.
func TestReceiverThatHasLostSegments(t *testing.T) {
	g := plain(t)
	g.noise(10_000)
	g.Run(6 * time.Second)
	g.forget(g.b, "piece")
	g.Run(20 * time.Minute)
	g.heard("0")
	g.ended(1)
}

// Over libnorm: a long message goes to the child, its packets go on the air, and the object that the far child gives arrives.
func TestLongMessageOverNORM(t *testing.T) {
	g := bare(t)
	before := g.Now
	id := g.noise(6000)
	g.Run(5 * time.Second)
	check.Equal(t, "its queue", g.a.Entry(id, 2).Queue, frame.Bulk)
	g.Run(3 * time.Minute)
	g.heard("0")
	g.ended(1)
	packets := 0
	for _, d := range g.since(before, g.a) {
		packets += len(carriernet.Of[frame.NORM](d))
		check.Equal(t, "segments of our own", len(carriernet.Of[frame.Segment](d)), 0)
	}
	check.True(t, "packets of libnorm", packets >= 14 && packets < 20, packets)
}

// Packets that are lost are asked for by a FLUSH of our own, and repaired by libnorm.
func TestNORMRepairs(t *testing.T) {
	g := bare(t)
	n := 0
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if to != g.b || !carriernet.Has[frame.NORM](d) {
			return false
		}
		n++
		return n == 4 || n == 5
	})
	g.noise(6000)
	g.noise(4000)
	g.Run(5 * time.Minute)
	g.heard("0..1")
	g.ended(2)
}

// Short messages go before libnorm's packets, but one packet goes after so many short messages.
func TestNORMGetsATurn(t *testing.T) {
	g := bare(t)
	g.a.Say(carriernet.Noise(1, 1, 0, 6000), 2)
	g.Run(3 * time.Second)
	for i := range 40 {
		g.a.Say(carriernet.Noise(1, 2, 1+i, 400), 2)
	}
	g.Run(4 * time.Minute)
	at := slices.IndexFunc(g.b.Said(1), func(text string) bool { return strings.HasPrefix(text, "1;0;") })
	check.True(t, "the long one came, before all others had", at > 0 && at < 40, at)
	g.ended(41)
}

// When the child dies another one starts, and gets the messages that were under way; if children die again and again, each start waits
// longer.
func TestChildDies(t *testing.T) {
	g := bare(t)
	g.noise(6000)
	g.Run(4 * time.Second)
	g.a.KillChild()
	g.Run(time.Second)
	check.Equal(t, "a child runs again", g.a.ChildRuns(), true)
	g.Run(3 * time.Minute)
	g.heard("0")
	g.ended(1)
	var waits []time.Duration
	for range 4 {
		g.a.KillChild()
		from := g.Now
		for !g.a.ChildRuns() {
			g.Run(100 * time.Millisecond)
		}
		waits = append(waits, g.Now.Sub(from).Round(time.Second))
		g.Run(time.Millisecond * 10)
	}
	check.Equal(t, "seconds until the next child", fmt.Sprint(waits), "[0s 2s 4s 8s]")
}

// The far child has forgotten the object: after three FLUSHes without an answer the object is cancelled, and the message goes anew.
func TestForgottenObjectGoesAnew(t *testing.T) {
	g := bare(t)
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		return to == g.b && carriernet.Has[frame.NORM](d)
	})
	g.noise(3000)
	g.Run(15 * time.Minute)
	g.Fate = nil
	before := g.a.Peer(2).Counts.Repeated
	check.True(t, "it went anew", before > 0, before)
	g.Run(20 * time.Minute)
	g.heard("0")
	g.ended(1)
}

// Objects that are no message, and those of strangers, come to nothing.
func TestObjectsThatAreNoMessage(t *testing.T) {
	g := bare(t)
	g.b.Do(func(now time.Time) {
		c := g.b.Bearer.Carriers[0]
		c.Event(now, api.NormObject{Peer: 1, Generation: 1, Object: 1, Data: []byte{1}})
		c.Event(now, api.NormObject{Peer: 77, Generation: 1, Object: 1, Data: []byte{0, 1, 2}})
		c.Event(now, api.NormObject{Peer: 1, Generation: 1, Object: 2, Data: []byte{2, 0, 1}})
		c.Event(now, api.NormPacket{Peer: 77, Data: []byte{1, 2, 3}})
		c.Event(now, api.NormPacket{Peer: 1, Data: []byte{1, 2, 3}})
		c.Event(now, api.NormSent{Peer: 77, Object: 1})
		c.Event(now, api.NormUp{Generation: 200})
		c.Receive(now, g.b.Peer(1), frame.NORM{Body: []byte{0xff}}, 2, true)
	})
	check.Equal(t, "messages that came", len(g.b.Got), 0)
	for _, reason := range []string{"norm_empty", "beyond_window", "norm_local", "norm"} {
		check.Equal(t, reason, g.b.Drops[reason], 1)
	}
}

// Segments that belong to nothing come to nothing, and the next message is read.
func TestSegmentsOfNothing(t *testing.T) {
	g := plain(t)
	g.b.Do(func(now time.Time) {
		p := g.b.Peer(1)
		p.Stamp.Counter++
		c := g.b.Bearer.Carriers[0]
		c.Receive(now, p, frame.Segment{Number: 1, Object: 1, Body: []byte("x")}, 5, true)
		c.Receive(now, p, frame.Segment{Number: 2, Object: 2, Total: 1 << 30, Body: []byte("x")}, 5, true)
	})
	check.Equal(t, "orphans", g.b.Drops["piece_orphan"], 1)
	check.Equal(t, "too large", g.b.Drops["piece_large"], 1)
	check.Equal(t, "messages that came", len(g.b.Got), 0)
}

// Many long messages to two peers on a fast link that loses some datagrams arrive whole and once.
func TestManyLongMessages(t *testing.T) {
	for _, old := range []bool{false, true} {
		p := load(t, "geo-satcom-128k")
		p.Up.LossPct, p.Down.LossPct = 3, 3
		g := begin(t, config{Nodes: 3, Profile: p, Plain: true, Old: old, Seed: 3})
		for i := range 8 {
			g.a.Say(carriernet.Noise(1, i%3, i, 5000), 2, 3)
			g.Nodes[2].Say(carriernet.Noise(3, 0, i, 3000), 1)
			g.Run(5 * time.Second)
		}
		g.Run(10 * time.Minute)
		in := check.In(t, "older version", old)
		check.Equal(in, "delivered to node 2", g.a.Fates(2)[mail.Delivered], 8)
		check.Equal(in, "delivered to node 3", g.a.Fates(3)[mail.Delivered], 8)
		check.Equal(in, "messages at node 2", len(g.b.Got), 8)
		check.Equal(in, "messages at node 3", len(g.Nodes[2].Got), 8)
		check.Equal(in, "what node 1 has heard of node 3", g.a.Heard(3), "0..7")
	}
}

// Where the bill has units, a datagram ends with a unit: the rest of one costs nothing.
func TestDatagramsFillUnits(t *testing.T) {
	cfg := config{Plain: true, Profile: calm(t)}
	cfg.Profile.UnitOctets = 100
	g := begin(t, cfg)
	before := g.Now
	g.noise(3000)
	g.Run(2 * time.Minute)
	g.heard("0")
	for _, d := range g.since(before, g.a) {
		check.True(t, "whole units", d.Octets+profile.IPUDPOctets <= 500, d.Octets)
	}
}
