package operator

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"aldis/internal/gateway/api"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
)

const groupAbout = `usage: gateway group list [-c FILE] [--token FILE] [--json]
       gateway group join [--key] | leave NAME [-c FILE] [--token FILE] [--json]
       gateway group view GROUP VIEW [--site NAME] [--link NAME] [--in] [-c FILE] [--token FILE] [--json]

Lists the groups that the gateway on this machine is in, with the gateways that are known to be in them too, and who hears
whom on the shared channels; or joins or leaves a group. A group is made by the gateway that joins it first. NAME has parts:
a gateway in fleet/squadron/ops is in fleet/squadron and fleet too. What a [[message]] rule with open = "NAME" fits goes to
all gateways in the group; one that joins gets what is still repeated. With --key the group's messages are sealed with a key
of its members alone, as with key = true of [[group]]: all members must say so.

An order survives a restart, and goes before [[group]] of the configuration. Leaving tells the neighbours, and forgets
what is held of the group. Groups need link.roster.

view says what other sites are told of the peers in a JXTA group: GROUP is an id, net, or all. VIEW is as lan.view, or configured to
end an order for the same. --site restricts it to a peer, --link to sites that are reached over that link at the moment, and with
--in it is what these sites may tell here. Views need no roster.

Exit: 0 the order is in force, 1 not so, 2 wrong usage.
`

func groupCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("group", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	tokenFile := fs.String("token", "", "order over http.listen with the token in `FILE`")
	key := fs.Bool("key", false, "join: the group has a key of its own")
	asJSON := fs.Bool("json", false, "print the gateway's answer as it is")
	var view control.ViewOrder
	fs.StringVar(&view.Site, "site", "", "view: for this `peer` alone")
	fs.StringVar(&view.Link, "link", "", "view: for sites that are reached over the link with this `name`")
	fs.BoolVar(&view.In, "in", false, "view: what these sites may tell here")
	rest, code, done := cli.Parse(fs, args, 3, groupAbout, stdout, stderr)
	if done {
		return code
	}
	if len(rest) == 3 && rest[0] == "view" && !*key {
		return viewGroup(*file, *tokenFile, *asJSON, rest[1:], view, stdout, stderr)
	}
	list := len(rest) == 1 && rest[0] == "list"
	if view != (control.ViewOrder{}) || !list && (len(rest) != 2 || rest[0] != "join" && (rest[0] != "leave" || *key)) {
		fmt.Fprintf(stderr, "gateway group: say list, join NAME, leave NAME or view GROUP VIEW\n\n%s", groupAbout)
		return cli.ExitUsage
	}
	desk, err := DeskOf(*file, *tokenFile)
	if err != nil {
		return cli.Fail(stderr, "group", err)
	}
	var got control.GroupList
	if list {
		var r control.Report
		_, err = desk.TalkOf(&r, "GET", "/status", nil)
		got.Groups, got.Channels = r.Groups, r.Channels
	} else {
		body, _ := json.Marshal(control.GroupOrder{Name: rest[1], In: rest[0] == "join", Key: *key})
		_, err = desk.TalkOf(&got, "POST", "/groups", body)
	}
	if err == nil && *asJSON {
		err = cli.PrintJSON(stdout, got)
	}
	if err != nil {
		return cli.Fail(stderr, "group", err)
	}
	if !*asJSON {
		printGroups(stdout, got)
	}
	return cli.ExitGood
}

func printGroups(out io.Writer, list control.GroupList) {
	if len(list.Groups) == 0 {
		fmt.Fprintln(out, "in no group")
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GROUP\tMESSAGES HELD\tOCTETS\tKEY\tKNOWN TO BE IN IT")
	for _, g := range list.Groups {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", g.Name, g.Held, g.Octets, keyOf(g), strings.Join(g.Members, ", "))
	}
	w.Flush()
	for _, c := range list.Channels {
		printChannel(out, c)
	}
}

// printChannel prints which stations hear each other on a channel.
func printChannel(out io.Writer, c api.ChannelStatus) {
	var parts []string
	for _, part := range c.Components {
		parts = append(parts, strings.Join(part, ", "))
	}
	fmt.Fprintf(out, "\n%s: %s; first to speak for others: %s\n", c.Link, strings.Join(parts, " | "), strings.Join(c.Speaks, ", "))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SITE\tHEARS\tDOES NOT HEAR")
	for _, s := range c.Sites {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Site, cmp.Or(strings.Join(s.Hears, ", "), "-"), cmp.Or(strings.Join(s.HearsNot, ", "), "-"))
	}
	w.Flush()
}

// keyOf says which key of its own a group has.
func keyOf(g api.GroupStatus) string {
	switch {
	case !g.Keyed:
		return "-"
	case g.Key == "":
		return "none yet"
	}
	return g.Key
}
