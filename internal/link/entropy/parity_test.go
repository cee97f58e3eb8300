package entropy

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// vhf is a channel of 16 kbit/s that loses frames independently.
func vhf(nodes int, loss float64) *radio {
	r := &radio{shared: true, bps: 16000, turn: 250 * time.Millisecond, trip: 1700 * time.Millisecond, evenly: loss}
	for i := range nodes {
		r.nodes = append(r.nodes, i)
	}
	return r
}

// stream has the second node say n messages of so many octets, one every interval. It returns their names, and the ascending times
// after which the others had them.
func (f *fleet) stream(octets int, every time.Duration, n int) (names []Name, took []time.Duration) {
	f.took = nil
	for at := f.now.Sub(f.start); len(names) < n; {
		name := f.say(1, octets)
		f.said[name] = f.now
		names = append(names, name)
		at += every
		f.run(at)
	}
	f.run(f.now.Sub(f.start) + 5*time.Minute)
	slices.Sort(f.took)
	return names, f.took
}

// With 5 % of the frames lost at each of 15 receivers, parities take the place of most repairs. Without loss there are neither.
func TestAStreamWhereLossesAreReportedHasParities(t *testing.T) {
	const plays, datagram = 12, 256 + 47 // the unit of docs/groups.md
	for loss, bound := range map[float64]float64{0.05: 2.45, 0.01: 2.15, 0: 1.8} {
		octets, longest, kinds := 0, time.Duration(0), map[string]int{}
		for seed := uint64(1); seed <= plays; seed++ {
			r := vhf(16, loss)
			f := newFleet(t, 16, seed, r)
			f.run(10 * time.Minute)
			octets -= r.sent
			r.kinds = kinds
			names, took := f.stream(380, time.Second, 120)
			if list := f.missing(names); len(list) > 0 {
				t.Errorf("seed %d, loss %.2f: %d missing: %v", seed, loss, len(list), list[0])
			}
			octets, longest = octets+r.sent, max(longest, took[len(took)*99/100])
		}
		times := float64(octets) / (plays * 120 * datagram)
		t.Logf("loss %.2f: %.2f x, 99 of 100 in %.1f s at the worst seed, %v", loss, times, longest.Seconds(), kinds)
		if times > bound {
			t.Errorf("loss %.2f: %.2f x one datagram of 256 octets, %.2f are taken", loss, times, bound)
		}
		if loss == 0 && kinds["parity"]+kinds["repair"] > 0 {
			t.Errorf("nothing is lost, and %v are said", kinds)
		}
	}
}

// saysABlock makes the second of five nodes say four messages of different octets and lifetimes. The fourth node hears some of them.
func saysABlock(t *testing.T, hears ...int) (f *fleet, names []Name) {
	f = newFleet(t, 5, 1, vhf(5, 0))
	f.run(10 * time.Minute)
	f.nodes[1].ports[0].talks[tag].top = FirstNumber(1) - 1
	f.nodes[1].ports[0].talks[tag].lost = 7 // three were requested
	f.radios[0].kinds = nil
	for i := range 4 {
		f.life = time.Duration(i+1) * time.Hour
		f.away[3] = !slices.Contains(hears, i) // no port says so
		names = append(names, f.say(1, 200-40*i))
		f.run(f.now.Sub(f.start) + 20*time.Millisecond)
		f.away[3] = false
		f.run(f.now.Sub(f.start) + 780*time.Millisecond)
	}
	f.run(f.now.Sub(f.start) + 10*time.Second)
	if list := f.missing(names); len(list) > 0 {
		t.Errorf("of a block that hears %v: %v", hears, list)
	}
	return f, names
}

func TestAParityRestoresAMessage(t *testing.T) {
	for _, lacks := range []int{0, 1, 2, 3} {
		hears := slices.DeleteFunc([]int{0, 1, 2, 3}, func(i int) bool { return i == lacks })
		f, names := saysABlock(t, hears...)
		if kinds := f.radios[0].kinds; kinds["parity"] != 1 || kinds["ask"]+kinds["repair"] > 0 {
			t.Errorf("without message %d: %v", lacks, kinds)
		}
		was, _ := f.nodes[2].Item(tag, names[lacks]) // as another heard it
		is, held := f.nodes[3].Item(tag, names[lacks])
		if !held || is.Life != was.Life || is.Hops != was.Hops || string(is.Body) != string(was.Body) || is.Expires.After(was.Expires) || was.Expires.Sub(is.Expires) > 20*time.Second {
			t.Errorf("message %d was restored as %+v, it is %+v", lacks, is, was)
		}
	}
	f, _ := saysABlock(t, 0, 3)
	if kinds := f.radios[0].kinds; kinds["parity"] != 1 || kinds["ask"] != 1 || kinds["repair"] != 1 {
		t.Errorf("without two messages: %v", kinds)
	}
}

// A wrong parity gives no message, counts as a forgery, and leaves the request of the message as it was.
func TestAWrongParityIsAForgery(t *testing.T) {
	f := newFleet(t, 5, 1, vhf(5, 0))
	f.run(10 * time.Minute)
	e := f.nodes[0]
	var block []Item
	sum := []byte(nil)
	for i := range uint64(4) {
		it := Item{Tag: tag, Name: Name{2, FirstNumber(1) + i}, Life: 90, Hops: 3, Expires: f.now.Add(LifeOf(90)), Body: []byte("true" + strings.Repeat("x", int(i)))}
		block, sum = append(block, it), mix(sum, &it)
		if i != 2 {
			f.take(0, e.Receive(f.now, 0, 2, appendItem([]byte{kindPlace | byte(i+1)}, f.now, &it)))
		}
	}
	right := parity{tag: tag, first: block[0].Name, count: 4, hops: 3, sum: sum}
	frame := right.append(nil)
	for i := range frame {
		f.take(0, e.Receive(f.now, 0, 2, frame[:i]))
	}
	for i := range 6 { // octets of the body, and its first four
		wrong := right
		wrong.sum = slices.Clone(sum)
		wrong.sum[1+i] ^= 0x40
		f.take(0, e.Receive(f.now, 0, 2, wrong.append(nil)))
	}
	if f.got[0][block[2].Name] > 0 || f.drops["group_forged"] == 0 {
		t.Errorf("after wrong parities: %v, %v", f.got[0], f.drops)
	}
	if g := e.groups[tag]; g.asks[block[2].key()] == nil {
		t.Error("a message is not requested any more")
	}
	asks := len(e.groups[tag].asks)
	for i := range uint16(300) {
		other := parity{tag: tag, first: Name{Number: 5 + uint64(i)}, count: 4, hops: 3, sum: make([]byte, 1000)}
		f.take(0, e.Receive(f.now, 0, 2, other.append(nil)))
	}
	if n := len(e.groups[tag].asks); n != asks || f.drops["group_parity"] < 300 {
		t.Errorf("%d messages are requested after parities of blocks that nobody said, %d before: %v", n, asks, f.drops)
	}
	forged := f.drops["group_forged"]
	held := e.groups[tag].origins[2].items
	dropped := held[block[1].Number]
	delete(held, block[1].Number)
	f.take(0, e.Receive(f.now, 0, 2, frame))
	if f.drops["group_forged"] != forged {
		t.Error("without a message that was dropped a right parity counts as a forgery")
	}
	held[block[1].Number] = dropped
	f.run(f.now.Sub(f.start) + 2*time.Minute)
	f.take(0, e.Receive(f.now, 0, 2, frame))
	if f.got[0][block[2].Name] != 1 {
		t.Error("the right parity does not restore the message")
	}
}
