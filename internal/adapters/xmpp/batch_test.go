package xmpp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// Lines that wait for each other go as one message, come one by one and in order, with receipts of each, also when the gateway is killed
// while they wait. If the message expires, the sender of each line is told, also by a later run.
func TestBatches(t *testing.T) {
	w := newWorld(t, 2, "hf-2400", 7, func(c *xmpp.Config) { c.Life = time.Hour })
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	say := func(id string) {
		for i := range 10 {
			ship.line("hq.example", anna, "bert@hq.example", fmt.Sprint(id, i), fmt.Sprintf("%s says %d.", id, i), "<request xmlns='urn:xmpp:receipts'/>")
		}
	}
	before := w.adapters[2].Counts()["messages"]
	say("first")
	check.Equal(t, "messages", w.adapters[2].Counts()["messages"]-before, 10)
	w.kill(2)
	w.Run(3 * time.Minute)
	say("second")
	w.Run(3 * time.Minute)
	at, ids := 0, map[string]bool{}
	for _, one := range hq.got {
		if !strings.Contains(one, " says ") {
			continue
		}
		want := fmt.Sprintf("%s says %d.", []string{"first", "second"}[min(at/10, 1)], at%10)
		if at++; !strings.Contains(one, want) {
			t.Errorf("%s came in the place of %q", one, want)
		}
		e := parse(t, one)
		if ids[e.Get("id")] {
			t.Errorf("two lines have the id %s", e.Get("id"))
		}
		ids[e.Get("id")] = true
		hq.say("ship2.example", "<message from='%s' to='anna@ship2.example' id='r'><received xmlns='urn:xmpp:receipts' id='%s'/></message>", bert, e.Get("id"))
	}
	check.Equal(t, "lines", at, 20)
	w.Run(3 * time.Minute)
	for i := range 10 {
		ship.has(1, "<received xmlns='urn:xmpp:receipts' id='"+fmt.Sprint("first", i)+"'/>")
		ship.has(1, "<received xmlns='urn:xmpp:receipts' id='"+fmt.Sprint("second", i)+"'/>")
	}
	w.Outage(w.Nodes[1], 5*time.Hour)
	for range 40 { // the first messages go on the air, and are carried through
		ship.line("hq.example", anna, "bert@hq.example", "air", strings.Repeat("long ", 300), "")
		w.Run(time.Second)
	}
	say("late")
	w.Run(time.Minute)
	w.kill(2)
	w.Run(3 * time.Hour)
	w.kill(2)
	w.Run(4 * time.Hour)
	all := 0
	for i := range 10 {
		came, told := hq.count(fmt.Sprintf("late says %d.", i)), ship.count(fmt.Sprintf("id='late%d'", i), "<remote-server-timeout ")
		if all += told; came+told != 1 {
			t.Errorf("line %d came %d times, and its sender was told %d times", i, came, told)
		}
	}
	if all == 0 {
		t.Error("no line has expired")
	}
	// A forged batch, or one of a newer version.
	for _, data := range [][]byte{{0xa0}, {0xa0, 1, 0xa0, 1, 0}, {0xa0, 200, 0}, append([]byte{0xa0}, make([]byte, 600)...)} {
		out := w.adapters[1].Step(w.Now, site.FarMessage{Site: 2, Token: 1 << 40, Message: site.Message{Adapter: site.XMPP, From: "anna", To: "bert", Parts: []site.Part{{Data: data}}}})
		if len(out.Undelivered) != 1 || out.Undelivered[0].Token != 1<<40 {
			t.Errorf("the batch %x is taken: %+v", data[:min(8, len(data))], out)
		}
	}
	lines, err := code.ParseBatch(code.AppendBatch(nil, [][]byte{{0, 5, 'h', 'i'}, {0, 6}}))
	if err != nil || len(lines) != 2 || string(lines[0]) != "\x00\x05hi" {
		t.Errorf("%q: %v", lines, err)
	}
}

// The octets of a batch are bounded, however long each of its lines is, and the journal keeps each line once.
func TestBatchesAreBounded(t *testing.T) {
	f, err := xmpp.New(xmpp.Config{ID: 2, Domain: "ship2.example", Sites: []xmpp.Site{{ID: 1, Domain: "hq.example"}}, Gather: time.Second}, nil)
	check.NoError(check.Fatal(t), err)
	now := time.Unix(1_800_000_000, 0)
	f.Step(now, xmpp.Opened{Conn: 1, Domain: "hq.example"})
	octets, kept := 0, 0
	var batches [][]byte
	take := func(out site.Output) {
		for _, c := range out.Carry {
			batches = append(batches, c.Message.Parts[0].Data)
		}
		for _, m := range out.Remember {
			if strings.HasPrefix(m.Key, "b") && m.Value != nil {
				kept += len(m.Value)
			}
		}
	}
	const lines = 40
	for i := range lines {
		text := strings.Repeat("x", map[bool]int{true: 3000, false: 10}[i%4 == 3])
		octets += len(text)
		take(f.Step(now, xmpp.Heard{Conn: 1, Element: parse(t, "<message from='"+anna+"' to='bert@hq.example' type='chat' id='i'><body>"+text+"</body></message>")}))
	}
	take(f.Step(now.Add(2*time.Second), nil))
	came := 0
	for _, b := range batches {
		if len(b) > 5<<10 {
			t.Errorf("a batch of %d octets", len(b))
		}
		list, err := code.ParseBatch(b)
		if came += max(1, len(list)); err != nil && code.IsBatch(b) {
			t.Error(err)
		}
	}
	check.Equal(t, "lines", came, lines)
	if kept > octets+200*lines {
		t.Errorf("the journal was given %d octets for %d", kept, octets)
	}
}

// If air is plentiful, the model codes the messages of people, and not those of machines.
func TestPlentyOfAir(t *testing.T) {
	for name, most := range map[string]uint64{"wire": 40_000, "iridium-dialup": 1 << 40} {
		w := newWorld(t, 2, name, 7)
		w.Run(time.Minute)
		before := w.Nodes[1].GW.Status(w.Now).Modelled
		for i := range 300 {
			w.servers[2].line("hq.example", anna, "bert@hq.example", fmt.Sprint("m", i), fmt.Sprintf("%s This is line %d.", sentences[i%10], i), "")
		}
		w.Run(5 * time.Minute)
		w.servers[1].has(300, "This is line ")
		if work := w.Nodes[1].GW.Status(w.Now).Modelled - before; work > most || most == 1<<40 && work < 100_000 {
			t.Errorf("on %s the model had %d octets of work", name, work)
		}
	}
}
