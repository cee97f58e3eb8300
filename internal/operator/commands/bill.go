package operator

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/gateway/api"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
)

const billAbout = `usage: gateway bill [-c FILE] [--month 2026-10] [--link NAME] [--price P] [--json]

Shows what was on the link in a calendar month (UTC), by site, in the terms of the profile's tariff: IP octets, units where the
carrier bills by units of octets, and minutes in which something was on the air. Without --month it is this month. The gateway
counts every datagram that it sends or receives, whoever it is from, and keeps 24 months over restarts; what it counted in the
last minute before it was killed is missing. From FILE it reads only where the gateway answers (http.listen).

P is the price of a unit, of a minute, or of a million octets, whichever the tariff bills by. Of several [[link]] each has its
own bill; --link shows one alone, and P is for one. Without P the price of a [[link]] counts where the tariff is octets. What the
gateway passes on for others is on the bearers that it takes. --json prints all months.

Exit: 0 shown, 1 no gateway answers or nothing is known of the month, 2 wrong usage.
`

func billCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("bill", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	month := fs.String("month", "", "a `month` as 2026-10; left out: this one")
	price := fs.Float64("price", 0, "what a unit, a minute or a million octets costs (`P`)")
	link := fs.String("link", "", "one [[link]] alone (`NAME`); default: all")
	asJSON := fs.Bool("json", false, "print the gateway's answer as it is: all months")
	if _, code, done := cli.Parse(fs, args, 0, billAbout, stdout, stderr); done {
		return code
	}
	if *month == "" {
		*month = time.Now().UTC().Format("2006-01")
	}
	at, err := time.Parse("2006-01", *month)
	if err != nil || !(*price >= 0) {
		fmt.Fprintf(stderr, "gateway bill: --month is as in 2026-10, and --price is no less than 0\n")
		return cli.ExitUsage
	}
	where, err := config.HTTPListen(*file)
	if err != nil {
		return cli.Fail(stderr, "bill", err)
	}
	var b control.Bill
	answer, err := deskAt(where).TalkOf(&b, "GET", "/bill", nil)
	if err != nil {
		return cli.Fail(stderr, "bill", err)
	}
	if *asJSON {
		stdout.Write(answer)
		return cli.ExitGood
	}
	if err := printBills(stdout, b, *link, at, *price); err != nil {
		return cli.Fail(stderr, "bill", err)
	}
	return cli.ExitGood
}

// printBills prints a month of all bearers, or of the one with this name.
func printBills(out io.Writer, b control.Bill, link string, month time.Time, price float64) error {
	list, printed, names := append([]control.Bill{b}, b.Others...), 0, []string{}
	for _, b := range list {
		names = append(names, b.Link)
	}
	switch {
	case link != "" && !slices.Contains(names, link):
		return fmt.Errorf("the gateway has no [[link]] called %q; it has %s", link, cmp.Or(strings.Join(names, ", "), "one without a name"))
	case link == "" && price > 0 && len(list) > 1:
		return fmt.Errorf("each [[link]] has a tariff of its own: say with --link of which P is the price: %s", strings.Join(names, ", "))
	}
	for _, b := range list {
		i := slices.IndexFunc(b.Months, func(m api.BillMonth) bool { return m.Month == month.Format("2006-01") })
		if i < 0 || link != "" && b.Link != link {
			continue
		}
		if printed++; printed > 1 {
			fmt.Fprintln(out)
		}
		each := price
		if each == 0 && b.Tariff == "octets" && b.UnitOctets == 0 {
			each = b.Price * 1000
		}
		printBill(out, b, b.Months[i], month, each)
	}
	if printed == 0 {
		return fmt.Errorf("no traffic was counted in %s: the gateway has counts for %d months", month.Format("January 2006"), len(b.Months))
	}
	return nil
}

// printBill prints a month in the units of its tariff, with its price if that is known.
func printBill(out io.Writer, b control.Bill, m api.BillMonth, month time.Time, price float64) {
	terms := map[string]string{"minutes": "minutes", "none": "nothing"}[b.Tariff]
	switch {
	case b.UnitOctets > 0 && terms == "":
		terms = fmt.Sprintf("units of %d octets that each datagram has begun", b.UnitOctets)
	case terms == "":
		terms = "octets"
	}
	if b.Link != "" {
		fmt.Fprintf(out, "link %s: ", plain(b.Link))
	}
	fmt.Fprintf(out, "%s, since %s; profile %s bills by %s\n\n", month.Format("January 2006"), m.Since.UTC().Format(time.RFC3339), b.Profile, terms)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "SITE\tSENT OCTETS\tRECEIVED OCTETS\t"
	if b.UnitOctets > 0 {
		head += "SENT UNITS\tRECEIVED UNITS\t"
	}
	head += "MINUTES\t"
	if price > 0 {
		head += "COST\t"
	}
	fmt.Fprintln(w, head)
	row := func(name string, r api.BillRow) {
		fmt.Fprintf(w, "%s\t%d\t%d\t", name, r.SentOctets, r.ReceivedOctets)
		if b.UnitOctets > 0 {
			fmt.Fprintf(w, "%d\t%d\t", r.SentUnits, r.ReceivedUnits)
		}
		fmt.Fprintf(w, "%d\t", r.Minutes)
		if price > 0 {
			fmt.Fprintf(w, "%.2f\t", price*billed(b, r))
		}
		fmt.Fprintln(w)
	}
	for _, s := range m.Sites {
		name := plain(s.Site)
		if s.Site == "" {
			name = "to all, or of nobody known"
		}
		row(name, s.BillRow)
	}
	row("in all", m.Total)
	w.Flush()
}

// billed is the amount in the units of the tariff: minutes, units, or millions of octets.
func billed(b control.Bill, r api.BillRow) float64 {
	switch {
	case b.Tariff == "none":
		return 0
	case b.Tariff == "minutes":
		return float64(r.Minutes)
	case b.UnitOctets > 0:
		return float64(r.SentUnits + r.ReceivedUnits)
	}
	return float64(r.SentOctets+r.ReceivedOctets) / 1e6
}
