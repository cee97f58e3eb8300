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

// A HELLO of a stranger, or of a peer from another address, is answered at once, but not in a silence: of the configuration, of a window,
// by an order, or because the modem is down.
func TestSilenceAnswersNoHello(t *testing.T) {
	hq := newLone(t)
	hq.cfg.ID, hq.cfg.Name = 1, "hq"
	hq.cfg.Peers = []gateway.PeerConfig{{ID: 2, Name: "ship", Addr: netip.MustParseAddrPort("10.0.0.2:7142")}}
	hq.cfg.Incarnation = seal.Incarnation{Number: uint32(noon.Unix())}
	var err error
	hq.gw, err = gateway.New(hq.cfg, nil)
	check.NoError(check.Fatal(t), err)
	var hello []byte
	for now := noon; hello == nil; now = now.Add(time.Second) {
		for _, d := range hq.gw.Step(now, nil).Datagrams {
			hello = d.Data
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*gateway.Config)
		ev     api.Event
		want   int
	}{
		{"no silence", func(*gateway.Config) {}, nil, 1},
		{"of the configuration", func(cfg *gateway.Config) { cfg.Silent = true }, nil, 0},
		{"a window", func(cfg *gateway.Config) {
			cfg.Windows = calendar.Windows{{Begins: noon.Add(-time.Hour), Ends: noon.Add(time.Hour)}}
		}, nil, 0},
		{"an order", func(*gateway.Config) {}, api.Silence{On: true}, 0},
		{"an order for the bearer", func(cfg *gateway.Config) { cfg.Bearer = "sat" }, api.Silence{On: true, Bearer: "sat"}, 0},
		{"the modem is down", func(*gateway.Config) {}, api.Modem{Down: true}, 0},
	} {
		ship := newLone(t)
		tt.change(&ship.cfg)
		ship.cfg.Incarnation = seal.Incarnation{Number: uint32(noon.Unix())}
		ship.start(noon, 0)
		ship.step(noon.Add(time.Second), tt.ev)
		ship.datagrams = 0
		ship.step(noon.Add(2*time.Second), api.Datagram{Addr: netip.MustParseAddrPort("10.9.9.9:1"), Data: hello})
		check.Equal(t, "datagrams with "+tt.name, ship.datagrams, tt.want)
	}
}

// A window begins in time though the clocks, one of which was set, are not heard again: by the time that has passed since.
func TestWindowBetweenClocks(t *testing.T) {
	for _, tt := range []struct {
		set    time.Duration
		silent time.Duration // from when on it is silent
	}{{2 * time.Second, 58 * time.Second}, {-20 * time.Second, 80 * time.Second}} {
		l := newLone(t)
		l.cfg.Windows = calendar.Windows{{Begins: noon.Add(time.Minute), Ends: noon.Add(time.Hour)}}
		l.start(noon, 0)
		l.step(noon.Add(time.Second), api.Clock{Ran: time.Second, Set: tt.set})
		for at := 2 * time.Second; at < 90*time.Second; at += time.Second {
			l.step(noon.Add(at), api.Drain{})
			check.Equal(t, "silent after "+at.String()+" with a clock set by "+tt.set.String(), l.gw.Status(noon.Add(at)).Silence.On, at >= tt.silent)
		}
		now := noon.Add(90 * time.Second)
		l.step(now, api.Silence{})
		l.step(now.Add(time.Second), api.Clock{Ran: 91 * time.Second, Set: tt.set})
		l.step(now.Add(2*time.Second), api.Drain{})
		check.Equal(t, "silent after an order against it", l.gw.Status(now).Silence.On, false)
		until := noon.Add(time.Hour).Add(-tt.set)
		l.step(now, api.Silence{On: true, Until: noon.Add(time.Hour)})
		l.step(until.Add(-time.Second), api.Clock{Ran: until.Add(-time.Second).Sub(noon), Set: tt.set})
		check.Equal(t, "silent until its end", l.gw.Status(until).Silence.On, true)
		l.step(until, api.Clock{Ran: until.Sub(noon), Set: tt.set})
		check.Equal(t, "silent after its end", l.gw.Status(until).Silence.On, false)
	}
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
