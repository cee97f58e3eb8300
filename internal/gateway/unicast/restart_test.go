package unicast_test

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
)

// A sender that dies with messages that wait and others under way goes on with both.
func TestSenderRestarts(t *testing.T) {
	g := plain(t)
	g.say(2, 10*time.Second)
	g.Outage(g.b, time.Minute)
	g.say(20, 100*time.Millisecond)
	waiting, underWay := g.a.Held(2)
	check.True(t, "some wait and some are under way", waiting > 0 && underWay > 0, waiting, underWay)
	g.Kill(g.a, time.Second)
	g.Run(2 * time.Second)
	again, flying := g.a.Held(2)
	check.Equal(t, "messages that wait or are under way after the restart", again+flying, waiting+underWay)
	g.Run(5 * time.Minute)
	g.heard("0..21")
	g.ended(22)
}

// A receiver that dies with messages that came before their turn reads them after the restart, in their turn.
func TestReceiverRestarts(t *testing.T) {
	g := plain(t)
	lose := true
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		data := carriernet.Of[frame.Data](d)
		return lose && to == g.b && len(data) > 0 && data[0].Number == 1
	})
	g.say(5, 3*time.Second)
	g.heard("")
	g.Kill(g.b, time.Second)
	g.Run(10 * time.Second)
	lose = false
	g.Run(3 * time.Minute)
	g.heard("0..4")
	g.ended(5)
	twice := 0
	for _, d := range g.Sent {
		for _, f := range carriernet.Of[frame.Data](d) {
			if f.Number&0xff == 5 {
				twice++
			}
		}
	}
	check.True(t, "what was kept goes again at the most once, for the receiver was new", twice <= 2, twice)
}

// An acknowledgement that was owed when the receiver died goes with its first HELLO.
func TestOwedAcknowledgementSurvivesARestart(t *testing.T) {
	g := plain(t)
	g.say(1, 4*time.Second) // it has arrived, and nothing has acknowledged it
	check.Equal(t, "delivered before", g.a.Fates(2)[mail.Delivered], 0)
	g.Kill(g.b, time.Second)
	g.Run(time.Minute)
	g.heard("0")
	g.ended(1)
}

// A carrier that stops in order sends the acknowledgements that it owes at once.
func TestSettleAcknowledgesAtOnce(t *testing.T) {
	g := plain(t)
	g.say(1, 4*time.Second)
	before := g.Now
	g.Stop(g.b, time.Hour)
	g.Run(5 * time.Second)
	sent := g.since(before, g.b)
	check.Equal(check.Fatal(t), "datagrams of its end", len(sent), 1)
	check.True(t, "an acknowledgement", carriernet.Has[frame.Ack](sent[0]), sent[0].Frames())
	g.ended(1)
}

