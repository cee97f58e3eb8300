package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// A bearer transmits nothing while the whole gateway is silent, and the gateway transmits nothing while each of its bearers is silent.
func TestQuietForWhateverReason(t *testing.T) {
	w := twoBearers(t, 2, "iridium-directip", 1, func(c *sim.Config) {
		c.Configure = func(_ *sim.Node, g *gateway.Config) { g.Bearer = "sat" }
	})
	ship := w.Nodes[1]
	for _, tt := range []struct {
		order      api.Silence
		quiet      bool
		sat, hf    bool
		itself, on bool // the gateway, and HF
	}{
		{api.Silence{On: true}, true, true, true, true, false},
		{api.Silence{}, false, false, false, false, false},
		{api.Silence{On: true, Bearer: "hf"}, false, false, true, false, true},
		{api.Silence{On: true, Bearer: "sat"}, true, true, true, false, true},
	} {
		order(w, ship, tt.order)
		s := ship.GW.Status(w.Now)
		in := check.In(t, tt.order)
		check.Equal(in, "the gateway, sat and HF transmit nothing", [3]bool{s.Silence.Quiet, s.Bearers[0].Silence.Quiet, s.Bearers[1].Silence.Quiet}, [3]bool{tt.quiet, tt.sat, tt.hf})
		check.Equal(in, "the gateway and HF are silent themselves", [2]bool{s.Silence.On, s.Bearers[1].Silence.On}, [2]bool{tt.itself, tt.on})
	}
}

// What goes to all at once over the first bearer is in that bearer's account.
func TestLedgerOfTheFirstBearer(t *testing.T) {
	w := world(t, 2, "hf-2400", 1, func(c *sim.Config) {
		c.Group, c.Second = true, &sim.Second{Name: "sat", Profile: load(t, "iridium-directip")}
		c.Configure = func(_ *sim.Node, g *gateway.Config) { g.Bearer = "hf" }
	})
	ship := w.Nodes[1]
	tracks(w, ship, []uint16{1}, 3, 200, 10*time.Second)
	w.Run(2 * time.Minute)
	on := map[string]uint64{}
	for _, row := range ship.GW.Status(w.Now).Ledger {
		if row.Peer == "group" {
			on[row.Bearer] += row.Octets
		}
	}
	check.True(t, "octets to all at once by bearer", len(on) == 1 && on["hf"] > 600, on)
}
