package entropy

import (
	"fmt"
	"testing"
	"time"
)

// A message comes off the wire as it went on. No node holds it for longer than its sender, and its lifetime is not shortened by more than a
// twelfth.
func TestAMessageOnTheWire(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, names := range []bool{false, true} {
		for _, left := range []time.Duration{LifeOf(Life(time.Hour)), 55 * time.Minute, 10 * time.Minute, time.Second, -10 * time.Minute, -50 * time.Minute} {
			if left < 0 && !names {
				continue
			}
			it := Item{Tag: tag, Name: Name{300, FirstNumber(1e9)}, Life: Life(time.Hour), Hops: 8, Names: names, Expires: now.Add(left), Body: []byte("some octets")}
			part := appendItem(nil, now, &it)
			last := endItem(append([]byte(nil), part...), 0)
			for _, b := range [][]byte{append(part, kindAsk), last} {
				got, rest, err := parseItem(now, b[0], b[1:])
				if err != nil || got.Names != names || got.Hops != 8 || got.Life != it.Life || got.Name != it.Name || string(got.Body) != string(it.Body) || len(rest) != len(b)-len(part) && len(rest) != 0 {
					t.Fatalf("%v left: %+v, rest %x, %v", left, got, rest, err)
				}
				if got.Until().After(it.Until()) || got.Until().Sub(now) < it.Until().Sub(now)*9/10 {
					t.Errorf("%v left: held for %v, and by its sender for %v", left, got.Until().Sub(now), it.Until().Sub(now))
				}
				if got.Expires.After(now) != (left > 0) {
					t.Errorf("%v left: it expires after %v", left, got.Expires.Sub(now))
				}
			}
			if young := 1 + 2 + 2 + numberOctets + 1 + len(it.Body); left == 55*time.Minute && len(last) != young {
				t.Errorf("%d octets instead of %d", len(last), young)
			}
		}
	}
}

// A message that each node passes on at the moment at which it comes never says its lifetime left, and has what a message has there
// that each node has held for a moment.
func TestAMessageThatGoesOnAtOnceIsYoung(t *testing.T) {
	now := time.Unix(1e9, 0)
	it := Item{Tag: tag, Name: Name{1, FirstNumber(1e9)}, Life: Life(time.Hour), Hops: MostHops, Expires: now.Add(LifeOf(Life(time.Hour))), Body: []byte("some octets")}
	for it.Hops > 0 {
		at, later := appendItem(nil, now, &it), appendItem(nil, now.Add(time.Millisecond), &it)
		if string(at) != string(later) || at[0]&kindMask != kindYoung {
			t.Fatalf("%d hops left: % x at once, % x later", it.Hops, at, later)
		}
		got, _, err := parseItem(now, at[0], at[1:])
		if err != nil || got.Expires.Sub(now) != LifeOf(young(it.Life, it.Hops)) {
			t.Fatalf("%d hops left: %v, %v", it.Hops, got.Expires.Sub(now), err)
		}
		got.Hops--
		it = got
	}
}

// A node that was away gets what names other messages after its lifetime, and nothing else so old. In the end it is dropped everywhere.
func TestWhatNamesOthersIsHeldOn(t *testing.T) {
	f := newFleet(t, 4, 1, hf(0, 1, 2, 3))
	f.run(2 * time.Minute)
	f.away[3] = true
	f.ports()
	var names []Name
	for i := range uint64(2) {
		n := Name{2, FirstNumber(1) + i}
		names = append(names, n)
		f.nodes[1].Say(f.now, Item{Tag: tag, Name: n, Life: Life(time.Hour), Names: i == 0, Hops: MostHops, Expires: f.now.Add(LifeOf(Life(time.Hour))), Body: []byte("true")})
	}
	f.run(80 * time.Minute)
	f.away[3] = false
	f.ports()
	f.run(100 * time.Minute)
	if got := fmt.Sprint(f.got[0][names[0]], f.got[0][names[1]], f.got[3][names[0]], f.got[3][names[1]]); got != "1 1 1 0" {
		t.Errorf("how often who was there has both, and who was away: %s", got)
	}
	f.run(3 * time.Hour)
	for i, e := range f.nodes {
		if held, _ := e.Held(tag); held > 0 {
			t.Errorf("node %d holds %d messages", i, held)
		}
	}
}

