package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/jxtabridge"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// fifty are the items that fifty peers bring when they join: each itself and an open pipe.
func fifty() (items []site.Item) {
	for i := range 50 {
		id := fmt.Sprintf("cbid-59616261646162614A78746150325033%08X155EBF440C2B9C89E114D3E203", 0x9E3779B1*uint32(i+1))
		doc := fmt.Sprintf("<jxta:PA><PID>urn:jxta:%s</PID><GID>urn:jxta:jxta-NetGroup</GID><Name>console %d</Name></jxta:PA>", id, i)
		items = append(items,
			site.Item{Kind: site.Endpoint, Scope: "jxta-NetGroup", Owner: id, Doc: []byte(doc), Variant: true},
			site.Item{Kind: site.Listener, Scope: "jxta-NetGroup", Owner: id, Sub: jxtabridge.PipeUnicast,
				ID: fmt.Sprintf("uuid-59616261646162614E50472050325033%032X04", uint64(i+1)*0x9E3779B97F4A7C15)})
	}
	return items
}

func stateOctets(n *sim.Node, now time.Time) (octets uint64) {
	for _, row := range n.GW.Status(now).Ledger {
		if row.Direction == "sent" && (row.Kind == "state" || row.Kind == "advertisement") {
			octets += row.Octets
		}
	}
	return octets
}

// Fifty peers that join a ship's LAN within one second while reports flow: every report arrives, once and in order, none
// is held up by much, and the share of the air for news of them is bounded by the profile, until all items are there.
func TestFiftyJoinWhileDataFlows(t *testing.T) {
	for _, name := range []string{"iridium-directip", "vhf-cnr-16k"} {
		t.Run(name, func(t *testing.T) {
			w := world(t, 2, name, 50)
			hq, ship := w.Nodes[0], w.Nodes[1]
			hq.Site.Put(w, pipeItem(1, pipeHQ))
			w.Run(2 * time.Minute)
			quiet := tracks(w, ship, []uint16{1}, 60, 200, 5*time.Second)
			w.Run(6 * time.Minute)
			calm := once(t, w, hq.Site, 2, *quiet)
			hq.Site.Got = nil

			before := stateOctets(ship, w.Now)
			began := w.Now
			busy := tracks(w, ship, []uint16{1}, 60, 200, 5*time.Second)
			items := fifty()
			for i, it := range items {
				w.At(20*time.Second+time.Duration(i)*10*time.Millisecond, func() { ship.Site.Put(w, it) })
			}
			p := load(t, name)
			share := uint64(p.StateShare * float64(p.Up.RateBps) / 8 / 100)
			limit := func(d time.Duration) uint64 { // and what one datagram may be ahead
				return uint64(d/time.Second)*share + 2*uint64(p.DatagramOctets)
			}
			var told time.Duration
			for w.Now.Sub(began) < 6*time.Minute {
				w.Run(time.Second)
				joined := w.Now.Sub(began) - 20*time.Second
				if got, most := stateOctets(ship, w.Now)-before, limit(max(0, joined)); got > most {
					t.Fatalf("%v after the first join state has taken %d octets, the share is %d", joined, got, most)
				}
				if told == 0 && len(hq.Site.Far[2]) == len(items) {
					told = w.Now.Sub(began) - 20*time.Second
				}
			}
			latency := once(t, w, hq.Site, 2, *busy)
			worst := func(l []time.Duration) time.Duration { return l[len(l)-1] }
			median := func(l []time.Duration) time.Duration { return l[len(l)/2] }
			t.Logf("reports: median %v, worst %v; while fifty join: median %v, worst %v; %d octets of state, all told after %v",
				median(calm), worst(calm), median(latency), worst(latency), stateOctets(ship, w.Now)-before, told)
			if told == 0 || told > 4*time.Minute {
				t.Errorf("%d of %d items told, after %v", len(hq.Site.Far[2]), len(items), told)
			}
			// A datagram of state before it, and the cost of that on a half-duplex channel.
			if more := median(latency) - median(calm); more > 2*time.Second {
				t.Errorf("reports take %v longer while fifty join", more)
			}
		})
	}
}

// How much of the air news of a site may take in ten seconds: its share while messages flow and for a minute after the last,
// all of it otherwise.
func TestShareOfNews(t *testing.T) {
	const spell = 10 * time.Second
	for _, tt := range []struct {
		name    string
		quiet   time.Duration // since the ship's last message; 0: they flow
		limited bool
	}{
		{"messages flow", 0, true},
		{"the last was half a minute ago", 30 * time.Second, true},
		{"the last was two minutes ago", 2 * time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world(t, 2, "iridium-directip", 51)
			ship := w.Nodes[1]
			p := load(t, "iridium-directip")
			w.Run(time.Minute)
			tracks(w, ship, []uint16{1}, 5, 200, 2*time.Second)
			w.Run(15*time.Second + tt.quiet)
			if tt.quiet == 0 {
				tracks(w, ship, []uint16{1}, 10, 200, time.Second)
			}
			before := stateOctets(ship, w.Now)
			for _, it := range fifty() {
				ship.Site.Put(w, it)
			}
			w.Run(spell)
			got := stateOctets(ship, w.Now) - before
			share := uint64(p.StateShare * float64(p.Up.RateBps) / 8 / 100 * spell.Seconds())
			if tt.limited && got > share+2*uint64(p.DatagramOctets) {
				t.Errorf("news took %d octets, its share is %d", got, share)
			}
			if !tt.limited && got < 2*share {
				t.Errorf("news took %d octets though nothing else did, its share is %d", got, share)
			}
			t.Logf("%d octets of news, the share is %d", got, share)
		})
	}
}
