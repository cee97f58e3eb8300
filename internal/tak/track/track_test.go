package track

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/tak/code"
	"aldis/internal/tak/cot"
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

// pair is an outlet and the far table that it speaks to.
type pair struct {
	t    *testing.T
	now  time.Time
	near *Near
	out  *Outlet
	far  *Far
}

func newPair(t *testing.T, p Pace) *pair {
	return &pair{t: t, now: epoch, near: NewNear(7, 3), out: NewOutlet(p, 0, false, 1), far: NewFar(5 * time.Second)}
}

var pace = Pace{Gather: time.Second, Age: time.Minute, Octets: 300}

func (p *pair) report(e *cot.Event) {
	if u, _ := p.near.Report(p.now, e, []Care{{Bound: 50}}); u != nil {
		p.out.Reported(p.now, u)
	}
}

// speak makes the batch that is due and says how many records it had; -1: none was due.
func (p *pair) speak(arrives bool) int {
	data, number := p.out.Batch(p.now, p.near)
	if data == nil {
		return -1
	}
	b, err := code.ParseBatch(data, p.now)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.out.Ended(p.now, number, arrives); arrives {
		p.far.Take(p.now, b, false)
	}
	return len(b.Records)
}

// A unit on its course is told once; one that leaves it is told again, and a batch that is lost is made good.
func TestToldWhenWrong(t *testing.T) {
	p := newPair(t, pace)
	const metre = 1 / 111194.9
	lat, said := 54.0, 0
	for range 60 { // ten minutes at 5 m/s, as said
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

// A table is bounded; what has left makes room.
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

// A far clock that is wrong does not make units old, or of tomorrow; a unit whose event was missed is asked for.
func TestFarClockAndLack(t *testing.T) {
	for _, off := range []time.Duration{0, -3 * time.Hour, 3 * time.Hour} {
		p := newPair(t, pace)
		p.report(report(t, "u", 54, 0, p.now))
		p.now = p.now.Add(time.Second)
		data, _ := p.out.Batch(p.now, p.near)
		here := p.now.Add(off)
		b, err := code.ParseBatch(data, here)
		if err != nil {
			t.Fatal(err)
		}
		p.far.Take(here, b, false)
		events, _ := p.far.Show(here)
		if len(events) != 1 || here.Sub(events[0].Time).Abs() > 5*time.Second || !events[0].Stale.After(here) {
			t.Errorf("with clocks %v apart it is shown as %v", off, events)
		}
	}
	far := NewFar(time.Second)
	far.Take(epoch, &code.Batch{Run: 1, At: epoch, Promise: time.Minute, Records: []code.Record{{Unit: 9, Form: code.Moved}}}, false)
	if got := far.Ask(epoch); len(got) != 1 || got[0] != 9 {
		t.Errorf("asked for %v", got)
	}
	if got := far.Ask(epoch.Add(time.Second)); got != nil {
		t.Errorf("asked again at once for %v", got)
	}
}

// When a site falls silent its units go stale by its promise, and are shown so once.
func TestSilence(t *testing.T) {
	p := newPair(t, pace)
	p.report(report(t, "u", 54, 0, p.now))
	p.now = p.now.Add(time.Second)
	p.speak(true)
	stale := 0
	for range 200 {
		p.now = p.now.Add(time.Second)
		events, gone := p.far.Show(p.now)
		for _, e := range events {
			if e.Stale.Sub(p.now) > time.Minute {
				t.Errorf("it is fresh for %v", e.Stale.Sub(p.now))
			}
		}
		stale += len(gone)
	}
	if stale != 1 || p.far.Find("u") != nil {
		t.Errorf("it went stale %d times", stale)
	}
}
