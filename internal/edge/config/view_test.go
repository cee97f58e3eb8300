package config

import (
	"slices"
	"strings"
	"testing"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
)

// Rules about views name existing groups, sites and links; each mistake is reported in one line.
func TestViews(t *testing.T) {
	const rule = "[[view]]\ngroup = \"net\"\nlink = \"hf\"\nview = \"ring+count\"\n"
	for _, tt := range []struct{ name, text, want string }{
		{"a rule", rule, ""},
		{"no view", "[[view]]\ngroup = \"net\"\n", "view.view: is missing"},
		{"a view that is none", "[[view]]\nview = \"all\"\n", "\"all\" is no view"},
		{"a link that is not there", "[[view]]\nlink = \"fibre\"\nview = \"ask\"\n", "no [[link]] has the name \"fibre\""},
		{"a site that is not there", "[[view]]\nsite = \"nobody\"\nview = \"ask\"\n", "is neither name nor id"},
		{"a group that is none", "[[view]]\ngroup = \"x\"\nview = \"ask\"\n", "view.group"},
		{"a rule behind one that covers it", "[[view]]\nview = \"ask\"\n" + rule, "can never match"},
		{"the other direction is not covered", "[[view]]\nview = \"ask\"\n[[view]]\ndirection = \"in\"\nview = \"ask\"\n", ""},
	} {
		c, err := withLinks(t, twoLinks+tt.text)
		if tt.want == "" {
			check.NoError(t, err)
			continue
		}
		check.True(t, tt.name+": it is refused", err != nil && strings.Contains(err.Error(), tt.want), err, c)
	}
	c, err := withLinks(t, twoLinks+rule)
	check.NoError(t, err)
	check.True(t, "the rule as the JXTA side takes it", slices.Equal(c.ViewRules(), []jxtabridge.ViewRule{{Group: jxta.NetGroup, Bearer: "hf", View: "ring+count"}}), c.ViewRules())
	other, _ := withLinks(t, twoLinks+strings.Replace(rule, "ring", "ask", 1))
	changes := c.Changes(other)
	i := slices.IndexFunc(changes, func(c Change) bool { return c.Key == "[[view]]" })
	check.True(t, "a reload applies another", i >= 0 && !changes[i].Restart, changes)
}
