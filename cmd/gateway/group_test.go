package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
)

// Two gateways are in a group, a peer's publication is sent to it, and orders leave and join it.
func TestGroupOfRealGateways(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	sa, nodeA := o.member(t, 1)
	sb, nodeB := o.member(t, 2)
	o.sign(t, "new", "-o", o.roster(), "--network", "blue", "--node", nodeA, "--node", nodeB)
	for _, s := range []*testSite{sa, sb} {
		o.give(t, s)
		other := map[int]string{1: "2 " + sb.link, 2: "1 " + sa.link}[s.id]
		s.write(t, filepath.Join(s.dir, "data"), other)
		text, err := os.ReadFile(s.file)
		check.NoError(t, err)
		text = append(text, "\n[[group]]\nname = \"fleet/ops\"\n[[message]]\nopen = \"fleet/ops\"\n"...)
		check.NoError(t, os.WriteFile(s.file, text, 0o644))
	}
	a, b := sa.start(t), sb.start(t)
	a.until(t, "its peer is up", func() bool { return a.peer(t).Link == "up" })
	list := func(args ...string) string {
		code, out, errs := run(t, append(append([]string{"group"}, args...), "-c", b.file)...)
		check.Equal(t, "gateway group "+strings.Join(args, " ")+": "+errs, code, 0)
		return out
	}
	b.until(t, "the other is known to be in the group", func() bool { return strings.Count(list("list"), "node1") == 2 })
	k := newTalk(t, a, b)
	check.NoError(check.Fatal(t), k.say("first"))
	a.until(t, "the message is there", func() bool { return k.there.all() == "first" })
	check.Equal(t, "messages of the group at the sender", b.status(t).Groups[1].Held, 1)

	wants(t, list("leave", "fleet/ops"), "in no group")
	code, _, errs := run(t, "group", "leave", "fleet/ops", "-c", b.file)
	check.True(t, "left again", code == 1 && strings.Contains(errs, "is not in that group"), errs)
	code, _, errs = run(t, "group", "join", "fleet//ops", "-c", b.file)
	check.True(t, "joined by no name", code == 1 && strings.Contains(errs, "none of them empty"), errs)
	check.NoError(check.Fatal(t), k.say("second")) // in custody
	a.until(t, "the second is there", func() bool { return k.there.all() == "first second" })
	wants(t, list("join", "fleet/ops"), "fleet/ops")

	// How much other sites learn of JXTA peers.
	wants(t, list("view", "net", "ring+count", "--in"), "jxta-NetGroup", "ring+count", "in", "order", "lan.view")
	wants(t, list("view", "all", "ask", "--site", "node1"), "1 ", "ask")
	b.until(t, "the other end knows", func() bool { return a.status(t).LAN.Far[2].View == jxtabridge.Ask })
	check.Equal(t, "orders about views", b.status(t).LAN.Ordered, 2)
	for _, args := range [][]string{{"net", "all"}, {"fleet", "ask"}, {"net", "ask", "--key"}, {"net", "configured"}, {"net", "ask", "--site", "nobody"}} {
		code, _, errs := run(t, append(append([]string{"group", "view"}, args...), "-c", b.file)...)
		check.True(t, "view "+strings.Join(args, " "), code != 0 && errs != "", errs)
	}
	if out := list("view", "all", "configured", "--site", "node1"); strings.Contains(out, "ask") {
		t.Errorf("an order that has ended is listed:\n%s", out)
	}
}
