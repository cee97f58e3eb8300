package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Delivery is one message on its way to one site.
type Delivery struct {
	From, To string
	Peers    string // JXTA or TAK
	At       int    // the number of the recipient's peer, from 0
	Open     bool   // it is for all members of a group
	Number   int64  // of the sender's messages
	Octets   int
	Sent     time.Time
	Came     []time.Time // times at peers of the site; one is correct
	Changed  int         // how often it came with other content
	Told     string      // a final state from the sender's gateway other than delivery: expired, refused...; "": none
	// NotTaken: its sender's gateway was dead then, so that no gateway ever had it in custody. Its peer saw the connection end.
	NotTaken bool
	// Sunk: it could not arrive, because its sender or its recipient was destroyed before any living site had it.
	Sunk bool
}

// End is the result of a delivery.
type End string

// The ends. The first four are true ends.
const (
	Delivered End = "delivered"
	Told      End = "told"
	NotTaken  End = "not taken"
	Sunk      End = "sunk"
	Lost      End = "lost"
	Twice     End = "twice"
	Changed   End = "changed"
	False     End = "false" // its sender was told that it did not arrive, but it did
)

// End judges the delivery.
func (d *Delivery) End() End {
	switch {
	case d.Changed > 0:
		return Changed
	case len(d.Came) > 1:
		return Twice
	case len(d.Came) == 1 && d.Told != "":
		return False
	case len(d.Came) == 1:
		return Delivered
	case d.Told != "":
		return Told
	case d.Sunk:
		return Sunk
	case d.NotTaken:
		return NotTaken
	}
	return Lost
}

// Row is the results of messages from one site to another.
type Row struct {
	From   string      `json:"from"`
	To     string      `json:"to"`
	Peers  string      `json:"peers"`
	Sent   int         `json:"messages"`
	Ends   map[End]int `json:"ends"`
	Median float64     `json:"median_s"`
	P95    float64     `json:"p95_s"`
	Most   float64     `json:"worst_s"`
	// Found is when the JXTA peer of To had discovered the one of From, after the start of the later process; 0: never.
	Found float64 `json:"discovery_s,omitempty"`
}

// Account is how much a site has sent on a bearer, in IP octets at the emulator.
type Account struct {
	Bearer string `json:"bearer"`
	Site   string `json:"site"`
	Octets int64  `json:"octets"`
	Frames int64  `json:"frames"`
}

// Takeover is the consequences of an accident to a machine of a site of several. Times are seconds from the accident, or from the return
// of power if both machines lost it; 0: it did not happen.
type Takeover struct {
	AtS   float64 `json:"at_s"`
	Site  string  `json:"site"`
	Cause string  `json:"cause"` // Accident.What
	What  string  `json:"what"`
	Led   bool    `json:"led"`               // the machine that led had the accident
	Leads float64 `json:"leads_s,omitempty"` // until another machine leads
	Heard float64 `json:"heard_s,omitempty"` // until another site has that machine's first datagram
	// Served is until a message of the site's peers is in custody again, for each kind of peers that talks.
	Served map[string]float64 `json:"served_s,omitempty"`
	// Octets on the air in the CostWindow after the accident, of each site.
	Octets map[string]int64 `json:"octets"`
}

// CostWindow is how long the octets of a takeover are counted.
const CostWindow = 30 * time.Second

// Session is a direct session as the status of one of the two gateways shows it.
type Session struct {
	Bearer string  `json:"bearer"`
	Site   string  `json:"site"`
	Peer   string  `json:"peer"`
	AtS    float64 `json:"at_s"`
	EndS   float64 `json:"end_s,omitempty"` // absent: it was there at the end
	Spared int64   `json:"spared_octets"`   // as api.DirectSession
	// Octets on the air of the bearer meanwhile, of each site.
	Octets map[string]int64 `json:"octets"`
}

// Event is an event of a play.
type Event struct {
	AtS  float64 `json:"at_s"`
	What string  `json:"what"`
}

// Result is the result of a play.
type Result struct {
	Gateway   string      `json:"gateway"`           // the version that the gateway under test prints
	Upgrade   string      `json:"upgrade,omitempty"` // the version of the gateway that replaces it in upgrades; "": none, or a copy
	Script    string      `json:"script"`
	Summary   string      `json:"summary"`
	Seed      uint64      `json:"seed"`
	DurationS float64     `json:"duration_s"`
	Peers     []string    `json:"peers"`
	Rows      []Row       `json:"rows"`
	Ends      map[End]int `json:"ends"`
	Wrong     []string    `json:"wrong,omitempty"` // messages without exactly one true end, the first twenty
	Octets    []Account   `json:"octets"`
	Events    []Event     `json:"events"`
	Destroyed []Destroyed `json:"destroyed,omitempty"`
	Takeovers []Takeover  `json:"takeovers,omitempty"`
	Sessions  []Session   `json:"sessions,omitempty"`
	// WrongMachine counts datagrams that a machine of a site of several sent while another one led.
	WrongMachine int64    `json:"wrong_machine"`
	LateMS       float64  `json:"emulator_late_max_ms"`
	Errors       []string `json:"errors,omitempty"` // of gateways and peers
}

// wrongMax bounds Result.Wrong.
const wrongMax = 20

// All is the recipient in the rows of a play with more than mostRows pairs of sites: such a play has one row for each sender.
const (
	All      = "all"
	mostRows = 60
)

