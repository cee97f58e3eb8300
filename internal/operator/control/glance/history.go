package glance

import (
	"slices"
	"time"

	"aldis/internal/gateway/api"
)

// Bounds of a History.
const (
	keeps     = 48 * time.Hour
	window    = time.Minute      // of the rates
	longer    = 10 * time.Minute // of what is counted
	mostSites = 256
	// Every is how far two samples of the last minutes are apart: Note is called so often.
	Every = 10 * time.Second
	// Buckets is how many columns an Air has at most.
	Buckets = 180
)

// Kinds are the accounts of the ledger, as api.LedgerRow names them.
var Kinds = [...]string{"payload", "advertisement", "state", "ack", "repair", "header", "key", "link_probe"}

// directions of the ledger.
const (
	sent = iota
	received
)

var directions = [...]string{"sent", "received"}

// History is the airtime ledger over time: by minute for two days, and by ten seconds for the last minutes. It is in memory alone
// and begins anew at a start. Minutes in which nothing was on the air take no room; at most it holds some megabytes.
type History struct {
	began   time.Time
	totals  map[account]uint64
	sites   []string
	minutes []minute // oldest first
	recent  []sample // oldest first
	month   Month
}

type account struct{ direction, peer, kind string }

// minute is what was on the air in one minute.
type minute struct {
	at    time.Time
	kinds [2][len(Kinds)]uint32
	sites [2][]uint32
}

// sample is the totals at one moment.
type sample struct {
	at      time.Time
	sites   map[string]counts
	bearers map[string][2]uint64 // octets, where there are several
}

// counts are totals of a site.
type counts struct {
	octets                              [2]uint64
	delivered, repeated, ended, refused uint64
}

// Month is what was on the air in this calendar month (UTC), in earlier runs too.
type Month struct {
	Since    time.Time `json:"since"` // the month's beginning, or when a gateway first counted in it
	Ends     time.Time `json:"ends"`
	Sent     uint64    `json:"sent"`
	Received uint64    `json:"received"`
	// Minutes are those in which something was on the air in either direction.
	Minutes int `json:"minutes"`
}

// NewHistory begins with a gateway that has just started, at now.
func NewHistory(now time.Time) *History {
	now = now.UTC()
	return &History{began: now, totals: map[account]uint64{}, month: monthOf(now, nil)}
}

// monthOf is the month of now, of which nothing is known yet where bill is nil.
func monthOf(now time.Time, bill *api.BillMonth) Month {
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	m := Month{Since: now, Ends: first.AddDate(0, 1, 0)}
	if bill != nil && bill.Month == first.Format("2006-01") {
		m.Since, m.Sent, m.Received, m.Minutes = bill.Since, bill.Total.SentOctets, bill.Total.ReceivedOctets, int(bill.Total.Minutes)
	}
	return m
}

// Spent is what was on the air in a time, in octets.
type Spent struct {
	From           time.Time // since when that is known, not before what was asked for
	Sent, Received uint64
}

// Since is what was on the air since a time, in whole minutes.
func (h *History) Since(at time.Time) Spent {
	s := Spent{From: at}
	if h.began.After(at) {
		s.From = h.began
	}
	for _, m := range h.minutes {
		if m.at.Add(time.Minute).Before(at) {
			continue
		}
		for k := range Kinds {
			s.Sent += uint64(m.kinds[sent][k])
			s.Received += uint64(m.kinds[received][k])
		}
	}
	return s
}

// Note takes what the ledger says now. A wall clock that was set back makes the minute that it says a later one.
func (h *History) Note(now time.Time, s api.Status) {
	now = now.UTC()
	h.month = monthOf(now, s.Month)
	h.charge(now, s.Ledger)
	h.recent = append(h.recent, sampleOf(now, s))
	old := slices.IndexFunc(h.recent, func(x sample) bool { return now.Sub(x.at) <= longer+Every })
	h.recent = slices.Delete(h.recent, 0, max(old, len(h.recent)-2*int(longer/Every), 0))
	first := slices.IndexFunc(h.minutes, func(m minute) bool { return now.Sub(m.at) < keeps })
	if first < 0 {
		first = len(h.minutes)
	}
	h.minutes = slices.Delete(h.minutes, 0, first)
}

