package interop_test

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/interop"
	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/xmpp"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// A room of XMPP is a chat room of TAK: each line is said once on the other side, and not handed back.
func TestRoomOfXMPP(t *testing.T) {
	const muc = "ops@conference.ship.example"
	m, err := interop.New(interop.Config{Rules: []interop.Rule{{Room: "Bridge", MUC: muc, FromJXTA: true, FromTAK: true}}}, nil)
	check.NoError(check.Fatal(t), err)
	now := time.Unix(1_800_000_000, 0).UTC()
	told := func() (list []site.Event) {
		for _, tell := range m.Step(now).Tell {
			list = append(list, tell.Event)
		}
		return list
	}
	check.Equal(t, "told at first", len(told()), 2) // Ears of both
	hear := func(adapter site.Adapter, o site.Order) []site.Event {
		t.Helper()
		out := site.Output{Orders: []site.Order{o}}
		m.Hear(now, adapter, nil, &out)
		if adapter == site.XMPP && len(out.Orders) != 0 {
			t.Errorf("the LAN room is given %v", out.Orders)
		}
		return told()
	}
	line := xmpp.Line{Room: muc, From: "anna", ID: "1", Text: "man overboard <port>"}
	got := hear(site.XMPP, line)
	if len(got) != 1 {
		t.Fatalf("of a line TAK is told %v", got)
	}
	event := got[0].(tak.Met).Event
	if xml := string(event.AppendXML(nil)); !strings.Contains(xml, `chatroom="Bridge"`) || !strings.Contains(xml, `senderCallsign="anna"`) || !strings.Contains(xml, "man overboard &lt;port&gt;") {
		t.Errorf("TAK is told %s", xml)
	}
	check.Equal(t, "the line again", len(hear(site.XMPP, line)), 0)
	check.Equal(t, "a line of another room", len(hear(site.XMPP, xmpp.Line{Room: "x@conference.ship.example", From: "anna", ID: "2", Text: "x"})), 0)
	check.Equal(t, "what came of XMPP, shown by TAK", len(hear(site.TAK, tak.Spread{XML: event.AppendXML(nil)})), 0)
	c := code.NewChat("ANDROID-1", "FALCON 1", "Bridge", "m-1", "on our way", now)
	got = hear(site.TAK, tak.Spread{XML: c.Event(true).AppendXML(nil)})
	if len(got) != 1 || got[0] != (xmpp.Met{Room: muc, From: "FALCON 1", Text: "on our way", ID: "m-1"}) {
		t.Errorf("XMPP is told %v", got)
	}
	check.Equal(t, "the chat again", len(hear(site.TAK, tak.Spread{XML: c.Event(true).AppendXML(nil)})), 0)
	c.Room, c.ID, c.Message = "All Chat Rooms", "All Chat Rooms", "m-2"
	check.Equal(t, "a chat of another room", len(hear(site.TAK, tak.Spread{XML: c.Event(true).AppendXML(nil)})), 0)
}
