package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/lab/check"
	"aldis/internal/lab/trace"
)

// takTalk is the events of devices for some minutes: each reports every ten seconds while it moves north, and the first sends three
// chats.
func takTalk(devices int, length time.Duration) (list []TAKEvent) {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for at := time.Duration(0); at < length; at += 10 * time.Second {
		for d := range devices {
			now := start.Add(at)
			e := &cot.Event{Version: "2.0", UID: fmt.Sprintf("ANDROID-%d", d), Type: "a-f-G-U-C", How: "m-g", Time: now, Start: now, Stale: now.Add(time.Minute),
				Point: cot.Point{Lat: cot.Rounded(60+at.Seconds()*5/perDegree, 6), Lon: cot.Rounded(5+float64(d)/100, 6), HAE: "12", CE: "9.9", LE: "9999999"},
				Detail: []cot.Node{{Name: "contact", Attrs: []cot.Attr{{Name: "callsign", Value: fmt.Sprintf("UNIT %d", d)}}},
					{Name: "track", Attrs: []cot.Attr{{Name: "speed", Value: "5.0"}, {Name: "course", Value: "0.0"}}}}}
			list = append(list, TAKEvent{at, fmt.Sprintf("10.0.0.%d", d+1), e})
		}
		if n := int(at / (time.Minute)); at%time.Minute == 0 && n < 3 {
			c := *list[0].Event
			c.UID, c.Type, c.Time, c.Start, c.Stale = fmt.Sprintf("marker.%d", n), "b-m-p-s-m", start.Add(at), start.Add(at), start.Add(at+time.Hour)
			c.Detail = []cot.Node{{Name: "contact", Attrs: []cot.Attr{{Name: "callsign", Value: fmt.Sprintf("spot %d", n)}}}}
			list = append(list, TAKEvent{at, "10.0.0.1", &c})
		}
	}
	return list
}

// Devices that move are shown near their positions, for a small part of their octets, and the same play gives the same figures.
func TestTAK(t *testing.T) {
	events := takTalk(5, 5*time.Minute)
	o := Options{Profile: load(t, "iridium-dialup"), Seed: 1}
	r, err := RunTAK(context.Background(), events, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *r)
	check.Equal(t, "events", r.Events, len(events))
	check.Equal(t, "reports", r.Reports, 150)
	check.Equal(t, "shown", r.Shown, 3)
	check.Equal(t, "not shown", r.Unshown, 0)
	check.True(t, "reports of units not shown yet", r.Missing <= 5, r.Missing)
	check.True(t, "a report costs less than 40 octets", r.PerReport < 40, r.PerReport)
	check.True(t, "the far map is right", r.P95M < 50, r.P95M)
	check.True(t, "a marker takes seconds", r.MaxS < 10, r.MaxS)
	check.True(t, "the link carries more than nothing", r.Octets > 0 && r.Datagrams > 0 && r.BusyPct > 0 && r.AirMinutes > 0, *r)
	want := 100 * 8 * float64(r.CoT) / 290 / 2400
	check.True(t, "unaided", r.UnaidedPct > 0.99*want && r.UnaidedPct < 1.01*want, r.UnaidedPct)
	again, err := RunTAK(context.Background(), events, o)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(r)
	b, _ := json.Marshal(again)
	check.Equal(t, "another time", string(a), string(b))
}

// A radio net carries the picture, too.
func TestTAKOnARadioNetwork(t *testing.T) {
	r, err := RunTAK(context.Background(), takTalk(2, 2*time.Minute), Options{Profile: load(t, "hf-2400"), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	check.True(t, "the units are shown", r.Missing < r.Reports, *r)
	check.True(t, "octets", r.Octets > 0, *r)
}

// A play ends when its context is cancelled, and a play without events is refused.
func TestTAKEnds(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err := RunTAK(ctx, takTalk(1, time.Minute), Options{Profile: load(t, "iridium-dialup")})
	check.True(t, "the context's error", errors.Is(err, context.Canceled), err)
	_, err = RunTAK(context.Background(), nil, Options{Profile: load(t, "iridium-dialup")})
	check.True(t, "nothing", errors.Is(err, ErrNoTAK), err)
	_, err = RunTAK(context.Background(), make([]TAKEvent, MaxTAKEvents+1), Options{Profile: load(t, "iridium-dialup")})
	check.True(t, "too much", err != nil, err)
}

// A trace gives back the recorded events; a trace that is not of TAK alone is not played here.
func TestTAKEventsOfATrace(t *testing.T) {
	var b bytes.Buffer
	events := takTalk(2, time.Minute)
	w := trace.NewFileWriter(&b, trace.Header{Content: "data"})
	r := trace.NewRecorder(w, "", "")
	for _, e := range events {
		r.CoT(trace.CoT{At: e.At.Seconds(), From: e.From, Event: e.Event, XML: e.Event.AppendXML(nil)})
		r.CoT(trace.CoT{At: e.At.Seconds(), From: e.From, Event: e.Event, XML: e.Event.AppendXML(nil), Copy: true})
	}
	if _, err := w.End(60, false); err != nil {
		t.Fatal(err)
	}
	f, err := trace.ReadFile(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := TAKEvents(f)
	check.True(t, "it is read", err == nil, err)
	check.Equal(t, "events", len(got), len(events))
	for i := range got {
		check.Equal(t, "from", got[i].From, events[i].From)
		check.Equal(t, "at", got[i].At, events[i].At)
		check.Equal(t, "event", got[i].Event.Canonical(), events[i].Event.Canonical())
	}
	for i := range f.Lines {
		f.Lines[i].Parts = nil
	}
	_, err = TAKEvents(f)
	check.True(t, "without content", err != nil && strings.Contains(err.Error(), "has no content"), err)
	b.Reset()
	if _, err := trace.Synth(&b, 1, 1, trace.ContentXML); err != nil {
		t.Fatal(err)
	}
	jxta, err := trace.ReadFile(&b)
	if err != nil {
		t.Fatal(err)
	}
	got, err = TAKEvents(jxta)
	check.True(t, "a trace of JXTA", len(got) == 0 && err == nil, err)
}
