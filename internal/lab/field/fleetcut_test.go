package field

import (
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
	"aldis/internal/lab/fleet"
)

// The satellite is cut in the middle of 20 kB, and HF continues; a gateway is killed at that moment, the sender's or the recipient's. All
// messages in custody arrive, and none twice.
func TestCutAmidALongMessage(t *testing.T) {
	t.Parallel()
	for _, seed := range cutSeeds {
		for kill := range 2 {
			t.Run(fmt.Sprintf("seed %d, kill %d", seed, kill), func(t *testing.T) {
				t.Parallel()
				cutAmid(t, seed, kill)
			})
		}
	}
}

func cutAmid(t *testing.T, seed uint64, kill int) {
	ctx := t.Context()
	f := &fleetPlay{script: &fleet.Script{
		Bearers: []fleet.Bearer{{Name: "sat", Profile: cutProfiles[0], Price: 1}, {Name: "hf", Profile: cutProfiles[1], Price: 2}},
		Sites:   []fleet.Site{{Name: "hq", Ashore: true}, {Name: "ship"}},
	}, met: map[[2]*fleetCrew]time.Time{}}
	f.game = &game{o: Options{Seed: seed, Gateway: builtGateway(t)}, kind: "cut", voice: (&progressLog{w: io.Discard}).voice("cut")}
	t.Cleanup(func() {
		run := &Run{}
		_, err := f.tearDown(run, nil, func() {
			for _, h := range f.hubs {
				check.NoError(t, h.Close())
			}
		})
		check.True(t, "a good end", err == nil && len(run.GatewayErrors) == 0, err, run.GatewayErrors)
	})
	check.NoError(check.Fatal(t), f.setUp(ctx))
	hq, ship := f.crews[0], f.crews[1]
	for _, c := range f.crews {
		check.NoError(check.Fatal(t), c.gateway.start(ctx))
	}
	rng := rand.New(rand.NewPCG(seed, 25))
	pipe := drawn(rng, jxta.KindPipe)
	var mu sync.Mutex
	heard := map[int]int{}
	dial := func(c *fleetCrew, id, name string, pipes ...edgepeer.Listen) *tcp.Peer {
		x := &crew{site: c.lanSite, far: &crew{site: c.lanSite}}
		var p *tcp.Peer
		check.Until(t, recovery, name+" has its lease", func() bool {
			p = x.dial(ctx, id, name, rand.New(rand.NewPCG(seed, rng.Uint64())), pipes, func(_ *tcp.Peer, n edgepeer.Notice) {
				if m, ok := n.(edgepeer.Message); ok {
					mu.Lock()
					_, said, k, ok := numbered(m.Elements)
					check.True(t, "it came unchanged", ok && sameWords(m.Elements, words("ship", said, k)))
					heard[said]++
					mu.Unlock()
				}
			})
			return p != nil
		})
		t.Cleanup(p.Close)
		return p
	}
	ear, mouth := drawn(rng, jxta.KindPeer), drawn(rng, jxta.KindPeer)
	dial(hq, ear, "ear", edgepeer.Listen{Pipe: pipe, Kind: jxta.PipeTypePropagate})
	talker := dial(ship, mouth, "talker")
	check.Until(t, recovery, "the ship knows the listener", func() bool {
		st, err := ship.gateway.status(ctx)
		return err == nil && st.Peers[0].Knows && st.Peers[0].FarItems > 0
	})
	say := func(p *tcp.Peer, n int, k kind) {
		_, err := p.Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: words("ship", n, k)})
		check.NoError(check.Fatal(t), err)
	}
	custody := func(n int) {
		check.Until(t, recovery, fmt.Sprintf("%d messages are in custody", n), func() bool {
			st, err := ship.gateway.status(ctx)
			return err == nil && int(st.Peers[0].Accepted) >= n
		})
	}
	say(talker, 0, propagated)
	say(talker, 1, long)
	custody(2)
	sat, hf := f.hubs[0], f.hubs[1]
	sent := func(h *Hub) int64 { return h.Stats().Link.Node("ship").Up.OnAir.Octets }
	check.Until(t, recovery, "a part of it is on the way", func() bool { return sent(sat) > 6000 })
	before := sent(hf)
	check.NoError(check.Fatal(t), sat.Outage("ship", true))
	cut := time.Now()
	f.crews[kill].gateway.kill()
	check.NoError(check.Fatal(t), f.crews[kill].gateway.start(ctx))
	if kill == 0 {
		dial(hq, ear, "ear again", edgepeer.Listen{Pipe: pipe, Kind: jxta.PipeTypePropagate})
	} else {
		talker = dial(ship, mouth, "talker again")
	}
	check.Until(t, recovery, "HF carries something", func() bool { return sent(hf) > before })
	first := time.Since(cut)
	said := 2
	all := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heard) == said
	}
	check.Until(t, 2*recovery, "all has arrived over HF", all)
	took := time.Since(cut)
	check.NoError(check.Fatal(t), sat.Outage("ship", false))
	say(talker, said, propagated)
	said++
	check.Until(t, 2*recovery, "what was said after that arrives", all)
	check.Still(t, 3*time.Second, recovery, "what has arrived", func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, times := range heard {
			n += times
		}
		return n
	})
	mu.Lock()
	defer mu.Unlock()
	for n, times := range heard {
		check.Equal(t, fmt.Sprintf("how often message %d arrived", n), times, 1)
	}
	t.Logf("first octet on HF %.1f s after the cut, all there after %.1f s", first.Seconds(), took.Seconds())
}
