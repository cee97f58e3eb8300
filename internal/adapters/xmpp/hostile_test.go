package xmpp_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/code"
	own "aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// A client that sends ten thousand stanzas at once is told of each that is refused; meanwhile the line of another client crosses.
func TestFlood(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	ship.line("hq.example", anna, "bert@hq.example", "alone", "how long does a line take alone", "")
	begun := w.Now
	for hq.count("how long") == 0 {
		w.Run(100 * time.Millisecond)
	}
	alone := w.Now.Sub(begun)
	w.Run(time.Minute)
	const flood = 10_000
	for i := range flood {
		ship.line("hq.example", "mallory@ship2.example/x", "bert@hq.example", fmt.Sprintf("f%05d.", i), "flood", "")
	}
	ship.line("hq.example", anna, "bert@hq.example", "a2", "and beside a flood", "")
	begun = w.Now
	for hq.count("beside a flood") == 0 && w.Now.Sub(begun) < 10*time.Minute {
		w.Run(100 * time.Millisecond)
	}
	if took := w.Now.Sub(begun); took > 3*alone {
		t.Errorf("beside a flood a line takes %v, alone %v", took, alone)
	}
	refused := ship.count("id='f", "type='error'", "<resource-constraint ")
	w.Run(30 * time.Minute)
	came := hq.count("<body>flood</body>")
	check.Equal(t, "each of the flood came or was refused", came+refused, flood)
	if came == 0 || came > 1000 {
		t.Errorf("%d of the flood came", came)
	}
}

// A stanza that is forged, foreign or out of bounds is refused, counted and reported to its sender, and changes nothing.
func TestStrangers(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	for i, from := range []string{"bert@hq.example", "anna@elsewhere.example/x", "hq.example", "an na@ship2.example", "anna@ship2.example/\u200e\u2028", "@ship2.example", "anna@@ship2.example",
		strings.Repeat("x", 2000) + "@ship2.example", "\u00aa\u1d2c\ufffd@ship2.example", "an:na@ship2.example"} {
		ship.line("hq.example", from, "bert@hq.example", fmt.Sprint("bad", i), "forged", "")
	}
	for i, to := range []string{"hq.example", "bert@ship9.example", "ber t@hq.example", "ops@conference.hq.example", "ops@conference.hq.example/bert"} {
		ship.line("hq.example", anna, to, fmt.Sprint("lost", i), "to nobody", "")
		ship.has(1, "type='error'", fmt.Sprintf("id='lost%d'", i))
	}
	ship.line("hq.example", "ANNA@ship2.example/x", "Bert@HQ.example", "case", "in any letters", "")
	w.DeliverLAN(w.Nodes[1], site.XMPP, xmpp.Skipped{Conn: ship.conn["hq.example"], Element: stanza.New(stanza.Component, "message", "from", anna, "to", "bert@hq.example", "id", "big"),
		Fault: &stanza.Fault{Reason: stanza.TooLong, Text: "a stanza of more than 524288 octets"}})
	ship.has(1, "type='error'", "id='big'", "<policy-violation ")
	w.DeliverLAN(w.Nodes[1], site.XMPP, xmpp.Skipped{Conn: ship.conn["hq.example"], Fault: &stanza.Fault{Reason: stanza.Letters}})
	w.DeliverLAN(w.Nodes[1], site.XMPP, xmpp.Heard{Conn: 1 << 40, Element: stanza.New(stanza.Component, "message")})
	w.Run(time.Minute)
	hq.has(0, "forged")
	hq.has(0, "to nobody")
	hq.has(1, "in any letters", "from='anna@ship2.example'", "to='bert@hq.example'")
	counts := w.adapters[2].Counts()
	for reason, least := range map[string]int{"refused address": 8, "refused foreign": 3, "refused too_long": 1, "refused letters": 1, "refused nobody": 1} {
		if counts[reason] < least {
			t.Errorf("%s: %d, at least %d, in %v", reason, counts[reason], least, counts)
		}
	}
}

