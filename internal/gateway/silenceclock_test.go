package gateway_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/rules/calendar"
)

// lone is a gateway without a link, its journal, and the datagrams that it transmitted.
type lone struct {
	t         *testing.T
	cfg       gateway.Config
	gw        *gateway.Gateway
	journal   map[string]api.Record
	datagrams int
	notes     []string
}

func newLone(t *testing.T) *lone {
	t.Helper()
	p, err := profile.Load("geo-satcom-128k", nil)
	if err != nil {
		t.Fatal(err)
	}
	return &lone{t: t, journal: map[string]api.Record{}, cfg: gateway.Config{ID: 2, Name: "ship", Profile: p,
		Peers: []gateway.PeerConfig{{ID: 1, Name: "hq", Addr: netip.MustParseAddrPort("10.0.0.1:7142")}}}}
}

// start starts a gateway from the journal. The last one began so long ago; 0: nobody knows.
func (l *lone) start(now time.Time, sinceLast time.Duration) {
	l.t.Helper()
	l.cfg.Incarnation, l.cfg.SinceLast = seal.Incarnation{Number: l.cfg.Incarnation.Number + 1}, sinceLast
	var records []api.Record
	for _, key := range slices.Sorted(maps.Keys(l.journal)) {
		records = append(records, l.journal[key])
	}
	var err error
	if l.gw, err = gateway.New(l.cfg, records); err != nil {
		l.t.Fatal(err)
	}
	l.step(now, nil)
}

func (l *lone) step(now time.Time, ev api.Event) {
	out := l.gw.Step(now, ev)
	for _, r := range out.Records {
		l.journal[r.Bucket+"/"+string(r.Key)] = r
	}
	l.datagrams += len(out.Datagrams)
	for _, n := range out.Notes {
		l.notes = append(l.notes, n.Text)
	}
}

