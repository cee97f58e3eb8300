package operator

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"aldis/internal/edge/config"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
	"aldis/internal/operator/node"
)

var reloadAbout = `usage: gateway reload [-c FILE] [--dry-run] [--json]

Has the gateway on this machine read its configuration again, and lists what is different. From FILE it reads only where
the gateway answers (control.socket).

` + strings.Join(config.Live(), ", ") + `
and the tariff of a profile file of your own count at once: no connection is closed, and no message is lost. What may not
cross any more is cancelled at the other sites. A message that was accepted keeps its precedence.
What waits for a peer that goes is cancelled, and its senders hear that; --dry-run says how many messages that concerns.
Everything else needs a restart: a peer that comes or goes on a shared channel, one that comes back and has records of
an earlier run in the journal, the numbers of a profile, keys, ports. If the file has a mistake, or something in it needs a
restart, nothing is changed, and the answer says what it is.

With --dry-run nothing is changed in any case. SIGHUP to the gateway does the same as gateway reload, with the answer in the
log. SIGHUP to the process of gateway run --keep-socket restarts the gateway instead.

Exit: 0 the file is in force (--dry-run: would be), 1 not so, 2 wrong usage.
`

func reloadCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("reload", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	dryRun := fs.Bool("dry-run", false, "say what is different, and change nothing")
	asJSON := fs.Bool("json", false, "print the answer as JSON")
	if _, code, done := cli.Parse(fs, args, 0, reloadAbout, stdout, stderr); done {
		return code
	}
	desk, err := DeskOf(*file, "")
	var r node.Reloaded
	if err == nil {
		body, _ := json.Marshal(control.ReloadOrder{DryRun: *dryRun})
		_, err = desk.TalkOf(&r, "POST", "/reload", body)
	}
	if err != nil {
		return cli.Fail(stderr, "reload", err)
	}
	restart := slices.ContainsFunc(r.Changes, func(c config.Change) bool { return c.Restart })
	switch {
	case *asJSON:
		err = cli.PrintJSON(stdout, r)
	case len(r.Changes) == 0:
		fmt.Fprintln(stdout, "nothing is different")
	default:
		fmt.Fprintln(stdout, node.InLines(r.Changes))
		switch {
		case restart:
			fmt.Fprintln(stdout, "a reload would change nothing: restart the gateway")
		case *dryRun:
			fmt.Fprintln(stdout, "a reload would take all of it")
		default:
			fmt.Fprintln(stdout, "in force")
		}
	}
	if err != nil {
		return cli.Fail(stderr, "reload", err)
	}
	if restart {
		return cli.ExitRefused
	}
	return cli.ExitGood
}
