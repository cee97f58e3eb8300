package operator

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

// While nothing is transmitted nobody is told that the gateway transmits, and the status names each silent link.
func TestPrintSilence(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	on := api.SilenceStatus{On: true, Quiet: true, Until: "2026-12-01T13:00:00Z", LeftS: 3600}
	for _, tt := range []struct {
		s    api.SilenceStatus
		says string
	}{
		{api.SilenceStatus{}, "not silent: the gateway transmits\n"},
		{api.SilenceStatus{Quiet: true}, "NOTHING IS TRANSMITTED"},
		{on, "SILENT until 2026-12-01T13:00:00Z: nothing is transmitted\n"},
	} {
		var out strings.Builder
		printSilence(&out, tt.s, now)
		check.Contains(t, "silence", out.String(), tt.says)
		check.Equal(t, "says that it transmits: "+out.String(), strings.Contains(out.String(), "the gateway transmits"), !tt.s.Quiet)
	}
	var r StatusReport
	r.Bearers = []api.BearerStatus{{Name: "sat"}, {Name: "hf", Silence: on}, {Profile: "lan", Silence: api.SilenceStatus{Quiet: true}}}
	var out strings.Builder
	printStatus(&out, r, now)
	check.Contains(t, "status", out.String(), "\nlink hf: SILENT until")
	check.Contains(t, "status", out.String(), "\nlink lan: not silent by an order here")
	check.Lacks(t, "status", out.String(), "link sat: ")
}
