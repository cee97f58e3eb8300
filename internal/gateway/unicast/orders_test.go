package unicast_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

// waiting is a game in which a has messages under way that arrive later, and three that wait.
func waiting(t *testing.T) (g *game, ids []uint64) {
	g = plain(t)
	g.Outage(g.b, 3*time.Minute)
	g.say(9, time.Second)
	g.Run(time.Minute)
	for range 3 {
		ids = append(ids, g.noise(100))
	}
	return g, ids
}

func (g *game) orders() mail.Orders { return g.a.Bearer.Carrier().Orders() }

// A message that is held stays while others go, also over a restart; released it goes.
func TestHold(t *testing.T) {
	g, ids := waiting(t)
	g.a.Do(func(now time.Time) { g.orders().Hold(now, g.a.Entry(ids[1], 2), true) })
	g.Run(10 * time.Minute)
	g.heard("0..9 11")
	g.Kill(g.a, time.Second)
	g.Run(time.Minute)
	check.Equal(t, "it is held after a restart", g.a.Entry(ids[1], 2).OnHold, true)
	g.heard("0..9 11")
	g.a.Do(func(now time.Time) { g.orders().Hold(now, g.a.Entry(ids[1], 2), false) })
	g.Run(time.Minute)
	g.heard("0..9 11 10")
	g.ended(12)
}

// A message that is canceled does not go. One that is under way cannot be told from one that has arrived.
func TestCancel(t *testing.T) {
	g, ids := waiting(t)
	entry := g.a.Entry(ids[0], 2)
	check.Equal(t, "it waits", g.orders().Waits(entry), true)
	check.Equal(t, "a peer may have it", g.orders().Whole(entry), false)
	first := g.a.Peer(2).Box.UnderWay(0)[0]
	check.Equal(t, "one under way waits", g.orders().Waits(first), false)
	check.Equal(t, "a peer may have that", g.orders().Whole(first), true)
	g.a.Do(func(now time.Time) { g.orders().Cancel(now, entry) })
	g.Run(10 * time.Minute)
	g.heard("0..8 10..11")
	check.Equal(t, "canceled", g.a.Fates(2)[mail.Cancelled], 1)
}

// A message that is given another precedence goes with the messages of that precedence, also after a restart, and arrives with it.
func TestPrecede(t *testing.T) {
	g, ids := waiting(t)
	g.a.Do(func(now time.Time) {
		check.NoError(t, g.orders().Precede(now, g.a.Entry(ids[2], 2), site.Flash))
	})
	g.Kill(g.a, time.Second)
	g.Run(10 * time.Minute)
	at := slices.IndexFunc(g.b.Got, func(a carriernet.Arrival) bool { return a.Payload.Precedence == site.Flash })
	check.True(check.Fatal(t), "it came", at >= 0)
	check.True(t, "before those that waited", at < 11, at)
	check.Equal(t, "messages that came", len(g.b.Got), 12)
	g.ended(12)
}

// Queue tells the messages that wait, and Ahead the octets that go before them.
func TestQueue(t *testing.T) {
	g, ids := waiting(t)
	p := g.a.Peer(2)
	q := g.orders().Queue(g.Now, p)
	check.Equal(t, "the last that waits", q.Places[len(q.Places)-1].ID, ids[2])
	check.Equal(t, "how many wait", len(q.Places), p.Box.Waiting(0, 1))
	check.True(t, "octets under way", q.UnderWay > 0, q.UnderWay)
	check.Equal(t, "octets that go before what waits", g.orders().Ahead(g.Now, p), q.UnderWay)
	check.Equal(t, "one transmission serves several", g.orders().Together(), false)
}

// When a peer leaves, the messages held for it are cancelled; when it joins again its numbers go on.
func TestPeerLeavesAndJoins(t *testing.T) {
	g := begin(t, config{Nodes: 3, Plain: true})
	c := g.Nodes[2]
	for i := range 3 {
		g.a.Say(carriernet.Report(1, i), 2, 3)
		g.Run(10 * time.Second)
	}
	g.Run(time.Minute)
	g.Outage(c, time.Minute)
	g.a.Say(carriernet.Report(1, 3), 2, 3)
	g.Run(5 * time.Second)
	p := g.a.Peer(3)
	g.a.Leave(p, "gone ashore")
	check.Equal(t, "canceled for the peer that left", g.a.Fates(3)[mail.Cancelled], 1)
	g.Run(2 * time.Minute)
	g.a.Say(carriernet.Report(1, 4), 2)
	g.Run(time.Minute)
	g.heard("0..4")
	check.NoError(t, g.a.Join(p))
	g.Run(2 * time.Minute)
	g.a.Say(carriernet.Report(1, 5), 2, 3)
	g.Run(2 * time.Minute)
	check.Equal(t, "what the peer has heard", c.Heard(1), "0..2 5")
	g.heard("0..5")
}

// A new address of the operator's is used, and left when nobody answers there and somebody does at the old one.
func TestAddressThatDoesNotAnswer(t *testing.T) {
	g := plain(t)
	g.say(2, 10*time.Second)
	g.Run(time.Minute)
	p := g.a.Peer(2)
	old := p.Addr
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool { return to == g.a }) // else its own datagrams would tell where it is
	g.a.Do(func(time.Time) { p.Link.Readdress(carriernet.Address(9)) })
	check.Equal(t, "the address", p.Addr, carriernet.Address(9))
	g.say(1, 10*time.Second)
	g.heard("0..1")
	g.Fate = nil
	g.Run(3 * time.Minute)
	check.Equal(t, "the address after a while", p.Addr, old)
	g.heard("0..2")
	g.ended(3)
}

