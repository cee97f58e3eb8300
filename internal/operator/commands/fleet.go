package operator

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
	"aldis/internal/site"
)

const fleetAbout = `usage: gateway fleet [-c FILE] [--token FILE] [--json]

Shows what the gateways of the fleet say of themselves once a period: how many messages wait there by precedence, since when
the oldest does, how many bearers answer, until when the gateway is silent, and its version. At the headquarters it shows all
gateways of the roster, elsewhere this one and those that give their records to it. A gateway stands below the one to which it
gives its record. The first line is the sum of the others; nothing is added up on the way.

STATE is current; silent, as the gateway has said; late: its record is two periods old; gone: four; unheard: there is none.
A record marked with ? has come over other gateways, and the headquarters alone can tell that they have not changed it.

Needs [fleet] in the configuration.

Exit: 0 shown, 1 not so, 2 wrong usage.
`

var errNoFleet = errors.New("this gateway takes no part: its configuration has no [fleet]")

func fleetCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("fleet", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	tokenFile := fs.String("token", "", "ask over http.listen with the token in `FILE`")
	asJSON := fs.Bool("json", false, "print the gateway's answer as it is")
	if _, code, done := cli.Parse(fs, args, 0, fleetAbout, stdout, stderr); done {
		return code
	}
	desk, err := DeskOf(*file, *tokenFile)
	if err != nil {
		return cli.Fail(stderr, "fleet", err)
	}
	var r control.Report
	if _, err = desk.TalkOf(&r, "GET", "/status", nil); err == nil && r.Fleet == nil {
		err = errNoFleet
	}
	if err == nil && *asJSON {
		err = cli.PrintJSON(stdout, r.Fleet)
	}
	if err != nil {
		return cli.Fail(stderr, "fleet", err)
	}
	if !*asJSON {
		printFleet(stdout, time.Now(), *r.Fleet)
	}
	return cli.ExitGood
}

func printFleet(out io.Writer, now time.Time, f api.FleetStatus) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GATEWAY\tSTATE\tAGE\tWAITING\tOLDEST\tBEARERS UP\tVERSION")
	s := f.Sum
	fmt.Fprintf(w, "%d of %d\t\t\t%s\t%s\t%d of %d\t\n", s.Gateways, len(f.Gateways), waitingWords(s.Waiting), sinceWords(now, s.Oldest), s.Up, s.Bearers)
	for _, r := range fleetTree(f.Gateways) {
		if r.State == "unheard" {
			fmt.Fprintf(w, "%s%s\t%s\t\t\t\t\t\n", strings.Repeat("  ", r.depth), r.Site, r.State)
			continue
		}
		name, state := r.Site, r.State
		if !r.Proven {
			name += " ?"
		}
		if !r.SilentUntil.IsZero() {
			state += " until " + r.SilentUntil.Format("15:04Z")
		}
		fmt.Fprintf(w, "%s%s\t%s\t%s\t%s\t%s\t%d of %d\t%s\n", strings.Repeat("  ", r.depth), name, state, sinceWords(now, r.Read), waitingWords(r.Waiting), sinceWords(now, r.Oldest), r.Up, r.Bearers, r.Version)
	}
	w.Flush()
}

// branch is a gateway at its place in the tree.
type branch struct {
	api.FleetRow
	depth int
}

// fleetTree lists gateways, each followed by those that report through it. Gateways whose reports go in a circle come last.
func fleetTree(rows []api.FleetRow) (list []branch) {
	known := map[string]bool{}
	for _, r := range rows {
		known[r.Site] = true
	}
	placed := map[uint16]bool{}
	var place func(r api.FleetRow, depth int)
	place = func(r api.FleetRow, depth int) {
		if placed[r.ID] {
			return
		}
		placed[r.ID] = true
		list = append(list, branch{r, depth})
		for _, c := range rows {
			if c.Parent == r.Site {
				place(c, depth+1)
			}
		}
	}
	for _, r := range rows {
		if !known[r.Parent] {
			place(r, 0)
		}
	}
	for _, r := range rows {
		place(r, 0)
	}
	return list
}

// waitingWords lists counts, the most urgent precedence first.
func waitingWords(counts map[string]int) string {
	var words []string
	for _, p := range slices.Backward(site.Precedences) {
		if n := counts[p]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, p))
		}
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}

func sinceWords(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return max(now.Sub(then).Round(time.Second), 0).String()
}
