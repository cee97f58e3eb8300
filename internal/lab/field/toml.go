package field

import (
	"fmt"
	"strings"

	"aldis/internal/lab/replay"
	"aldis/internal/link/compact"
)

// efforts are spelt as in configurations.
var efforts = map[compact.Effort]string{compact.Full: "full", compact.Light: "light", compact.None: "none"}

// rulesTOML writes an operator's rules in the form of a configuration; sites have their names in the lab.
func rulesTOML(g replay.Gateway, others []*lanSite) string {
	var b strings.Builder
	text := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s = %q\n", key, value)
		}
	}
	number := func(key string, n int) {
		if n != 0 {
			fmt.Fprintf(&b, "%s = %d\n", key, n)
		}
	}
	for _, r := range g.Rules {
		b.WriteString("\n[[compact.rule]]\n")
		text("effort", efforts[r.Effort])
		text("type", r.Type)
		text("name", r.Name)
		number("octets", r.Octets)
	}
	for _, r := range g.Filters {
		b.WriteString("\n[[filter]]\n")
		text("action", r.Action.String())
		text("label", r.Label)
		text("direction", r.Direction.String())
		for _, s := range others {
			if s.index+1 == int(r.Site) {
				text("site", s.name)
			}
		}
		text("type", r.Type)
		text("root", r.Root)
		text("group", r.Group)
		text("name", r.Name)
		text("peer", r.Peer)
		text("pipe", r.Pipe)
		number("octets_min", r.Least)
		number("octets_max", r.Most)
		text("rate", r.Rate.String())
	}
	for _, r := range g.Messages {
		b.WriteString("\n[[message]]\n")
		text("group", r.Group)
		text("pipe", r.Pipe)
		text("peer", r.Peer)
		text("element", r.Element)
		text("type", r.Type)
		number("octets_min", r.Least)
		number("octets_max", r.Most)
		text("precedence", r.Precedence.String())
		if r.Expires > 0 {
			text("expires", r.Expires.String())
		}
		text("last_value", r.LastValue)
		if r.Pattern != nil {
			text("last_value_pattern", r.Pattern.String())
		}
	}
	return b.String()
}