// Addresses survive a restart. A peer that does not answer at the operator's new address is found at its old one.
func TestAddressesSurviveARestart(t *testing.T) {
	g := plain(t)
	g.say(1, time.Minute)
	g.a.Do(func(time.Time) { g.a.Peer(2).Link.Readdress(carriernet.Address(9)) })
	g.Kill(g.a, time.Second)
	g.Run(3 * time.Minute)
	g.say(1, time.Minute)
	g.heard("0..1")
	check.Equal(t, "the address", g.a.Peer(2).Addr, g.b.Addr())
}

// Greet answers an address that is not believed to be the peer's with a HELLO, and changes nothing else.
func TestGreetStranger(t *testing.T) {
	g := plain(t)
	p, before := g.a.Peer(2), g.Now
	was := p.Addr
	g.a.Do(func(now time.Time) { p.Link.Greet(now, carriernet.Address(9), g.a.Hello(now, p)) })
	sent := g.since(before, g.a)
	check.Equal(check.Fatal(t), "datagrams", len(sent), 1)
	check.Equal(t, "in the long form", sent[0].Long, true)
	check.Equal(t, "the address", p.Addr, was)
}

// The state of the site is told to each peer once; so are later changes and withdrawals.
func TestStateOfTheSite(t *testing.T) {
	g := begin(t, config{Nodes: 3, Plain: true})
	for i := range 12 {
		g.a.Put(carriernet.Item(1, i))
	}
	g.Run(time.Minute)
	check.Equal(t, "items at node 2", len(g.b.Far[1]), 12)
	check.Equal(t, "items at node 3", len(g.Nodes[2].Far[1]), 12)
	g.a.Put(carriernet.Item(1, 3).Withdrawal())
	g.Kill(g.a, time.Second)
	g.Run(time.Minute)
	check.Equal(t, "items at node 2", len(g.b.Far[1]), 11)
	before := g.Now
	g.Run(10 * time.Minute)
	check.Equal(t, "datagrams at rest", len(g.since(before, g.a)), 0)
	g.LoseStore(g.b, time.Second)
	g.Run(2 * time.Minute)
	check.Equal(t, "items at node 2 with a new store", len(g.b.Far[1]), 11)
}

// While messages flow, news takes its share of the rate and no more.
func TestNewsLeavesRoomForMessages(t *testing.T) {
	g := plain(t)
	for i := range 60 {
		it := carriernet.Item(1, i)
		it.Doc = carriernet.Noise(1, 0, i, 200).Parts[0].Data
		g.a.Put(it)
	}
	for range 10 {
		g.noise(200)
		g.Run(time.Second)
	}
	g.Run(8 * time.Second)
	check.Equal(t, "messages that have come", g.b.Heard(1), "0..9")
	check.True(t, "some news has come, and not all", len(g.b.Far[1]) > 0 && len(g.b.Far[1]) < 60, len(g.b.Far[1]))
	g.Run(5 * time.Minute)
	check.Equal(t, "items at the end", len(g.b.Far[1]), 60)
}

// An item that fits no datagram goes as a long message, once.
func TestLargeItem(t *testing.T) {
	g := plain(t)
	it := carriernet.Item(1, 0)
	it.Doc = carriernet.Noise(1, 0, 0, 3000).Parts[0].Data
	g.a.Put(it)
	g.Run(2 * time.Minute)
	check.Equal(check.Fatal(t), "items", len(g.b.Far[1]), 1)
	check.Equal(t, "its octets", len(g.b.Far[1][it.Key()].Doc), 3000)
	waiting, underWay := g.a.Held(2)
	check.Equal(t, "what is held", waiting+underWay, 0)
}

// A keepalive goes when nothing else has for so long.
func TestKeepalive(t *testing.T) {
	g := begin(t, config{Plain: true, Keepalive: 5 * time.Minute})
	g.Run(time.Minute)
	before := g.Now
	g.Run(time.Hour)
	sent := len(g.since(before, g.a))
	check.True(t, "a datagram every five minutes", sent >= 11 && sent <= 13, sent)
}

// The status tells the state of libnorm's process.
func TestReport(t *testing.T) {
	g := plain(t)
	var s api.Status
	g.a.Bearer.Carriers[0].Report(&s)
	check.Equal(t, "up", s.NORM.Up, true)
	check.Equal(t, "generation", int(s.NORM.Generation), 1)
	g.a.KillChild()
	g.a.Bearer.Carriers[0].Report(&s)
	check.Equal(t, "failures", s.NORM.Failures, 1)
}

// Of news that go together only the item that cannot be encoded is withdrawn.
func TestOneItemCannotBeEncoded(t *testing.T) {
	g := plain(t)
	for i := range 8 {
		it := carriernet.Item(1, i)
		if i == 5 {
			it.Doc = make([]byte, envelope.MaxDoc+1)
		}
		g.a.Put(it)
	}
	g.Run(time.Minute)
	check.Equal(t, "items at node 2", len(g.b.Far[1]), 7)
	check.Equal(t, "items of node 1", len(g.a.Replica.Own()), 7)
}
