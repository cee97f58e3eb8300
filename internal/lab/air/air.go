package air

import (
	"fmt"
	"slices"
	"strings"
)

// Row is one line of the table: a figure over all seeds, and the goal for it.
type Row struct {
	What   string  `json:"what"`
	Unit   string  `json:"unit"`             // of the figure: "x the limit", "% of the rate", "s", "octets"
	Before string  `json:"before,omitempty"` // the figure of version 0.1; of channel and star, that of commit 51151a2, measured by others
	Must   float64 `json:"must,omitempty"`   // with Asked
	Aim    float64 `json:"aim,omitempty"`
	Asked  bool    `json:"asked,omitempty"`
	More   bool    `json:"more_is_better,omitempty"`
	// Share names the sorted sample that is the figure: 0.5 the median, 0.99, 1 the worst.
	Share float64 `json:"share"`
	Plot  *Point  `json:"plot,omitempty"`

	Value  float64 `json:"value"`
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	N      int     `json:"samples"`
	Bound  float64 `json:"bound,omitempty"` // the limit of every sender, 0 if it is not computed
	Best   float64 `json:"best,omitempty"`  // the same limit with the datagram size that suits best
	// Counts over all seeds: Missing deliveries never came, and their samples are as if they came at the end of the play. Wrong deliveries
	// came again or to other sites.
	Missing int `json:"missing,omitempty"`
	Wrong   int `json:"wrong,omitempty"`
	// Virtual is the figure of the same seeds in virtual time, next to a row that real gateways have played.
	Virtual float64 `json:"virtual,omitempty"`
}

// Point puts a row's figure into a plot.
type Point struct {
	Plot  string  `json:"plot"`
	Curve string  `json:"curve"`
	X     float64 `json:"x"`
}

// near is how far from its bound a row may be and still count as "bound" although it misses its goal.
const near = 1.05

// Verdict is "aim", "must", "bound" where no sender could do more than a twentieth better, "missed", or "" for a row without a goal.
func (r Row) Verdict() string {
	bound := r.Bound
	if r.Best > 0 {
		bound = r.Best
	}
	reaches := func(goal float64) bool { return r.More && r.Value >= goal || !r.More && r.Value <= goal }
	switch {
	case !r.Asked:
		return ""
	case reaches(r.Aim):
		return "aim"
	case r.Aim > r.Must && !r.More: // there is no least goal
		return ""
	case reaches(r.Must):
		return "must"
	case bound > 0 && (r.More && r.Value >= bound/near || !r.More && r.Value <= bound*near):
		return "bound"
	}
	return "missed"
}

// asked is a row with its goals: at most must and at best aim; for a share of the rate, at least must.
func asked(what, unit, before string, share, must, aim float64) Row {
	return Row{What: what, Unit: unit, Before: before, Share: share, Must: must, Aim: aim, Asked: true, More: must < aim || unit == ofRate}
}

// measured is a row without a goal.
func measured(what, unit string, share float64) Row { return Row{What: what, Unit: unit, Share: share} }

// in puts a row into a plot.
func (r Row) in(plot, curve string, x float64) Row {
	r.Plot = &Point{plot, curve, x}
	return r
}

// Scenario is something that is played with each seed, and the figures that are taken from it.
type Scenario struct {
	Name string // as --only has it; several scenarios share one
	Link string
	Rows []Row
	play func(ctx Context, seed uint64) ([][]float64, error)
	// bounds are the limits of the rows for every sender, best the same limits with the datagram size that suits best; nil: none is computed
	bounds, best func() []float64
	// counts: after the samples of the rows, a play gives the number of deliveries that did not come, and of wrong ones
	counts bool
	// live is the scenario for real gateways; nil: it is played in virtual time alone
	live func(seed uint64) (Live, error)
}

// Samples are those of one play, for each row of its scenario.
type Samples [][]float64

// Play plays a scenario with a seed. It ends early, with the context's error, when the context ends.
func (s Scenario) Play(ctx Context, seed uint64) (Samples, error) {
	samples, err := s.play(ctx, seed)
	switch {
	case err != nil:
		return nil, fmt.Errorf("air: %s on %s, seed %d: %w", s.Name, s.Link, seed, err)
	case len(samples) != len(s.Rows) && !(s.counts && len(samples) == len(s.Rows)+1):
		panic(fmt.Sprintf("air: %s on %s has %d rows and %d samples", s.Name, s.Link, len(s.Rows), len(samples)))
	}
	return samples, nil
}

