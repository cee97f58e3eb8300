package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"aldis/internal/control"
	"aldis/internal/gateway"
	"aldis/internal/lab/check"
)

// The bill of a month says what was on the link by site, and goes on after a stop. What nobody knows of is said.
func TestBill(t *testing.T) {
	_, b := two(t)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	read := func() control.Bill {
		t.Helper()
		code, out, errs := run(t, "bill", "-c", b.file, "--json")
		check.Equal(t, "exit, and "+errs, code, 0)
		var bill control.Bill
		check.NoError(t, json.Unmarshal([]byte(out), &bill))
		check.True(t, "there is a month", len(bill.Months) == 1 && len(bill.Months[0].Sites) > 0, out)
		return bill
	}
	before := read().Months[0]
	check.Equal(t, "site", before.Sites[0].Site, "node1")
	check.True(t, "octets", before.Sites[0].SentOctets > 0 && before.Total.ReceivedOctets > 0, before)
	if code := b.stop(t, syscall.SIGTERM); code != 0 {
		t.Fatalf("exit %d", code)
	}
	b = b.testSite.start(t)
	after := read().Months[0]
	check.True(t, "nothing is missing after a stop", after.Total.SentOctets >= before.Total.SentOctets && after.Since.Equal(before.Since), before, after)
	code, out, errs := run(t, "bill", "-c", b.file, "--month", after.Month, "--price", "2")
	check.Equal(t, "exit, and "+errs, code, 0)
	wants(t, out, "bills by ", "SENT OCTETS", "COST", "node1", "in all")
	_, out, _ = run(t, "status", "-c", b.file)
	wants(t, out, "this month since 20")
	for args, want := range map[string]int{"--month 1999-12": exitRefused, "--month december": exitUsage, "--price -1": exitUsage, "--price NaN": exitUsage} {
		code, _, errs := run(t, append([]string{"bill", "-c", b.file}, strings.Fields(args)...)...)
		check.True(t, args+" is refused", code == want && errs != "", code, errs)
	}
}

// What a month costs goes by what the tariff bills by.
func TestCostOfAMonth(t *testing.T) {
	r := gateway.BillRow{SentOctets: 1_500_000, ReceivedOctets: 500_000, SentUnits: 300, ReceivedUnits: 100, Minutes: 90}
	m := gateway.BillMonth{Month: "2026-11", Total: r, Sites: []gateway.BillSite{{Site: "hq", BillRow: r}, {BillRow: gateway.BillRow{SentOctets: 7}}}}
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
