package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// bill is the accounts of a node.
func bill(n *sim.Node) []api.BillMonth { return n.GW.Messages().Bill(0, api.BillMonths) }

// The bill of a month has the octets that were on the air, by site, over kills: at most the last minute before a kill is missing. The next month
// has an account of its own.
func TestBillOfAMonth(t *testing.T) {
	w := world(t, 3, "iridium-directip-shore", 81, func(cfg *sim.Config) {
		cfg.Profile.UnitOctets = 50
		cfg.Profile.Up.LossPct, cfg.Profile.Down.LossPct = 0, 0 // so that the Tap sees what arrives
	})
	hq := w.Nodes[0]
	sent, units, last := map[uint16]int{}, map[uint16]int{}, map[uint16]int{}
	cost := profile.Bill{UnitOctets: 50}
	var killed time.Time
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if from == hq {
			octets := len(data) + profile.IPUDPOctets
			sent[to.ID] += octets
			units[to.ID] += cost.Units(octets)
			if !killed.IsZero() && killed.Sub(w.Now) <= time.Minute && w.Now.Before(killed) {
				last[to.ID] += octets
			}
		}
		return [][]byte{data}
	}
	tracks(w, hq, []uint16{2, 3}, 200, 200, 7*time.Second)
	w.Run(5 * time.Minute)
	before := bill(hq)
	check.Equal(t, "months", len(before), 1)
	check.Equal(t, "the month", before[0].Month, sim.Epoch.Format("2006-01"))
	total := 0
	for i, s := range before[0].Sites {
		id := uint16(i + 2)
		check.Equal(t, "site", s.Site, fmt.Sprintf("ship%d", i+1))
		check.Equal(t, "octets sent to "+s.Site, s.SentOctets, uint64(sent[id]))
		check.Equal(t, "units sent to "+s.Site, s.SentUnits, uint64(units[id]))
		check.True(t, "and received", s.ReceivedOctets > 0 && s.ReceivedUnits > 0, s)
		check.True(t, "minutes on the air", s.Minutes >= 5 && s.Minutes <= 6, s.Minutes)
		total += sent[id]
	}
	check.Equal(t, "sites", len(before[0].Sites), 2)
	check.Equal(t, "in all", before[0].Total.SentOctets, uint64(total))
	killed = w.Now.Add(2*time.Minute + 30*time.Second)
	w.Run(killed.Sub(w.Now))
	w.Kill(hq, time.Second)
	w.Run(time.Second + 100*time.Millisecond)
	for i, s := range bill(hq)[0].Sites {
		id := uint16(i + 2)
		check.True(t, "no more than a minute's octets are missing for "+s.Site, int(s.SentOctets) <= sent[id] && int(s.SentOctets) >= sent[id]-last[id], s.SentOctets, sent[id], last[id])
	}
	w.Run(20 * time.Minute)
	w.Give(hq, api.Stop{})
	at := bill(hq)[0].Total
	w.Kill(hq, time.Second)
	w.Run(2 * time.Second)
	check.True(t, "after a stop nothing is missing", bill(hq)[0].Total.SentOctets >= at.SentOctets, bill(hq)[0].Total, at)
	next := time.Date(sim.Epoch.Year(), sim.Epoch.Month()+1, 1, 0, 10, 0, 0, time.UTC)
	w.Run(next.Sub(w.Now))
	tracks(w, hq, []uint16{2}, 5, 200, time.Second)
	w.Run(time.Minute)
	w.Kill(hq, time.Second)
	w.Run(time.Minute)
	two := bill(hq)
	check.Equal(t, "months", len(two), 2)
	check.Equal(t, "the new one", two[0].Month, next.Format("2006-01"))
	check.Equal(t, "which began at its beginning", two[0].Since, next.Truncate(24*time.Hour))
	check.True(t, "and has little", two[0].Total.SentOctets > 0 && two[0].Total.SentOctets < two[1].Total.SentOctets, two[0].Total, two[1].Total)
	check.Equal(t, "the month in the status", hq.GW.Status(w.Now).Month.Month, two[0].Month)
}
