package operator

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
	"aldis/internal/site"
)

const messageAbout = `usage: gateway message ID [-c FILE] [--json]
       gateway message hold | release | cancel ID... [-c FILE] [--token FILE] [--json]
       gateway message hold | release --precedence P [-c FILE] [--token FILE] [--json]
       gateway message raise ID... [--precedence P] [-c FILE] [--token FILE] [--json]

gateway message ID shows a message of this site: where it stands with each site, and all that has happened to it. An ID is as
gateway messages lists it, as in 1NG54QN-17, in capitals or not.

hold keeps a message back that waits; its lifetime runs. release lets it go, to its place among the others. cancel ends it
for the sites to which it has not gone, and its sender hears that. raise gives it another precedence: P, or without it the next
higher one. A message that is under way to a site goes through as it is, and the answer says so. These orders survive a restart.

hold --precedence P holds all messages of that precedence, those that wait and those that come, until release --precedence P;
messages of BiDi pipes and sockets go. gateway status and gateway messages tell of it. One that is released by its ID, or
raised to a precedence that is not held, goes.

Orders go over control.socket, which -c names, or with --token to http.listen. The log names the giver of each.

Exit: 0 it is as ordered, 1 not so, 2 wrong usage.
`

func messageCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("message", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	precedence := fs.String("precedence", "", "with raise: the new `precedence`; with hold and release: all messages of it")
	tokenFile := fs.String("token", "", "order over http.listen with the token in `FILE`")
	asJSON := fs.Bool("json", false, "print the gateway's answer as it is")
	rest, code, done := cli.Parse(fs, args, 1001, messageAbout, stdout, stderr)
	if done {
		return code
	}
	wrong := func(text string) int {
		fmt.Fprintf(stderr, "gateway message: %s\n\n%s", text, messageAbout)
		return cli.ExitUsage
	}
	if len(rest) == 0 {
		return wrong("which message? gateway messages lists them")
	}
	orders := slices.Contains([]string{"hold", "release", "cancel", "raise"}, rest[0])
	class := (rest[0] == "hold" || rest[0] == "release") && len(rest) == 1 && *precedence != ""
	switch {
	case orders && len(rest) == 1 && !class:
		fmt.Fprintf(stderr, "gateway message: %s which message? No id was given: gateway messages lists them; hold and release take all of one precedence with --precedence P\n", rest[0])
		return cli.ExitUsage
	case !orders && (len(rest) > 1 || *tokenFile != ""):
		return wrong("say hold, release, cancel or raise and some ids, or one id alone")
	case *precedence != "" && rest[0] != "raise" && !class:
		return wrong("--precedence goes with raise, and with hold and release without ids")
	}
	if *precedence != "" {
		if _, ok := site.ParsePrecedence(*precedence); !ok {
			return wrong("--precedence must be one of " + strings.Join(site.Precedences, ", "))
		}
	}
	if !orders {
		return showMessage(*file, rest[0], *asJSON, stdout, stderr)
	}
	desk, err := DeskOf(*file, *tokenFile)
	if err != nil {
		return cli.Fail(stderr, "message", err)
	}
	if class {
		return orderClass(desk, rest[0], *precedence, *asJSON, stdout, stderr)
	}
	code = cli.ExitGood
	for _, id := range rest[1:] {
		if err := orderMessage(desk, rest[0], id, *precedence, *asJSON, stdout); err != nil {
			code = cli.Fail(stderr, "message", err)
		}
	}
	return code
}

// showMessage prints one message.
func showMessage(file, id string, asJSON bool, stdout, stderr io.Writer) int {
	at, err := config.HTTPListen(file)
	if err != nil {
		return cli.Fail(stderr, "message", err)
	}
	var m api.MessageRow
	answer, err := deskAt(at).TalkOf(&m, "GET", "/messages/"+url.PathEscape(id), nil)
	switch {
	case err != nil:
		return cli.Fail(stderr, "message", err)
	case asJSON:
		stdout.Write(answer)
	default:
		printMessage(stdout, m, time.Now())
	}
	return cli.ExitGood
}