// Deaths before and after a commit, at any Step of either end: nothing is lost, nothing comes twice.
func TestDeathsAtAnyStep(t *testing.T) {
	for seed := range uint64(6) {
		cfg := rough(t, seed)
		if seed%2 == 1 {
			cfg = wild(t, seed)
		}
		cfg.Plain, cfg.Old = seed != 5, seed == 4 // one game is coded, and in one long messages go over libnorm
		g := begin(t, cfg)
		g.Crash = 0.04
		for i := range 25 {
			for g.a.Say(carriernet.Report(1, i), 2) == 0 {
				g.Run(time.Second)
			}
			if i%6 == 0 {
				for g.a.Say(carriernet.Noise(1, 1, 100+i, 1500), 2) == 0 {
					g.Run(time.Second)
				}
			}
			g.Run(4 * time.Second)
		}
		g.Crash = 0
		g.Run(20 * time.Minute)
		in := check.In(t, "seed", seed)
		var short, long []string
		for _, text := range g.b.Said(1) {
			if number := strings.SplitN(text, ";", 3)[1]; len(number) == 3 {
				long = append(long, number)
			} else {
				short = append(short, number)
			}
		}
		check.Equal(in, "short messages, in order", strings.Join(short, " "), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24")
		check.Equal(in, "long messages, in order", strings.Join(long, " "), "100 106 112 118 124")
		check.Equal(in, "messages delivered", g.a.Fates(2)[mail.Delivered], 30)
	}
}

// A peer with a new store is sent the messages again that it had not acknowledged, and none of the others.
func TestPeerWithANewStore(t *testing.T) {
	g := plain(t)
	g.say(3, 10*time.Second)
	g.Run(time.Minute)
	g.Outage(g.b, time.Minute)
	g.say(4, time.Second)
	stream := g.a.Peer(2).Handshake.Stream
	g.LoseStore(g.b, time.Second)
	g.Run(5 * time.Minute)
	g.heard("0..6")
	g.ended(7)
	check.True(t, "another stream", g.a.Peer(2).Handshake.Stream > stream)
	g.say(2, 10*time.Second)
	g.Run(time.Minute)
	g.heard("0..8")
}

// A peer that has lost its store counts its messages from 1 again, and is heard.
func TestPeerWithNewNumbers(t *testing.T) {
	g := plain(t)
	g.say(3, 10*time.Second)
	g.Run(time.Minute)
	era := g.b.Peer(1).Handshake.Era
	g.LoseStore(g.a, time.Second)
	g.Run(2 * time.Minute)
	g.say(3, 10*time.Second)
	g.Run(time.Minute)
	g.heard("0..5")
	check.Equal(t, "eras of its numbers", g.b.Peer(1).Handshake.Era, era+1)
	check.Equal(t, "the place of the first after", g.b.Got[3].Place.Number, 1)
}

// Messages that came before their turn are delivered when their sender begins anew: the missing one does not come any more.
func TestEarlyMessagesOutliveNewNumbers(t *testing.T) {
	g := plain(t)
	g.say(1, time.Minute) // it has the fields that all have in common
	lose := true
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		data := carriernet.Of[frame.Data](d)
		return lose && to == g.b && len(data) > 0 && data[0].Number == 2
	})
	g.say(3, time.Second)
	g.Run(time.Second)
	g.heard("0")
	g.LoseStore(g.a, time.Second)
	g.Run(10 * time.Second)
	lose = false
	g.Run(3 * time.Minute)
	g.heard("0 2..3")
}

// A receiver is put back to older data: messages that it had acknowledged since are not sent again, and all others arrive.
func TestReceiverIsPutBack(t *testing.T) {
	g := plain(t)
	g.say(3, 10*time.Second)
	g.Run(time.Minute)
	older := g.b.Copy()
	g.say(4, 10*time.Second)
	g.Run(time.Minute)
	g.ended(7)
	g.PutBack(g.b, older, time.Second)
	g.Run(2 * time.Minute)
	g.say(3, 10*time.Second)
	g.Run(3 * time.Minute)
	g.heard("0..9")
	g.ended(10)
	check.Contains(t, "the log", strings.Join(g.Notes, "\n"), "a peer runs on an older copy of its data")
	check.Contains(t, "the log", strings.Join(g.Notes, "\n"), "[peer node2 it_may_have_lost 4]")
}

// Older data of the sender: the numbers that it gives again do not count until it begins a new stream, and nothing new is lost.
func TestSenderIsPutBack(t *testing.T) {
	g := plain(t)
	g.say(3, 10*time.Second)
	g.Run(time.Minute)
	older := g.a.Copy()
	g.say(4, 10*time.Second)
	g.Run(time.Minute)
	g.PutBack(g.a, older, time.Second)
	g.Run(2 * time.Second)
	g.say(5, 10*time.Second)
	g.Run(5 * time.Minute)
	g.heard("0..11")
	check.Contains(t, "the log", strings.Join(g.Notes, "\n"), "runs on an older copy of its data; messages that its local peers had submitted")
}

// A sender is put back, and restarted so often that a HELLO has no room for all starts: its new messages count still.
func TestSenderIsPutBackBehindManyStarts(t *testing.T) {
	g := plain(t)
	g.say(2, 10*time.Second)
	g.Run(time.Minute)
	older := g.a.Copy()
	g.say(3, 10*time.Second)
	g.Run(time.Minute)
	g.PutBack(g.a, older, time.Second)
	g.Outage(g.b, 10*time.Minute)
	for range frame.MaxStarts + 4 {
		g.Run(5 * time.Second)
		g.noise(30)
		g.Kill(g.a, time.Second)
	}
	g.Run(20 * time.Minute)
	g.say(2, 10*time.Second)
	g.Run(5 * time.Minute)
	said := g.b.Said(1)
	check.Equal(t, "messages that came", len(said), g.said)
	check.Equal(t, "the last", strings.HasPrefix(said[len(said)-1], string(carriernet.Report(1, g.said-1).Parts[0].Data[:6])), true)
}

