package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// TestUnitsOfTheBill: on a link that is billed by started units of 50 octets no datagram begins one that it does not fill when it
// could have ended before, the status counts the units as the provider does, and short and long messages arrive once. With much to
// carry, an octet costs less than without the key.
func TestUnitsOfTheBill(t *testing.T) {
	play := func(unit int) (units, octets int) {
		const segment = 400
		var longest int
		w := world(t, 2, "iridium-directip-shore", 29, func(cfg *sim.Config) {
			cfg.Profile.UnitOctets, cfg.Profile.SegmentOctets = unit, segment
			cfg.Profile.Up.LossPct, cfg.Profile.Down.LossPct = 0, 0 // so that the Tap sees what arrives
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		cost := profile.Bill{UnitOctets: 50}
		w.Tap = func(from, _ *sim.Node, data []byte) [][]byte {
			if from == ship {
				octets += len(data) + profile.IPUDPOctets
				units += cost.Units(len(data) + profile.IPUDPOctets)
				longest = max(longest, len(data)+profile.IPUDPOctets)
			}
			return [][]byte{data}
		}
		hq.Site.Put(w, pipeItem(1, pipeHQ))
		w.Run(time.Minute)
		sent := tracks(w, ship, []uint16{1}, 300, 60, time.Millisecond)
		w.At(5*time.Second, func() { ship.Site.Send(w, track(2, pipeHQ, 900, 5000), 1) })
		w.Run(10 * time.Minute)
		check.Equal(t, "messages at HQ", len(hq.Site.Got), len(*sent)+1)
		if unit > 0 {
			check.True(t, "the longest packet ends with a unit or before", longest <= 500 && longest > 450, longest)
			b := ship.GW.Status(w.Now).Bill
			check.Equal(t, "units sent, in the status", b.Sent, uint64(units))
			check.Equal(t, "octets in them", b.SentOctets, uint64(octets))
			check.True(t, "units received", b.Received > 0, b)
		} else {
			check.True(t, "no bill where every octet counts", ship.GW.Status(w.Now).Bill == nil)
		}
		return units, octets
	}
	plainUnits, plainOctets := play(0)
	units, octets := play(50)
	check.True(t, "fewer units with the key", units < plainUnits, units, plainUnits)
	t.Logf("without the key %d octets in %d units of 50, with it %d in %d", plainOctets, plainUnits, octets, units)
}
