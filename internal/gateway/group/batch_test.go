package group_test

import (
	"testing"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/link/frame"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// batches are the messages on the air that consist of several.
func batches(list []carriernet.Datagram) map[pmul.MessageID]bool {
	ids := map[pmul.MessageID]bool{}
	for _, d := range list {
		for _, a := range pdus[pmul.AddressPDU](d) {
			if a.Batch {
				ids[a.Message] = true
			}
		}
	}
	return ids
}

// sayMany has a say so many messages at once to b and c.
func (g *game) sayMany(n int) (ids []uint64) {
	var list []site.Message
	for range n {
		list = append(list, carriernet.Report(1, g.said))
		g.said++
	}
	return g.a.SayAll(list, 2, 3)
}

// Messages that wait together go as one and are delivered in order, each with fates and a life of its own.
func TestBatch(t *testing.T) {
	g := begin(t, config{Plain: true})
	before := g.Now
	ids := g.sayMany(20)
	g.Run(10 * time.Minute)
	g.heard("0..19")
	g.ended(20)
	check.True(t, "batches", len(batches(g.since(before, g.a))) > 0)
	check.Equal(t, "messages that are one of the queue", len(ids), 20)
}

// While a peer runs a version that does not know batches, none goes out. When the last of them says that
// it knows them, or is gone, they do.
func TestBatchOnlyWhereAllKnowThem(t *testing.T) {
	g := plain(t)
	old := g.a.Peer(3)
	check.True(check.Fatal(t), "all know them", old.Handshake.Ahead && g.a.Peer(2).Handshake.Ahead)
	say := func(what string, some bool) {
		t.Helper()
		before, said := g.Now, len(g.b.Said(1))
		g.sayMany(20)
		g.Run(10 * time.Minute)
		check.Equal(t, what+": batches", len(batches(g.since(before, g.a))) > 0, some)
		check.Equal(t, what+": messages that came", len(g.b.Said(1))-said, 20)
	}
	old.Handshake.Ahead = false
	say("an older version", false)
	check.Equal(t, "delivered to it", g.a.Fates(3)[mail.Delivered], 20)
	g.Kill(g.a, time.Second)
	g.Run(time.Minute)
	say("it says that it knows them", true)
	old = g.a.Peer(3)
	old.Handshake.Ahead = false
	g.Run(time.Minute)
	say("an older version again", false)
	old.Gone = true
	say("it is gone", true)
}

// A HELLO or a Greeting of an older version says nothing of batches; this version says in both that it knows them.
func TestHelloSaysBatches(t *testing.T) {
	g := plain(t)
	var h frame.Hello
	g.a.Do(func(now time.Time) { h = g.a.Hello(now, g.a.Peer(2)) })
	check.True(t, "this version", h.Ahead && h.Segments)
	f, _, err := frame.Parse(frame.Append(nil, h, true))
	check.NoError(check.Fatal(t), err)
	check.True(t, "on the air", f.(frame.Hello).Ahead)
	h.Segments, h.Ahead = false, false
	f, _, err = frame.Parse(frame.Append(nil, h, true))
	check.NoError(check.Fatal(t), err)
	check.True(t, "an older version", !f.(frame.Hello).Ahead && !f.(frame.Hello).Segments)
}
