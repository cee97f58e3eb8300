package gateway_test

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// byAdapter is the octets of a node: "sent jxta payload".
func byAdapter(n *sim.Node, now time.Time) map[string]uint64 {
	m := map[string]uint64{}
	for _, row := range n.GW.Status(now).Adapters {
		m[row.Direction+" "+row.Adapter+" "+row.Kind] = row.Octets
	}
	return m
}

// TestLedgerAgreesWithTheAir: every octet on the link has a cause (design 8).
func TestLedgerAgreesWithTheAir(t *testing.T) {
	w := world(t, 3, "iridium-dialup", 11)
	ledgerAgrees(t, w)
	got := byAdapter(w.Nodes[1], w.Now)
	check.True(t, "what stays unread is a few repeats", got["received unread payload"] < got["received jxta payload"]/4, got)
}

// The same with proofs after the frames of datagrams to all.
func TestLedgerAgreesWithARoster(t *testing.T) {
	ledgerAgrees(t, mulWorld(t, 3, 11, withRoster))
}

func ledgerAgrees(t *testing.T, w *sim.World) {
	t.Helper()
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	ship.Site.Put(w, pipeItem(2, pipeShip))
	tracks(w, hq, []uint16{2, 3}, 60, 200, 3*time.Second)
	tracks(w, ship, []uint16{1}, 60, 150, 2*time.Second)
	w.At(time.Minute, func() { w.Outage(ship, 40*time.Second) })
	w.Run(30 * time.Minute)
	for _, n := range w.Nodes {
		var sent, payload uint64
		for _, row := range n.GW.Status(w.Now).Ledger {
			if row.Direction == "sent" {
				sent += row.Octets
				if row.Kind == "payload" {
					payload += row.Octets
				}
			}
		}
		parts := byAdapter(n, w.Now)
		for _, direction := range []string{"sent", "received"} {
			var ledger, adapters uint64
			for _, row := range n.GW.Status(w.Now).Ledger {
				if row.Direction == direction {
					ledger += row.Octets
				}
			}
			for name, octets := range parts {
				if strings.HasPrefix(name, direction) {
					adapters += octets
				}
			}
			check.Equal(t, n.Name+": octets by adapter, "+direction, adapters, ledger)
		}
		if n == ship {
			check.True(t, "sent of JXTA", parts["sent jxta payload"] >= 60*150, parts)
			check.True(t, "received of JXTA, as it was read", parts["received jxta payload"] >= 60*200, parts)
			check.True(t, "news of JXTA's pipes", parts["received jxta state"] > 0, parts)
			check.True(t, "headers and acknowledgements are the gateway's", parts["sent gateway header"] > 0 && parts["sent gateway ack"] > 0 && parts["sent jxta header"] == 0, parts)
		}
		t.Log(n.Name, parts)
		if up, _ := w.Octets(n); sent != uint64(up) {
			t.Errorf("%s: the ledger has %d octets sent, the air %d", n.Name, sent, up)
		}
		if n == ship && payload < 60*150 {
			t.Errorf("the ship's ledger has %d octets of payload, want those of 60 messages of 150", payload)
		}
	}
}

func TestIdleCostsNothing(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1)
	w.Nodes[0].Site.Put(w, pipeItem(1, pipeHQ))
	w.Run(time.Minute)
	up, down := w.Octets(w.Nodes[1])
	w.Run(10 * time.Minute)
	up2, down2 := w.Octets(w.Nodes[1])
	if up2 != up || down2 != down {
		t.Errorf("ten quiet minutes: %d octets up, %d down; want none\n%s", up2-up, down2-down, tail(w.Notes))
	}
}
