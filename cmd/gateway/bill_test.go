package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
)

// The bill of a month shows the traffic by site, and continues after a stop. Traffic that is not known is reported as such.
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
	for args, want := range map[string]int{"--month 1999-12": cli.ExitRefused, "--month december": cli.ExitUsage, "--price -1": cli.ExitUsage, "--price NaN": cli.ExitUsage} {
		code, _, errs := run(t, append([]string{"bill", "-c", b.file}, strings.Fields(args)...)...)
		check.True(t, args+" is refused", code == want && errs != "", code, errs)
	}
}
