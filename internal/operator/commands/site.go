package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/gateway/pair"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
	"aldis/internal/operator/node"
)

const siteAbout = `usage: gateway site status [-c FILE] [--json]
       gateway site lead [--lose] [-c FILE] [--json]
       gateway site retire [-c FILE] [--json]
       gateway site witness [-c FILE]

For a site of two gateways ([site] of FILE). status shows what this machine is: whether it leads the link or follows the
other one, whether what is accepted is on two disks, how far the follower is behind, and what would be lost if this machine
died now.

lead has this machine lead. If the other one leads and is heard, it hands over. If it is not heard, the order says that it is
off: give it only when you know that. The other machine falls silent as soon as it hears of the order. With --lose this
machine leads although the other one may have confirmed messages that this one lacks; they stay in the other one's directory,
beside its journal.

retire has the other machine lead, before work on this one. An ordinary stop does the same.

Of three machines and more ([cluster] of FILE) status shows each, and how far it is behind. lead has the leader hand over to
this machine. If no majority is there nobody leads, whatever is ordered.

witness runs the third voter until SIGINT or SIGTERM, on a third machine of the network, at site.listen. It needs the keys of
[link], as any member of the network, and node.data_dir for one small file.

Exit: 0 it is so, 1 not so, 2 wrong usage.
`

// siteWait is how long a change of the leader may take.
const siteWait = 10 * time.Second

func siteCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("site", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	lose := fs.Bool("lose", false, "with lead: give up what only the other machine has")
	asJSON := fs.Bool("json", false, "print the answer as JSON")
	rest, code, done := cli.Parse(fs, args, 1, siteAbout, stdout, stderr)
	if done {
		return code
	}
	what := strings.Join(rest, " ")
	if what == "witness" {
		return siteWitness(*file, stderr)
	}
	desk, err := DeskOf(*file, "")
	if err != nil {
		return cli.Fail(stderr, "site", err)
	}
	var is pair.Status
	switch {
	case what == "status" && !*lose:
		_, err = desk.TalkOf(&is, "GET", "/site", nil)
	case what == "lead":
		body, _ := json.Marshal(control.LeadOrder{Lose: *lose})
		is, err = siteOrder(desk, "/site/lead", body, becomes(pair.Leading))
	case what == "retire" && !*lose:
		is, err = siteOrder(desk, "/site/retire", []byte("{}"), becomes(pair.Following))
	default:
		fmt.Fprintf(stderr, "gateway site: say status, lead, retire or witness\n\n%s", siteAbout)
		return cli.ExitUsage
	}
	if err == nil && *asJSON {
		err = cli.PrintJSON(stdout, is)
	} else if err == nil {
		printTwo(stdout, is, time.Now())
	}
	if err != nil {
		return cli.Fail(stderr, "site", err)
	}
	return cli.ExitGood
}

// becomes returns a check that a machine now has the wanted role.
func becomes(want pair.Role) func(pair.Status) bool {
	return func(s pair.Status) bool { return s.Role == want.String() }
}

// siteOrder gives an order, and waits until done says that the machine has obeyed it. The machine's desk may change meanwhile,
// so it asks anew.
func siteOrder(d desk, path string, body []byte, done func(pair.Status) bool) (is pair.Status, err error) {
	if _, err = d.TalkOf(&is, "POST", path, body); err != nil && strings.Contains(err.Error(), "says:") {
		return is, err
	}
	for end := time.Now().Add(siteWait); ; time.Sleep(100 * time.Millisecond) {
		_, err = d.TalkOf(&is, "GET", "/site", nil)
		switch {
		case err == nil && done(is):
			return is, nil
		case time.Now().After(end) && err == nil:
			return is, fmt.Errorf("the order was given, and after %v this machine is %s and %s leads", siteWait, is.Role, cmp.Or(is.Other, "nobody"))
		case time.Now().After(end):
			return is, err
		}
	}
}

