package operator

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/ground/when"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
)

const silenceAbout = `usage: gateway silence on [--until TIME] [--announce] [--link NAME] [-c FILE] [--token FILE] [--json]
       gateway silence off | status [--link NAME] [-c FILE] [--token FILE] [--json]

Silence (EMCON): the gateway on this machine transmits nothing at all on its link until TIME or until "silence off".
With --link only the bearer of that name is silent, and messages take another one where there is one.
It continues to receive, and it serves its LAN from what it knows. Messages of local peers wait in the journal. Silence
survives a restart. status forecasts what leaves when the silence ends.

Orders go over the gateway's unix socket (control.socket), which -c names. They are taken from root, from the user that
runs the gateway and from members of control.group, and the log names their giver. With --token they go to http.listen
with the token in that file, which must be that of http.token_file. A silence by node.silent = true ends by no order.

TIME is the next that fits: 06:00, tomorrow 06:00, 2026-11-26 06:00, 2026-11-26T06:00:00Z (RFC 3339), a date-time group
(260600ZNOV26, 260600Z; the letter is the zone) or a duration (6h30m). A time without a zone is UTC, as is all that is printed.
A wall clock that is set does not end a silence early: as much time must pass as lay ahead at the order.
With --announce the gateway tells each far gateway in one last datagram, and these then send each message once and wait
for the acknowledgements. Without it they take the link for dead and hold messages back.

Exit: 0 the order is in force, 1 not so, 2 wrong usage.
`

func silenceCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("silence", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	until := fs.String("until", "", "when silence ends by itself (`TIME`)")
	announce := fs.Bool("announce", false, "tell each far gateway in one last datagram")
	tokenFile := fs.String("token", "", "order over http.listen with the token in `FILE`")
	link := fs.String("link", "", "the one bearer that is silent (`NAME` of its [[link]]); default: all")
	asJSON := fs.Bool("json", false, "print the gateway's answer as it is")
	rest, code, done := cli.Parse(fs, args, 1, silenceAbout, stdout, stderr)
	if done {
		return code
	}
	wrong := func(text string) int {
		fmt.Fprintf(stderr, "gateway silence: %s\n\n%s", text, silenceAbout)
		return cli.ExitUsage
	}
	if len(rest) != 1 || rest[0] != "on" && rest[0] != "off" && rest[0] != "status" {
		return wrong("say on, off or status")
	}
	if rest[0] != "on" && (*until != "" || *announce) {
		return wrong("--until and --announce go with on")
	}
	order := control.SilenceOrder{On: rest[0] == "on", Announce: *announce, Link: *link}
	if *until != "" {
		at, err := when.Ahead(*until, time.Now())
		if err != nil {
			return wrong(err.Error())
		}
		order.Until.Time = at
	}
	desk, err := DeskOf(*file, *tokenFile)
	if err != nil {
		return cli.Fail(stderr, "silence", err)
	}
	var status api.SilenceStatus
	var answer []byte
	if rest[0] == "status" {
		var r control.Report
		_, err = desk.TalkOf(&r, "GET", "/status", nil)
		var known bool
		if status, known = control.SilenceOf(r.Status, *link); err == nil && !known {
			err = fmt.Errorf("this gateway has no [[link]] of several with the name %q", *link)
		}
		answer, _ = json.Marshal(status)
		answer = append(answer, '\n')
	} else {
		body, _ := json.Marshal(order)
		answer, err = desk.TalkOf(&status, "POST", "/silence", body)
	}
	if err != nil {
		return cli.Fail(stderr, "silence", err)
	}
	if *asJSON {
		stdout.Write(answer)
	} else {
		printSilence(stdout, status, time.Now())
	}
	return cli.ExitGood
}

func printSilence(out io.Writer, s api.SilenceStatus, now time.Time) {
	if !s.On {
		if s.Quiet {
			fmt.Fprintln(out, "not silent by an order here, but NOTHING IS TRANSMITTED: the whole gateway or each of its links is silent, or the octets of the day are used up (gateway status)")
		} else {
			fmt.Fprintln(out, "not silent: the gateway transmits")
		}
		if s.Next != "" {
			fmt.Fprintf(out, "the next silence by [[silence]] begins at %s\n", s.Next)
		}
		return
	}
	end := "until it is told otherwise (gateway silence off)"
	left := time.Duration(s.LeftS * float64(time.Second)).Round(time.Second)
	at, _ := time.Parse(time.RFC3339, s.Until) // zero: no end is set
	switch {
	case s.Fixed:
		end = "by the configuration (node.silent = true), which no order ends"
	case s.Until != "" && now.Add(left).After(at.Add(time.Minute)):
		end = fmt.Sprintf("until %s, but for %s yet at the least: a clock was set, or the machine was off (docs/decisions/silence-clock.md)", s.Until, left)
	case s.Until != "":
		end = "until " + s.Until
	}
	fmt.Fprintf(out, "SILENT %s: nothing is transmitted\n", end)
	fmt.Fprintf(out, "when it ends: acknowledgements for %d peers, %d messages, %d items of state; about %d octets in %d datagrams, %.1f s of air\n",
		s.Acks, s.Messages, s.Items, s.Octets, s.Datagrams, s.AirtimeS)
}
