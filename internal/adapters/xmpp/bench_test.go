package xmpp_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/site"
)

// BenchmarkRoomLine is a line in one of 200 rooms of a far site, each with 50 clients here.
func BenchmarkRoomLine(b *testing.B) {
	f, err := xmpp.New(xmpp.Config{ID: 2, Domain: "ship2.example", Sites: []xmpp.Site{{ID: 1, Domain: "hq.example", Rooms: "conference.hq.example"}}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	f.Step(now, xmpp.Opened{Conn: 1, Domain: "hq.example"})
	f.Step(now, xmpp.Opened{Conn: 2, Domain: "conference.hq.example"})
	t := &testing.T{}
	for user := range 100 {
		for i := range 100 {
			now = now.Add(time.Second)
			f.Step(now, xmpp.Heard{Conn: 2, Element: parse(t, fmt.Sprintf("<presence from='u%d@ship2.example/x' to='r%d@conference.hq.example/u%d'/>", user, (user%2)*100+i, user))})
		}
	}
	line := parse(t, "<message from='u1@ship2.example/x' to='r100@conference.hq.example' type='groupchat' id='1'><body>Request permission to come alongside at 1430</body></message>")
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		out := f.Step(now, xmpp.Heard{Conn: 2, Element: line})
		if len(out.Carry) != 1 || len(out.Orders) < 50 {
			b.Fatalf("%d to custody, %d orders", len(out.Carry), len(out.Orders))
		}
		f.Step(now, xmpp.Heard{Conn: 2, Element: parse(t, "<iq type='result' id='"+lastPing(out)+"' from='ship2.example' to='conference.hq.example'/>")})
	}
}

// lastPing is the id of the ping that was written last.
func lastPing(out site.Output) string {
	for i := len(out.Orders) - 1; i >= 0; i-- {
		if m := ping.FindSubmatch(out.Orders[i].(xmpp.Send).XML); m != nil {
			return string(m[1])
		}
	}
	return ""
}
