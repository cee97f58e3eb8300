package unicast_test

import (
	"testing"
	"time"

	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/mail"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/link/frame"
)

// A silent node sends nothing at all, hears and keeps the messages that come, and acknowledges them when its silence ends.
func TestSilentNodeSendsNothing(t *testing.T) {
	g := plain(t)
	g.say(1, time.Minute)
	g.b.Silent(true, false)
	before := g.Now
	g.say(5, time.Second)
	g.b.Say(carriernet.Report(2, 0), 1)
	g.Run(30 * time.Minute)
	check.Equal(t, "datagrams of the silent node", len(g.since(before, g.b)), 0)
	g.heard("0..5")
	g.b.Silent(false, false)
	g.Run(time.Minute)
	g.ended(6)
	check.Equal(t, "what node 1 has heard", g.a.Heard(2), "0")
}

// A silent node tells how much it owes, and wants no Step to send it.
func TestSilentNodeKnowsWhatItOwes(t *testing.T) {
	g := plain(t)
	g.b.Silent(true, false)
	g.say(3, 10*time.Second)
	g.b.Say(carriernet.Noise(2, 0, 0, 200), 1)
	g.b.Put(carriernet.Item(2, 0))
	g.Run(time.Minute)
	c := g.b.Bearer.Carriers[0]
	owed := c.Owed(g.Now)
	check.Equal(t, "peers that wait for acknowledgements", owed.Acks, 1)
	check.Equal(t, "messages", owed.Messages, 1)
	check.Equal(t, "items", owed.Items, 1)
	check.Equal(t, "datagrams", owed.Datagrams, 1)
	check.True(t, "octets of the message and its datagram", owed.Octets > 200 && owed.Octets < 600, owed.Octets)
	check.True(t, "their time on the air", owed.Airtime > 300*time.Millisecond && owed.Airtime < 2*time.Second, owed.Airtime)
	check.True(t, "nothing is due", c.Due(g.Now, true).IsZero(), c.Due(g.Now, true))
	check.Differ(t, "what would be due without the silence", c.Due(g.Now, false), time.Time{})
}

// A peer that has announced its silence is sent each message once, and asked nothing, however long it lasts.
func TestAnnouncedSilenceOfAPeer(t *testing.T) {
	g := plain(t)
	g.say(1, time.Minute)
	g.b.Silent(true, true)
	g.Run(10 * time.Second)
	check.Equal(t, "the peer counts as listening", g.a.Peer(2).Link.Listening(), true)
	before := g.Now
	g.say(20, 10*time.Second) // more than the window
	g.Run(2 * time.Hour)
	sent := g.since(before, g.a)
	messages := 0
	for _, d := range sent {
		messages += len(carriernet.Of[frame.Data](d))
		check.Equal(t, "probes", len(carriernet.Of[frame.Probe](d)), 0)
	}
	check.Equal(t, "times that a message went", messages, 20)
	g.heard("0..20")
	g.b.Silent(false, false)
	g.b.Say(carriernet.Report(2, 0), 1)
	g.Run(5 * time.Minute)
	g.ended(21)
	check.Equal(t, "the peer counts as listening", g.a.Peer(2).Link.Listening(), false)
}

// A message that a silent peer has lost comes when the silence ends.
func TestLossInASilence(t *testing.T) {
	g := plain(t)
	g.b.Silent(true, true)
	g.Run(10 * time.Second)
	n := 0
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		if to != g.b || !carriernet.Has[frame.Data](d) {
			return false
		}
		n++
		return n == 3
	})
	g.say(6, 10*time.Second)
	g.Run(time.Hour)
	g.heard("0..1")
	g.b.Silent(false, false)
	g.Run(5 * time.Minute)
	g.heard("0..5")
	g.ended(6)
}

// After a restart this end still knows that a peer is silent, and the messages for that peer wait.
func TestSilenceOfAPeerSurvivesARestart(t *testing.T) {
	g := plain(t)
	g.b.Silent(true, true)
	g.Run(10 * time.Second)
	g.say(2, 10*time.Second)
	g.Kill(g.a, time.Second)
	g.Run(2 * time.Second)
	check.Equal(t, "the peer counts as listening", g.a.Peer(2).Link.Listening(), true)
	before := g.Now
	g.say(2, 10*time.Second)
	g.Run(time.Hour)
	for _, d := range g.since(before, g.a) {
		check.Equal(t, "probes", len(carriernet.Of[frame.Probe](d)), 0)
	}
	g.b.Silent(false, false)
	g.Run(5 * time.Minute)
	g.heard("0..3")
	g.ended(4)
}

// Where the bill does not grow with octets, a short message goes again on idle air, and for a silent peer several times.
func TestCopiesOnIdleAir(t *testing.T) {
	g := begin(t, radio(t))
	times := func() int {
		before := g.Now
		g.say(1, time.Minute)
		n := 0
		for _, d := range g.since(before, g.a) {
			n += len(carriernet.Of[frame.Data](d))
		}
		return n
	}
	check.Equal(t, "how often a message goes", times(), 2)
	g.b.Silent(true, true)
	g.Run(10 * time.Second)
	check.Equal(t, "how often a message for a silent peer goes", times(), 1+mail.CopiesForSilent)
	g.heard("0..1")
	check.True(t, "copies are no duplicates: the seal refuses them", g.b.Peer(1).Counts.Duplicates == 0 && g.b.Drops["replay"] >= 4, g.b.Drops)
}

// A node that goes silent drops the copies that it had kept.
func TestSilenceDropsCopies(t *testing.T) {
	g := begin(t, radio(t))
	g.say(1, 50*time.Millisecond)
	g.a.Silent(true, false)
	before := g.Now
	g.Run(time.Minute)
	g.a.Silent(false, false)
	g.Run(time.Second)
	for _, d := range g.since(before, g.a) {
		check.Equal(t, "messages in a datagram after the silence", len(carriernet.Of[frame.Data](d)), 0)
	}
}

// To a silent peer that only datagrams with a HELLO may reach, a message that fits beside no HELLO goes as a long one, and no HELLOs without
// end go in its place.
func TestAMessageThatFitsNoDatagramWithAHello(t *testing.T) {
	for octets := 340; octets < 460; octets += 10 {
		far := false
		g := begin(t, config{Plain: true, Bearer: func(n *carriernet.Node, c *carriage.Config) {
			c.Far = func(uint16) bool { return far && n.ID == 1 }
		}})
		g.b.Silent(true, true)
		g.Run(10 * time.Second)
		before := g.Now
		far = true
		g.noise(octets)
		g.Run(10 * time.Minute)
		check.True(t, "datagrams to the silent peer", len(g.since(before, g.a)) <= 50, octets, len(g.since(before, g.a)))
		g.b.Silent(false, false)
		g.b.Say(carriernet.Report(2, 0), 1)
		g.Run(time.Minute)
		far = false
		g.Run(10 * time.Minute)
		g.ended(1)
	}
}