// printTwo prints the state of a machine of two.
func printTwo(out io.Writer, s pair.Status, now time.Time) {
	since := now.Sub(s.Since).Round(time.Second)
	fmt.Fprintf(out, "this machine is %s since %v, in epoch %d\n", s.Role, since, s.Epoch)
	if len(s.Members) > 0 {
		printMembers(out, s, now)
		return
	}
	there := "connected"
	switch {
	case s.Refused != "":
		there = "refused: " + s.Refused
	case !s.Connected:
		there = "not connected"
	}
	fmt.Fprintf(out, "the other machine %s: %s\n", s.Other, there)
	switch {
	case s.Silent:
		fmt.Fprintln(out, "it transmits nothing: neither the other machine nor the witness lets it")
	case s.Alone:
		fmt.Fprintf(out, "ALONE since %v: %d commits (%d octets) are on this disk alone, and would be lost with it\n", now.Sub(s.AloneSince).Round(time.Second), s.OneDiskCommits, s.OneDiskOctets)
	case s.Role == pair.Leading.String():
		fmt.Fprintf(out, "what is confirmed is on two disks; if this machine died now, nothing of it would be lost. The follower is behind by %d commits (%d octets)\n", s.BehindCommits, s.BehindOctets)
	case s.Stuck:
		fmt.Fprintln(out, "STUCK: this machine's journal may lack messages that the other one has confirmed. Bring the other machine back, or give them up: gateway site lead --lose")
	case s.Whole:
		fmt.Fprintln(out, "its journal has all that was confirmed: it can lead")
	default:
		fmt.Fprintln(out, "its journal has not all that was confirmed yet: it cannot lead")
	}
	if s.Passing > 0 {
		fmt.Fprintf(out, "connections of local peers passed on to the leader: %d\n", s.Passing)
	}
	switch {
	case s.Witness == "":
		fmt.Fprintln(out, "there is no witness: if the leader is lost, the other machine leads only by order")
	case s.WitnessLost:
		fmt.Fprintf(out, "the witness %s DOES NOT ANSWER: if one machine is lost now, the other one transmits nothing\n", s.Witness)
	default:
		fmt.Fprintf(out, "the witness %s answers\n", s.Witness)
	}
}

// printMembers prints a member's view of a site of three or more.
func printMembers(out io.Writer, s pair.Status, now time.Time) {
	most := len(s.Members)/2 + 1
	switch {
	case s.Stuck:
		fmt.Fprintln(out, "the site is not made yet: for its first start all members must be there")
	case !s.Whole:
		fmt.Fprintln(out, "it waits for a copy of the leader's journal, and does not count until it has it")
	case s.Silent:
		fmt.Fprintln(out, "it transmits nothing: a majority of the members does not answer")
	case s.Spare() < 0:
		fmt.Fprintf(out, "it hears %d of %d members: without %d nobody leads\n", most+s.Spare(), len(s.Members), most)
	case s.Spare() == 0:
		fmt.Fprintf(out, "what is confirmed is on %d disks of %d; if one machine died now, nothing of it would be lost, but NOBODY WOULD LEAD\n", most, len(s.Members))
	default:
		fmt.Fprintf(out, "what is confirmed is on %d disks of %d; if one machine died now, nothing of it would be lost\n", most, len(s.Members))
	}
	if s.Refused != "" {
		fmt.Fprintf(out, "its disk FAILS: %s\n", s.Refused)
	}
	for _, m := range s.Members {
		text, since := m.Words(&s, now)
		if !since.IsZero() {
			text += fmt.Sprintf(", since %v", now.Sub(since).Round(time.Second))
		}
		if m.Version != "" {
			text += ", version " + m.Version
		}
		fmt.Fprintf(out, "member %s: %s\n", m.At, text)
	}
	if s.Passing > 0 {
		fmt.Fprintf(out, "connections of local peers passed on to the leader: %d\n", s.Passing)
	}
}

// siteWitness runs the witness, the third voter.
func siteWitness(file string, stderr io.Writer) int {
	cfg, err := config.Load(file)
	if err != nil {
		return cli.Mistakes(stderr, err)
	}
	if !cfg.Site.Listen.IsValid() {
		return cli.Fail(stderr, "site", fmt.Errorf("%s has no [site] listen: where the gateways reach the witness", file))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := node.Witness(ctx, cfg, stderr); err != nil {
		return cli.Fail(stderr, "site", err)
	}
	return cli.ExitGood
}
