package jxtabridge

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

func TestAdvertsAreDescribed(t *testing.T) {
	n := newNode(t, 1)
	f := n.peer("A", "cbid")
	f.publish(jxta.NetGroup, specOf("track", pipe1), time.Hour)
	n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Document, Scope: jxta.NetGroup, Sub: jxta.TypeAdv, ID: "uuid-0A06", Doc: []byte("<x:A><Name>x</Name></x:A>"), Expires: n.now.Add(time.Hour)}})
	keys := n.b.EntryKeys()
	if len(keys) != 2 {
		t.Fatalf("%d keys", len(keys))
	}
	for _, a := range n.b.Entries(n.now, keys) {
		switch a.Site {
		case 0:
			check.Equal(t, "a.Subject.Type", a.Subject.Type, "spec")
			check.Equal(t, "a.Subject.Name", a.Subject.Name, "track")
			check.Equal(t, "a.Subject.Topic", a.Subject.Topic, pipe1)
			check.Equal(t, "a.Subject.Owner", a.Subject.Owner, f.id)
			check.True(t, "the local entry kept at home", a.Item.Home)
			check.Equal(t, "a.Item.Owner", a.Item.Owner, f.id)
		case 2:
			if a.Subject.Root != "x:A" || a.Item.Kind != 0 {
				t.Errorf("far: %+v", a)
			}
		}
	}
	if got := n.b.Entries(n.now.Add(2*time.Hour), keys); len(got) != 0 {
		t.Errorf("%d dead ones are described", len(got))
	}
}

// How long gateway adverts holds up the loop with 100,000 advertisements: once for the keys, and for each batch of 200.
func BenchmarkAdverts(b *testing.B) {
	const many = 100_000
	bridge := New(Config{Name: "gw", Address: "10.0.0.1:9701", Identity: identities()[0], MaxAdverts: many, MaxAdvertOctets: 1 << 30}, nil)
	for i := range many {
		bridge.Step(t0, site.FarItem{Site: 2, Item: site.Item{Kind: site.Document, Scope: jxta.NetGroup, Sub: jxta.TypeAdv, ID: fmt.Sprintf("uuid-%030X06", i),
			Doc: []byte(fmt.Sprintf("<x:A><Id>%d</Id><Name>advertisement %d</Name><Desc>of something</Desc></x:A>", i, i)), Expires: t0.Add(time.Hour)}})
	}
	var keys []site.EntryKey
	b.Run("keys", func(b *testing.B) {
		for b.Loop() {
			keys = bridge.EntryKeys()
		}
	})
	b.Run("rows", func(b *testing.B) {
		for b.Loop() {
			if len(bridge.Entries(t0, keys[:200])) != 200 {
				b.Fatal("not all are there")
			}
		}
	})
}
