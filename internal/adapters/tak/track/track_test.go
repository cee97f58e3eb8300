package track

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
)

var epoch = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

func report(t *testing.T, uid string, lat, speed float64, at time.Time) *cot.Event {
	t.Helper()
	f := at.Format(cot.TimeFormat)
	e, err := cot.ParseXML(fmt.Appendf(nil, `<event version="2.0" uid="%s" type="a-f-G" time="%s" start="%s" stale="%s" how="m-g"><point lat="%.6f" lon="10" hae="0" ce="1" le="1"/><detail><contact callsign="%s"/><track course="0" speed="%v"/></detail></event>`,
		uid, f, f, at.Add(time.Hour).Format(cot.TimeFormat), lat, uid, speed))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// pair is an Outlet and the Far to which it sends.
type pair struct {
	t    *testing.T
	now  time.Time
	near *Near
	out  *Outlet
	far  *Far
}

func newPair(t *testing.T, p Pace) *pair {
	return &pair{t: t, now: epoch, near: NewNear(7, 3), out: NewOutlet(p, 0, false, 1), far: NewFar(5*time.Second, 0)}
}

var pace = Pace{Gather: time.Second, Age: time.Minute, Octets: 300}

func (p *pair) report(e *cot.Event) {
	if u, _ := p.near.Report(p.now, e, []Care{{Bound: 50}}); u != nil {
		p.out.Reported(p.now, u)
	}
}

// speak makes the batch that is due and returns how many records it had; -1: none was due.
func (p *pair) speak(arrives bool) int {
	data, number, _ := p.out.Batch(p.now, p.near)
	if data == nil {
		return -1
	}
	b, err := code.ParseBatch(data, p.now)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.out.Ended(p.now, number, arrives); arrives {
		p.far.Apply(p.now, b, false)
	}
	return len(b.Records)
}

// A unit on its course is reported once; one that leaves its course is reported again, and a lost batch is repaired.
func TestToldWhenWrong(t *testing.T) {
	p := newPair(t, pace)
	const metre = 1 / 111194.9
	lat, said := 54.0, 0
	for range 60 { // ten minutes at 5 m/s, as reported
		p.report(report(t, "u", lat, 5, p.now))
		if p.speak(true) > 0 {
			said++
		}
		p.now = p.now.Add(10 * time.Second)
		lat += 50 * metre
	}
	if said != 1 {
		t.Errorf("a unit on its course was told %d times", said)
	}
	lat += 100 * metre
	p.report(report(t, "u", lat, 5, p.now))
	p.now = p.now.Add(time.Second)
	if got := p.speak(false); got != 1 {
		t.Errorf("a unit off its course made a batch of %d", got)
	}
	p.now = p.now.Add(2 * time.Second)
	if got := p.speak(true); got != 1 {
		t.Errorf("after a batch was lost the next had %d records", got)
	}
	u := p.far.Find("u")
	if off := u.Fix.After(p.now.Sub(u.At)).Metres(code.FixOf(report(t, "u", lat+15*metre, 5, p.now))); off > 5 {
		t.Errorf("the far side is %.0f m off", off)
	}
	p.near.Gone("u")
	p.out.Gone(p.now, p.near.units["u"], code.Withdrawn)
	p.now = p.now.Add(time.Second)
	p.speak(false)
	p.now = p.now.Add(2 * time.Second)
	if p.speak(true); p.far.Find("u") != nil {
		t.Error("a unit that is gone stays when the first word of that is lost")
	}
}

// A table is bounded; units that have left make room.
func TestBounded(t *testing.T) {
	p := newPair(t, pace)
	for i := range 3 {
		p.report(report(t, fmt.Sprint("u", i), 54, 0, p.now))
	}
	if u, _ := p.near.Report(p.now, report(t, "one more", 54, 0, p.now), []Care{{}}); u != nil {
		t.Error("there is room for one more than there may be")
	}
	p.near.Gone("u1")
	if u, _ := p.near.Report(p.now, report(t, "one more", 54, 0, p.now), []Care{{}}); u == nil || u.Number != 4 {
		t.Errorf("in the room of one that has left there is %v", u)
	}
}

// A wrong far clock does not make units old, or of tomorrow; a unit whose event was missed is asked for.
func TestFarClockAndLack(t *testing.T) {
	for _, off := range []time.Duration{0, -3 * time.Hour, 3 * time.Hour} {
		p := newPair(t, pace)
		p.report(report(t, "u", 54, 0, p.now))
		p.now = p.now.Add(time.Second)
		data, _, _ := p.out.Batch(p.now, p.near)
		here := p.now.Add(off)
		b, err := code.ParseBatch(data, here)
		if err != nil {
			t.Fatal(err)
		}
		p.far.Apply(here, b, false)
		events, _, _ := p.far.Show(here)
		if len(events) != 1 || here.Sub(events[0].Time).Abs() > 5*time.Second || !events[0].Stale.After(here) {
			t.Errorf("with clocks %v apart it is shown as %v", off, events)
		}
	}
	far := NewFar(time.Second, 0)
	far.Apply(epoch, &code.Batch{Run: 1, At: epoch, Promise: time.Minute, Records: []code.Record{{Unit: 9, Form: code.Moved}}}, false)
	if got := far.Ask(epoch); len(got) != 1 || got[0] != 9 {
		t.Errorf("asked for %v", got)
	}
	if got := far.Ask(epoch.Add(time.Second)); got != nil {
		t.Errorf("asked again at once for %v", got)
	}
}

// When a site falls silent its units go stale by its promise, and are shown stale once.
func TestSilence(t *testing.T) {
	p := newPair(t, pace)
	p.report(report(t, "u", 54, 0, p.now))
	p.now = p.now.Add(time.Second)
	p.speak(true)
	stale := 0
	for range 200 {
		p.now = p.now.Add(time.Second)
		events, gone, _ := p.far.Show(p.now)
		for _, e := range events {
			if e.Stale.Sub(p.now) > time.Minute {
				t.Errorf("it is fresh for %v", e.Stale.Sub(p.now))
			}
		}
		stale += len(gone)
	}
	if u := p.far.Find("u"); stale != 1 || u == nil || !u.Away {
		t.Errorf("it went stale %d times, and is kept as %+v", stale, u)
	}
	p.report(report(t, "u", 54.01, 0, p.now))
	p.now = p.now.Add(time.Second)
	p.speak(true)
	if events, _, _ := p.far.Show(p.now); len(events) != 1 || !events[0].Stale.After(p.now) || events[0].UID != "u" {
		t.Errorf("its next report shows %v", events)
	}
	p.now = p.now.Add(time.Hour)
	p.far.Show(p.now)
	p.now = p.now.Add(keepAway)
	if _, _, forgotten := p.far.Show(p.now); len(forgotten) != 1 || p.far.Find("u") != nil {
		t.Errorf("after a day without a word of it %d were forgotten", len(forgotten))
	}
}

// A batch that a newer one has overtaken changes nothing that the newer one reported: neither where a unit is, nor its course,
// nor which start the site is in. But a missing whole event is taken from it.
func TestOvertaken(t *testing.T) {
	p := newPair(t, pace)
	batch := func() *code.Batch {
		t.Helper()
		p.now = p.now.Add(2 * time.Second)
		data, _, _ := p.out.Batch(p.now, p.near)
		b, err := code.ParseBatch(data, p.now)
		if err != nil || len(b.Records) != 1 {
			t.Fatalf("%d records, %v", len(data), err)
		}
		return b
	}
	p.report(report(t, "u", 54, 5, p.now))
	p.far.Apply(p.now, batch(), false)
	p.report(report(t, "u", 54.01, 9, p.now)) // it has become faster, and goes on
	first := batch()
	p.report(report(t, "u", 54.02, 9, p.now))
	second := batch()
	p.far.Apply(p.now, second, false)
	p.far.Apply(p.now, first, false)
	u := p.far.Find("u")
	if off := u.Fix.Metres(p.near.Get("u").Fix); off > 1 || u.Fix.Speed != 90 {
		t.Errorf("behind what has overtaken it the unit is %.0f m off, at %d", off, u.Fix.Speed)
	}
	whole := code.Batch{Run: second.Run, At: p.now.Add(-time.Minute), Start: 0, Promise: time.Minute,
		Records: []code.Record{{Unit: u.Number, Version: u.Version ^ 1, Form: code.Whole, Event: report(t, "u", 53, 0, p.now)}}}
	p.far.Apply(p.now, &whole, false)
	if u.Version == whole.Records[0].Version || p.far.Starts[0] != second.Start {
		t.Error("an old batch has changed a unit's event, or the site's start")
	}
	moved := code.Batch{Run: second.Run, At: p.now, Start: second.Start, Promise: time.Minute,
		Records: []code.Record{{Unit: u.Number, Version: u.Version ^ 1, Form: code.Moved, Mask: code.NewPlace, Fix: u.Fix}}}
	p.far.Apply(p.now, &moved, false)
	at := u.Fix
	p.far.Apply(p.now, &whole, false)
	if u.Version != whole.Records[0].Version || u.Fix != at || len(p.far.Ask(p.now)) != 0 {
		t.Errorf("the event that was missing: version %d at %+v, asked for %v", u.Version, u.Fix, p.far.Ask(p.now))
	}
}

// On a slow channel the unit that has waited longest goes first, and whole events leave every second batch to positions: ten
// units that turn all the time, each of which is known there without details, are reported each two and a half minutes or sooner.
func TestNobodyIsForgotten(t *testing.T) {
	slow := Pace{Gather: 5 * time.Second, Gap: 20 * time.Second, Age: 5 * time.Minute, Octets: 98}
	near, out := NewNear(7, 20), NewOutlet(slow, 0, false, 1)
	told := map[uint32]time.Time{}
	spelt := map[uint32]int{}
	now := epoch
	for step := range 3600 {
		now = epoch.Add(time.Duration(step) * time.Second)
		for i := range 10 {
			if step%20 == i {
				e := report(t, fmt.Sprint("unit-", i), 54+float64(step*(i%3)%7)/1000, 5, now)
				e.Detail = append(e.Detail, cot.Node{Name: "takv", Attrs: []cot.Attr{{Name: "device", Value: "SAMSUNG SM-G970U and all that it says of itself"}}})
				u, _ := near.Report(now, e, []Care{{Bound: 50}})
				out.Reported(now, u)
			}
		}
		out.Urgent(now)
		data, _, _ := out.Batch(now, near)
		if data == nil {
			continue
		}
		b, err := code.ParseBatch(data, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range b.Records {
			if last, known := told[r.Unit]; known && now.Sub(last) > 150*time.Second {
				t.Errorf("unit %d was not told for %v", r.Unit, now.Sub(last))
			}
			if told[r.Unit] = now; r.Form == code.Whole && r.Event.Find("takv") != nil {
				spelt[r.Unit]++
			}
		}
	}
	for n := uint32(1); n <= 10; n++ {
		if spelt[n] < 3 || now.Sub(told[n]) > 150*time.Second {
			t.Errorf("unit %d was spelt out %d times in an hour, and told last %v ago", n, spelt[n], now.Sub(told[n]))
		}
	}
}

// A unit that was away when this site was killed comes back with the first batch of its site, unless that site has restarted in
// the meantime and not reported the unit since.
func TestAwayOverRestarts(t *testing.T) {
	for _, start := range []uint8{1, 2} {
		far := NewFar(5*time.Second, 0)
		e := report(t, "u", 54, 0, epoch)
		far.Run, far.Starts = 7, [2]uint8{1, 1}
		far.Put(&FarUnit{Number: 1, Away: true, Event: e, Fix: code.FixOf(e), At: epoch})
		now := epoch.Add(time.Hour)
		far.Resume(now, time.Minute)
		if events, _, _ := far.Show(now); len(events) != 0 {
			t.Errorf("before its site is heard it is shown as %v", events)
		}
		news := far.Apply(now, &code.Batch{Run: 7, At: now, Start: start, Promise: time.Minute}, false)
		if back := len(news.Back) == 1; back != (start == 1) {
			t.Errorf("with start %d behind start 1 it is back: %v", start, back)
		}
	}
}

// A unit that changes its type each second is reported a few times in a row and then now and then; another unit is reported as
// if it were alone, and the last type is the one that stays.
func TestFlipsAreBounded(t *testing.T) {
	for name, p := range map[string]Pace{"receipts": pace, "shared": {Gather: 5 * time.Second, Gap: 20 * time.Second, Age: 5 * time.Minute, Octets: 98}} {
		var told [2]int // reports of the other unit, without flips and with them
		for flips := range 2 {
			near, out, far := NewNear(7, 20), NewOutlet(p, 0, false, 1), NewFar(5*time.Second, 0)
			wholes := 0
			kind := func(step int) string { return []string{"a-u-G", "a-h-G", "a-n-G"}[step*flips%3] }
			for step := range 900 {
				now := epoch.Add(time.Duration(step) * time.Second)
				flipping, beside := report(t, "flips", 54, 0, now), report(t, "beside", 54+float64(step*step%7)/1000, 3, now)
				flipping.Type = kind(min(step, 600))
				for _, e := range []*cot.Event{flipping, beside} {
					u, _ := near.Report(now, e, []Care{{Bound: 50}})
					out.Reported(now, u)
				}
				data, number, _ := out.Batch(now, near)
				if data == nil {
					continue
				}
				b, err := code.ParseBatch(data, now)
				if err != nil {
					t.Fatal(err)
				}
				out.Ended(now, number, true)
				far.Apply(now, b, false)
				for _, r := range b.Records {
					switch {
					case r.Unit == 2:
						told[flips]++
					case r.Form == code.Whole:
						wholes++
					}
				}
			}
			if most := 8 + int(2*4*10*time.Minute/p.Age); flips > 0 && wholes > most {
				t.Errorf("%s: the unit that flips was spelt out %d times in ten minutes, at most %d", name, wholes, most)
			}
			if got := far.Find("flips").Event.Type; got != kind(600) {
				t.Errorf("%s: the last type is shown as %s", name, got)
			}
			t.Logf("%s, flips %v: %d whole events; beside it %d reports", name, flips > 0, wholes, told[flips])
		}
		if told[1] < told[0]*9/10 {
			t.Errorf("%s: beside the unit that flips %d reports were told, without it %d", name, told[1], told[0])
		}
	}
}

// Batches from before a unit went that arrive after that show it not again and raise no questions; a chat that arrives late can name it.
// When the unit comes back it is shown. A site that asks for a unit that is no more is told so.
func TestOvertakenByTheEnd(t *testing.T) {
	p := newPair(t, pace)
	var late []*code.Batch
	batch := func() *code.Batch {
		p.now = p.now.Add(2 * time.Second)
		data, _, _ := p.out.Batch(p.now, p.near)
		b, err := code.ParseBatch(data, p.now)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	p.report(report(t, "u", 54, 5, p.now))
	late = append(late, batch()) // the whole event
	p.report(report(t, "u", 54.01, 9, p.now))
	late = append(late, batch()) // a position
	u := p.near.Gone("u")
	p.out.Gone(p.now, &Unit{Number: 1}, code.Withdrawn)
	end := batch()
	for _, known := range []bool{true, false} {
		far := NewFar(5*time.Second, 0)
		if known {
			far.Apply(p.now, late[0], false)
		}
		far.Apply(p.now, end, false)
		for _, i := range []int{1, 0} {
			far.Apply(p.now, late[i], false)
		}
		uid, ok := far.Text(1, false)
		sign, _ := far.Text(1, true)
		if far.Find("u") != nil || far.Ask(p.now.Add(time.Hour)) != nil || !ok || uid != "u" || sign != "u" {
			t.Errorf("known before %v: there is %v, asked for %v, its names are %q and %q", known, far.Find("u"), far.Ask(p.now.Add(time.Hour)), uid, sign)
		}
		if again := (&code.Batch{Run: end.Run, At: p.now.Add(time.Second), Start: end.Start, Promise: time.Minute, Records: late[0].Records}); known {
			if far.Apply(p.now.Add(time.Second), again, false); far.Find("u") == nil {
				t.Error("a unit that is back is not shown")
			}
		}
	}
	for i := range uint32(3 * mostLeft) {
		p.far.leave(i, p.now)
	}
	if u == nil || len(p.far.left) != mostLeft {
		t.Errorf("%v is gone, %d units are known to be no more", u, len(p.far.left))
	}
	p.out.Deny(p.now, 1)
	if b := batch(); !p.near.Left(1) || len(b.Records) != 1 || b.Records[0].Form != code.Lost {
		t.Errorf("the answer is %+v", b.Records)
	}
}
