package operator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"aldis/internal/edge/config"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
)

// configured, given in place of a view, cancels the order about it: the configuration decides again.
const configured = "configured"

// viewGroup carries out gateway group view: rest is group and view.
func viewGroup(file, tokenFile string, asJSON bool, rest []string, order control.ViewOrder, stdout, stderr io.Writer) int {
	if rest[0] != "all" {
		id, err := config.ParseID(rest[0], jxta.KindGroup)
		if err != nil {
			fmt.Fprintf(stderr, "gateway group view: %s is no id of a JXTA group, nor net or all: %v\n", rest[0], err)
			return cli.ExitUsage
		}
		order.Group = id
	}
	if rest[1] != configured {
		order.View = jxtabridge.View(rest[1])
		if _, err := order.View.Parts(); err != nil {
			fmt.Fprintf(stderr, "gateway group view: %v\n", err)
			return cli.ExitUsage
		}
	}
	desk, err := DeskOf(file, tokenFile)
	if err != nil {
		return cli.Fail(stderr, "group", err)
	}
	var got control.ViewList
	body, _ := json.Marshal(order)
	_, err = desk.TalkOf(&got, "POST", "/views", body)
	if err == nil && asJSON {
		err = cli.PrintJSON(stdout, got)
	}
	if err != nil {
		return cli.Fail(stderr, "group", err)
	}
	if !asJSON {
		printViews(stdout, got)
	}
	return cli.ExitGood
}

// printViews lists the rules about views; the first that matches decides.
func printViews(out io.Writer, list control.ViewList) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GROUP\tSITE\tLINK\tDIRECTION\tVIEW\tFROM")
	for i, r := range list.Rules {
		site, direction, from := "any", "out", "[[view]]"
		if r.Site != 0 {
			site = fmt.Sprint(r.Site)
		}
		if r.In {
			direction = "in"
		}
		if i < list.Ordered {
			from = "order"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(r.Group, "any"), site, cmp.Or(r.Bearer, "any"), direction, r.View, from)
	}
	fmt.Fprintf(w, "any\tany\tany\tout\t%s\tlan.view\n", list.View)
	w.Flush()
}
