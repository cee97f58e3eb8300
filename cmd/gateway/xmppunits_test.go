package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// Units of TAK are items of a node on a LAN with Prosody, whichever their site, and an item that a client publishes there is a unit on the
// maps of both sites.
func TestXMPPUnits(t *testing.T) {
	t.Parallel()
	air := newRelay(t, 2, false, 7, func(int, []int, []byte) {})
	server := newProsody(t, "ship.example", []string{"anna", "alma"}, "hq.example", "conference.hq.example", "pubsub.hq.example", "tak.ship.example")
	hq := newTAKSite(t, 1, "")
	ship := newTAKSite(t, 2, hq.key())
	hq.link, ship.link = air.links[0].String(), air.links[1].String()
	hq.write(t, "", "2 "+air.address(0, 1))
	ship.writeXMPP(t, server, 1, "hq.example", "1 "+air.address(1, 0))
	c := check.Fatal(t)
	text, err := os.ReadFile(ship.file)
	check.NoError(c, err)
	text = bytes.Replace(text, []byte("[xmpp]\n"), []byte("[xmpp]\nnodes = \"tak.ship.example\"\n"), 1)
	text = fmt.Appendf(text, "[tak]\nlisten = %q\n[[meet]]\nnode = \"units\"\nevery = \"1s\"\n", ship.tak)
	check.NoError(c, os.WriteFile(ship.file, text, 0o644))
	if code, out, errs := run(t, "check", "-c", ship.file); code != 0 || !strings.Contains(out, `units are items of the node "units" at tak.ship.example`) {
		t.Fatal(out, errs)
	}
	for change, want := range map[[2]string]string{{"nodes = ", "#"}: "meet.node: needs xmpp.nodes", {"tak.ship.example", "ship.example"}: "xmpp.nodes: ship.example is used already", {"every =", "room = \"x\"\n#"}: "of no use in a rule with room"} {
		check.NoError(c, os.WriteFile(ship.file, bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1), 0o644))
		if code, out, errs := run(t, "check", "-c", ship.file); code == 0 || !strings.Contains(out+errs, want) {
			t.Errorf("no %q in %s%s", want, out, errs)
		}
	}
	check.NoError(c, os.WriteFile(ship.file, text, 0o644))
	server.start(t)
	hq.start(t)
	r := ship.start(t)
	r.until(t, "the server has all domains", func() bool { return strings.Count(r.logged(), "has taken the component") == 5 })
	anna, alma := server.login(t, "anna"), server.login(t, "alma")
	for name, client := range map[string]*xmppClient{"anna": anna, "alma": alma} {
		client.say("<iq type='set' id='s' to='tak.ship.example'><pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='units' jid='%s@ship.example'/></pubsub></iq>", name)
		r.until(t, name+" is subscribed", func() bool { return client.count("<iq", `subscription="subscribed"`) == 1 })
	}
	aboard, ashore := dialTAK(t, ship.tak), dialTAK(t, hq.tak)
	fmt.Fprint(aboard, deviceReport("ANDROID-1", "FALCON"))
	fmt.Fprint(ashore, deviceReport("ANDROID-2", "EAGLE"))
	for _, callsign := range []string{"FALCON", "EAGLE"} {
		r.until(t, "anna is told of "+callsign, func() bool {
			return anna.count("<message", "tak.ship.example", "<description>"+callsign+"</description>", "<lat>54.3</lat>") > 0
		})
	}
	anna.say("<iq type='set' id='p' to='tak.ship.example'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='units'><item><geoloc xmlns='http://jabber.org/protocol/geoloc'><lat>54.25</lat><lon>-10.5</lon><description>Pinnace</description><text>a-f-S-X</text></geoloc></item></publish></pubsub></iq>")
	r.until(t, "her unit is published", func() bool { return anna.count("<iq", `id="p"`, `<item id="XMPP.anna@ship.example"`) == 1 })
	for where, d := range map[string]*takDevice{"aboard": aboard, "ashore": ashore} {
		r.until(t, "her unit is on the map "+where, func() bool {
			e := d.find("XMPP.anna@ship.example")
			return e != nil && e.Callsign() == "Pinnace" && e.Type == "a-f-S-X"
		})
	}
	r.until(t, "alma is told of it", func() bool { return alma.count("<message", `<item id="XMPP.anna@ship.example"`, "Pinnace") > 0 })
	alma.say("<iq type='get' id='g' to='tak.ship.example'><pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='units'/></pubsub></iq>")
	r.until(t, "alma has all three", func() bool { return alma.count("<iq", `id="g"`, "FALCON", "EAGLE", "Pinnace") == 1 })
	if n := alma.count("<message", `<item id="XMPP.anna@ship.example"`); n != 1 {
		t.Errorf("alma was told %d times of what was said once", n)
	}
}
