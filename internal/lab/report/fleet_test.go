package report

import (
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/lab/fleet"
)

// The page of a play with direct sessions shows from when to when each end had them, and what was on the air meanwhile.
func TestSessions(t *testing.T) {
	r := &Fleet{fleet.Result{Sessions: []fleet.Session{{Bearer: "sat", Site: "ship1", Peer: "ship2", AtS: 39, EndS: 150, Spared: 4848, Octets: map[string]int64{"hq": 1188, "ship1": 5843}},
		{Bearer: "sat", Site: "ship2", Peer: "ship1", AtS: 47}}}}
	var b strings.Builder
	check.NoError(t, r.Board(&b))
	for _, want := range []string{"Direct sessions", "sat, ship1 with ship2   39.0 s  2 min 30 s          4,848  hq 1188, ship1 5843", "the end"} {
		check.Contains(t, "board", b.String(), want)
	}
}

// The page of a play with sites of several machines shows how long each kind of accident took, at the median and at worst, and the
// losses.
func TestTakeovers(t *testing.T) {
	r := &Fleet{fleet.Result{Ends: map[fleet.End]int{fleet.Delivered: 9, fleet.Lost: 2}, WrongMachine: 3, Upgrade: "aldis gateway 0.3.0", Takeovers: []fleet.Takeover{
		{AtS: 70, Site: "hq", Cause: fleet.Power, What: "hq: machine 2 without power for 20s", Led: true, Leads: 2.5, Heard: 4, Served: map[string]float64{fleet.JXTA: 5}},
		{AtS: 90, Site: "hq", Cause: fleet.Power, What: "hq: machine 1 without power for 20s", Led: true, Leads: 3, Heard: 4, Served: map[string]float64{fleet.JXTA: 9, fleet.TAK: 1}},
		{AtS: 99, Site: "hq", Cause: fleet.Upgrade, What: "hq: machine 3 upgraded, off for 2s"},
	}}}
	var b strings.Builder
	check.NoError(t, r.Board(&b))
	for _, want := range []string{"2 lost, 0 twice, 3 datagrams of a machine that did not lead", "hq, power of the leader", "2.50 s; 3.00 s", "5.00 s; 9.00 s",
		"hq, upgrade of another machine", "hq: machine 2 without power for 20s, which led", "aldis gateway 0.3.0"} {
		check.Contains(t, "board", b.String(), want)
	}
}
