package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// sounding is a message of a format that no corpus but the network's has.
func sounding(r *rand.Rand) []byte {
	return fmt.Appendf(nil, "!!FATHOM/3;rig=%s;lead %d.%d fm <shoal> %v <bottom> (%s) ~drift %03d/%d.%d\nnext-cast-in=%dmin;signed=leadsman-of-the-watch!!\n",
		[]string{"WHELK", "COCKLE", "LIMPET"}[r.IntN(3)], r.IntN(90), r.IntN(10), r.IntN(2) == 0, []string{"sand-and-shell", "blue-mud", "rock"}[r.IntN(3)],
		r.IntN(360), r.IntN(4), r.IntN(10), 5*r.IntN(12))
}

func corpusOf(t *testing.T, seed uint64) *compact.NetworkCorpus {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var messages [][]byte
	for range 40 {
		messages = append(messages, sounding(r))
	}
	b, err := compact.AppendCorpus(nil, messages)
	check.NoError(check.Fatal(t), err)
	f, err := compact.ReadCorpus(b)
	check.NoError(check.Fatal(t), err)
	return f.Learn()
}

// soundings lets from send n messages to to, one every interval, each the first of its flow.
func soundings(w *sim.World, from *sim.Node, to []uint16, seed uint64, n int, every time.Duration) *[]offered {
	sent := &[]offered{}
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range n {
		p := site.Message{Scope: "jxta-NetGroup", From: peerID(from.ID), Published: true, Topic: fmt.Sprintf("uuid-59616261646162614E504720503250337B1F8E4DA2F95C6D9E3F2A4B5C%02X%02XEE04", seed, i),
			ID: fmt.Sprint(from.ID, i), Parts: []site.Part{{Name: "text", Data: sounding(r)}}}
		w.At(time.Duration(i)*every+time.Second, func() {
			*sent = append(*sent, offered{At: w.Now, Message: p})
			from.Site.Send(w, p, to...)
		})
	}
	return sent
}

// withCorpora is the octets both ways of the first message of a ship, where the gateways have these corpora.
func withCorpora(t *testing.T, hqs, ships *compact.NetworkCorpus) int64 {
	t.Helper()
	w := world(t, 2, "iridium-directip", 1, func(c *sim.Config) {
		c.Configure = func(n *sim.Node, c *gateway.Config) {
			if c.Corpus = ships; n.ID == 1 {
				c.Corpus = hqs
			}
		}
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	sent := soundings(w, ship, []uint16{1}, 1, 1, 5*time.Second)
	w.Run(3 * time.Minute)
	once(t, w, hq.Site, 2, *sent)
	h, s := hq.GW.Status(w.Now), ship.GW.Status(w.Now)
	check.Equal(t, "what hq knows of the ship's corpus", h.Peers[0].Corpus, s.Corpus)
	check.Equal(t, "what the ship knows of hq's corpus", s.Peers[0].Corpus, h.Corpus)
	check.Equal(t, "a corpus has a name", h.Corpus != "", hqs != nil)
	up, down := w.Octets(ship)
	return up + down
}

// Gateways with the same corpus say less. With different ones, or where one has none, they speak as ever. A gateway that has a corpus
// says so in four octets of each HELLO, five with the one that says that they follow.
func TestCorpora(t *testing.T) {
	a, b := corpusOf(t, 1), corpusOf(t, 2)
	none := withCorpora(t, nil, nil)
	same := withCorpora(t, a, a)
	t.Logf("octets of a first message with greetings: %d, with the same corpus %d", none, same)
	check.True(t, "the same corpus saves 50 octets of a first message at least, with what HELLOs say", same <= none-50, none, same)
	for name, octets := range map[string]int64{"different": withCorpora(t, a, b), "only the ship": withCorpora(t, nil, a), "only hq": withCorpora(t, a, nil)} {
		check.True(t, name+" costs what HELLOs say", octets > none && octets <= none+10*5, none, octets)
	}
}

// A gateway that starts again with another corpus, or with none, in the middle of it all reads everything; so does one that gets one.
// Over P_Mul what was acknowledged and cannot be read is asked for again, which needs a sender that has not started since.
func TestCorpusChanges(t *testing.T) {
	corpora := []*compact.NetworkCorpus{corpusOf(t, 1), corpusOf(t, 2), nil}
	for profile, every := range map[string]time.Duration{"iridium-directip": 5 * time.Second, "hf-2400": 20 * time.Second} {
		for seed := range uint64(2) {
			w := world(t, 2, profile, seed, func(c *sim.Config) {
				c.Group = c.Profile.Shared
				c.Configure = func(_ *sim.Node, c *gateway.Config) { c.Corpus = corpora[0] }
			})
			hq, ship := w.Nodes[0], w.Nodes[1]
			n := 0
			w.Tap = func(_, _ *sim.Node, data []byte) [][]byte {
				if n++; n%7 == 0 {
					return nil
				}
				return [][]byte{data}
			}
			up := soundings(w, ship, []uint16{1}, 1, 60, every)
			down := soundings(w, hq, []uint16{2}, 2, 60, every)
			for i, change := range []struct {
				node   *sim.Node
				corpus *compact.NetworkCorpus
			}{{hq, corpora[1]}, {ship, corpora[1]}, {hq, corpora[2]}, {hq, corpora[1]}, {ship, corpora[0]}} {
				w.At(time.Duration(8+10*i)*every+time.Duration(i*730)*time.Millisecond, func() {
					w.Reconfigure(change.node, func(c *gateway.Config) { c.Corpus = change.corpus })
					w.Kill(change.node, 100*time.Millisecond)
				})
			}
			w.Run(40 * time.Minute)
			arrived := air.Once
			if w.Nodes[0].GW.Status(w.Now).Link.Shared {
				arrived = air.Each
			}
			_, err := arrived(hq.Site.Got, 2, *up)
			check.NoError(t, err)
			_, err = arrived(ship.Site.Got, 1, *down)
			check.NoError(t, err)
			allRead(t, w)
		}
	}
}
