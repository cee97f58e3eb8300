package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Config of one run.
type Config struct {
	Gateway  string       // the binary under test
	Jars     string       // field-tests/peers of the source tree, built; empty: nothing of JXSE is measured
	Only     []string     // names of benchmarks; empty: all
	Quick    bool         // a tenth of the load: to see that all works, not to quote
	Progress func(string) // told what is going on; may be nil
}

// Figure is one measured value.
type Figure struct {
	Value float64 `json:"value"`
	Lost  int     `json:"lost,omitempty"` // messages or answers that never came
	// ByPeers: messages that never came between two unmodified peers, whoever lost them. That a gateway did not is seen
	// in its counters.
	ByPeers int    `json:"lost_by_peers,omitempty"`
	Note    string `json:"note,omitempty"` // what the value alone does not say
}

// Row is one line of the report: the same thing with the reference rendezvous and with the gateway.
type Row struct {
	Bench     string  `json:"bench"`
	What      string  `json:"what"`
	Unit      string  `json:"unit"`
	Direct    *Figure `json:"jxse27,omitempty"`
	Gateway   *Figure `json:"gateway,omitempty"`
	Published string  `json:"published,omitempty"`
	Must      float64 `json:"must,omitempty"` // 0: nothing is demanded
	Aim       float64 `json:"aim,omitempty"`
	Less      bool    `json:"less_is_better,omitempty"`
}

// Report is what a run found.
type Report struct {
	Machine Machine       `json:"machine"`
	Began   time.Time     `json:"began"`
	Took    time.Duration `json:"took_ns"`
	Quick   bool          `json:"quick,omitempty"`
	Only    []string      `json:"only,omitempty"`
	Rows    []Row         `json:"rows"`
}

// Lost are messages and answers that the gateway lost, in all rows.
func (r *Report) Lost() (n int) {
	for _, row := range r.Rows {
		if row.Gateway != nil {
			n += row.Gateway.Lost
		}
	}
	return n
}

// benchmarks in the order in which they run.
var benchmarks = []struct {
	name, about string
	run         func(ctx context.Context, r *run) ([]Row, error)
}{
	{"ops", "operations of an unmodified 2.7 peer", operations},
	{"pipe", "a pipe between two unmodified 2.7 peers: round trip, messages and data per second", pipes},
	{"query", "discovery questions of 32 peers about 10,000 advertisements", queries},
	{"relay", "a pipe between two peers of one LAN: round trip, messages and data per second", relay},
	{"propagate", "a propagate pipe with eight listeners", propagate},
	{"octets", "what a message of one octet costs between two gateways, headers of IP and UDP included", octets},
	{"xmpp", "lines of a hundred XMPP clients in rooms of another site", xmppLines},
}

// Names are the benchmarks there are, each with what it measures.
func Names() (names, about []string) {
	for _, b := range benchmarks {
		names, about = append(names, b.name), append(about, b.about)
	}
	return names, about
}

// run is what the benchmarks share.
type run struct {
	Config
	dir string // of its files, removed at the end
}

func (r *run) progressf(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}

// quick answers the smaller amount for a quick run.
func (r *run) quick(full, small int) int {
	if r.Quick {
		return small
	}
	return full
}

// UsageError says what cannot be measured.
type UsageError struct{ Text string }

// Error is what cannot be measured, in words.
func (e *UsageError) Error() string { return "bench: " + e.Text }

// Run measures. With an error comes what was measured until then.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	names, _ := Names()
	for _, n := range cfg.Only {
		if !slices.Contains(names, n) {
			return nil, &UsageError{fmt.Sprintf("there is no benchmark %q: %s", n, strings.Join(names, ", "))}
		}
	}
	dir, err := os.MkdirTemp("", "aldis-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer os.RemoveAll(dir)
	r := &run{Config: cfg, dir: dir}
	report := &Report{Machine: thisMachine(ctx, cfg), Began: time.Now().UTC(), Quick: cfg.Quick, Only: cfg.Only}
	defer func() { report.Took = time.Since(report.Began) }()
	for _, b := range benchmarks {
		if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, b.name) {
			continue
		}
		rows, err := b.run(ctx, r)
		for i := range rows {
			rows[i].Bench = b.name
		}
		report.Rows = append(report.Rows, rows...)
		if err != nil {
			return report, fmt.Errorf("bench: %s: %w", b.name, errors.Join(err, ctx.Err()))
		}
	}
	return report, nil
}
