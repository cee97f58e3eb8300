package gateway_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// hostiles are kinds of datagrams that an adversary on the link can send: all that he has recorded, and those that he makes of them.
// The last kinds are a member's, who has a key and lies.
var hostiles = map[string]func(h *hostile) []byte{
	"noise": func(h *hostile) []byte {
		b := make([]byte, h.rng.IntN(600))
		for i := range b {
			b[i] = byte(h.rng.Uint32())
		}
		if len(b) > 0 && h.rng.IntN(2) == 0 {
			b[0] = 0x20 | b[0]&0x10 | byte(1+h.rng.IntN(3))
		}
		return b
	},
	"cut":                            func(h *hostile) []byte { d := h.old(); return d[:h.rng.IntN(len(d))] },
	"bits turned":                    func(h *hostile) []byte { d := h.old(); d[h.rng.IntN(len(d))] ^= 1 << h.rng.IntN(8); return d },
	"recorded":                       func(h *hostile) []byte { return h.old() },
	"recorded of the starts before":  func(h *hostile) []byte { return slices.Clone(h.air[h.rng.IntN(len(h.air)/3)]) },
	"header of one, body of another": func(h *hostile) []byte { return splice(h.old(), h.old()) },
	"sealed with another key": func(h *hostile) []byte {
		s := seal.NewSealer(seal.Key{9}, uint16(1+h.rng.IntN(3)), seal.Incarnation{Number: 1_800_000_000 + h.rng.Uint32N(1000), Salt: uint16(h.rng.Uint32())})
		d, _ := s.Seal(nil, uint16(h.rng.IntN(3)), h.rng.IntN(2) == 0, h.old())
		return d
	},
}

// hostile makes them.
type hostile struct {
	rng *rand.Rand
	air [][]byte // what was on the air
}

func (h *hostile) old() []byte { return slices.Clone(h.air[h.rng.IntN(len(h.air))]) }

// recording is a world that has a past: three starts of each node, messages, rosters; and what was on the air.
func recording(t *testing.T, group, trust bool, seed uint64) (w *sim.World, air [][]byte) {
	link := "iridium-directip"
	if group {
		link = "hf-2400"
	}
	w = world(t, 3, link, seed, func(c *sim.Config) {
		if c.Group, c.Roster = group, trust; group {
			c.Profile.Transport = profile.PMul
		}
	})
	w.Tap = func(_, _ *sim.Node, data []byte) [][]byte { air = append(air, data); return [][]byte{data} }
	for range 3 {
		tracks(w, w.Nodes[0], []uint16{2, 3}, 5, 100, 30*time.Second)
		tracks(w, w.Nodes[1], []uint16{1}, 5, 100, 30*time.Second)
		w.Run(30 * time.Minute)
		for _, n := range w.Nodes {
			w.Kill(n, time.Second)
		}
		w.Run(30 * time.Minute)
	}
	w.Tap = nil
	return w, air
}

// sentBy is how many IP octets all nodes have sent.
func sentBy(w *sim.World) (octets int64) {
	for _, n := range w.Nodes {
		up, _ := w.Octets(n)
		octets += up
	}
	return octets
}

// logged is the most lines that a node writes into its log within a minute, from the line first on.
func logged(w *sim.World, first int) (most int) {
	count := map[string]int{}
	for _, note := range w.Notes[first:] {
		var at float64
		var who string
		fmt.Sscan(note, &at, &who)
		key := fmt.Sprint(who, int(at)/60)
		count[key]++
		most = max(most, count[key])
	}
	return most
}

const (
	hostileMany = 2000 // of each kind
	hostileFor  = 20 * time.Minute
	mostLines   = 10 // of the log, a minute
	mostJournal = 4  // records that hostile datagrams may leave
)

