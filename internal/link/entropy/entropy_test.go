package entropy

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

func TestAMessageGoesOnceOverEachChannel(t *testing.T) {
	f := newFleet(t, 10, 1, hf(0, 1, 2, 3, 4), sat(4, 5, 6, 7, 8, 9))
	f.run(5 * time.Minute)
	for _, r := range f.radios {
		r.items = 0
	}
	n := f.say(0, 200)
	f.run(6 * time.Minute)
	if list := f.missing([]Name{n}); len(list) > 0 {
		t.Errorf("after a minute: %v", list)
	}
	if got := f.radios[0].items; got > 230 {
		t.Errorf("%d octets of messages on HF, one is 200", got)
	}
	if got := f.radios[1].items; got > 5*230 {
		t.Errorf("%d octets of messages in the star of five, one is 200", got)
	}
}

// sixteen is three channels of sixteen nodes: HF, UHF and a star; each two channels share two nodes.
func sixteen(t *testing.T, seed uint64, loss float64) *fleet {
	a, b, c := hf(0, 1, 2, 3, 4, 5, 6), hf(5, 6, 7, 8, 9, 10, 11), sat(11, 10, 12, 13, 14, 15, 0)
	b.bps, b.trip = 9600, 2*time.Second
	for _, r := range []*radio{a, b, c} {
		r.loss = loss
	}
	return newFleet(t, 16, seed, a, b, c)
}

func TestWhatTheDestroyedHadSaidReachesAll(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := sixteen(t, seed, 0.3)
			f.run(10 * time.Minute)
			f.away[14] = true // for an hour
			f.ports()
			var names []Name
			for i := range 20 {
				names = append(names, f.say(i%4+1, 150))
				f.run(time.Duration(11+i) * time.Minute)
			}
			last := f.say(3, 150)
			names = append(names, last)
			for at := f.now; f.now.Before(at.Add(time.Hour)); { // it is destroyed as soon as one neighbour has the message
				f.run(f.now.Sub(f.start) + 100*time.Millisecond)
				has := 0
				for i := range f.nodes {
					if i != 3 {
						has += f.got[i][last]
					}
				}
				if has > 0 {
					break
				}
			}
			f.away[3] = true
			f.ports()
			f.run(70 * time.Minute)
			f.away[14] = false
			f.ports()
			f.run(100 * time.Minute)
			if list := f.missing(names); len(list) > 0 {
				t.Errorf("half an hour after the last: %d missing, %v", len(list), list[:min(len(list), 3)])
			}
			repaired, octets := 0, 0
			for _, r := range f.radios {
				repaired, octets = repaired+r.repair, octets+r.sent
			}
			t.Logf("repaired %d octets, %d in all, %v", repaired, octets, f.drops)
		})
	}
}

func TestAnIdleHourCostsAThousandth(t *testing.T) {
	f := sixteen(t, 1, 0)
	f.say(1, 100)
	f.run(4 * time.Hour)
	for _, r := range f.radios {
		r.sent = 0
	}
	f.run(8 * time.Hour)
	for i, r := range f.radios {
		most := r.bps / 8 * 4 * 3600 / 1000
		if !r.shared { // each terminal has its own channel
			most *= len(r.nodes)
		}
		if r.sent > most {
			t.Errorf("channel %d: %d octets in four hours, a thousandth is %d", i, r.sent, most)
		}
		t.Logf("channel %d: %d octets in four hours", i, r.sent)
	}
}

func TestWhoHearsAThirdOnlyThroughAnotherGetsAll(t *testing.T) {
	skip := hf(0, 1, 2)
	skip.deaf = map[[2]int]bool{{0, 2}: true, {2, 0}: true}
	f := newFleet(t, 3, 1, skip)
	f.run(2 * time.Minute)
	n := f.say(0, 200)
	f.run(8 * time.Minute)
	if list := f.missing([]Name{n}); len(list) > 0 {
		t.Error(list)
	}
}

