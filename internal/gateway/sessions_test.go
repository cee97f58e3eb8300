package gateway_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/envelope"
)

// translated are terminals of a star behind address translation, and HQ, which passes on messages for them. A translation lets a datagram
// in if something went to its sender in the last two minutes.
type translated struct {
	*sim.World
	hq, a, b  *sim.Node
	last      map[[2]uint16]time.Time // when a node last sent something to another
	symmetric bool                    // the translations give a site another port for each other site, so that nothing gets in
	between   int                     // datagrams that got from one terminal to another
}

const translatedFor = 2 * time.Minute

// behindTranslation makes them: limit is how many direct sessions each takes.
func behindTranslation(t *testing.T, nodes, limit int, seed uint64, change ...func(*sim.Config)) *translated {
	t.Helper()
	n := &translated{last: map[[2]uint16]time.Time{}}
	n.World = world(t, nodes, "iridium-certus-100", seed, append([]func(*sim.Config){func(c *sim.Config) {
		c.Roster = true
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			g.Relay, g.Keepalive, g.Direct = n.ID == 1, 30*time.Second, limit
			for i := range g.Peers {
				if p := &g.Peers[i]; n.ID == 1 {
					p.Addr = netip.AddrPort{}
				} else if p.ID != 1 {
					p.Addr, p.Via = netip.AddrPort{}, []uint16{1}
				}
			}
		}
	}}, change...)...)
	n.hq, n.a, n.b = n.Nodes[0], n.Nodes[1], n.Nodes[2]
	n.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		n.last[[2]uint16{from.ID, to.ID}] = n.Now
		if to.ID == 1 {
			return [][]byte{data}
		}
		at, sent := n.last[[2]uint16{to.ID, from.ID}]
		if !sent || n.Now.Sub(at) > translatedFor || n.symmetric && from.ID != 1 {
			return nil
		}
		if from.ID != 1 {
			n.between++
		}
		return [][]byte{data}
	}
	return n
}

// direct is the sessions of a node on the first bearer.
func direct(w *sim.World, n *sim.Node) api.DirectStatus {
	if s := n.GW.Status(w.Now); len(s.Bearers) > 0 && s.Bearers[0].Direct != nil {
		return *s.Bearers[0].Direct
	}
	return api.DirectStatus{}
}

// saidAt counts the lines of a node's log with a text.
func saidAt(w *translated, n *sim.Node, text string) (lines int) {
	for _, note := range w.Notes {
		if strings.Contains(note, " "+n.Name+" info: ") && strings.Contains(note, text) {
			lines++
		}
	}
	return lines
}

// talk lets two terminals say n messages of 200 octets each to the other, and returns what each will have said.
func (n *translated) talk(messages int, every time.Duration) (there, back *[]offered) {
	return tracks(n.World, n.a, []uint16{n.b.ID}, messages, 200, every), tracks(n.World, n.b, []uint16{n.a.ID}, messages, 200, every)
}

// arrived holds that each of these has come once, in order, and says how long the slowest took.
func (n *translated) arrived(t *testing.T, there, back *[]offered) time.Duration {
	t.Helper()
	took := once(t, n.World, n.b.Site, n.a.ID, *there)
	took = append(took, once(t, n.World, n.a.Site, n.b.ID, *back)...)
	allRead(t, n.World)
	return slices.Max(took)
}

// Two ships behind address translation that talk much get a direct session, which spares the air of the relay.
func TestABusyPairGetsADirectSession(t *testing.T) {
	for seed := range seeds(20) {
		octets := map[int]int64{}
		for _, limit := range []int{0, 4} {
			w := behindTranslation(t, 3, limit, seed+1)
			there, back := w.talk(600, 3*time.Second)
			w.Run(40 * time.Minute)
			slowest := w.arrived(t, there, back)
			octets[limit] = sentByAll(w.World)
			in := check.In(t, fmt.Sprint("seed ", seed+1, ", limit ", limit))
			check.True(in, "the slowest message", slowest < 30*time.Second, slowest)
			for _, n := range []*sim.Node{w.a, w.b} {
				check.Equal(in, n.Name+": sessions that were opened", saidAt(w, n, "a direct session with a peer is open"), min(limit, 1))
			}
			if limit == 0 {
				check.Equal(in, "datagrams from ship to ship", w.between, 0)
			}
			if t.Failed() {
				t.Fatal(strings.Join(w.Notes, "\n"))
			}
		}
		saved := 1 - float64(octets[4])/float64(octets[0])
		t.Logf("seed %d: %d octets over the relay, %d with a session: %.0f %% saved", seed+1, octets[0], octets[4], 100*saved)
		check.True(check.In(t, "seed ", seed+1), "two fifths of the air are saved", saved >= 0.4, saved)
	}
}

