package advcache

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/jxta"
)

var t0 = time.Unix(1_000_000, 0)

func adv(id, name string, life time.Duration) Entry {
	return Entry{
		Key: Key{Group: jxta.NetGroup, Type: jxta.TypeAdv, ID: id}, Doc: []byte("<x>" + name + "</x>"),
		Index: []jxta.Field{{Name: "Name", Value: name}}, Expires: t0.Add(life), Peer: "uuid-0103",
	}
}

func ids(es []*Entry) (out []string) {
	for _, e := range es {
		out = append(out, e.ID)
	}
	return out
}

func TestFind(t *testing.T) {
	c := New(100, 1<<20)
	for i, name := range []string{"ship track", "ship chat", "hq track", "Ship track"} {
		c.Put(t0, adv(fmt.Sprint(i), name, time.Hour))
	}
	other := adv("9", "ship track", time.Hour)
	other.Group = "uuid-0A02"
	c.Put(t0, other)
	tests := []struct {
		attr, value string
		limit       int
		want        []string
	}{
		{"", "", 10, []string{"0", "1", "2", "3"}},
		{"", "", 2, []string{"0", "1"}},
		{"Name", "ship track", 10, []string{"0"}},
		{"Name", "ship*", 10, []string{"0", "1"}},
		{"Name", "*track", 10, []string{"0", "2", "3"}},
		{"Name", "*ip*", 10, []string{"0", "1", "3"}},
		{"Name", "*", 10, []string{"0", "1", "2", "3"}},
		{"name", "ship track", 10, nil},
		{"Name", "SHIP TRACK", 10, nil},
	}
	for _, tt := range tests {
		q := Question{Group: jxta.NetGroup, Type: jxta.TypeAdv, Attr: tt.attr, Value: tt.value}
		if got := ids(c.Find(t0, q, tt.limit)); !slices.Equal(got, tt.want) {
			t.Errorf("Find(%q, %q, %d) = %q, want %q", tt.attr, tt.value, tt.limit, got, tt.want)
		}
	}
	if got := ids(c.Find(t0, Question{Group: jxta.NetGroup, Type: jxta.TypeGroup}, 9)); got != nil {
		t.Errorf("other type: %q", got)
	}
	if got := c.Find(t0, Question{Group: jxta.NetGroup, Type: jxta.TypeAdv, Peer: "uuid-0203"}, 9); got != nil {
		t.Errorf("other peer: %q", ids(got))
	}
}

func TestUpperCasedIDIsFound(t *testing.T) {
	c := New(10, 1<<20)
	e := adv("uuid-AB04", "", time.Hour)
	e.Index = []jxta.Field{{Name: "Id", Value: "urn:jxta:uuid-AB04"}}
	c.Put(t0, e)
	q := Question{Group: jxta.NetGroup, Type: jxta.TypeAdv, Attr: "Id", Value: "URN:JXTA:UUID-AB04"}
	if len(c.Find(t0, q, 1)) != 1 {
		t.Error("2.2 asks with upper-cased ids and must be answered")
	}
}

func TestLocalCopyWinsAndOriginsStayApart(t *testing.T) {
	c := New(10, 1<<20)
	far := adv("a", "x", 2*time.Hour)
	far.Site = 7
	c.Put(t0, far)
	q := Question{Group: jxta.NetGroup, Type: jxta.TypeAdv}
	if got := c.Find(t0, q, 1); len(got) != 1 || got[0].Site != 7 {
		t.Fatalf("far copy alone: %+v", got)
	}
	c.Put(t0, adv("a", "x", time.Hour))
	if got := c.Find(t0, q, 1); len(got) != 1 || got[0].Site != 0 {
		t.Fatalf("local copy does not win: %+v", got)
	}
	c.RemoveSite(7)
	if c.Len() != 1 {
		t.Errorf("after the site left: %d entries, want the local one", c.Len())
	}
}

func TestLifetimes(t *testing.T) {
	c := New(10, 1<<20)
	c.Put(t0, adv("a", "x", time.Minute))
	c.Put(t0, adv("b", "x", time.Hour))
	if d := c.Deadline(); !d.Equal(t0.Add(time.Minute)) {
		t.Errorf("deadline %v", d)
	}
	late := t0.Add(time.Minute)
	q := Question{Group: jxta.NetGroup, Type: jxta.TypeAdv}
	if got := ids(c.Find(late, q, 9)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("dead advertisement found: %q", got)
	}
	if gone := c.Expire(late, 10); len(gone) != 1 || gone[0].ID != "a" {
		t.Errorf("Expire = %v", gone)
	}
	if changed, _ := c.Put(late, adv("b", "y", time.Hour)); !changed {
		t.Error("new content not noticed")
	}
	if changed, _ := c.Put(late, adv("b", "y", 2*time.Hour)); changed {
		t.Error("a new expiry alone is no new content")
	}
	if !c.Deadline().Equal(t0.Add(2 * time.Hour)) {
		t.Error("expiry not moved")
	}
	if changed, _ := c.Put(late, adv("b", "y", -time.Hour)); !changed || c.Len() != 0 {
		t.Error("a dead version must remove the living one")
	}
}

func TestBounds(t *testing.T) {
	c := New(3, 1<<20)
	for i, life := range []time.Duration{3, 1, 2} {
		c.Put(t0, adv(fmt.Sprint(i), "x", life*time.Hour))
	}
	_, put := c.Put(t0, adv("new", "x", time.Minute)) // expires first of all, and yet it stays
	if len(put) != 1 || put[0].ID != "1" || c.Len() != 3 {
		t.Errorf("put out %v, %d left", put, c.Len())
	}
	small := New(100, 2000)
	for i := range 50 {
		e := adv(fmt.Sprint(i), "x", time.Hour)
		e.Doc = make([]byte, 300)
		small.Put(t0, e)
		if small.Octets() > 2000 {
			t.Fatalf("%d octets after %d", small.Octets(), i)
		}
	}
	if s := small.Stats(); s.Evicted != 48 {
		t.Errorf("evicted %d, want 48", s.Evicted)
	}
	huge := adv("huge", "x", time.Hour)
	huge.Doc = make([]byte, 3000)
	if _, put := small.Put(t0, huge); len(put) != 1 || small.Stats().Refused != 1 {
		t.Errorf("an advertisement larger than the cache: %v, %+v", put, small.Stats())
	}
	for _, it := range slices.Clone([]*item(small.queue)) {
		small.Remove(it.Key)
	}
	if small.Octets() != 0 || len(small.shelves) != 0 {
		t.Errorf("empty cache holds %d octets, %d lists", small.Octets(), len(small.shelves))
	}
}