func TestLiarsGetNoMoreThanAShare(t *testing.T) {
	for seed := uint64(1); seed <= liarSeeds; seed++ {
		f := sixteen(t, seed, 0.1)
		f.run(5 * time.Minute)
		var names []Name
		for i := range 30 {
			names = append(names, f.say(i%5, 150))
		}
		liars := []int{2, 8, 13}
		var lie func()
		lie = func() { // forged origins, false digests and lists, wrong parities, endless solicitations
			for _, i := range liars {
				for _, p := range f.nodes[i].ports {
					for _, id := range p.Peers {
						far, port := f.nodes[id-1], PortID(p.Channel<<16)
						if !p.Shared {
							port |= PortID(i + 1)
						}
						me := uint16(i + 1)
						forged := Item{Tag: tag, Name: Name{1, FirstNumber(1) + uint64(f.rand.IntN(300))}, Life: 90, Hops: 3, Expires: f.now.Add(time.Hour), Body: []byte("false")}
						f.take(int(id-1), far.Receive(f.now, port, me, appendItem(nil, f.now, &forged)))
						far.Digest(f.now, port, me, tag, uint16(f.rand.IntN(65536)), true)
						promise := full{tag: tag, last: 65535, entries: []entry{{origin: 1, top: uint64(f.rand.IntN(65536)), run: 20}}}
						f.take(int(id-1), far.Receive(f.now, port, me, promise.append(nil)))
						wrong := parity{tag: tag, first: Name{Number: uint64(f.rand.IntN(100))}, count: 4, hops: 3, sum: make([]byte, 60)}
						f.take(int(id-1), far.Receive(f.now, port, me, wrong.append([]byte{kindPlace | 3})))
						all := asked{tag: tag, spans: []span{{1, 1, 128}, {2, 1, 128}, {3, 1, 128}, {4, 1, 128}}}
						f.take(int(id-1), far.Receive(f.now, port, me, all.append(nil)))
					}
				}
			}
			f.at(time.Second, lie)
		}
		lie()
		f.run(time.Hour)
		for _, i := range liars { // each has used up its share
			f.away[i] = true
		}
		if list := f.missing(names); len(list) > 0 {
			t.Errorf("seed %d: %d missing: %v", seed, len(list), list[:min(3, len(list))])
		}
		for i, r := range f.radios {
			used := float64(r.sent*8) / float64(r.bps) / 3600
			t.Logf("seed %d, channel %d: %.0f %% of the air", seed, i, 100*used)
			if most := 0.5; r.shared && used > most {
				t.Errorf("seed %d, channel %d: %.0f %% of the air beside 3 liars", seed, i, 100*used)
			}
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	f := newFleet(t, 2, 1, sat(0, 1))
	e := f.nodes[0]
	e.cfg.Most = 10000
	f.run(time.Minute)
	for n := range uint64(5000) {
		it := Item{Tag: tag, Name: Name{2, FirstNumber(1) + n}, Life: 100, Hops: 3, Expires: f.now.Add(time.Hour), Body: []byte("true and of some length")}
		e.Receive(f.now, PortID(2), 2, appendItem(nil, f.now, &it))
	}
	if e.octets > 10000 {
		t.Errorf("%d octets are held, 10,000 are the bound", e.octets)
	}
	g := e.groups[tag]
	body := g.full(false, 480)
	parsed, _, err := parseFull(body[0]&^kindMask, body[1:])
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range parsed.entries {
		for before := range uint64(back) {
			if n.holds(before) && g.origins[2].items[g.origins[2].top-before] == nil {
				t.Fatalf("the number %d before the last is promised, and was dropped", before)
			}
		}
	}
	for i := range Tag(200) {
		e.Join(f.now, 100+i)
	}
	if len(e.groups) != MostGroups {
		t.Errorf("in %d groups", len(e.groups))
	}
}

func TestASilentNodeHearsAndSaysOneDigestAfterwards(t *testing.T) {
	f := newFleet(t, 3, 1, hf(0, 1, 2))
	f.run(2 * time.Minute)
	mute := f.nodes[2]
	n := f.say(0, 100)
	for range 20 { // no frame is taken from the silent node
		for i := range 2 {
			f.pump(i, f.nodes[i])
			f.nodes[i].Step(f.now)
		}
		mute.Step(f.now)
		f.now = f.now.Add(15 * time.Second)
		for _, ev := range f.events {
			ev.do()
		}
		f.events = nil
	}
	if f.got[2][n] != 1 {
		t.Fatal("a silent node does not hear")
	}
	mute.Wake(f.now)
	mute.Step(f.now)
	digests := 0
	for now := f.now.Add(time.Minute); ; digests++ {
		s, ok := mute.Next(now, 0, 480)
		if !ok {
			break
		}
		if s.Body != nil {
			t.Error("it says more than a digest")
		}
	}
	if digests != 1 {
		t.Errorf("it says %d digests", digests)
	}
}

func TestANodeThatLostItsNumbersGoesOnBehindThem(t *testing.T) {
	f := newFleet(t, 2, 1, sat(0, 1))
	f.run(time.Minute)
	for range 5 {
		f.say(1, 50)
	}
	f.run(2 * time.Minute)
	f.nodes[1].Leave(f.now, tag, false) // like a node put back to a journal without the group
	f.nodes[1].Join(f.now, tag)
	f.run(10 * time.Minute)
	if got := f.nodes[1].NextNumber(tag); got != FirstNumber(1)+5 {
		t.Errorf("its next number is %d, 5 were used", got-FirstNumber(1))
	}
}

func TestTheJournalHasWhatWasReceived(t *testing.T) {
	records := map[string][]byte{}
	keep := func(k, v []byte) {
		if v == nil {
			delete(records, string(k))
		} else {
			records[string(k)] = v
		}
	}
	f := newFleet(t, 2, 1, sat(0, 1))
	f.nodes[0].cfg.Keep = keep
	f.run(time.Minute)
	n := f.say(1, 50)
	f.run(2 * time.Minute)
	again := New(f.nodes[0].cfg)
	again.Join(f.now, tag)
	for k, v := range records {
		if err := again.Restore([]byte(k), v); err != nil {
			t.Fatal(err)
		}
	}
	if !again.groups[tag].origins[2].received(n.Number) || again.groups[tag].digest(1) != f.nodes[0].groups[tag].digest(1) {
		t.Error("after a restart it does not hold what it held")
	}
}

func TestFullFormIsShort(t *testing.T) {
	g := newGroup(tag)
	for id := uint16(1); id <= 16; id++ {
		o := g.origin(id)
		for n := FirstNumber(9); n < FirstNumber(9)+10; n++ {
			o.note(n)
			o.items[n] = &Item{Hops: 1}
		}
	}
	if got := len(g.full(false, 480)); got > 52 {
		t.Errorf("16 origins take %d octets", got)
	}
	a := asked{tag: tag, spans: []span{{3, 100, 2}}}
	if got := len(a.append(nil)); got > 8 {
		t.Errorf("a solicitation takes %d octets", got)
	}
}

func FuzzReceive(f *testing.F) {
	it := Item{Tag: tag, Name: Name{2, FirstNumber(1)}, Life: 90, Hops: 3, Expires: time.Unix(1e9+600, 0), Body: []byte("true")}
	f.Add(appendItem(nil, time.Unix(1e9, 0), &it))
	f.Add((&full{tag: tag, last: 65535, entries: []entry{{origin: 2, top: 5, run: 3, bits: []byte{1}, below: true}, {origin: 99, top: 7, run: 1}}}).append(nil))
	f.Add((&asked{tag: tag, spans: []span{{2, 1, 3}, {2, 9, 1}, {5, 1, 128}}}).append(nil))
	f.Add((&parity{tag: tag, first: it.Name, count: 1, hops: 3, sum: mix(nil, &it)}).append(appendItem([]byte{kindPlace | 2}, time.Unix(1e9, 0), &it)))
	f.Fuzz(func(t *testing.T, b []byte) {
		net := newFleet(t, 2, 1, sat(0, 1))
		net.nodes[0].Receive(net.now, PortID(2), 2, b)
		if kind := b; len(kind) > 0 && kind[0]&kindMask == kindFull {
			if parsed, rest, err := parseFull(kind[0]&^kindMask, kind[1:]); err == nil {
				again, _, err := parseFull(kind[0]&^kindMask, parsed.append(nil)[1:])
				if err != nil && len(rest) == 0 || len(again.entries) != len(parsed.entries) {
					t.Errorf("%v: %v", parsed, err)
				}
			}
		}
	})
}

func TestNamesOfGroups(t *testing.T) {
	for _, name := range []string{"", "/", "a//b", "a/", "a b", "a\x00", "a/b/c/d/e/f/g/h/i", string(make([]byte, 65)), "\xff"} {
		if CheckName(name) == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
	for _, name := range []string{"fleet", "fleet/1./ops", "flotte/été"} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A message whose loss a later message reveals is here before the next digest, and a liar cannot cause endless requests of numbers.
func TestALaterMessageShowsWhatWasLost(t *testing.T) {
	vhf := hf(0, 1, 2, 3, 4)
	vhf.bps, vhf.trip = 16000, 2*time.Second
	for name, r := range map[string]*radio{"shared": vhf, "star": sat(0, 1, 2, 3, 4)} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 5, 1, r)
			at := 10 * time.Minute
			f.run(at)
			names := []Name{f.say(1, 200)}
			for range 10 {
				at += 97 * time.Second
				f.run(at)
				f.away[3] = true // no port says so: it does not hear for a while
				names = append(names, f.say(1, 200), f.say(1, 200))
				f.run(at + 3*time.Second)
				f.away[3] = false
				names = append(names, f.say(1, 200))
				f.run(at + 15*time.Second)
				if list := f.missing(names); len(list) > 0 {
					t.Error(list)
				}
			}
		})
	}
	f := newFleet(t, 5, 1, hf(0, 1, 2, 3, 4))
	f.run(10 * time.Minute)
	e, g := f.nodes[2], f.nodes[2].groups[f.nodes[2].tags[0]]
	for i := range uint64(500) {
		it := Item{Tag: g.tag, Name: Name{1, 60 * (i + 2)}, Life: Life(time.Hour), Hops: 1, Expires: f.now.Add(time.Hour), Body: []byte("true")}
		e.Receive(f.now, e.ports[0].ID, 1, appendItem(nil, f.now, &it))
	}
	if len(g.asks) > mostAsked {
		t.Errorf("%d numbers are asked for, at most %d of one neighbour", len(g.asks), mostAsked)
	}
}