// Where the translations give each destination another port, no session comes about. The peer is left alone ever longer, and its
// messages go over the relay.
func TestSymmetricTranslations(t *testing.T) {
	w := behindTranslation(t, 3, 4, 1)
	w.symmetric = true
	there, back := w.talk(360, 5*time.Second)
	w.Run(29 * time.Minute)
	for _, n := range []*sim.Node{w.a, w.b} {
		d := direct(w.World, n)
		check.Equal(t, n.Name+": sessions", len(d.Sessions), 0)
		check.Equal(t, n.Name+": greylisted, or being opened", len(d.Greylist)+len(d.Opening), 1)
		failed := saidAt(w, n, "no direct session with a peer could be opened")
		check.True(t, n.Name+": openings that failed in half an hour", failed >= 2 && failed <= 8, failed)
	}
	w.Run(20 * time.Minute)
	w.arrived(t, there, back)
	check.Equal(t, "datagrams from ship to ship", w.between, 0)
}

// Relay, peer and this gateway restart while a session is opened, kept and ended: each message arrives once, and there is a session in the
// end.
func TestRestartsAmidSessions(t *testing.T) {
	for seed := range seeds(20) {
		w := behindTranslation(t, 3, 4, seed+1)
		there, back := w.talk(300, 5*time.Second)
		for i, n := range []*sim.Node{w.hq, w.a, w.b, w.a, w.hq, w.b} {
			w.At(time.Duration(75+150*i+int(seed)*7)*time.Second, func() { w.Kill(n, 10*time.Second) })
		}
		w.Run(24 * time.Minute)
		check.Equal(check.In(t, "seed ", seed+1), "sessions", len(direct(w.World, w.a).Sessions), 1)
		w.Run(40 * time.Minute)
		w.arrived(t, there, back)
	}
}

// A ship off the air for three minutes loses its session and no message.
func TestASessionIsCut(t *testing.T) {
	for seed := range seeds(20) {
		w := behindTranslation(t, 3, 4, seed+1)
		there, back := w.talk(180, 5*time.Second)
		w.At(6*time.Minute, func() { w.Cut(0, w.b, true) })
		w.At(9*time.Minute, func() { w.Cut(0, w.b, false) })
		w.Run(5 * time.Minute)
		check.Equal(t, "sessions before", len(direct(w.World, w.a).Sessions), 1)
		w.Run(time.Hour)
		w.arrived(t, there, back)
	}
}

// Where one of the two takes no sessions, the other is told nothing, leaves it alone, and goes on over the relay.
func TestOneEndTakesNoSessions(t *testing.T) {
	w := behindTranslation(t, 3, 4, 1)
	w.Reconfigure(w.b, func(g *gateway.Config) { g.Direct = 0 })
	w.Kill(w.b, time.Second)
	there, back := w.talk(72, 5*time.Second)
	w.Run(20 * time.Minute)
	w.arrived(t, there, back)
	check.Equal(t, "datagrams from ship to ship", w.between, 0)
	check.True(t, "openings that failed", saidAt(w, w.a, "no direct session with a peer could be opened") >= 1, tail(w.Notes))
	check.True(t, "words that the other refused", w.b.GW.Status(w.Now).Dropped["direct_refused"] >= 1, tail(w.Notes))
}

// The word of a ship that passes on nothing is not followed. The relay's is: it makes a gateway send six greetings where it likes, and
// nothing else.
func TestALyingIntroduction(t *testing.T) {
	for liar, most := range map[int]int{3: 0, 0: 6} {
		to, aimed := netip.MustParseAddrPort("203.0.113.9:9"), 0
		w := behindTranslation(t, 4, 4, 1, func(c *sim.Config) {
			c.Committed = func(_ *sim.Node, out api.Output) {
				for _, d := range out.Datagrams {
					if d.Addr == to {
						aimed++
					}
				}
			}
		})
		n := w.Nodes[liar]
		tracks(w.World, n, []uint16{w.a.ID}, 3, 50, time.Second)
		w.Run(10 * time.Minute) // they have met
		w.Cut(0, n, true)
		n.Site.Send(w.World, track(n.ID, pipeHQ, 9, 50), w.a.ID)
		w.Run(time.Second)
		w.Kill(n, time.Second)
		lie, err := envelope.Append(nil, envelope.Message{Direct: &envelope.Direct{Peer: w.b.ID, Addr: to}}, 0, true)
		check.NoError(t, err)
		lies := 0
		w.Rewrite(n, false, func(records []api.Record) []api.Record {
			for i := range records {
				if records[i].Bucket == "mail" {
					records[i].Value = lie
					lies++
				}
			}
			return records
		})
		w.Run(10 * time.Second)
		w.Cut(0, n, false)
		w.Run(30 * time.Minute)
		in := check.In(t, "node ", liar+1)
		check.True(in, "messages that became lies", lies > 0, lies)
		check.Equal(in, "datagrams to an address that it has named", aimed, most)
	}
}

