package fleet_test

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/fleet"
)

// Only a message that came once, or whose sender got a true final state, is in order.
func TestEnds(t *testing.T) {
	zero := time.Unix(1_800_000_000, 0)
	at := func(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }
	for _, tt := range []struct {
		d    fleet.Delivery
		end  fleet.End
		good bool
	}{
		{fleet.Delivery{Came: []time.Time{at(2)}}, fleet.Delivered, true},
		{fleet.Delivery{Came: []time.Time{at(2)}, NotTaken: true}, fleet.Delivered, true},
		{fleet.Delivery{Told: "expired"}, fleet.Told, true},
		{fleet.Delivery{NotTaken: true}, fleet.NotTaken, true},
		{fleet.Delivery{}, fleet.Lost, false},
		{fleet.Delivery{Came: []time.Time{at(2), at(3)}}, fleet.Twice, false},
		{fleet.Delivery{Came: []time.Time{at(2)}, Told: "expired"}, fleet.False, false},
		{fleet.Delivery{Came: []time.Time{at(2)}, Changed: 1}, fleet.Changed, false},
	} {
		check.Equal(t, "end", tt.d.End(), tt.end)
		tt.d.From, tt.d.To, tt.d.Peers, tt.d.Sent = "hq", "ship", fleet.TAK, at(1)
		var r fleet.Result
		r.Judge(zero, []fleet.Delivery{{From: "ship", To: "hq", Sent: at(0), Came: []time.Time{at(4)}}, tt.d})
		check.Equal(t, string(tt.end)+": faults", r.Faults() == "", tt.good)
		check.Equal(t, "rows", len(r.Rows), 2)
		check.Equal(t, "worst", r.Rows[0].Most, 4)
		if !tt.good {
			check.True(t, "it is named", len(r.Wrong) == 1 && strings.HasPrefix(r.Wrong[0], string(tt.end)+": tak, hq to ship, number 0"), r.Wrong)
		}
	}
	var r fleet.Result
	r.Judge(zero, []fleet.Delivery{{NotTaken: true}})
	check.Equal(t, "a play in which nothing arrives", r.Faults(), "no message was delivered")
}
