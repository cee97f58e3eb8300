package operator

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/operator/control"
)

// The price of a month depends on the unit of the tariff: octets, begun units or minutes.
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

// If there are several links, each has its bill by its own tariff, and one may be selected.
func TestBillOfSeveralLinks(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	month := func(octets uint64) []api.BillMonth {
		return []api.BillMonth{{Month: "2026-11", Total: api.BillRow{SentOctets: octets, Minutes: 9}}}
	}
	b := control.Bill{Link: "sat", Tariff: "octets", Price: 2, Months: month(3000), Others: []control.Bill{{Link: "hf", Tariff: "minutes", Months: month(77)}}}
	for _, tt := range []struct {
		link  string
		price float64
		words []string
		fault string
	}{
		{words: []string{"link sat: ", "6.00", "link hf: ", "77"}},
		{link: "hf", price: 2, words: []string{"link hf: ", "18.00"}},
		{price: 2, fault: "each [[link]] has a tariff of its own: say with --link of which P is the price: sat, hf"},
		{link: "uhf", fault: `no [[link]] called "uhf"; it has sat, hf`},
	} {
		var out strings.Builder
		err := printBills(&out, b, tt.link, at, tt.price)
		if tt.fault == "" {
			check.NoError(t, err)
		} else {
			check.True(t, "the fault is said", err != nil && strings.Contains(err.Error(), tt.fault), err)
		}
		wants(t, out.String(), tt.words...)
		check.True(t, "the link alone that was asked for", tt.link == "" || !strings.Contains(out.String(), "link sat"), out.String())
	}
}