// A far site with a valid key sends forged messages: none of them reaches the server, and each has an outcome.
func TestLyingSite(t *testing.T) {
	f, err := xmpp.New(xmpp.Config{ID: 1, Domain: "hq.example", Rooms: "conference.hq.example", Sites: []xmpp.Site{{ID: 2, Domain: "ship2.example", Rooms: "conference.ship2.example"},
		{ID: 3, Domain: "ship3.example", Rooms: "conference.ship3.example"}}}, nil)
	check.NoError(check.Fatal(t), err)
	now := time.Unix(1_800_000_000, 0)
	for i, domain := range []string{"ship2.example", "ship3.example", "conference.ship2.example", "conference.ship3.example"} {
		f.Step(now, xmpp.Opened{Conn: site.ConnID(i + 1), Domain: domain})
	}
	good := (&code.Message{Number: 1, Body: "hello"}).Append(nil)
	token := uint64(0)
	for _, m := range []site.Message{
		{From: "dora@ship3.example", To: "bert", Parts: []site.Part{{Data: good}}},
		{From: "Dora", To: "bert", Parts: []site.Part{{Data: good}}},
		{From: "dora", To: "bert/x", Parts: []site.Part{{Data: good}}},
		{From: "", To: "bert", Parts: []site.Part{{Data: good}}},
		{From: "dora", To: "bert"},
		{From: "dora", To: "bert", Parts: []site.Part{{Data: nil}}},
		{From: "dora", To: "bert", Parts: []site.Part{{Data: []byte{0x84}}}},
		{From: "dora", To: "bert", Parts: []site.Part{{Data: (&code.Message{Body: "a\x01b"}).Append(nil)}}},
		{Published: true, Topic: "#ops@3", From: "dora", Parts: []site.Part{{Data: []byte{0xff}}}},
		{Published: true, Topic: "#ops@2", From: "dora", Parts: []site.Part{{Data: good}}},
		{Published: true, Topic: "#OPS", From: "dora", Parts: []site.Part{{Data: good}}},
		{Published: true, Topic: "#ops@9", From: "dora", Parts: []site.Part{{Data: good}}},
		{Published: true, Topic: "#ops@3", From: "dora", Parts: []site.Part{{Data: code.Removal{User: "bert"}.Append(nil)}}},
		{Published: true, Topic: "#ops@1", From: "captain@hq.example/q", Parts: []site.Part{{Data: (&code.Message{Number: 1, Body: "hello", Fields: []code.Field{{Tag: code.Nick, Text: "eve"}}}).Append(nil)}}},
		{Published: true, Topic: "#ops@3", From: "captain@hq.example/q", Parts: []site.Part{{Data: good}}},
		{Published: true, Topic: "#ops@3", From: "", Parts: []site.Part{{Data: good}}},
		{Published: true, Topic: "outcome", Parts: []site.Part{{Data: []byte{0x16}}}},
	} {
		token++
		out := f.Step(now, site.FarMessage{Site: 2, Token: token, Message: m})
		if len(out.Orders) != 0 || len(out.Undelivered) != 1 || out.Undelivered[0].Token != token {
			t.Errorf("%+v: %+v", m, out)
		}
	}
	eve := code.Occupant{Nick: "eve", Presence: code.Presence{Show: code.Available}}.Append(nil)
	for _, it := range []site.Item{
		{Kind: site.Endpoint, Owner: "dora@ship3.example", Doc: []byte{1}},
		{Kind: site.Endpoint, Owner: "dora", Doc: []byte{9}},
		{Kind: site.Document, Owner: "ops\x09"},
		{Kind: site.Document, Owner: "ops/dora"},
		{Kind: site.Listener, Owner: "ops\x01dora", Doc: []byte{0x42, 2, 'a', 1}},
		{Kind: site.Listener, Owner: "o ps\x01dora"},
		{Kind: site.Listener, Owner: "ops\x02dora"},
		{Kind: site.Listener, Owner: "ops\x01"},
		{Kind: site.Listener, Owner: "dora"},
		{Kind: site.Listener, Owner: "ops\x01captain@hq.example/q", Doc: eve},
		{Kind: site.Listener, Owner: "ops\x03Dora", Doc: eve},
		{Kind: site.Listener, Scope: "ops@1", Owner: "ops\x01dora"},
	} {
		if out := f.Step(now, site.FarItem{Site: 2, Item: it}); len(out.Orders)+len(out.Carry)+len(out.Items) != 0 {
			t.Errorf("%+v: %+v", it, out)
		}
	}
	check.Equal(t, "counted", f.Counts()["far_unreadable"], int(token)+12)

	// The same a hundred thousand times: it is named in the log once a minute, and the gateway does not grow.
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const lies = 100_000
	named := 0
	for i := range lies {
		now = now.Add(time.Hour / lies)
		lie := site.FarMessage{Site: 2, Token: uint64(i), Message: site.Message{From: fmt.Sprintf("u%d@ship3.example", i), To: "bert", Parts: []site.Part{{Data: good}}}}
		if i%2 == 0 {
			lie.Message = site.Message{Published: true, Topic: fmt.Sprintf("#r%d@9", i), From: "dora", Parts: []site.Part{{Data: good}}}
		}
		out := f.Step(now, lie)
		if named += len(out.Notes); len(out.Orders) != 0 || len(out.Undelivered) != 1 {
			t.Fatalf("lie %d: %+v", i, out)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d lies: %d lines of the log, %d KiB more", lies, named, (int64(after.HeapAlloc)-int64(before.HeapAlloc))/1024)
	check.True(t, "named, once a minute", named >= 59 && named <= 61, named)
	check.True(t, "little memory", int64(after.HeapAlloc)-int64(before.HeapAlloc) < 4<<20)
}

// A user who enters more rooms than allowed is refused in the last. Others can enter theirs, and so can the user after leaving one.
func TestManyRooms(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	ship := w.servers[2]
	w.Run(time.Minute)
	presence := func(kind string, i int) {
		ship.say("conference.hq.example", "<presence from='mallory@ship2.example/x' to='room%d@conference.hq.example/m'%s/>", i, kind)
		w.Run(time.Millisecond)
	}
	for i := range 1010 {
		presence("", i)
	}
	ship.has(810, "type='error'", "<resource-constraint ")
	a := far{ship, anna, "anna"}
	a.enter()
	check.Equal(t, "anna is in", a.heard("<presence from='"+room+"/anna'", "code='110'"), 1)
	for i := range 200 {
		presence(" type='unavailable'", i)
	}
	presence("", 1000)
	ship.has(1, "room1000@", "code='110'")
}

// Rooms of which far sites speak and in which nobody is leave room for others.
func TestRoomsWithoutOccupants(t *testing.T) {
	f, err := xmpp.New(xmpp.Config{ID: 1, Domain: "hq.example", Rooms: "conference.hq.example", Sites: []xmpp.Site{{ID: 2, Domain: "ship2.example", Rooms: "conference.ship2.example"}}}, nil)
	check.NoError(check.Fatal(t), err)
	now := time.Unix(1_800_000_000, 0)
	f.Step(now, xmpp.Opened{Conn: 1, Domain: "ship2.example"})
	f.Step(now, xmpp.Opened{Conn: 2, Domain: "conference.ship2.example"})
	for i, owner := range []string{"r%d\x01", "r%d/"} {
		for n := range 1000 {
			f.Step(now, site.FarItem{Site: 2, Item: site.Item{Kind: site.Document, Owner: fmt.Sprintf(owner, n)}})
		}
		out := f.Step(now, xmpp.Heard{Conn: 2, Element: parse(t, fmt.Sprintf("<presence from='bert@hq.example/x' to='ops%d@conference.ship2.example/bert'><x xmlns='http://jabber.org/protocol/muc'/></presence>", i))})
		in := 0
		for _, o := range out.Orders {
			if s, ok := o.(xmpp.Send); ok && strings.Contains(string(s.XML), "code='110'") {
				in++
			}
		}
		check.Equal(t, "bert is in", in, 1)
	}
}

// A far site that states a thousand rooms gets a quarter of them: more are refused, also for its lines, and users here enter theirs. A room
// where somebody here is takes its users in, and after the loss of the site it begins anew.
func TestRoomsOfLiar(t *testing.T) {
	f, err := xmpp.New(xmpp.Config{ID: 1, Domain: "hq.example", Rooms: "conference.hq.example", Own: true, Users: []string{"bert"}, Sites: []xmpp.Site{{ID: 2, Domain: "ship2.example", Rooms: "conference.ship2.example"},
		{ID: 3, Domain: "ship3.example", Rooms: "conference.ship3.example"}}}, nil)
	check.NoError(check.Fatal(t), err)
	now := time.Unix(1_800_000_000, 0)
	dora := code.Occupant{Presence: code.Presence{Show: code.Available}}.Append(nil)
	states := func(from uint16, owner string) {
		f.Step(now, site.FarItem{Site: from, Item: site.Item{Kind: site.Listener, Owner: owner, Doc: dora}})
	}
	f.Step(now, own.Came{Conn: 1, User: "bert", Seed: make([]byte, 16)})
	says := func(format string, args ...any) (got string) {
		for _, o := range f.Step(now, own.Said{Conn: 1, Element: parse(t, fmt.Sprintf(format, args...)).In(stanza.Component, stanza.Client)}).Orders {
			got += string(o.(own.Send).XML)
		}
		return got
	}
	says("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>x</resource></bind></iq>")
	enters := func(room string) {
		t.Helper()
		check.True(t, "bert is in", strings.Contains(says("<presence to='%s/bert'><x xmlns='http://jabber.org/protocol/muc'/></presence>", room), "code='110'"), room)
	}
	for i := range 1000 {
		states(2, fmt.Sprintf([]string{"r%d\x01dora", "r%d\x03dora", "r%d/dora"}[i%3], i))
	}
	check.Equal(t, "refused", f.Counts()["refused rooms"], 750)
	line := site.Message{Published: true, Topic: "#more@1", From: "dora", Parts: []site.Part{{Data: (&code.Message{Number: 7, Body: "hello"}).Append(nil)}}}
	check.Equal(t, "done", len(f.Step(now, site.FarMessage{Site: 2, Token: 9, Message: line}).Done), 1)
	check.Equal(t, "refused with a line", f.Counts()["refused rooms"], 751)
	states(2, "r0\x01eve") // a room that it has
	states(3, "elsewhere\x01dora")
	check.Equal(t, "refused in all", f.Counts()["refused rooms"], 751)
	for _, room := range []string{"mess@conference.hq.example", "mess@conference.ship2.example"} {
		enters(room)
	}
	states(2, "mess\x01dora")
	states(2, "mess/dora")
	check.Equal(t, "refused where bert is", f.Counts()["refused rooms"], 751)
	f.Step(now, site.SiteLost{Site: 2})
	states(2, "more\x01dora")
	check.Equal(t, "refused anew", f.Counts()["refused rooms"], 751)
}

// A line of a far occupant for whom a full room has no place is refused: it would look like a line of the room itself.
func TestLineToAFullRoom(t *testing.T) {
	f, err := xmpp.New(xmpp.Config{ID: 1, Domain: "hq.example", Rooms: "conference.hq.example", Own: true, Users: []string{"bert"}, Sites: []xmpp.Site{{ID: 2, Domain: "ship2.example"}}}, nil)
	check.NoError(check.Fatal(t), err)
	now := time.Unix(1_800_000_000, 0)
	f.Step(now, own.Came{Conn: 1, User: "bert", Seed: make([]byte, 16)})
	for _, text := range []string{"<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>x</resource></bind></iq>",
		"<presence to='mess@conference.hq.example/bert'><x xmlns='http://jabber.org/protocol/muc'/></presence>"} {
		f.Step(now, own.Said{Conn: 1, Element: parse(t, text).In(stanza.Component, stanza.Client)})
	}
	for i := range 1000 {
		f.Step(now, site.FarItem{Site: 2, Item: site.Item{Kind: site.Listener, Owner: fmt.Sprintf("mess\x01u%d", i), Doc: code.Occupant{Presence: code.Presence{Show: code.Available}}.Append(nil)}})
	}
	line := site.Message{Published: true, Topic: "#mess@1", From: "late", Parts: []site.Part{{Data: (&code.Message{Number: 7, Body: "I am the room"}).Append(nil)}}}
	out := f.Step(now, site.FarMessage{Site: 2, Token: 9, Message: line})
	check.Equal(t, "done", len(out.Done), 1)
	for _, o := range out.Orders {
		check.Lacks(t, "what bert is shown", string(o.(own.Send).XML), "I am the room")
	}
}
