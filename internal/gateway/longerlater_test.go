package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// A message that fits a datagram as it is coded is lost, and its receiver starts again without the corpus: coded anew it fits none. It
// arrives all the same, once and in order, and so do a long message and a short one behind it, also when the sender starts again meanwhile.
func TestWhatFitsNoMore(t *testing.T) {
	c, moved := corpusOf(t, 1), 0
	for n := 305; n < 365; n += 10 { // octets that no coding makes shorter
		w := world(t, 2, "iridium-dialup-modem", uint64(n), lossless, func(cfg *sim.Config) {
			cfg.Configure = func(_ *sim.Node, g *gateway.Config) { g.Corpus = c }
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		first := soundings(w, ship, []uint16{1}, 1, 1, 0)
		w.Run(2 * time.Minute)
		w.Reconfigure(hq, func(g *gateway.Config) { g.Corpus = nil })
		w.Kill(hq, 30*time.Second)
		r := rand.New(rand.NewPCG(uint64(n), 3))
		noise := func(octets int) (b []byte) {
			for range octets {
				b = append(b, byte(r.Uint32()))
			}
			return b
		}
		var text []byte
		for range 20 {
			text = append(text, sounding(r)...)
		}
		sent, long := *first, site.Message{}
		for i, data := range [][]byte{append(text, noise(n)...), noise(20_000), sounding(r)} {
			m := sent[0].Message
			m.ID, m.Parts = fmt.Sprint("later ", i), []site.Part{{Name: "text", Data: data}}
			if i == 1 {
				m.From = peerID(9)
				long = m
			} else {
				sent = append(sent, offered{At: w.Now, Message: m})
			}
			ship.Site.Send(w, m, 1)
		}
		w.Run(time.Minute)
		if strings.Contains(whats(known(ship)[1]), "moved") {
			moved++
		}
		if n%20 == 5 {
			w.Kill(ship, time.Second)
		}
		w.Run(20 * time.Minute)
		ofLong := func(g sim.Got) bool { return g.Payload.From == long.From }
		check.Equal(t, fmt.Sprint("long messages, ", n), len(slices.DeleteFunc(slices.Clone(hq.Site.Got), func(g sim.Got) bool { return !ofLong(g) })), 1)
		_, err := air.Once(slices.DeleteFunc(hq.Site.Got, ofLong), 2, sent)
		check.NoError(check.In(t, fmt.Sprint(n)), err)
		s := ship.GW.Status(w.Now).Peers[0]
		check.Equal(t, "left", s.Waiting+s.UnderWay, 0)
	}
	check.True(t, "some fit no datagram any more", moved > 1, moved)
}
