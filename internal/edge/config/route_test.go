package config

import (
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// A rule says which link a message takes, and a link how much it may carry in a day.
func TestRoutes(t *testing.T) {
	text := strings.Replace(twoLinks, "price = 0.5", "price = 0.5\nmoney_per_day = 25", 1) + `
[[route]]
precedence = "flash, override"
beyond_day = true
[[route]]
octets_min = 2000
sites = "hq"
links = "hf"
within = "10m"
`
	c, err := withLinks(t, text)
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "octets that 25 buys at 0.5", c.More[0].Octets, 50_000)
	check.Equal(t, "direct sessions of a link where nothing is said", c.Link.Direct, DefaultDirect)
	check.Equal(check.Fatal(t), "rules", len(c.Routes), 2)
	check.True(t, "the first", len(c.Routes[0].Precedence) == 2 && c.Routes[0].Beyond && c.Routes[0].Line > 0, c.Routes[0])
	check.True(t, "the second", c.Routes[1].Sites[0] == 1 && c.Routes[1].Links[0] == "hf" && c.Routes[1].Within.Minutes() == 10, c.Routes[1])
}

// Each mistake is reported in one line.
func TestMistakesOfRoutes(t *testing.T) {
	const other = "[[link.peer]]\nid = 3\nname = \"ship3\"\naddress = \"10.77.0.3:7142\"\n\n[[link]]\nname = \"hf\""
	base := strings.Replace(twoLinks, "[[link]]\nname = \"hf\"", other, 1)
	for _, tt := range []struct{ name, from, to, rules, want string }{
		{"a bound of money without a price", "key_file", "money_per_day = 5\nkey_file", "", "link.money_per_day: needs link.price: without a price nothing costs money"},
		{"two bounds", "price = 0.5", "price = 0.5\nmoney_per_day = 5\noctets_per_day = 9999", "", "link.money_per_day: stands beside octets_per_day"},
		{"a bound that carries nothing", "price = 0.5", "octets_per_day = 2000", "", "link.octets_per_day: 2000 octets are fewer than ten datagrams"},
		{"sessions without keepalives", "key_file", "direct = 4\nkey_file", "", "link.direct: needs link.keepalive"},
		{"sessions on a shared channel", "price = 0.5", "price = 0.5\nkeepalive = \"1m\"\ndirect = 4", "", "link.direct: is for links over UDP whose channel nobody shares"},
		{"two links of one name", "name = \"hf\"", "name = \"iridium\"", "", "link.name: iridium is there twice"},
		{"a link that is none", "", "", "[[route]]\nlinks = \"uhf\"\n", "route.links: no [[link]] has the name \"uhf\""},
		{"a rule that no link can meet", "", "", "[[route]]\nsites = \"ship3\"\nlinks = \"hf\"\n", "route.links: no link that it names reaches ship3"},
		{"a site that is none", "", "", "[[route]]\nsites = \"shop3\"\n", "route.sites: \"shop3\" is neither name nor id of a [[link.peer]]"},
		{"a precedence that is none", "", "", "[[route]]\nprecedence = \"flush\"\n", "route.precedence: \"flush\" is no precedence"},
		{"a rule behind one that takes all", "", "", "[[route]]\nlabel = \"all\"\n[[route]]\nsites = \"hq\"\n", "the rule can never match"},
		{"no size", "", "", "[[route]]\noctets_min = 9\noctets_max = 8\n", "route.octets_min: the rule can never match"},
	} {
		text := strings.Replace(base, tt.from, tt.to, 1) + tt.rules
		_, err := withLinks(t, text)
		check.True(t, tt.name+": it is refused", err != nil && strings.Contains(err.Error(), tt.want), err)
		check.True(t, tt.name+": in one line", err != nil && strings.Count(err.Error(), "\n") == 0, err)
	}
}
