package operator

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/operator/control"
)

// What a month costs goes by what the tariff bills by.
func TestCostOfAMonth(t *testing.T) {
	r := api.BillRow{SentOctets: 1_500_000, ReceivedOctets: 500_000, SentUnits: 300, ReceivedUnits: 100, Minutes: 90}
	m := api.BillMonth{Month: "2026-11", Total: r, Sites: []api.BillSite{{Site: "hq", BillRow: r}, {BillRow: api.BillRow{SentOctets: 7}}}}
	for _, tt := range []struct {
		bill  control.Bill
		words []string
	}{
		{control.Bill{Tariff: "octets"}, []string{"bills by octets", "4.00"}},
		{control.Bill{Tariff: "octets", UnitOctets: 50}, []string{"bills by units of 50 octets that each datagram has begun", "SENT UNITS", "800.00"}},
		{control.Bill{Tariff: "minutes"}, []string{"bills by minutes", "180.00"}},
		{control.Bill{Tariff: "none"}, []string{"bills by nothing", "0.00"}},
	} {
		var b strings.Builder
		printBill(&b, tt.bill, m, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), 2)
		wants(t, b.String(), append(tt.words, "November 2026", "hq", "to all, or of nobody known", "in all")...)
	}
}
