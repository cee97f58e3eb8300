package operator

import (
	"slices"
	"strings"
	"testing"

	"aldis/internal/gateway/api"
)

func TestPrintLedger(t *testing.T) {
	var out strings.Builder
	printLedger(&out, []api.LedgerRow{
		{Direction: "sent", Peer: "hq", Kind: "payload", Octets: 200}, {Direction: "sent", Peer: "hq", Kind: "header", Octets: 48},
		{Direction: "received", Peer: "hq", Kind: "ack", Octets: 5}, {Direction: "received", Peer: "hq", Kind: "ack", Octets: 6},
	})
	var rows [][]string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Fields(line))
	}
	want := [][]string{
		{"LINK", "OCTETS", "PAYLOAD", "ADVERTISEMENT", "STATE", "ACK", "REPAIR", "HEADER", "KEY", "LINK_PROBE", "TOTAL"},
		{"hq", "sent", "200", "0", "0", "0", "0", "48", "0", "0", "248"},
		{"hq", "received", "0", "0", "0", "11", "0", "0", "0", "0", "11"},
	}
	if !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("%v, want %v", rows, want)
	}
}
