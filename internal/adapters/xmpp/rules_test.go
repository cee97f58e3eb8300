package xmpp_test

import (
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// A message that a rule keeps here does not cross, and its sender is told; a message that a rule makes urgent overtakes waiting ones.
func TestRules(t *testing.T) {
	flash := site.Flash
	w := newWorld(t, 2, "iridium-dialup", 7, func(c *xmpp.Config) {
		c.Rules = []rule.Rule{
			{Label: "secrets", Line: 3, Mark: "*SECRET*", Local: true},
			{Kind: rule.Room, To: "ops@conference.hq.example", From: "anna@ship2.example", Precedence: &flash},
			{Kind: rule.Subscription, To: "spy@*", Local: true},
			{Kind: rule.Presence, From: "anna@*", Local: true},
			{Kind: rule.Message, Least: 100, Expires: time.Second},
		}
	})
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	ship.line("hq.example", anna, "bert@hq.example", "s1", "the plan", "<securitylabel xmlns='urn:xmpp:sec-label:0'><displaymarking>TOP SECRET</displaymarking></securitylabel>")
	ship.has(1, "id='s1'", "type='error'", "<not-allowed ", "secrets")
	ship.say("hq.example", "<presence type='subscribe' from='anna@ship2.example' to='spy@hq.example'/>")
	ship.has(1, "type='unsubscribed'", "from='spy@hq.example'")
	w.subscribe(hq, ship, "bert", "anna")
	seen := len(hq.got)
	ship.present("hq.example", anna, "bert@hq.example", "")
	w.Run(time.Minute)
	check.Equal(t, "bert sees nothing of anna", len(hq.got), seen)
	hq.room().enter("bert@hq.example/h", "bert")
	a := far{ship, anna, "anna"}
	a.enter()
	w.Run(time.Minute)
	for range 60 {
		ship.line("hq.example", anna, "bert@hq.example", "m", "one of many lines that wait", "")
	}
	a.say("g", "fire in the engine room")
	w.Run(4 * time.Second)
	check.Equal(t, "the urgent line is there", hq.muc.heard("bert@hq.example/h", "fire in the engine room"), 1)
	check.Equal(t, "the others are not all there", hq.count("one of many") < 60, true)
	w.Run(time.Minute)
	hq.has(60, "one of many")
	hq.has(0, "the plan")
	hq.has(0, "spy@")
}
