package operator

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

// The status names the direct sessions of a link, those that are being opened, and when the next try is with whom none could be opened.
func TestPrintSessions(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	var r StatusReport
	r.Bearers = []api.BearerStatus{{Name: "sat", Direct: &api.DirectStatus{Limit: 4, Opening: []string{"ship4"},
		Sessions: []api.DirectSession{{Peer: "ship2", Since: now.Add(-time.Hour), Spared: 12345}},
		Greylist: []api.DirectGrey{{Peer: "ship3", Until: now.Add(7 * time.Minute), Failures: 2}, {Peer: "ship5", Until: now.Add(-time.Minute), Failures: 1}}}},
		{Name: "hf"}, {Name: "land", Direct: &api.DirectStatus{Limit: 4}}}
	var out strings.Builder
	printStatus(&out, r, now)
	check.Contains(t, "status", out.String(), `
direct sessions on sat: 1 of at most 4
  ship2 since 2026-12-01T11:00:00Z: 12345 octets went without a relay
  ship4 is being opened
  ship3 failed 2 times in a row; the next try is in 7m0s at the earliest
`)
	check.Lacks(t, "status", out.String(), "ship5")
	check.Lacks(t, "status", out.String(), "direct sessions on land")
}
