package config

import (
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// A gateway is in groups, and a rule sends messages to one; each mistake is reported in one line.
func TestGroups(t *testing.T) {
	const group = "[[group]]\nname = \"fleet/ops\"\nlifetime = \"10m\"\nhops = 2\n"
	for _, tt := range []struct{ name, text, want string }{
		{"a group and a rule", group + "[[message]]\nopen = \"fleet\"\n", ""},
		{"a group twice", group + group, "group.name: \"fleet/ops\" is there twice"},
		{"no name", "[[group]]\nhops = 2\n", "group.name: is missing"},
		{"a name with an empty part", "[[group]]\nname = \"fleet//ops\"\n", "none of them empty"},
		{"too many hops", "[[group]]\nname = \"fleet\"\nhops = 9\n", "group.hops: must be a whole number from 1 to 8, is 9"},
		{"too long a life", "[[group]]\nname = \"fleet\"\nlifetime = \"25h\"\n", "group.lifetime"},
		{"a rule for no name", "[[message]]\nopen = \"/\"\n", "message.open"},
	} {
		got, err := rosterSite(t, func(_ string, lines []string) []string { return append(lines, tt.text) })
		if tt.want == "" {
			check.NoError(t, err)
			continue
		}
		check.True(t, tt.name+": it is refused", err != nil && strings.Contains(got, tt.want), got)
		check.True(t, tt.name+": in one line", strings.Count(got, "\n") == 0, got)
	}
	_, err := withLinks(t, twoLinks+group)
	check.True(t, "with one key for all", err != nil && strings.Contains(err.Error(), "needs link.roster"), err)
}
