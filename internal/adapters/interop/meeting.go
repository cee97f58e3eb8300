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
	Peer  string // unique value of the JXTA peer that says on the LAN what TAK devices say; no other peer has it
	Name  string // of that peer
	// Apart: a clock that is wrong by more is not believed; 0: 2 min.
	Apart time.Duration
}

// Meeting is where adapters meet. It is a gateway.Meeting, and for one goroutine.
type Meeting struct {
	cfg     Config
	units   map[string]*unit
	lines   *due.Recent[string] // ids of the last lines, so that one that comes twice is taken once
	jxta    jxtaSide
	tak     takSide
	trouble due.Tally // what happened, and what was refused
	met     site.Met  // of the next Step
	begun   bool
	wait    due.Heap[*outlet]
	purged  time.Time // when units were forgotten last
}

// unit is one that an adapter has told of.
type unit struct {
	at      time.Time    // of the newest report
	by      site.Adapter // the adapter that told it
	place   [2]float64
	outlets map[*rulePipe]*outlet
}

// outlet is what JXTA peers are told of a unit by one rule.
type outlet struct {
	pipe   *rulePipe
	told   time.Time
	due    time.Time
	wait   *Track // the newest report, until due; nil: none waits
	queued bool   // it is among those whose turn comes
}

// Before and Placed are for the heap of outlets whose turn comes.
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

// Hear takes in what an adapter does, and takes out what is not for the core.
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

// Step says what the adapters are to be told.
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

// notify has an adapter told something.
func (m *Meeting) notify(adapter site.Adapter, ev site.Event) {
	m.met.Tell = append(m.met.Tell, site.Told{Adapter: adapter, Event: ev})
}

// timely says whether a right clock can show a report's time.
func (m *Meeting) timely(now time.Time, t *Track) bool { return t.Time.Sub(now).Abs() <= m.cfg.Apart }

// clock puts now in the place of a report's time that no right clock can show; the report lives as long as before.
func (m *Meeting) clock(now time.Time, t *Track) {
	if m.timely(now, t) {
		return
	}
	m.trouble.Count("clock")
	life := t.Stale.Sub(t.Time)
	t.Time = now.UTC().Truncate(time.Millisecond)
	t.Stale = t.Time.Add(life)
}

// news takes a report in; false: a newer one of the unit is known, or this one, or there is no room for another unit.
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
	for _, o := range u.outlets { // what waits is older
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