// When the two have nothing more to say, the session ends at both ends, and with it the keepalives between them.
func TestAnIdleSessionEnds(t *testing.T) {
	w := behindTranslation(t, 3, 4, 1)
	there, back := w.talk(72, 5*time.Second)
	w.Run(5 * time.Minute)
	check.Equal(t, "sessions", len(direct(w.World, w.a).Sessions), 1)
	w.Run(35 * time.Minute)
	w.arrived(t, there, back)
	for _, n := range []*sim.Node{w.a, w.b} {
		check.Equal(t, n.Name+": sessions", len(direct(w.World, n).Sessions), 0)
	}
	before := w.between
	w.Run(time.Hour)
	check.Equal(t, "datagrams from ship to ship in an idle hour", w.between-before, 0)
	again := tracks(w.World, w.a, []uint16{w.b.ID}, 5, 100, time.Minute)
	w.Run(30 * time.Minute)
	once(t, w.World, w.b.Site, w.a.ID, append(*there, *again...))
}

// A silent ship sends nothing for its session, told or not, and afterwards all goes on.
func TestSilenceEndsSessions(t *testing.T) {
	for _, announce := range []bool{true, false} {
		w := behindTranslation(t, 3, 4, 1)
		there, back := w.talk(180, 5*time.Second)
		w.Run(5 * time.Minute)
		check.Equal(t, "sessions", len(direct(w.World, w.a).Sessions), 1)
		order(w.World, w.a, api.Silence{On: true, Announce: announce})
		w.Run(10 * time.Second)
		before, _ := w.Octets(w.a)
		w.Run(10 * time.Minute)
		after, _ := w.Octets(w.a)
		check.Equal(t, "octets of the silent ship", after-before, int64(0))
		check.Equal(t, "sessions in the silence", len(direct(w.World, w.a).Sessions)+len(direct(w.World, w.b).Sessions), 0)
		order(w.World, w.a, api.Silence{})
		w.Run(time.Hour)
		w.arrived(t, there, back)
	}
}

// A ship that talks with one after the other of seven others has at most as many sessions as its configuration says, and at most one gives
// way to another in a round.
func TestSessionsAtMost(t *testing.T) {
	w := behindTranslation(t, 9, 2, 1)
	sent := map[uint16]*[]offered{}
	ends := 0
	minute := func() {
		w.Run(time.Minute)
		check.True(t, "sessions", len(direct(w.World, w.a).Sessions) <= 2, direct(w.World, w.a))
		now := saidAt(w, w.a, "others need it more, or little was said")
		check.True(t, "sessions that gave way in a minute", now-ends <= 1, now-ends)
		ends = now
	}
	for _, n := range w.Nodes[2:] {
		sent[n.ID] = tracks(w.World, w.a, []uint16{n.ID}, 60, 250, 3*time.Second)
		minute()
		minute()
	}
	for range 40 {
		minute()
	}
	check.True(t, "sessions that were opened", saidAt(w, w.a, "a direct session with a peer is open") >= 4, tail(w.Notes))
	for _, n := range w.Nodes[2:] {
		once(t, w.World, n.Site, w.a.ID, *sent[n.ID])
	}
}

// Where no two sites reach each other over a relay alone, the limit changes no octet.
func TestSessionsChangeNothingElsewhere(t *testing.T) {
	octets := map[int]int64{}
	for _, limit := range []int{0, 4} {
		w := world(t, 3, "iridium-certus-100", 1, func(c *sim.Config) {
			c.Roster = true
			c.Configure = func(n *sim.Node, g *gateway.Config) {
				g.Relay, g.Keepalive, g.Direct = n.ID == 1, 30*time.Second, limit
				for i := range g.Peers {
					if p := &g.Peers[i]; n.ID != 1 && p.ID != 1 {
						p.Via = []uint16{1}
					}
				}
			}
		})
		sent := tracks(w, w.Nodes[1], []uint16{1, 3}, 100, 200, 4*time.Second)
		w.At(3*time.Minute, func() { w.Cut(0, w.Nodes[2], true) })
		w.At(4*time.Minute, func() { w.Cut(0, w.Nodes[2], false) })
		w.Run(30 * time.Minute)
		once(t, w, w.Nodes[2].Site, 2, *sent)
		octets[limit] = sentByAll(w)
	}
	check.Equal(t, "octets with sessions allowed", octets[4], octets[0])
}