// orderMessage gives one order about one message.
func orderMessage(d desk, what, id, precedence string, asJSON bool, out io.Writer) error {
	path, body := "/messages/"+url.PathEscape(id), []byte("{}")
	if what == "raise" {
		if precedence == "" {
			var m api.MessageRow
			if _, err := d.TalkOf(&m, "GET", path, nil); err != nil {
				return err
			}
			at := slices.Index(site.Precedences, m.Precedence)
			precedence = site.Precedences[min(at+1, len(site.Precedences)-1)]
		}
		what = string(gateway.DoPrecede)
		body, _ = json.Marshal(control.MessageOrder{Precedence: precedence})
	}
	var a control.MessageAnswer
	answer, err := d.TalkOf(&a, "POST", path+"/"+what, body)
	switch {
	case err != nil:
		return err
	case asJSON:
		out.Write(answer)
	default:
		fmt.Fprintln(out, a.Text)
	}
	return nil
}

// orderClass gives one order about all messages of a precedence.
func orderClass(d desk, what, precedence string, asJSON bool, stdout, stderr io.Writer) int {
	body, _ := json.Marshal(control.ClassOrder{Precedence: precedence})
	var a control.ClassAnswer
	answer, err := d.TalkOf(&a, "POST", "/messages/"+what, body)
	switch {
	case err != nil:
		return cli.Fail(stderr, "message", err)
	case asJSON:
		stdout.Write(answer)
	default:
		fmt.Fprintln(stdout, a.Text)
	}
	return cli.ExitGood
}

func printMessage(out io.Writer, m api.MessageRow, now time.Time) {
	fmt.Fprintf(out, "message %s, %s, %d octets", m.ID, m.Precedence, m.Octets)
	if m.Coded > 0 {
		fmt.Fprintf(out, ", of which the link made %d", m.Coded)
	}
	fmt.Fprintln(out)
	named := func(name, id string) string {
		if name == "" {
			return plain(id)
		}
		return fmt.Sprintf("%q (%s)", name, plain(id))
	}
	fmt.Fprintf(out, "from %s\nto   %s\n", named(m.FromName, m.From), named(m.PipeName, m.ToPipe))
	if m.Label != "" {
		fmt.Fprintf(out, "about %s\n", plain(m.Label))
	}
	accepted, expires := "before this start", "never"
	if !m.Accepted.IsZero() {
		accepted = clockText(m.Accepted, now)
	}
	if !m.Expires.IsZero() {
		expires = clockText(m.Expires, now)
	}
	fmt.Fprintf(out, "accepted %s, expires %s\n", accepted, expires)
	if m.State == api.StateWaiting && !m.Held {
		fmt.Fprintf(out, "waits behind %d messages (%d octets)\n", m.Behind.Messages, m.Behind.Octets)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SITE\tSTATE\tSINCE\tEXPECTED\tWHY")
	for _, r := range m.Recipients {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", plain(r.Site), strings.ReplaceAll(r.State, "_", " "), clockText(r.Since, now), expectedText(r.Expected, now), text(r.Detail))
	}
	w.Flush()
	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHEN\tWHAT\tSITE\tDETAIL")
	for i, e := range m.Life {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", clockText(e.At, now), text(e.What), plain(e.Site), text(e.Detail))
		if i == 0 && m.LifeLost > 0 {
			fmt.Fprintf(w, "\t(%d more, not kept)\t\t\n", m.LifeLost)
		}
	}
	w.Flush()
}

// text is a sentence from the gateway for a terminal; control characters in names are escaped.
func text(s string) string {
	quoted := plain(s)
	if strings.HasPrefix(quoted, `"`) && !strings.Contains(quoted, `\`) {
		return s
	}
	return quoted
}
