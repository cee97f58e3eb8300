package advcache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
)

// plainFind is Find without any index: every entry in order of arrival, one after the other.
func plainFind(c *Cache, now time.Time, q Question) (out []string) {
	s := c.shelves[list{q.Group, q.Type}]
	if s == nil {
		return nil
	}
	for it := s.first; it != nil; it = it.after {
		if now.Before(it.Expires) && q.Matches(&it.Entry) && s.best(now, q, it) {
			out = append(out, fmt.Sprint(it.ID, " of ", it.Site))
		}
	}
	return out
}

func names(es []*Entry) (out []string) {
	for _, e := range es {
		out = append(out, fmt.Sprint(e.ID, " of ", e.Site))
	}
	return out
}

// The index finds the same as a search through every entry, whatever was put, replaced, removed and has expired.
func TestIndexMissesNothing(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 5))
		word := func() string { // few letters, so that values share heads, tails and middles
			b := make([]byte, rng.IntN(5))
			for i := range b {
				b[i] = "abAB*é"[rng.IntN(6)]
			}
			return string(b)
		}
		c := New(3000, 1<<20)
		now := t0
		for step := range 6000 {
			e := adv(fmt.Sprintf("uuid-%02X04", rng.IntN(900)), "", time.Duration(rng.IntN(4000))*time.Second)
			e.Site, e.Peer, e.Expires = uint16(rng.IntN(3)), fmt.Sprintf("cbid-0%d03", rng.IntN(5)), now.Add(time.Duration(rng.IntN(4000))*time.Second)
			e.Index = []jxta.Field{{Name: "Id", Value: "urn:jxta:" + e.ID}, {Name: "Name", Value: word()}, {Name: "Name", Value: word()}}
			switch rng.IntN(12) {
			case 0:
				c.Remove(e.Key)
			case 1:
				now = now.Add(time.Second)
				c.Expire(now, 3)
			case 2:
				if step%1000 == 999 {
					c.RemoveSite(2)
				}
			default:
				e.Doc = []byte(e.Index[1].Value)
				c.Put(now, e)
			}
			if step%20 != 0 {
				continue
			}
			q := Question{Group: jxta.NetGroup, Type: jxta.TypeAdv, Attr: "Name", Value: []string{"", "*"}[rng.IntN(2)] + word() + []string{"", "*"}[rng.IntN(2)]}
			switch rng.IntN(5) {
			case 0:
				q.Attr, q.Value = "Id", strings.ToUpper("urn:jxta:"+e.ID)
			case 1:
				q.Peer = "cbid-0103"
			case 2:
				q.Peer, q.Attr, q.Value = "cbid-0203", "", ""
			}
			want := plainFind(c, now, q)
			if got := names(c.Find(now, q, 1<<20)); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d, %+v: found %q, want %q", seed, step, q, got, want)
			}
			few := names(c.Find(now, q, 3))
			if len(few) != min(3, len(want)) {
				t.Fatalf("seed %d, step %d, %+v: found %q of %d", seed, step, q, few, len(want))
			}
			for _, id := range few {
				if !slices.Contains(want, id) {
					t.Fatalf("seed %d, step %d, %+v: found %q", seed, step, q, id)
				}
			}
		}
		count := 0
		for _, s := range c.shelves {
			for it := s.first; it != nil; it = it.after {
				count++
			}
			for name, f := range s.fields {
				for _, o := range []struct {
					s sorted
					o order
				}{{f.forward, compareForward}, {f.backward, compareBackward}} {
					if all := slices.Concat(o.s.blocks...); !slices.IsSortedFunc(all, o.o.refs) {
						t.Errorf("%s is out of order", name)
					}
				}
			}
		}
		if count != c.Len() || c.LenOf(0)+c.LenOf(1)+c.LenOf(2) != count {
			t.Errorf("%d entries counted, Len %d, of sites %d, %d, %d", count, c.Len(), c.LenOf(0), c.LenOf(1), c.LenOf(2))
		}
		for len(c.queue) > 0 {
			c.Remove(c.queue[0].Key)
		}
		if len(c.shelves) != 0 || c.Octets() != 0 || len(c.bySite) != 0 {
			t.Errorf("an empty cache has %d shelves, %d octets", len(c.shelves), c.Octets())
		}
	}
}

func TestHas(t *testing.T) {
	c := New(10, 1<<20)
	c.Put(t0, adv("a", "Ship Track", time.Hour))
	for value, want := range map[string]bool{"SHIP TRACK": true, "ship track": true, "ship": false, "ship track 2": false, "": false} {
		if c.Has(jxta.NetGroup, jxta.TypeAdv, "Name", value) != want {
			t.Errorf("Has(%q) = %v", value, !want)
		}
	}
	if c.Has(jxta.NetGroup, jxta.TypeAdv, "Id", "x") || c.Has("uuid-0A02", jxta.TypeAdv, "Name", "ship track") {
		t.Error("found where nothing is")
	}
}

func BenchmarkPut(b *testing.B) {
	c := New(100000, 1<<30)
	for i := range 100000 {
		c.Put(t0, adv(fmt.Sprint(i), fmt.Sprintf("track %06d", i*7919%100000), time.Hour))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ { // one more comes: one is dropped
		c.Put(t0, adv(fmt.Sprint("n", i), fmt.Sprintf("track %06d", i*104729%100000), time.Hour))
	}
}
