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
	longer    = 10 * time.Minute // of the counts
	mostSites = 256
	// Every is the time between two samples of the last minutes: Note is called so often.
	Every = 10 * time.Second
	// Buckets is the most columns of an Air.
	Buckets = 180
)

// Kinds are the accounts of the ledger, with the names of api.LedgerRow.
var Kinds = [...]string{"payload", "advertisement", "state", "ack", "repair", "header", "key", "link_probe"}

// directions of the ledger.
const (
	sent = iota
	received
)

var directions = [...]string{"sent", "received"}

// History is the airtime ledger over time: by minute for two days, and by ten seconds for the last minutes. It is kept in memory
// only, and starts empty. Minutes without traffic take no room; at most it holds some megabytes.
type History struct {
	began   time.Time
	totals  map[account]uint64
	sites   []string
	of      map[string]uint64 // totals by "sent jxta payload"
	names   []string          // of these
	minutes []minute          // oldest first
	recent  []sample          // oldest first
	month   Month
}

type account struct{ direction, peer, kind string }

// minute is the traffic of one minute.
type minute struct {
	at    time.Time
	kinds [2][len(Kinds)]uint32
	sites [2][]uint32
	of    []uint32 // as History.names
}

// sample is the ledger's totals at one moment.
type sample struct {
	at      time.Time
	sites   map[string][2]uint64 // octets, by the name of the ledger
	peers   map[uint16]counts    // by id: two sites may have one name
	bearers map[string][2]uint64 // octets, if there are several bearers
}

// counts are the totals of a site.
type counts struct{ delivered, repeated, ended, refused uint64 }

// Month is the traffic of this calendar month (UTC), including earlier runs.
type Month struct {
	Since    time.Time `json:"since"` // the month's beginning, or when a gateway first counted in it
	Ends     time.Time `json:"ends"`
	Sent     uint64    `json:"sent"`
	Received uint64    `json:"received"`
	// Minutes counts the minutes with traffic in either direction.
	Minutes int `json:"minutes"`
}

// NewHistory makes the history of a gateway that starts at now.
func NewHistory(now time.Time) *History {
	now = now.UTC()
	return &History{began: now, totals: map[account]uint64{}, of: map[string]uint64{}, month: monthOf(now, nil)}
}

// monthOf is the month of now, empty if bill is nil.
func monthOf(now time.Time, bill *api.BillMonth) Month {
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	m := Month{Since: now, Ends: first.AddDate(0, 1, 0)}
	if bill != nil && bill.Month == first.Format("2006-01") {
		m.Since, m.Sent, m.Received, m.Minutes = bill.Since, bill.Total.SentOctets, bill.Total.ReceivedOctets, int(bill.Total.Minutes)
	}
	return m
}

// monthOfAll is the month of all bearers together, with the minutes of the bearer that has most; nil: nothing is known.
func monthOfAll(s api.Status) *api.BillMonth {
	var all *api.BillMonth
	for _, b := range s.Bearers {
		switch m := b.Month; {
		case m == nil:
		case all == nil || m.Month > all.Month:
			copied := *m
			all = &copied
		case m.Month == all.Month:
			all.Total.SentOctets, all.Total.ReceivedOctets = all.Total.SentOctets+m.Total.SentOctets, all.Total.ReceivedOctets+m.Total.ReceivedOctets
			all.Total.Minutes = max(all.Total.Minutes, m.Total.Minutes)
			if m.Since.Before(all.Since) {
				all.Since = m.Since
			}
		}
	}
	if len(s.Bearers) < 2 {
		return s.Month
	}
	return all
}

// Spent is the traffic of a time, in octets.
type Spent struct {
	From           time.Time // beginning of the known traffic, but not before the time in question
	Sent, Received uint64
}

// Since is the traffic since a time, in whole minutes.
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

// Note records the ledger's present totals. If the wall clock was set back, new traffic counts in the latest minute.
func (h *History) Note(now time.Time, s api.Status) {
	now = now.UTC()
	h.month = monthOf(now, monthOfAll(s))
	h.charge(now, s.Ledger, s.Adapters)
	h.recent = append(h.recent, sampleOf(now, s))
	old := slices.IndexFunc(h.recent, func(x sample) bool { return now.Sub(x.at) <= longer+Every })
	h.recent = slices.Delete(h.recent, 0, max(old, len(h.recent)-2*int(longer/Every), 0))
	first := slices.IndexFunc(h.minutes, func(m minute) bool { return now.Sub(m.at) < keeps })
	if first < 0 {
		first = len(h.minutes)
	}
	h.minutes = slices.Delete(h.minutes, 0, first)
}