// The records of a peer for a new store keep that we know the peer, and begin its numbers anew.
func TestRenumberedRecord(t *testing.T) {
	g := plain(t)
	g.say(3, 10*time.Second)
	g.Run(time.Minute)
	stream := g.a.Peer(2).Handshake.Stream
	var journal []api.Record
	for _, r := range g.a.Journal() {
		switch r.Bucket {
		case "peer":
			value, ok := carriage.Renumbered(r.Value)
			check.True(check.Fatal(t), "it is a record of a peer", ok)
			r.Value = value
		case "path":
		default:
			continue
		}
		journal = append(journal, r)
	}
	check.NoError(check.Fatal(t), g.StartWith(g.a, journal))
	check.Equal(t, "the stream", g.a.Peer(2).Handshake.Stream, stream+1)
	check.Equal(t, "the store of the peer", g.a.Peer(2).Handshake.Store, g.b.Hello(g.Now, g.b.Peer(1)).Store)
	g.Run(time.Minute)
	g.say(3, 10*time.Second)
	g.Run(time.Minute)
	g.heard("0..5")
}

// Octets that are no record of a peer are refused, and a forgotten peer's record makes it a stranger.
func TestRecordsThatAreNone(t *testing.T) {
	for _, b := range [][]byte{nil, {1}, {2, 0, 0}, make([]byte, 200), []byte(strings.Repeat("\x03", 100))} {
		_, ok := carriage.Renumbered(b)
		check.Equal(check.In(t, b), "it is a record", ok, false)
	}
	g := plain(t)
	check.NoError(check.Fatal(t), g.StartWith(g.a, []api.Record{{Bucket: "peer", Key: []byte{0, 2}, Value: carriage.Forgotten()}}))
	check.Equal(t, "the store of the peer", g.a.Peer(2).Handshake.Store, 0)
	g.Run(time.Minute)
	g.say(2, 10*time.Second)
	g.Run(2 * time.Minute)
	g.heard("0..1")
}

// The journal of a carrier at rest has no record of a message: messages that have ended leave nothing behind.
func TestJournalAtRest(t *testing.T) {
	g := plain(t)
	g.say(5, 5*time.Second)
	g.noise(3000)
	g.Run(5 * time.Minute)
	g.ended(6)
	for _, n := range []*carriernet.Node{g.a, g.b} {
		for _, r := range n.Journal() {
			for _, of := range []string{"mail", "to", "early", "cut", "piece", "first"} {
				check.Differ(check.In(t, n.Name, r.Bucket, r.Key), "bucket", r.Bucket, of)
			}
		}
	}
}

// A peer's record of version 0.1, which compared no numbers and had a learned address behind it, is read.
func TestPeerRecordOfVersion01(t *testing.T) {
	g := plain(t)
	g.say(3, 10*time.Second)
	g.Run(time.Minute)
	var journal []api.Record
	for _, r := range g.a.Journal() {
		switch r.Bucket {
		case "path": // it had none
			continue
		case "peer":
			r.Value = append([]byte{1}, r.Value[1:len(r.Value)-6]...)
			check.ErrorIs(t, g.StartWith(g.a, append(slices.Clone(journal), with(r, "nowhere"))), mail.ErrRecord)
			r = with(r, carriernet.Address(9).String())
		}
		journal = append(journal, r)
	}
	check.NoError(check.Fatal(t), g.StartWith(g.a, journal))
	check.Equal(t, "the address that was learned", g.a.Peer(2).Addr, carriernet.Address(9))
	g.Run(3 * time.Minute)
	g.say(2, 10*time.Second)
	g.Run(time.Minute)
	g.heard("0..4")
}

// with is a record of format 1 with an address behind it, as version 0.1 wrote it.
func with(r api.Record, address string) api.Record {
	r.Value = append(slices.Clone(r.Value), address...)
	return r
}

// A machine that was late waits longer for an answer, instead of taking the link for dead.
func TestLateMachine(t *testing.T) {
	for _, late := range []time.Duration{0, 10 * time.Second} {
		g := plain(t)
		g.say(2, 10*time.Second)
		g.Run(time.Minute)
		g.Fate = func(carriernet.Datagram, *carriernet.Node) (time.Duration, bool) { return 4 * time.Second, false }
		if late > 0 {
			g.a.Do(func(now time.Time) { g.a.Peer(2).Link.Late(now, late) })
		}
		g.say(1, 0)
		dead := false
		for range 60 {
			g.Run(time.Second)
			dead = dead || g.a.Peer(2).Link.Dead()
		}
		check.Equal(check.In(t, "late by", late), "the peer has counted as dead", dead, late == 0)
		g.ended(3)
	}
}
