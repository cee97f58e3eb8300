package interop_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/interop"
	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/adapters/xmpp"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// A room of XMPP is a chat room of TAK: each line is sent once on the other side, and does not come back.
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

// Units of TAK, and units that clients of XMPP publish, are items of a node: each report goes once, whoever has sent it.
func TestUnitsOfXMPP(t *testing.T) {
	m, err := interop.New(interop.Config{Rules: []interop.Rule{
		{Node: "units", FromJXTA: true, FromTAK: true, As: "a-u-G", Life: time.Minute, Every: 5 * time.Second},
		{Node: "ships", FromTAK: true, Fit: rule.Rule{Type: "a-f-S"}},
	}}, nil)
	check.NoError(check.Fatal(t), err)
	now := time.Unix(1_800_000_000, 0).UTC()
	told := func() (list []site.Event) {
		for _, tell := range m.Step(now).Tell {
			list = append(list, tell.Event)
		}
		return list
	}
	first := told()
	if len(first) != 1 || !reflect.DeepEqual(first[0], xmpp.Ears{Nodes: map[string]bool{"units": true, "ships": false}}) {
		t.Errorf("told at first: %v", first)
	}
	hear := func(adapter site.Adapter, o site.Order) []site.Event {
		t.Helper()
		out := site.Output{Orders: []site.Order{o}}
		m.Hear(now, adapter, nil, &out)
		check.Equal(t, "orders for the LAN room of XMPP", adapter == site.XMPP && len(out.Orders) > 0, false)
		return told()
	}
	got := hear(site.XMPP, xmpp.Unit{Node: "units", ID: "XMPP.anna@ship.example", Name: "Pinnace", Type: "a-f-S-X", Lat: 54.25, Lon: -10.5, Moves: true, Course: 90, Speed: 3})
	if len(got) != 1 {
		t.Fatalf("of a unit TAK is told %v", got)
	}
	event := got[0].(tak.Met).Event
	check.Contains(t, "the event", string(event.AppendXML(nil)), `uid="XMPP.anna@ship.example" type="a-f-S-X"`)
	check.Contains(t, "the event", string(event.AppendXML(nil)), `callsign="Pinnace"`)
	got = hear(site.TAK, tak.Spread{XML: event.AppendXML(nil)}) // the adapter shows it
	if len(got) != 2 {
		t.Fatalf("of what TAK shows clients are told %v", got)
	}
	unit := got[0].(xmpp.Unit)
	check.Equal(t, "the item", unit, xmpp.Unit{Node: "units", ID: "XMPP.anna@ship.example", Name: "Pinnace", Type: "a-f-S-X", Lat: 54.25, Lon: -10.5, Moves: true, Course: 90, Speed: 3,
		Time: now, Until: now.Add(time.Minute), Every: 5 * time.Second})
	check.Equal(t, "the other node", got[1].(xmpp.Unit).Node, "ships")
	check.Equal(t, "the same again", len(hear(site.XMPP, xmpp.Unit{Node: "units", ID: "XMPP.anna@ship.example", Name: "Pinnace", Type: "a-f-S-X", Lat: 54.25, Lon: -10.5})), 0)
	check.Equal(t, "to a node for reading", len(hear(site.XMPP, xmpp.Unit{Node: "ships", ID: "x", Lat: 1, Lon: 1})), 0)
	got = hear(site.XMPP, xmpp.Unit{Node: "units", ID: "XMPP.bert", Name: "bert", Type: "b-t-f", Lat: 1, Lon: 2, Time: now.Add(-time.Hour)})
	check.Equal(t, "a type of no unit", got[0].(tak.Met).Event.Type, "a-u-G")
	check.Equal(t, "a clock an hour late", got[0].(tak.Met).Event.Time, now)
	for _, e := range hear(site.XMPP, xmpp.Unit{Node: "units", ID: "y", Name: "a\x00<b\n", Lat: 1, Lon: 2}) {
		_, err := cot.ParseXML(e.(tak.Met).Event.AppendXML(nil))
		check.NoError(t, err)
	}
	device := func(uid, kind string, stale time.Time) tak.Spread {
		e := cot.Event{Version: "2.0", UID: uid, Type: kind, How: "m-g", Time: now, Start: now, Stale: stale,
			Point: cot.Point{Lat: cot.Rounded(54.5, 7), Lon: cot.Rounded(10, 7), HAE: cot.Unknown, CE: cot.Unknown, LE: cot.Unknown}}
		return tak.Spread{XML: e.AppendXML(nil)}
	}
	check.Equal(t, "a unit ashore", len(hear(site.TAK, device("ANDROID-1", "a-f-G", now.Add(time.Minute)))), 1)
	check.Equal(t, "a unit that has ended", len(hear(site.TAK, device("ANDROID-2", "a-f-G", now))), 0)
	check.Equal(t, "no unit", len(hear(site.TAK, device("ANDROID-3", "b-m-p-s-m", now.Add(time.Minute)))), 0)
}