// TestNeverMoreOutThanIn sends each kind of hostile datagram to gateways that are idle, from an address of the adversary's and from
// the one of a peer: never more octets go out because of them than came in, and next to none in most cases. The
// log gets ten lines a minute at the most, and the journal nothing.
func TestNeverMoreOutThanIn(t *testing.T) {
	for _, group := range []bool{false, true} {
		for _, trust := range []bool{false, true} {
			calm, _ := recording(t, group, trust, 5)
			before := sentBy(calm)
			calm.Run(hostileFor + time.Hour)
			usual := sentBy(calm) - before
			for name, make := range hostiles {
				t.Run(fmt.Sprintf("group %v, keys of nodes %v, %s", group, trust, name), func(t *testing.T) {
					w, air := recording(t, group, trust, 5)
					check.Equal(t, "the same past", sentBy(w), before)
					h := &hostile{rand.New(rand.NewPCG(5, 6)), air}
					records, line, in := len(w.Nodes[0].Journal()), len(w.Notes), int64(0)
					for i := range hostileMany {
						d := make(h)
						in += int64(len(d)) + profile.IPUDPOctets
						w.At(time.Duration(i)*hostileFor/hostileMany, func() {
							if i%2 == 0 {
								w.Inject(w.Nodes[0], d)
							} else {
								w.Late(w.Nodes[1], w.Nodes[0], d)
							}
						})
					}
					w.Run(hostileFor + time.Hour)
					out := sentBy(w) - before - usual
					t.Logf("%d octets in, %d more out than without; at most %d lines a minute; %v", in, out, logged(w, line), w.Nodes[0].GW.Status(w.Now).Dropped)
					check.True(t, "no more out than in", out <= in, out, in)
					check.True(t, "few lines", logged(w, line) <= mostLines, tail(w.Notes))
					check.True(t, "nothing in the journal", len(w.Nodes[0].Journal()) <= records+mostJournal, len(w.Nodes[0].Journal()), records)
					check.Equal(t, "messages at hq", len(w.Nodes[0].Site.Got), 15)
					check.True(t, "links are up", !strings.Contains(fmt.Sprint(w.Nodes[0].GW.Status(w.Now).Peers[0].Link), "silent"))
				})
			}
		}
	}
}

// A member of the network that lies has a key, so its questions are answered. Even so a flood of frames of all kinds, true in form and
// false in what they say, makes a gateway send no more octets than it gets.
func TestNeverMoreOutThanInOfAMember(t *testing.T) {
	for _, group := range []bool{false, true} {
		for _, trust := range []bool{false, true} {
			t.Run(fmt.Sprintf("group %v, keys of nodes %v", group, trust), func(t *testing.T) {
				w, _ := recording(t, group, trust, 5)
				hq, liar := w.Nodes[0], w.Nodes[2]
				w.Kill(liar, 1000*time.Hour)
				c := &chaos{w: w, rng: rand.New(rand.NewPCG(5, 8)), nodes: w.Nodes[:2], liar: liar, trust: trust, group: group, roster: w.First()}
				c.lies = seal.NewSealer(seal.Key{1, 2, 3}, liar.ID, seal.Incarnation{Number: liar.Incarnation() + 1, Salt: 7})
				if trust {
					c.insider()
				}
				var in int64
				c.lied = func(d []byte) { in += int64(len(d)) + profile.IPUDPOctets }
				before, _ := w.Octets(hq)
				for i := range hostileMany {
					w.At(time.Duration(i)*hostileFor/hostileMany, func() { c.lie(hq, 1) })
				}
				w.Run(hostileFor + time.Hour)
				after, _ := w.Octets(hq)
				t.Logf("%d octets in, %d out; %v", in, after-before, hq.GW.Status(w.Now).Dropped)
				check.True(t, "no more out than in", after-before <= in, after-before, in)
			})
		}
	}
}

// One recorded datagram after the other, so long apart that no bound on the rate of answers helps: each is answered with no more
// octets than it has. To a gateway that has lost its store while its peers are off the air, too.
func TestNeverMoreOutThanInOneByOne(t *testing.T) {
	const apart = 11 * time.Minute
	for _, group := range []bool{false, true} {
		for _, trust := range []bool{false, true} {
			for _, lost := range []bool{false, true} {
				t.Run(fmt.Sprintf("group %v, keys of nodes %v, store lost %v", group, trust, lost), func(t *testing.T) {
					var out [2]int64
					var in int64
					for i := range out { // without them, and with
						w, air := recording(t, group, trust, 7)
						if lost {
							w.Outage(w.Nodes[1], 1000*time.Hour)
							w.Outage(w.Nodes[2], 1000*time.Hour)
							w.LoseStore(w.Nodes[0])
							w.Kill(w.Nodes[0], time.Second)
							w.Run(3 * time.Hour)
						}
						slices.SortFunc(air, bytes.Compare)
						air = slices.CompactFunc(air, bytes.Equal)
						if i == 1 && len(air) > 60 {
							rand.New(rand.NewPCG(7, 7)).Shuffle(len(air), func(a, b int) { air[a], air[b] = air[b], air[a] })
						}
						air = air[:min(len(air), 60)]
						before, _ := w.Octets(w.Nodes[0])
						for k, d := range air {
							if i == 1 {
								in += int64(len(d)) + profile.IPUDPOctets
								w.At(time.Duration(k)*apart, func() { w.Inject(w.Nodes[0], d) })
							}
						}
						w.Run(61 * apart)
						after, _ := w.Octets(w.Nodes[0])
						out[i] = after - before
					}
					t.Logf("%d octets in, %d more out than without", in, out[1]-out[0])
					check.True(t, "no more out than in", out[1]-out[0] <= in, out, in)
				})
			}
		}
	}
}
