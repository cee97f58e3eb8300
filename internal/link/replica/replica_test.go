package replica

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

var epoch = time.Unix(1_800_000_000, 0)

func adv(id, doc string, expires time.Time) site.Item {
	return site.Item{Kind: site.Document, Scope: "jxta-NetGroup", Owner: "cbid-01", ID: id, Sub: 2, Doc: []byte(doc), Expires: expires}
}

func gone(it site.Item) site.Item {
	return site.Item{Kind: it.Kind, Scope: it.Scope, Owner: it.Owner, ID: it.ID, Sub: it.Sub, Gone: true}
}

func TestOnlyChangesTravel(t *testing.T) {
	r := New([]uint16{1})
	hour := epoch.Add(time.Hour)
	a := adv("a", "one", hour)
	r.Put(a)
	if got := r.Next(epoch, 1, 9); !reflect.DeepEqual(got, []site.Item{a}) {
		t.Fatalf("new item: Next = %v", got)
	}
	r.Sent(1, 1, []site.Item{a})
	if got := r.Next(epoch, 1, 9); got != nil {
		t.Errorf("on its way: Next = %v, want nothing", got)
	}
	b := adv("a", "two", hour)
	r.Put(b)
	if got := r.Next(epoch, 1, 9); got != nil {
		t.Errorf("changed while on its way: Next = %v, want to wait", got)
	}
	if r.Digest(epoch, 1) != 0 {
		t.Error("something flies: the digest must not speak")
	}
	r.Acked(1, 1)
	if got := r.Next(epoch, 1, 9); !reflect.DeepEqual(got, []site.Item{b}) {
		t.Errorf("the older version has arrived: Next = %v, want the newer", got)
	}
	r.Sent(1, 2, []site.Item{b})
	r.Acked(1, 2)
	r.Put(adv("a", "two", hour.Add(10*time.Minute)))
	if got := r.Next(epoch, 1, 9); got != nil {
		t.Errorf("ten minutes more of an hour: Next = %v, want nothing yet", got)
	}
	if got := r.Next(epoch.Add(51*time.Minute), 1, 9); len(got) != 1 {
		t.Errorf("nine minutes left of nineteen: Next = %v, want the lifetime renewed", got)
	}
	r.Put(gone(a))
	if got := r.Next(epoch, 1, 9); !reflect.DeepEqual(got, []site.Item{gone(a)}) {
		t.Errorf("withdrawn: Next = %v", got)
	}
	if got := r.Next(hour, 1, 9); got != nil {
		t.Errorf("withdrawn and expired: Next = %v, want silence", got)
	}
}

func TestPutSaysWhatChanged(t *testing.T) {
	r := New(nil)
	a := adv("a", "one", epoch)
	for i, step := range []struct {
		it   site.Item
		want bool
	}{{gone(a), false}, {a, true}, {a, false}, {adv("a", "one", epoch.Add(1)), false}, {adv("a", "two", epoch), true}, {gone(a), true}} {
		if got := r.Put(step.it); got != step.want {
			t.Errorf("step %d: Put = %v, want %v", i, got, step.want)
		}
	}
}

// TestCopiesBecomeEqual changes a site's state at random, loses acknowledgements or a whole store now and then, and expects
// an equal copy at the end, with digests that say so.
func TestCopiesBecomeEqual(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			r := New([]uint16{1})
			copied := map[string]site.Item{}
			now, number := epoch, uint64(0)
			type message struct {
				number uint64
				items  []site.Item
			}
			var air []message
			deliver := func() {
				m := air[0]
				air = air[1:]
				for _, it := range m.items {
					if it.Gone {
						delete(copied, it.Key())
					} else {
						copied[it.Key()] = it
					}
				}
				r.Acked(1, m.number)
			}
			step := func() {
				if items := r.Next(now, 1, 3); items != nil {
					number++
					r.Sent(1, number, items)
					air = append(air, message{number, items})
				}
			}
			mend := func() {
				var have []envelope.Hash
				for _, it := range copied {
					have = append(have, HashOf(it))
				}
				void, _ := r.Mend(now, 1, have)
				for _, h := range void {
					for key, it := range copied {
						if HashOf(it) == h {
							delete(copied, key)
						}
					}
				}
			}
			for range 2000 {
				now = now.Add(time.Second)
				a := adv(fmt.Sprint(rng.IntN(12)), fmt.Sprint(rng.IntN(3)), time.Time{})
				switch rng.IntN(40) {
				case 0:
					copied, air = map[string]site.Item{}, nil // the peer lost its store
					r.Forget(1)
				case 1:
					r.Put(gone(a))
				case 2, 3, 4:
					r.Put(a)
				case 5: // its copy was tampered with: only the digest can tell
					stray := adv("stray", "x", time.Time{})
					copied[stray.Key()] = stray
				}
				step()
				if len(air) > 0 && rng.IntN(3) == 0 {
					deliver()
				}
			}
			for range 50 {
				step()
				for len(air) > 0 {
					deliver()
				}
				d := NewDigest()
				for _, it := range copied {
					d.Add(HashOf(it))
				}
				if d.Sum() != r.Digest(now, 1) {
					mend()
				}
			}
			if !reflect.DeepEqual(copied, r.Own()) {
				t.Errorf("copy %v, own %v", copied, r.Own())
			}
		})
	}
}

