package operator

import (
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/gateway/api"
	"aldis/internal/ground/when"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
	"aldis/internal/operator/control/glance"
	"aldis/internal/site"
)

const messagesAbout = `usage: gateway messages [-c FILE] [--to SITE] [--from TEXT] [--label TEXT] [--precedence P] [--waiting | --state S]
                        [--after TIME] [--before TIME] [--limit N] [--json | --ids]

Lists messages of this site's peers, the newest first: those in custody, and the last that have ended. With --waiting those
that wait, in the order in which they go. BEHIND is what goes before a message, EXPECTED when it should be there; nobody can
say that of a site that is silent or does not answer. From FILE it reads only where the gateway answers (http.listen).

SITE is the name of a [[link.peer]]. TEXT is a part of the sender's name or id, or of what the message is about (the key of
a rule with last_value). S is waiting, under_way or ended. At most N are listed, 100 unless told, 1000 at the most. --ids
prints their ids alone, for gateway message. gateway message ID shows one with all that has happened to it.

TIME is the last that fits: 10:32, yesterday 10:32, 2026-11-25 10:32, 2026-11-25T10:32:00Z (RFC 3339), a date-time group
(251032ZNOV26, 251032Z; the letter is the zone) or a duration that lies back (2h). A time without a zone is UTC, as is all
that is printed.

Exit: 0 listed, 1 no gateway answers, 2 wrong usage.
`

func messagesCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("messages", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	q := url.Values{}
	for _, f := range [][2]string{{"to", "only messages to this `site`"}, {"from", "only messages whose sender's name or id has this `text`"},
		{"label", "only messages about something with this `text`"}, {"precedence", "only messages of this `precedence`"},
		{"state", "only messages that are waiting, under_way or ended (`state`)"}} {
		fs.Func(f[0], f[1], func(text string) error { q.Set(f[0], text); return nil })
	}
	fs.BoolFunc("waiting", "only messages that wait, in the order in which they go", func(string) error { q.Set("state", api.StateWaiting); return nil })
	for _, f := range [][2]string{{"after", "only messages accepted after this `time`"}, {"before", "only messages accepted before this `time`"}} {
		fs.Func(f[0], f[1], func(text string) error {
			at, err := when.Past(text, time.Now())
			q.Set(f[0], at.UTC().Format(time.RFC3339))
			return err
		})
	}
	limit := fs.Int("limit", 100, "list at most this `many`")
	asJSON := fs.Bool("json", false, "print the gateway's answer as it is")
	idsOnly := fs.Bool("ids", false, "print ids alone, a line each")
	if _, code, done := cli.Parse(fs, args, 0, messagesAbout, stdout, stderr); done {
		return code
	}
	if *limit < 1 || *limit > 1000 {
		fmt.Fprintf(stderr, "gateway messages: --limit %d: must be 1 to 1000\n", *limit)
		return cli.ExitUsage
	}
	if p := q.Get("precedence"); p != "" {
		if _, ok := site.ParsePrecedence(p); !ok {
			fmt.Fprintf(stderr, "gateway messages: --precedence %s: must be one of %s\n", p, strings.Join(site.Precedences, ", "))
			return cli.ExitUsage
		}
	}
	if states := []string{api.StateWaiting, api.StateUnderWay, api.StateEnded}; q.Has("state") && !slices.Contains(states, q.Get("state")) {
		fmt.Fprintf(stderr, "gateway messages: --state %s: must be one of %s\n", q.Get("state"), strings.Join(states, ", "))
		return cli.ExitUsage
	}
	q.Set("limit", strconv.Itoa(*limit))
	at, err := config.HTTPListen(*file)
	if err != nil {
		return cli.Fail(stderr, "messages", err)
	}
	var list control.MessageList
	answer, err := deskAt(at).TalkOf(&list, "GET", "/messages?"+q.Encode(), nil)
	switch {
	case err != nil:
		return cli.Fail(stderr, "messages", err)
	case *asJSON:
		stdout.Write(answer)
	case *idsOnly:
		for _, m := range list.Messages {
			fmt.Fprintln(stdout, m.ID)
		}
	default:
		printMessages(stdout, list, time.Now())
	}
	return cli.ExitGood
}

func printMessages(out io.Writer, list control.MessageList, now time.Time) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tACCEPTED\tFROM\tTO\tABOUT\tPRECEDENCE\tOCTETS\tSTATE\tBEHIND\tEXPECTED")
	for _, m := range list.Messages {
		behind := "-"
		if m.State == api.StateWaiting && !m.Held {
			behind = fmt.Sprintf("%d (%d octets)", m.Behind.Messages, m.Behind.Octets)
		}
		about := m.PipeName
		if about == "" {
			about = m.ToPipe
		}
		if m.Label != "" {
			about = m.Label
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", m.ID, clockText(m.Accepted, now), brief(m.FromName, m.From), sitesText(m), brief(about),
			m.Precedence, m.Octets, stateText(m), behind, expectedText(m.Expected, now))
	}
	w.Flush()
	printHolds(out, list.Holds)
	if list.More {
		fmt.Fprintf(out, "%d shown, there are more: --limit, --to, --from, --label, --state, --after\n", len(list.Messages))
	} else {
		fmt.Fprintf(out, "%d shown\n", len(list.Messages))
	}
}

// stateText is the state of a message in a word: that of all recipients if they agree, otherwise that of the recipient furthest
// behind.
func stateText(m api.MessageRow) string {
	if len(m.Recipients) == 0 {
		return m.State
	}
	for _, r := range m.Recipients {
		if r.State != m.Recipients[0].State {
			if m.Held {
				return "held in part"
			}
			return strings.ReplaceAll(m.State, "_", " ")
		}
	}
	return strings.ReplaceAll(m.Recipients[0].State, "_", " ")
}

func sitesText(m api.MessageRow) string {
	var sites []string
	for _, r := range m.Recipients {
		sites = append(sites, plain(r.Site))
	}
	return strings.Join(sites, ",")
}

// brief is the first text that is not empty, cut for a terminal. Of an id it keeps the end, because ids differ there.
func brief(texts ...string) string {
	for _, text := range texts {
		if r := []rune(text); len(r) > 24 && (strings.HasPrefix(text, "uuid-") || strings.HasPrefix(text, "cbid-") || strings.HasPrefix(text, "jxta-")) {
			return "…" + plain(string(r[len(r)-12:]))
		} else if len(r) > 24 {
			return plain(string(r[:23]) + "…")
		} else if text != "" {
			return plain(text)
		}
	}
	return "-"
}

// plain makes a text from others safe for a terminal: not too long, and quoted with escapes if it has characters that are not
// plain.
func plain(text string) string {
	text = glance.Cut(text)
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` || strings.Contains(text, " ") {
		return quoted
	}
	return text
}

// clockText is a time, without the date if it is today.
func clockText(at, now time.Time) string {
	at, now = at.UTC(), now.UTC()
	switch {
	case at.IsZero():
		return "-"
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return at.Format("15:04:05Z")
	}
	return at.Format("2006-01-02T15:04:05Z")
}

func expectedText(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%s (in %s)", clockText(at, now), max(at.Sub(now), 0).Round(time.Second))
}