// A neighbour that says this node had used its highest number makes it silent for good: the number is of no start of the node.
func TestNoNeighbourUsesUpTheNumbers(t *testing.T) {
	f := newFleet(t, 2, 1, sat(0, 1))
	f.nodes[0].cfg.Start = 5
	f.run(time.Minute)
	lie := full{tag: tag, last: 65535, wide: true, entries: []entry{{origin: 1, top: mostNumber, run: 1}}}
	f.nodes[0].Receive(f.now, 2, 2, lie.append(nil))
	n := f.say(0, 100)
	f.run(6 * time.Minute)
	if list := f.missing([]Name{n}); len(list) > 0 {
		t.Error(list)
	}
}

// A copy with another body takes nothing out of a node's queue, and counts as forged.
func TestAForgedCopyCancelsNoRepair(t *testing.T) {
	f := newFleet(t, 5, 1, hf(0, 1, 2, 3, 4))
	f.run(2 * time.Minute)
	n := f.say(0, 200)
	f.run(12 * time.Minute)
	e := f.nodes[1]
	e.Receive(f.now, 0, 3, (&asked{tag: tag, spans: []span{{1, uint16(n.Number), 1}}}).append(nil))
	if e.port(0).waiting(sayItem, tag) == nil {
		t.Fatal("it was asked for, and waits for nothing")
	}
	junk := Item{Tag: tag, Name: n, Life: 90, Hops: 3, Expires: f.now.Add(time.Hour), Body: []byte("false")}
	e.Receive(f.now, 0, 4, appendItem(nil, f.now, &junk))
	if e.port(0).waiting(sayItem, tag) == nil {
		t.Error("a forged copy has cancelled a repair")
	}
}

