package interop

import (
	"maps"
	"time"

	"aldis/internal/adapters/tak/rule"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// Config of a Meeting.
type Config struct {
	Rules []Rule
	Peer  string // unique value of the JXTA peer that sends the reports and lines of TAK devices on the LAN; no other peer has it
	Name  string // of that peer
	// Apart is the error of a clock beyond which its times are replaced; 0: 2 min.
	Apart time.Duration
}

// Meeting passes reports and lines between adapters. It is a gateway.Meeting, and for one goroutine.
type Meeting struct {
	cfg     Config
	units   map[string]*unit
	lines   *due.Recent[string] // ids of the last lines, so that a duplicate is dropped
	jxta    jxtaSide
	tak     takSide
	trouble due.Tally // counters of events, and of refusals
	met     site.Met  // of the next Step
	begun   bool
	wait    due.Heap[*outlet]
	purged  time.Time // when units were forgotten last
}

// unit is a unit that an adapter has reported.
type unit struct {
	at      time.Time    // of the newest report
	by      site.Adapter // the adapter that reported it
	place   [2]float64
	outlets map[*rulePipe]*outlet
}

// outlet passes the reports of a unit to JXTA peers by one rule.
type outlet struct {
	pipe   *rulePipe
	told   time.Time
	due    time.Time
	wait   *Track // the newest report, until due; nil: none waits
	queued bool   // it is in the heap
}

// Before and Placed are for the heap of outlets with a waiting report.
func (o *outlet) Before(b *outlet) bool { return o.due.Before(b.due) }
func (o *outlet) Placed(int)            {}

const (
	mostUnits = 10_000
	mostLines = 4096
	// forget is how long after its last report a unit may be forgotten, where there are too many.
	forget = time.Hour
)

// New makes a meeting from its memories. The error is ErrMemory.
func New(cfg Config, memories []site.Memory) (*Meeting, error) {
	if cfg.Apart == 0 {
		cfg.Apart = 2 * time.Minute
	}
	m := &Meeting{cfg: cfg, units: map[string]*unit{}, lines: due.NewRecent[string](mostLines), trouble: due.NewTally()}
	m.jxta = jxtaSide{Meeting: m, listeners: map[pipe]map[string]bool{}, waiting: map[uint64]*site.FarMessage{}}
	m.tak = takSide{Meeting: m}
	for i := range cfg.Rules {
		rule := &m.cfg.Rules[i]
		if rule.Pipe == "" && rule.Name == "" {
			continue
		}
		m.jxta.pipes = append(m.jxta.pipes, &rulePipe{Rule: rule, id: rule.Pipe, rate: due.Each[string]{Rate: mostRate, Burst: mostAtOnce, Most: mostNames}})
	}
	return m, m.jxta.restore(memories)
}

// Hear takes in the output of an adapter, and takes out the parts of it that are not for the core.
func (m *Meeting) Hear(now time.Time, from site.Adapter, ev site.Event, out *site.Output) {
	switch from {
	case site.JXTA:
		m.jxta.hear(now, ev, out)
	case site.TAK:
		m.tak.hear(now, out)
	case site.XMPP:
		m.hearXMPP(now, out)
	}
}

// Step returns the events for the adapters.
func (m *Meeting) Step(now time.Time) site.Met {
	if !m.begun {
		m.begun = true
		m.jxta.begin(now)
		m.beginXMPP()
	}
	m.tak.listen()
	for len(m.wait) > 0 && !now.Before(m.wait[0].due) {
		o := m.wait.Pop()
		o.queued = false
		if o.wait != nil {
			m.jxta.giveTrack(now, o, o.wait)
		}
	}
	out := m.met
	m.met = site.Met{}
	if len(m.wait) > 0 {
		out.Deadline = m.wait[0].due
	}
	return out
}

// notify queues an event for an adapter.
func (m *Meeting) notify(adapter site.Adapter, ev site.Event) {
	m.met.Tell = append(m.met.Tell, site.Told{Adapter: adapter, Event: ev})
}

// timely says whether a report's time is plausible by our clock.
func (m *Meeting) timely(now time.Time, t *Track) bool { return t.Time.Sub(now).Abs() <= m.cfg.Apart }

// clock replaces an implausible time of a report by now; its life stays as long.
func (m *Meeting) clock(now time.Time, t *Track) {
	if m.timely(now, t) {
		return
	}
	m.trouble.Count("clock")
	life := t.Stale.Sub(t.Time)
	t.Time = now.UTC().Truncate(time.Millisecond)
	t.Stale = t.Time.Add(life)
}

// news takes a report in; false: this report or a newer one of the unit is known, or there is no room for another unit.
func (m *Meeting) news(now time.Time, by site.Adapter, t *Track) (*unit, bool) {
	u := m.units[t.ID]
	place := [2]float64{t.Lat, t.Lon}
	switch {
	case u == nil:
		if len(m.units) >= mostUnits && now.Sub(m.purged) >= time.Second {
			m.purged = now
			maps.DeleteFunc(m.units, func(_ string, u *unit) bool { return now.Sub(u.at) > forget })
		}
		if len(m.units) >= mostUnits {
			m.trouble.Count("units")
			return nil, false
		}
		u = &unit{outlets: map[*rulePipe]*outlet{}}
		m.units[t.ID] = u
	case t.Time.Before(u.at):
		m.trouble.Count("older")
		return u, false
	case t.Time.Equal(u.at) && (by != u.by || place == u.place):
		m.trouble.Count("twice")
		return u, false
	}
	for _, o := range u.outlets { // waiting reports are older
		o.wait = nil
	}
	u.at, u.by, u.place = t.Time, by, place
	return u, true
}

// judge says whether a rule is for an event of TAK; why not: the condition that it misses.
func (r *Rule) judge(s *rule.Subject) (why string, ok bool) {
	switch {
	case r.Room != "":
		l := lineOf(s.Event)
		switch {
		case l == nil:
			return "type", false
		case l.Room != r.Room:
			return "room", false
		case len(s.Event.Dests()) > 0:
			return "dest", false
		}
	case r.Fit.Type == "" && !s.Event.Is("a"):
		return "type", false
	}
	why = r.Fit.Misses(s)
	return why, why == ""
}