// Judge fills in the results of the messages of a play that began at zero.
func (r *Result) Judge(zero time.Time, all []Delivery) {
	r.Rows, r.Wrong, r.Ends = nil, nil, map[End]int{}
	took := map[int][]float64{}
	pairs := map[[2]string]bool{}
	for i := range all {
		pairs[[2]string{all[i].From, all[i].To}] = true
	}
	for i := range all {
		d := &all[i]
		to := d.To
		if len(pairs) > mostRows {
			to = All
		}
		n := slices.IndexFunc(r.Rows, func(x Row) bool { return x.From == d.From && x.To == to && x.Peers == d.Peers })
		if n < 0 {
			n = len(r.Rows)
			r.Rows = append(r.Rows, Row{From: d.From, To: to, Peers: d.Peers, Ends: map[End]int{}})
		}
		end := d.End()
		r.Rows[n].Sent++
		r.Rows[n].Ends[end]++
		r.Ends[end]++
		if len(d.Came) > 0 {
			took[n] = append(took[n], d.Came[0].Sub(d.Sent).Seconds())
		}
		if !end.good() && len(r.Wrong) < wrongMax {
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s: %s, %s to %s, number %d of %d octets, sent at %.1f s", end, d.Peers, d.From, d.To, d.Number, d.Octets, d.Sent.Sub(zero).Seconds()))
		}
	}
	for n, list := range took {
		slices.Sort(list)
		at := func(share float64) float64 {
			return math.Round(1000*list[max(0, int(math.Ceil(share*float64(len(list))))-1)]) / 1000
		}
		r.Rows[n].Median, r.Rows[n].P95, r.Rows[n].Most = at(0.5), at(0.95), at(1)
	}
}

func (e End) good() bool { return e == Delivered || e == Told || e == NotTaken || e == Sunk }

// Destroyed is the results of the open messages of a destroyed site, counted over sites and not over peers.
type Destroyed struct {
	Site  string  `json:"site"`
	AtS   float64 `json:"at_s"`
	Said  int     `json:"said"`       // open messages
	Lived int     `json:"lived"`      // how many of them a living site has
	All   int     `json:"all"`        // how many of those all living sites have
	Heard int     `json:"last_heard"` // how many other sites had its last message when it was destroyed
	Have  int     `json:"last_have"`  // how many living sites have that message at the end
}

// Sink marks the deliveries that could not arrive because sites were destroyed at these times, and returns the results of those sites'
// messages. If one living site has a message, all must have it.
func Sink(all []Delivery, gone map[string]time.Time, zero time.Time) (list []Destroyed) {
	type message struct {
		from, peers string
		number      int64
	}
	of := func(d *Delivery) message { return message{d.From, d.Peers, d.Number} }
	lives := map[message]bool{}
	for i := range all {
		if d := &all[i]; gone[d.To].IsZero() && len(d.Came) > 0 {
			lives[of(d)] = true
		}
	}
	for i := range all {
		d := &all[i]
		d.Sunk = len(d.Came) == 0 && (!gone[d.To].IsZero() || !gone[d.From].IsZero() && !(d.Open && lives[of(d)]))
	}
	for site, at := range gone {
		row := Destroyed{Site: site, AtS: math.Round(1000*at.Sub(zero).Seconds()) / 1000}
		said, short := map[message]bool{}, map[message]bool{}
		var last *Delivery
		for i := range all {
			d := &all[i]
			if d.From != site || !d.Open {
				continue
			}
			said[of(d)] = true
			if lives[of(d)] && len(d.Came) == 0 && gone[d.To].IsZero() {
				short[of(d)] = true
			}
			if lives[of(d)] && (last == nil || d.Sent.After(last.Sent)) {
				last = d
			}
		}
		heard, have := map[string]bool{}, map[string]bool{}
		for i := range all {
			if d := &all[i]; last != nil && of(d) == of(last) && len(d.Came) > 0 {
				heard[d.To] = heard[d.To] || d.Came[0].Before(at)
				have[d.To] = gone[d.To].IsZero()
			}
		}
		for m := range said {
			if lives[m] {
				row.Lived++
			}
		}
		row.Said, row.All, row.Heard, row.Have = len(said), row.Lived-len(short), trues(heard), trues(have)
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b Destroyed) int { return cmp.Compare(a.AtS, b.AtS) })
	return list
}

// trues counts the true values.
func trues(m map[string]bool) (n int) {
	for _, is := range m {
		if is {
			n++
		}
	}
	return n
}

// Faults says why a message has not exactly one true end; "": every message has one.
func (r *Result) Faults() string {
	wrong := 0
	for end, n := range r.Ends {
		if !end.good() {
			wrong += n
		}
	}
	switch {
	case r.Ends[Delivered] == 0:
		return "no message was delivered"
	case wrong > 0:
		return fmt.Sprintf("%d messages without exactly one true end: %d lost, %d twice, %d changed, %d told and delivered", wrong, r.Ends[Lost], r.Ends[Twice], r.Ends[Changed], r.Ends[False])
	case slices.ContainsFunc(r.Destroyed, func(d Destroyed) bool { return d.Said > 0 && d.Lived == 0 }):
		return "of what a site that was destroyed had said nobody who lives has anything"
	case r.WrongMachine > 0:
		return fmt.Sprintf("%d datagrams of a machine that did not lead its site", r.WrongMachine)
	case len(r.Errors) > 0:
		return r.Errors[0]
	}
	return ""
}