// A message for neighbours alone is given to each of them once: it is in none of their digests.
func TestForNeighboursAloneIsGivenOnce(t *testing.T) {
	f := newFleet(t, 2, 1, sat(0, 1))
	f.run(2 * time.Minute)
	f.nodes[0].Say(f.now, Item{Tag: tag, Name: Name{1, FirstNumber(1)}, Life: Life(f.life), Hops: 1, Expires: f.now.Add(f.life), Body: append([]byte("true"), make([]byte, 200)...)})
	f.run(32 * time.Minute)
	if f.radios[0].items == 0 || f.radios[0].repair > 0 {
		t.Error(f.radios[0].items, f.radios[0].repair)
	}
}

// A member is sure that nobody knows more only until a neighbour shows otherwise, and a neighbour that lacks the same does not settle that.
func TestWhoLacksTheSameSettlesNoDoubt(t *testing.T) {
	now := time.Unix(1e9, 0)
	node := func(id uint16) *Engine {
		e := New(Config{Self: id, Most: 1 << 20, Keep: func(k, v []byte) {}, Rand: rand.New(rand.NewPCG(1, uint64(id))), Verify: func(*Item) Verdict { return Genuine }})
		e.Join(now, tag)
		e.Ports(now, []Port{{ID: 1, Shared: true, Peers: []uint16{2, 3, 4, 5, 6}, Trip: time.Second, Bps: 2400}})
		return e
	}
	self, same, ahead := node(1), node(2), node(3)
	it := Item{Tag: tag, Name: Name{3, FirstNumber(1)}, Life: Life(time.Hour), Body: []byte("leaves"), Hops: 2, Expires: now.Add(time.Hour)}
	ahead.Say(now, it)
	says := func(e *Engine) {
		now = now.Add(time.Second)
		self.Digest(now, 1, e.cfg.Self, tag, e.groups[tag].digest(e.cfg.Self), false)
	}
	sure := func(what string, want bool) {
		t.Helper()
		check.Equal(t, what, !self.Agreed(tag).IsZero(), want)
	}
	says(same)
	sure("sure when one agrees", true)
	says(ahead)
	sure("sure when another holds more", false)
	self.Receive(now, 1, 2, same.groups[tag].full(false, 400))
	sure("sure when the first has said its list", false)
	says(same)
	sure("sure when the first agrees, and the other had no chance to answer", false)
	self.Receive(now, 1, 3, endItem(appendItem(nil, now, &it), 0))
	sure("sure when it holds what the other had", true)

	same.Receive(now, 1, 3, endItem(appendItem(nil, now, &it), 0))
	for range 2 * mostDoubts { // one that lies is not believed without end
		self.Digest(now, 1, 4, tag, 1, false)
		self.Check(now, tag)
		_, said := self.Next(now.Add(time.Hour), 1, 400)
		check.True(t, "it asks", said)
		says(same)
	}
	self.Digest(now, 1, 4, tag, 1, false)
	sure("sure beside a liar", true)
}
