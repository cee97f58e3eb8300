package group_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/lab/carriernet"
	"aldis/internal/lab/check"
	"aldis/internal/link/frame"
	"aldis/internal/pmul"
)

// buckets are those of the carrier and its engines, and those of the store and the reader.
var buckets = []string{"mul-flow", "mul-next", "mul-acked", "mul-early", "early", "pmul-in", "pmul-frag", "pmul-fec", "pmul-done", "pmul-out",
	"pmul-begun", "pmul-fate", "pmul-node", "mail", "to", "ordered", "peer", "first", "path", "mul-ended"}

// busy is a game whose first node has records of every kind: messages that wait, are under way, came early, and fragments of a long one.
func busy(t *testing.T) *game {
	g := begin(t, config{Plain: true, Spoilt: true})
	g.say(2, 30*time.Second)
	g.b.Say(carriernet.Report(2, 0), 1, 3)
	g.Run(time.Minute)
	var missing pmul.MessageID
	g.lose(func(d carriernet.Datagram, to *carriernet.Node) bool {
		data := pdus[pmul.DataPDU](d)
		if len(data) > 0 && missing == 0 {
			missing = data[0].Message
		}
		return to == g.a && slices.ContainsFunc(data, func(p pmul.DataPDU) bool { return p.Message == missing })
	})
	g.b.Say(carriernet.Report(2, 1), 1, 3)
	g.Run(4 * time.Second)
	g.b.Say(carriernet.Report(2, 2), 1, 3)
	g.Run(4 * time.Second)
	g.c.Say(carriernet.Noise(3, 0, 0, 3000), 1, 2)
	g.Run(6 * time.Second)
	g.a.Say(carriernet.Noise(1, 0, 90, 2000), 2, 3)
	g.a.Say(carriernet.Report(1, 91), 2)
	id := g.a.Say(carriernet.Report(1, 92), 2, 3)
	g.a.Do(func(now time.Time) { g.orders().Hold(now, g.a.Entry(id, 2), true) })
	g.Run(2 * time.Second)
	g.Fate = nil
	return g
}

// starts has a node start with a journal and live for a while. A journal is refused, or it is used; nothing panics.
func (g *game) starts(t check.T, journal []api.Record) {
	defer func() {
		if why := recover(); why != nil {
			t.Fatalf("the node panics: %v", why)
		}
	}()
	if g.StartWith(g.a, journal) == nil {
		g.Run(15 * time.Second)
	}
}

// Any one record of a busy journal may be spoilt: the start refuses it with an error, or goes on, and lives.
func TestSpoiltRecords(t *testing.T) {
	t.Parallel()
	g, seen := busy(t), map[string]bool{}
	journal := g.a.Journal()
	for i, r := range journal {
		if seen[r.Bucket] {
			continue
		}
		seen[r.Bucket] = true
		g.starts(check.In(t, "without", r.Bucket, fmt.Sprintf("%x", r.Key)), slices.Delete(slices.Clone(journal), i, i+1))
		for k, bad := range carriernet.Spoilt(r, 24) {
			changed := slices.Clone(journal)
			changed[i] = bad
			g.starts(check.In(t, r.Bucket, fmt.Sprintf("%x", r.Key), "form", k), changed)
		}
	}
	for _, bucket := range []string{"mul-flow", "mul-next", "mul-acked", "mul-ended", "early", "pmul-in", "pmul-frag", "pmul-done", "pmul-out", "mail", "to", "ordered"} {
		check.Equal(check.In(t, bucket), "the journal has such records", seen[bucket], true)
	}
}

// FuzzRestore gives a carrier a record of its journal that anything may have written: the record is an error, or it is used, and the
// node lives.
func FuzzRestore(f *testing.F) {
	var t testing.T
	n := map[string]int{}
	for _, r := range busy(&t).a.Journal() {
		if n[r.Bucket]++; n[r.Bucket] <= 2 {
			f.Add(uint8(slices.Index(buckets, r.Bucket)), r.Key, r.Value)
		}
	}
	f.Fuzz(func(t *testing.T, bucket uint8, key, value []byte) {
		g := begin(t, config{Plain: true, Spoilt: true})
		g.say(1, time.Second)
		r := api.Record{Bucket: buckets[int(bucket)%len(buckets)], Key: key, Value: value}
		g.starts(t, append(g.a.Journal(), r))
	})
}

// A member that writes the Source_ID of another into a PDU is not heard: it ends no custody and delivers nothing in the other's name.
func TestPDUInTheNameOfAnother(t *testing.T) {
	g := plain(t)
	g.lose(func(_ carriernet.Datagram, to *carriernet.Node) bool { return to == g.b })
	message := g.a.Entry(g.a.Say(carriernet.Report(1, 0), 2, 3), 2).At.Number
	g.Run(5 * time.Second)
	forge := func(at *carriernet.Node, pdus ...pmul.PDU) {
		t.Helper()
		body, err := pmul.AppendCompact(nil, 3, pmul.NodeID(at.ID), pdus...)
		check.NoError(check.Fatal(t), err)
		before := at.Drops["p_mul"]
		at.Do(func(now time.Time) {
			for _, c := range at.Bearer.Carriers {
				c.Receive(now, at.Peer(3), frame.PMul{Body: body}, len(body), true)
			}
		})
		check.Equal(t, "datagrams that are dropped", at.Drops["p_mul"]-before, 1)
	}
	ack := pmul.AckPDU{Source: 2, Entries: []pmul.AckEntry{{Source: 1, Message: pmul.MessageID(message)}}}
	forge(g.a, ack)
	ack.Stamped = true // in the form of ACP 142
	forge(g.a, ack)
	check.Equal(t, "delivered to node 2", g.a.Fates(2)[mail.Delivered], 0)
	forge(g.a, pmul.AddressPDU{Source: 2, Total: 1, Message: 7, Expiry: g.Now.Add(time.Hour), Destinations: []pmul.Destination{{Node: 1, Sequence: 1}}},
		pmul.DataPDU{Source: 2, Message: 7, Number: 1, Fragment: []byte("x")})
	for _, pdu := range []pmul.PDU{pmul.DiscardPDU{Source: 2, Message: 7}, pmul.ParityPDU{Source: 2, Message: 7, Shard: []byte("x")},
		pmul.AnnouncePDU{Source: 2, Message: 7, Expiry: g.Now}, pmul.RequestPDU{Source: 2}, pmul.RejectPDU{Source: 2}, pmul.ReleasePDU{Source: 2}} {
		forge(g.a, pdu)
	}
	g.Fate = nil
	g.Run(5 * time.Minute)
	g.heard("0")
	g.ended(1)
}
