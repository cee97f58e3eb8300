package rule_test

import (
	"testing"

	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/lab/check"
)

// The first rule that fits decides, and a rule names the first condition that is not met.
func TestJudge(t *testing.T) {
	s := rule.Subject{Kind: rule.Message, From: "anna@ship.example", To: "bert@hq.example", Mark: "NATO SECRET", Site: 1, Octets: 50}
	for want, r := range map[string]rule.Rule{
		"":           {Kind: rule.Message, From: "anna@*", To: "*@hq.example", Mark: "*SECRET", Site: 1, Least: 50, Most: 50},
		"kind":       {Kind: rule.Room, From: "x"},
		"from":       {From: "bert@*"},
		"to":         {To: "ops@conference.*"},
		"mark":       {Mark: "SECRET"},
		"site":       {Site: 2},
		"octets_min": {Least: 51},
		"octets_max": {Most: 49},
	} {
		check.Equal(t, "missed", r.Misses(&s), want)
	}
	rules := []rule.Rule{{Kind: rule.Presence, Local: true}, {Label: "all", Line: 7}, {Local: true}}
	check.Equal(t, "the first that fits", rule.Judge(rules, &s).String(), `"all" (line 7)`)
	if rule.Judge(rules[:1], &s) != nil {
		t.Error("a rule that does not fit is taken")
	}
}