// A message that a node may not pass on is held for it alone: it lists it nowhere and gives it to nobody.
func TestAMessageThatEndsHereIsHeld(t *testing.T) {
	f := newFleet(t, 3, 1, hf(0, 1, 2))
	f.run(2 * time.Minute)
	n := Name{1, FirstNumber(1)}
	f.nodes[0].Say(f.now, Item{Tag: tag, Name: n, Life: Life(time.Hour), Hops: 1, Expires: f.now.Add(time.Hour), Body: []byte("true")})
	f.run(3 * time.Minute)
	e := f.nodes[1]
	if _, held := e.Item(tag, n); !held {
		t.Fatal("it is not held")
	}
	g := e.groups[tag]
	body := g.full(false, 480)
	if parsed, _, err := parseFull(body[0]&^kindMask, body[1:]); err != nil || len(parsed.entries) > 0 || g.sum != 0 {
		t.Errorf("it is listed: %v, %v", parsed, err)
	}
	e.Receive(f.now, 0, 3, (&asked{tag: tag, spans: []span{{1, uint16(n.Number), 1}}}).append(nil))
	if e.ports[0].waiting(sayItem, tag) != nil {
		t.Error("it is given to another")
	}
}

// Where there is no room, messages go before those that name something for them; an origin that names in each message loses its oldest.
func TestNamesAreDroppedLast(t *testing.T) {
	f := newFleet(t, 2, 1, sat(0, 1))
	e := f.nodes[0]
	e.cfg.Most = 10000
	f.run(time.Minute)
	for n := range uint64(5000) {
		it := Item{Tag: tag, Name: Name{2, FirstNumber(1) + n}, Life: 100, Hops: 3, Names: n == 0 || n >= 2500, Expires: f.now.Add(time.Hour), Body: []byte("true and of some length")}
		e.Receive(f.now, PortID(2), 2, appendItem(nil, f.now, &it))
		if _, held := e.Item(tag, Name{2, FirstNumber(1)}); !held && n < 2500 {
			t.Fatalf("after %d messages the one that names something is dropped", n)
		}
	}
	if _, held := e.Item(tag, Name{2, FirstNumber(1) + 4999}); !held || e.octets > 10000 {
		t.Errorf("%d octets are held, 10,000 are the bound", e.octets)
	}
}

// A message refers to one that no node drops before it, however often its lifetime was rounded down.
func TestCovers(t *testing.T) {
	said := time.Unix(1e9, 0)
	for _, life := range []time.Duration{time.Minute, time.Hour, 12 * time.Hour, 20 * time.Hour} {
		it := Item{Life: Life(life), Hops: MostHops, Names: true, Name: Name{1, FirstNumber(1)}}
		it.Expires = said.Add(LifeOf(it.Life))
		covered := 0
		for n := range uint64(1500) {
			at := said.Add(time.Duration(n) * life / 200)
			later := Item{Life: it.Life, Hops: MostHops, Name: Name{1, FirstNumber(1) + 1 + n}, Expires: at.Add(LifeOf(it.Life))}
			if !it.Covers(&later) {
				continue
			}
			covered++
			far, now := it, said // on the longest way, at once
			for range MostHops {
				b := appendItem(nil, now.Add(time.Millisecond), &far)
				got, _, err := parseItem(now.Add(time.Millisecond), b[0], b[1:])
				if err != nil {
					t.Fatal(err)
				}
				far, far.Hops = got, got.Hops-1
			}
			if far.Until().Add(life / 50).Before(later.Expires) {
				t.Fatalf("%v: the one is dropped after %v, message %d after %v", life, far.Until().Sub(said), n, later.Expires.Sub(said))
			}
		}
		if covered < 50 && life < 16*time.Hour {
			t.Errorf("%v: only %d messages refer", life, covered)
		}
	}
}