// Judge puts the samples of all seeds together.
func (s Scenario) Judge(all []Samples) (rows []Row) {
	var bounds, best []float64
	if s.bounds != nil {
		bounds = s.bounds()
	}
	if s.best != nil {
		best = s.best()
	}
	for i, row := range s.Rows {
		var values []float64
		for _, samples := range all {
			values = append(values, samples[i]...)
			if len(samples) > len(s.Rows) {
				counts := samples[len(s.Rows)]
				row.Missing, row.Wrong = row.Missing+int(counts[0]), row.Wrong+int(counts[1])
			}
		}
		row.N = len(values)
		if row.N > 0 {
			slices.Sort(values)
			row.Value, row.Median, row.Least, row.Most = at(values, row.Share), at(values, 0.5), values[0], values[row.N-1]
		}
		if i < len(bounds) {
			row.Bound = bounds[i]
		}
		if i < len(best) {
			row.Best = best[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// Worst is the figure of the worst seed.
func (r Row) Worst() float64 {
	if r.More {
		return r.Least
	}
	return r.Most
}

// Names returns the names of all scenarios, each once, with what they measure.
func Names() (names, about []string) {
	for _, t := range tables {
		names, about = append(names, t.name), append(about, t.about)
	}
	return names, about
}

// tables in the order of the page.
var tables = []struct {
	name, about string
	scenarios   func() []Scenario
}{
	{"load", "goodput and latency while more and more is offered", loads},
	{"burst", "many messages at once", bursts},
	{"bulk", "long messages, alone and beside short ones", bulks},
	{"crowd", "300 % offered for ten minutes: flash, shares, what is dropped; a quiet peer beside it", crowds},
	{"loss", "single messages that the link loses", losses},
	{"outage", "the last message after an outage", outages},
	{"sites", "a message to 1, 3, 7 and 15 ships", fleets},
	{"idle", "what idle gateways send in a day", idles},
	{"channel", "what a radio channel carries that all sites share", channels},
	{"star", "star links to the ship, with 40 octets, and the slowest of single messages", stars},
	{"fleet", "gateways with several bearers, and what others pass on", func() []Scenario { return slices.Concat(bearers(), relayed(), joining(), changing()) }},
	{"site", "what it costs that the other machine of a site leads", takeovers},
	{"groups", "groups of gateways: open messages and their repair", groupRows},
	{"paper", "the experiments of a paper on group middleware: unicast and groupcast by size, and to members that come and go", paperRows},
	{"rollup", "what 64 gateways say of themselves to the headquarters", rollupRows},
}

// Scenarios returns the scenarios with these names, or all of them if there is no name. An error names the first unknown name.
func Scenarios(only ...string) (list []Scenario, err error) {
	names, _ := Names()
	for _, n := range only {
		if !slices.Contains(names, n) {
			return nil, fmt.Errorf("there is no table %q: %s", n, strings.Join(names, ", "))
		}
	}
	for _, t := range tables {
		if len(only) == 0 || slices.Contains(only, t.name) {
			for _, s := range t.scenarios() {
				s.Name = t.name
				list = append(list, s)
			}
		}
	}
	return list, nil
}

// Having returns the scenarios that have a row whose name contains a text, in upper or lower case. It is an error if there is none.
func Having(list []Scenario, text string) (some []Scenario, err error) {
	text = strings.ToLower(text)
	for _, s := range list {
		if slices.ContainsFunc(s.Rows, func(r Row) bool { return strings.Contains(strings.ToLower(s.Link+": "+r.What), text) }) {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("no row has %q", text)
	}
	return some, nil
}

// one is the samples of a play with one figure for each row.
func one(figures ...float64) (s Samples) {
	for _, f := range figures {
		s = append(s, []float64{f})
	}
	return s
}

// Result is a scenario with its figures.
type Result struct {
	Table string `json:"table"`
	Link  string `json:"link"`
	Rows  []Row  `json:"rows"`
}

// Report is the results of a run, in the order of the page.
type Report struct {
	Version string `json:"version"`
	Live    bool   `json:"live,omitempty"` // real gateways played it, in real time
	// LateS is the worst delay that the emulator of a live play added: a busy machine slows the link down.
	LateS   float64  `json:"emulator_late_s,omitempty"`
	Seeds   []uint64 `json:"seeds"`
	TookS   float64  `json:"took_s"`
	Results []Result `json:"results"`
}

// Missed counts the rows that miss their goal, and the rows that have one.
func (r Report) Missed() (missed, asked int) {
	for _, result := range r.Results {
		for _, row := range result.Rows {
			if row.Asked {
				asked++
			}
			if row.Verdict() == "missed" {
				missed++
			}
		}
	}
	return missed, asked
}