// pass lets time pass, a step each second.
func (l *lone) pass(from time.Time, d time.Duration) (now time.Time) {
	for now = from; now.Before(from.Add(d)); {
		now = now.Add(time.Second)
		l.step(now, nil)
	}
	return now
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// silent is a gateway that was ordered at noon to be silent for an hour, ten minutes later.
func silent(t *testing.T) *lone {
	l := newLone(t)
	l.start(noon, 0)
	l.step(noon, api.Silence{On: true, Until: noon.Add(time.Hour)})
	l.pass(noon, 10*time.Minute)
	l.datagrams = 0
	return l
}

// A start whose wall clock is ahead does not end a silence: the time that has passed is that of another clock, or, after
// a start of the machine, that of the journal.
func TestSilenceOutlastsAWrongClock(t *testing.T) {
	for _, tt := range []struct {
		name      string
		wall      time.Duration // at the start, after noon
		sinceLast time.Duration // 0: the machine was started
		left      time.Duration
	}{
		{"killed for a minute", 11 * time.Minute, 11 * time.Minute, 49 * time.Minute},
		{"killed, and the clock is two hours ahead", 2 * time.Hour, 11 * time.Minute, 49 * time.Minute},
		{"killed, and the clock is years ahead", 50_000 * time.Hour, 11 * time.Minute, 49 * time.Minute},
		{"off for half an hour", 40 * time.Minute, 40 * time.Minute, 20 * time.Minute},
		{"off for two hours", 2 * time.Hour, 2 * time.Hour, 0},
		{"killed, and the clock is an hour behind", -49 * time.Minute, 11 * time.Minute, 109 * time.Minute}, // the wall clock must be there too
		{"the machine was off for a minute", 11 * time.Minute, 0, 50 * time.Minute},
		{"the machine was off, or its clock is ahead", 3 * time.Hour, 0, 50 * time.Minute},
	} {
		l := silent(t)
		start := noon.Add(tt.wall)
		l.start(start, tt.sinceLast)
		if tt.left > 0 {
			now := l.pass(start, tt.left-2*time.Second)
			check.True(check.In(t, tt.name), "silent until the end", l.gw.Status(now).Silence.On)
			check.Equal(check.In(t, tt.name), "datagrams", l.datagrams, 0)
		}
		now := l.pass(start.Add(max(tt.left-2*time.Second, 0)), 4*time.Second)
		check.True(check.In(t, tt.name), "silent afterwards", !l.gw.Status(now).Silence.On)
		check.True(check.In(t, tt.name), "datagrams afterwards", l.datagrams > 0)
		const late = "the silence lasts longer than ordered: the gateway cannot tell how long the node was off, and a wall clock alone ends no silence"
		check.Equal(check.In(t, tt.name), "the operator is told", slices.Contains(l.notes, late), tt.left > 0 && tt.left > time.Hour-tt.wall+time.Minute && tt.wall > 0)
	}
}

// The time that a run has seen pass is durable each minute, so ten losses of power cost ten minutes at the most.
func TestSilenceCountsWhatEveryRunHasSeen(t *testing.T) {
	l := silent(t)
	wall := noon
	for range 10 {
		wall = wall.Add(24 * time.Hour) // of which nobody knows how many are true
		l.start(wall, 0)
		wall = l.pass(wall, 3*time.Minute+30*time.Second)
	}
	// 10 minutes, and 3 each time of at least 3.5.
	if left := time.Duration(l.gw.Status(wall).Silence.LeftS * float64(time.Second)); left < 15*time.Minute || left > 20*time.Minute {
		t.Errorf("%v left of the hour, want what 45 minutes leave of it and up to 30 s for each start", left)
	}
	check.Equal(t, "datagrams", l.datagrams, 0)
}

// A record of version 0.1 has the end alone.
func TestSilenceOfVersion01(t *testing.T) {
	l := silent(t)
	r := l.journal["silence/self"]
	r.Value = r.Value[:9]
	l.journal["silence/self"] = r
	l.start(noon.Add(30*time.Minute), 0)
	now := l.pass(noon.Add(30*time.Minute), 29*time.Minute)
	check.True(t, "silent", l.gw.Status(now).Silence.On)
	now = l.pass(now, time.Minute+time.Second)
	check.True(t, "not silent", !l.gw.Status(now).Silence.On)
}

// The configuration's order is above the journal and above the operator's: nothing leaves from the first Step on.
func TestSilenceByConfiguration(t *testing.T) {
	l := newLone(t)
	l.cfg.Silent = true
	l.start(noon, 0)
	now := l.pass(noon, time.Minute)
	l.step(now, api.Silence{On: true, Until: now.Add(time.Minute), Announce: true})
	now = l.pass(now, 2*time.Minute) // that one is over
	l.step(now, api.Silence{})
	now = l.pass(now, time.Minute)
	s := l.gw.Status(now).Silence
	check.True(t, "silent", s.On)
	check.True(t, "by the configuration", s.Fixed)
	check.Equal(t, "its end", s.Until, "")
	check.Contains(t, "the notes", strings.Join(l.notes, "\n"), "an order to end the silence was refused: the configuration says node.silent = true")
	clear(l.journal) // the journal is moved away
	l.start(now, 0)
	l.pass(now, time.Minute)
	check.Equal(t, "datagrams", l.datagrams, 0)
	l.cfg.Silent = false
	l.start(now, 0)
	l.pass(now, time.Minute)
	check.True(t, "datagrams without the key", l.datagrams > 0)
}

// A node starts with its clock twenty hours ahead, and somebody sets it right: windows of silence go by the clock as it is now.
func TestWindowsAfterTheClockIsSetBack(t *testing.T) {
	l, ahead := newLone(t), 20*time.Hour
	l.cfg.Windows = calendar.Windows{{Days: [7]bool{true, true, true, true, true, true, true}, From: 22 * time.Hour, To: 6 * time.Hour}}
	start := noon.Add(9*time.Hour + ahead) // 17:00 of the next day, though it is 21:00
	l.start(start, 0)
	l.step(start, api.Clock{Ran: time.Second, Set: -ahead})
	silent := func(ran time.Duration) bool {
		l.step(start.Add(ran), api.Clock{Ran: ran, Set: -ahead})
		return l.gw.Status(start.Add(ran)).Silence.On
	}
	check.True(t, "not silent at 21:59", !silent(59*time.Minute))
	check.True(t, "silent at 22:01", silent(61*time.Minute))
	check.True(t, "silent at 05:59", silent(9*time.Hour-time.Minute))
	check.True(t, "not silent at 06:01", !silent(9*time.Hour+time.Minute))
}

// An order ends the silence of a window. After the clock was set back out of that window it counts when it comes again; set back within it,
// the order stands.
func TestAnOrderInAWindowAndTheClockIsSetBack(t *testing.T) {
	for back, want := range map[time.Duration]bool{10 * time.Minute: false, 24 * time.Hour: true} {
		l := newLone(t)
		l.cfg.Windows = calendar.Windows{{Days: [7]bool{true, true, true, true, true, true, true}, From: 22 * time.Hour, To: 6 * time.Hour}}
		start := noon.Add(11 * time.Hour)
		l.start(start, 0)
		check.True(t, "silent at 23:00", l.gw.Status(start).Silence.On)
		l.step(start, api.Silence{})
		check.True(t, "an order ends it", !l.gw.Status(start).Silence.On)
		l.step(start.Add(time.Second), api.Clock{Ran: time.Second, Set: -back})
		l.step(start.Add(2*time.Second), api.Clock{Ran: 2 * time.Second, Set: -back})
		check.Equal(t, "silent after "+back.String(), l.gw.Status(start.Add(2*time.Second)).Silence.On, want)
	}
}
