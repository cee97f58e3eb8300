package gateway_test

import (
	"testing"

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
