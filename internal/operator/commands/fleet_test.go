package operator

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

// Each gateway is listed below the one to which it gives its record, even if the reports of two go in a circle.
func TestFleetIsPrinted(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	at := func(id uint16, name, parent string) api.FleetRow {
		return api.FleetRow{ID: id, Site: name, Parent: parent, State: "current", Proven: true, Read: now.Add(-90 * time.Second), Waiting: map[string]int{}, Bearers: 2, Up: 1, Version: "0.2"}
	}
	busy := at(4, "ship3", "ship1")
	busy.Waiting, busy.Oldest, busy.Proven = map[string]int{"routine": 7, "flash": 2}, now.Add(-time.Hour), false
	quiet := at(3, "ship2", "hq")
	quiet.State, quiet.SilentUntil = "silent", now.Add(2*time.Hour)
	var out strings.Builder
	printFleet(&out, now, api.FleetStatus{Sum: api.FleetSum{Gateways: 6, Waiting: busy.Waiting, Oldest: busy.Oldest, Bearers: 12, Up: 6}, Gateways: []api.FleetRow{
		at(1, "hq", ""), at(2, "ship1", "hq"), quiet, busy, at(5, "ship4", "ship5"), at(6, "ship5", "ship4"), {ID: 7, Site: "ship6", State: "unheard"},
	}})
	check.Equal(t, "text", trimmed(out.String()), trimmed(`
GATEWAY      STATE                AGE    WAITING             OLDEST  BEARERS UP  VERSION
6 of 7                                   2 flash, 7 routine  1h0m0s  6 of 12
hq           current              1m30s  none                -       1 of 2      0.2
  ship1      current              1m30s  none                -       1 of 2      0.2
    ship3 ?  current              1m30s  2 flash, 7 routine  1h0m0s  1 of 2      0.2
  ship2      silent until 10:00Z  1m30s  none                -       1 of 2      0.2
ship6        unheard
ship4        current              1m30s  none                -       1 of 2      0.2
  ship5      current              1m30s  none                -       1 of 2      0.2
`))
}

// trimmed is a text without the spaces at the ends of its lines.
func trimmed(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n")
}