// charge adds the ledger's growth to the minute.
func (h *History) charge(now time.Time, rows []api.LedgerRow, adapters []api.AdapterRow) {
	sums, order := map[account]uint64{}, []account{} // of all bearers
	for _, row := range rows {
		a := account{row.Direction, row.Peer, row.Kind}
		if _, seen := sums[a]; !seen {
			order = append(order, a)
		}
		sums[a] += row.Octets
	}
	var m *minute
	for _, a := range order {
		n := grown(sums[a], h.totals[a])
		if h.totals[a] = sums[a]; n == 0 {
			continue
		}
		if m == nil {
			m = h.minute(now)
		}
		m.add(index(&h.sites, a.peer), a.direction, a.kind, uint32(n))
	}
	for _, row := range adapters {
		name := row.Direction + " " + row.Adapter + " " + row.Kind
		n := grown(row.Octets, h.of[name])
		if h.of[name] = row.Octets; n == 0 || row.Adapter == api.Unread { // what is unread counts when it has been read
			continue
		}
		if m == nil {
			m = h.minute(now)
		}
		m.of = plus(m.of, index(&h.names, name), uint32(n))
	}
}

// minute is the minute of now, made if needed.
func (h *History) minute(now time.Time) *minute {
	at := now.Truncate(time.Minute)
	if n := len(h.minutes); n > 0 && !at.After(h.minutes[n-1].at) {
		return &h.minutes[n-1]
	}
	h.minutes = append(h.minutes, minute{at: at})
	return &h.minutes[len(h.minutes)-1]
}

// index is the index of a name in a minute; names beyond mostSites share the last index.
func index(names *[]string, name string) int {
	i := slices.Index(*names, name)
	switch {
	case i >= 0:
		return i
	case len(*names) < mostSites:
		*names = append(*names, name)
	}
	return len(*names) - 1
}

// plus adds to a number of a list, which grows if needed.
func plus(list []uint32, i int, n uint32) []uint32 {
	for len(list) <= i {
		list = append(list, 0)
	}
	list[i] += n
	return list
}

func (m *minute) add(site int, direction, kind string, octets uint32) {
	d := slices.Index(directions[:], direction)
	k := slices.Index(Kinds[:], kind)
	if d < 0 || k < 0 {
		return
	}
	m.kinds[d][k] += octets
	m.sites[d] = plus(m.sites[d], site, octets)
}

func sampleOf(now time.Time, s api.Status) sample {
	x := sample{at: now, sites: map[string][2]uint64{}, peers: map[uint16]counts{}, bearers: map[string][2]uint64{}}
	for _, p := range s.Peers {
		x.peers[p.ID] = counts{delivered: p.Delivered, repeated: p.Repeated, ended: p.Expired + p.Undeliverable, refused: p.Refused}
	}
	for _, row := range s.Ledger {
		c, b, d := x.sites[row.Peer], x.bearers[row.Bearer], received
		if row.Direction == directions[sent] {
			d = sent
		}
		c[d] += row.Octets
		b[d] += row.Octets
		x.sites[row.Peer], x.bearers[row.Bearer] = c, b
	}
	return x
}

// grown is by how much a total is greater than it was; 0: it is less, as a site has gone.
func grown(is, was uint64) uint64 {
	if is < was {
		return 0
	}
	return is - was
}

// before is the newest sample of at least that age. If the gateway is younger, it is the empty sample of its start.
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

// Air is the ledger of some hours in columns, the oldest first, for a plot. Series without traffic are absent.
type Air struct {
	From  time.Time           `json:"from"`
	StepS int                 `json:"step_s"`
	N     int                 `json:"n"`
	Kinds map[string][]uint64 `json:"kinds"` // "sent payload": IP octets of each column
	Sites map[string][]uint64 `json:"sites"` // "sent hq"
	// Adapters have octets by api.AdapterRow: "sent jxta payload". What is received counts when it has been read.
	Adapters map[string][]uint64 `json:"adapters"`
	Month    Month               `json:"month"`
	Began    time.Time           `json:"began"` // nothing is known of the time before
}

// Air is the ledger of the last hours, 1 to 48.
func (h *History) Air(now time.Time, hours int) Air {
	hours = min(max(hours, 1), int(keeps/time.Hour))
	minutes := (hours*60 + Buckets - 1) / Buckets
	step := time.Duration(minutes) * time.Minute
	n := hours * 60 / minutes
	end := now.UTC().Truncate(time.Minute).Add(time.Minute)
	a := Air{From: end.Add(-time.Duration(n) * step), StepS: int(step / time.Second), N: n,
		Kinds: map[string][]uint64{}, Sites: map[string][]uint64{}, Adapters: map[string][]uint64{}, Month: h.month, Began: h.began}
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
		for i, octets := range m.of {
			put(a.Adapters, h.names[i], column, octets)
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