// charge adds what is new in the ledger to the minute.
func (h *History) charge(now time.Time, rows []api.LedgerRow) {
	var m *minute
	for _, row := range rows {
		a := account{row.Direction, row.Peer, row.Kind}
		before := h.totals[a]
		if row.Octets <= before {
			continue
		}
		h.totals[a] = row.Octets
		if m == nil {
			m = h.minute(now)
		}
		m.add(h.site(row.Peer), row.Direction, row.Kind, uint32(row.Octets-before))
	}
}

// minute is that of now, a new one if there is none yet.
func (h *History) minute(now time.Time) *minute {
	at := now.Truncate(time.Minute)
	if n := len(h.minutes); n > 0 && !at.After(h.minutes[n-1].at) {
		return &h.minutes[n-1]
	}
	h.minutes = append(h.minutes, minute{at: at})
	return &h.minutes[len(h.minutes)-1]
}

// site is the place of a site in a minute; the last one is that of all that have none of their own.
func (h *History) site(name string) int {
	i := slices.Index(h.sites, name)
	switch {
	case i >= 0:
		return i
	case len(h.sites) < mostSites:
		h.sites = append(h.sites, name)
	}
	return len(h.sites) - 1
}

func (m *minute) add(site int, direction, kind string, octets uint32) {
	d := slices.Index(directions[:], direction)
	k := slices.Index(Kinds[:], kind)
	if d < 0 || k < 0 {
		return
	}
	m.kinds[d][k] += octets
	for len(m.sites[d]) <= site {
		m.sites[d] = append(m.sites[d], 0)
	}
	m.sites[d][site] += octets
}

func sampleOf(now time.Time, s api.Status) sample {
	x := sample{at: now, sites: map[string]counts{}, bearers: map[string][2]uint64{}}
	for _, p := range s.Peers {
		x.sites[p.Name] = counts{delivered: p.Delivered, repeated: p.Repeated, ended: p.Expired + p.Undeliverable, refused: p.Refused}
	}
	for _, row := range s.Ledger {
		c, b, d := x.sites[row.Peer], x.bearers[row.Bearer], received
		if row.Direction == directions[sent] {
			d = sent
		}
		c.octets[d] += row.Octets
		b[d] += row.Octets
		x.sites[row.Peer], x.bearers[row.Bearer] = c, b
	}
	return x
}

// before is the newest sample that is at least so old; where the run is younger, nothing was on the air yet when it began.
func (h *History) before(now time.Time, age time.Duration) sample {
	at := sample{at: h.began}
	if len(h.recent) > 0 && now.Sub(h.recent[0].at) >= age {
		at = h.recent[0]
	}
	for _, x := range h.recent {
		if now.Sub(x.at) >= age {
			at = x
		}
	}
	return at
}

// Air is the ledger of some hours in columns, the oldest first, for a plot. Series in which nothing was on the air are absent.
type Air struct {
	From  time.Time           `json:"from"`
	StepS int                 `json:"step_s"`
	N     int                 `json:"n"`
	Kinds map[string][]uint64 `json:"kinds"` // "sent payload": IP octets of each column
	Sites map[string][]uint64 `json:"sites"` // "sent hq"
	Month Month               `json:"month"`
	Began time.Time           `json:"began"` // nothing is known of the time before
}

// Air is the ledger of the last hours, 1 to 48.
func (h *History) Air(now time.Time, hours int) Air {
	hours = min(max(hours, 1), int(keeps/time.Hour))
	minutes := (hours*60 + Buckets - 1) / Buckets
	step := time.Duration(minutes) * time.Minute
	n := hours * 60 / minutes
	end := now.UTC().Truncate(time.Minute).Add(time.Minute)
	a := Air{From: end.Add(-time.Duration(n) * step), StepS: int(step / time.Second), N: n,
		Kinds: map[string][]uint64{}, Sites: map[string][]uint64{}, Month: h.month, Began: h.began}
	put := func(series map[string][]uint64, name string, column int, octets uint32) {
		if octets == 0 {
			return
		}
		if series[name] == nil {
			series[name] = make([]uint64, n)
		}
		series[name][column] += uint64(octets)
	}
	for _, m := range h.minutes {
		column := int(m.at.Sub(a.From) / step)
		if m.at.Before(a.From) || column >= n {
			continue
		}
		for d, direction := range directions {
			for k, octets := range m.kinds[d] {
				put(a.Kinds, direction+" "+Kinds[k], column, octets)
			}
			for s, octets := range m.sites[d] {
				put(a.Sites, direction+" "+Plain(h.sites[s]), column, octets)
			}
		}
	}
	return a
}