func TestPurge(t *testing.T) {
	r := New([]uint16{1})
	a, b := adv("a", "1", epoch.Add(time.Minute)), adv("b", "1", time.Time{})
	r.Put(a)
	r.Put(b)
	r.Sent(1, 1, r.Next(epoch, 1, 9))
	r.Acked(1, 1)
	own, held, more := r.Purge(epoch.Add(time.Minute), 10)
	if want := []string{a.Key()}; !reflect.DeepEqual(own, want) || !reflect.DeepEqual(held[1], want) {
		t.Errorf("Purge = %v, %v; want %v of both", own, held, want)
	}
	if more {
		t.Error("Purge has more to do, and nothing else has expired")
	}
	if r.Next(epoch.Add(time.Minute), 1, 9) != nil || r.HeldBy(1) != 1 {
		t.Error("what expired is still told or counted")
	}
}

// Many items that expire together are purged bit by bit, renewed ones not before their new expiry.
func TestPurgeTakesItsTime(t *testing.T) {
	r := New([]uint16{1})
	for i := range 100 {
		r.Put(adv(fmt.Sprint(i), "1", epoch.Add(90*time.Second)))
	}
	r.Sent(1, 1, r.Next(epoch, 1, 100))
	r.Acked(1, 1)
	r.Put(adv("7", "1", epoch.Add(3*time.Minute)))
	if own, held, _ := r.Purge(epoch.Add(80*time.Second), 1000); own != nil || held[1] != nil {
		t.Errorf("too early: %d and %d gone", len(own), len(held[1]))
	}
	gone, copies, rounds := 0, 0, 0
	for more := true; more; rounds++ {
		var own []string
		var held map[uint16][]string
		own, held, more = r.Purge(epoch.Add(90*time.Second), 10)
		gone, copies = gone+len(own), copies+len(held[1])
		if len(own) > 10 {
			t.Fatalf("%d at once", len(own))
		}
	}
	if gone != 99 || copies != 100 || len(r.Own()) != 1 {
		t.Errorf("%d own and %d copies gone in %d rounds, %d left", gone, copies, rounds, len(r.Own()))
	}
	if own, _, _ := r.Purge(epoch.Add(24*time.Hour), 10); len(own) != 1 || len(r.Own()) != 0 {
		t.Errorf("the renewed one: %v", own)
	}
}

// A hundred thousand items that wait for their renewal, and as many that wait for the air, do not slow down Next.
func BenchmarkNext(b *testing.B) {
	r := New([]uint16{1})
	for i := range 100000 {
		it := adv(fmt.Sprintf("uuid-%08d04", i), "1", epoch.Add(time.Hour))
		r.Put(it)
	}
	for i := uint64(1); ; i++ {
		items := r.Next(epoch, 1, 100)
		if items == nil {
			break
		}
		r.Sent(1, i, items)
		if i <= 500 {
			r.Acked(1, i)
		}
	}
	for i := range 100000 {
		r.Put(adv(fmt.Sprintf("uuid-%08d04", i), "1", epoch.Add(time.Hour+time.Minute)))
	}
	for i := range 50000 {
		r.Put(adv(fmt.Sprintf("uuid-%08d05", i), "1", epoch.Add(time.Hour)))
	}
	r.Next(epoch, 1, 1)
	b.ReportAllocs()
	for b.Loop() {
		if len(r.Next(epoch, 1, 1)) != 1 {
			b.Fatal("nothing waits")
		}
	}
}

// A withdrawal names the item's adapter: without that the far end could not read it.
func TestWithdrawalKeepsItsFace(t *testing.T) {
	r := New([]uint16{2})
	it := site.Item{Adapter: 7, Kind: site.Document, Sub: 3, Scope: "s", ID: "notice"}
	r.Put(it)
	r.RestoreHeld(2, it.Key(), versionOf(it))
	r.Put(it.Withdrawal())
	got := r.Next(time.Unix(1, 0), 2, 8)
	if len(got) != 1 {
		t.Fatalf("%d changes, want 1", len(got))
	}
	if want := it.Withdrawal(); !reflect.DeepEqual(got[0], want) {
		t.Errorf("the peer is told %+v, want %+v", got[0], want)
	}
}
