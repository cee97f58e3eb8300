package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"aldis/internal/lab/field"
)

// Config of one run.
type Config struct {
	Gateway  string       // the binary under test
	Jars     string       // field-tests/peers of the source tree, built; empty: no measurement of JXSE
	Only     []string     // names of benchmarks; empty: all
	Where    []string     // places; empty: all
	Sizes    []int        // octets of messages; empty: the sizes of the studies
	Series   int          // series of a cell; in virtual time as many seeds; 0: five, or two in a quick run
	Profile  string       // of the link between two gateways; empty: iridium-dialup
	Quick    bool         // a tenth of the load: to see that all works, not to quote figures
	Progress func(string) // called with lines of progress; may be nil
	// Most is how long the run may take. If the rest will take longer, its measurements become shorter, but none is left out; 0: there is
	// no limit.
	Most time.Duration
	// Done is called with the report when a benchmark has ended at a place; may be nil.
	Done func(*Report)
}

// Places of measurements.
const (
	direct       = "direct"
	jxse         = "jxse27"
	jxseHTTP     = "jxse27-http"
	gatewayTCP   = "gateway"
	gatewayHTTP  = "gateway-http"
	gatewaySite  = "gateway-site"
	gatewayThree = "gateway-three"
	gatewayFive  = "gateway-five"
	gatewayRow   = "gateway-row"
	multicast    = "multicast"
	overLink     = "link"
	broker       = "broker"
	brokerOnLink = "broker-link"
)

// Place is a place of measurements.
type Place struct{ Name, About string }

// Places in the order of the columns.
var Places = []Place{
	{direct, "two peers with nobody between them"},
	{multicast, "unmodified peers without a rendezvous, by multicast on one LAN"},
	{jxse, "the rendezvous and relay of JXSE 2.7, over TCP"},
	{jxseHTTP, "the same over HTTP: its peers are behind their relay"},
	{gatewayTCP, "one gateway, over TCP"},
	{gatewayHTTP, "one gateway, over HTTP"},
	{gatewaySite, "a site of two gateways on one LAN with their witness: where there are receivers, they are at the one that follows"},
	{gatewayThree, "a cluster of three machines at a site: receivers likewise"},
	{gatewayFive, "a cluster of five"},
	{gatewayRow, "two gateways in a row, joined as fast as a LAN: receivers are behind the second"},
	{overLink, "two gateways with the profile of --profile between them"},
	{broker, "an unmodified NATS server of Debian in place of the gateway"},
	{brokerOnLink, "the same with the link of --profile between it and one client"},
}

type benchmark struct {
	name, about string
	places      []string
	run         func(s *session, ctx context.Context) error
}

// benchmarks in the order in which they run.
var benchmarks = []benchmark{
	{"ops", "operations of an unmodified 2.7 peer (thesis 6.2)", []string{multicast, jxse, jxseHTTP, gatewayTCP, gatewayHTTP}, (*session).operations},
	{"start", "start of a rendezvous with advertisements in its store (figure 6.1)", []string{gatewayTCP}, (*session).start},
	{"layers", "every kind of pipe between two unmodified 2.7 peers, and the layer below (thesis 6.3; 2005)", []string{multicast, jxse, jxseHTTP, gatewayTCP, gatewayHTTP}, (*session).layers},
	{"jxta-c", "two peers of JXTA-C with the program of 2005 (figures 4, 10 and 11)", []string{jxse, gatewayTCP}, (*session).jxtaC},
	{"pipe", "unicast pipes between small unsigned peers: sizes, rates, senders, composition (thesis 6.3)", []string{direct, jxse, gatewayTCP, gatewaySite, gatewayRow}, (*session).pipes},
	{"propagate", "one propagate pipe and its receivers (figures 6.10 and 6.11)", []string{jxse, gatewayTCP}, (*session).propagate},
	{"query", "discovery questions (thesis 6.4)", []string{jxse, gatewayTCP}, (*session).queries},
	{"deaths", "several rendezvous that die one after another (figures 6.24, 6.25 and 6.34)", []string{jxse, gatewaySite}, deaths},
	{"relay", "more messages than can be carried (figure 6.38), and a million", []string{jxse, gatewayTCP, gatewaySite, gatewayRow}, (*session).overload},
	{"octets", "what a message of one octet costs between two gateways, headers of IP and UDP included", []string{overLink}, (*session).octets},
	{"link", "what only a link shows, in virtual time: services, losses, documents", []string{overLink}, (*session).link},
	{"day", "twenty hours of questions and messages in virtual time (figures 6.32 and 6.33)", []string{overLink}, day},
	{"broker", "the same messages through a broker of today", []string{gatewayTCP, overLink, broker, brokerOnLink}, (*session).brokers},
	{"xmpp", "lines of a hundred XMPP clients in rooms of another site", []string{gatewayTCP}, (*session).xmppLines},
	{"site", "a site of one gateway, of two, three and five: messages to a far site and of local peers, the loss of the leader, growth", []string{gatewayTCP, gatewaySite, gatewayThree, gatewayFive}, sites},
}

// Report is the results of a run.
type Report struct {
	Machine Machine       `json:"machine"`
	Began   time.Time     `json:"began"`
	Took    time.Duration `json:"took_ns"`
	Quick   bool          `json:"quick,omitempty"`
	Rows    []Row         `json:"rows"`

	cut [2]string // the benchmark and the place where it was interrupted
}

// Lost counts the messages and answers that the gateway lost, in all rows.
func (r *Report) Lost() (n int) {
	for _, row := range r.Rows {
		if row.Where != direct && row.Where != multicast && row.Where != jxse && row.Where != jxseHTTP && row.Where != broker && row.Where != brokerOnLink {
			n += row.Lost
		}
	}
	return n
}

// Failed are the rows without a figure.
func (r *Report) Failed() (list []string) {
	for _, row := range r.Rows {
		if row.Failed != "" {
			list = append(list, fmt.Sprintf("%s, %s: %s: %s", row.Bench, row.Where, row.What, row.Failed))
		}
	}
	return list
}

// Names are the names of all benchmarks, and what each measures.
func Names() (names, about []string) {
	for _, b := range benchmarks {
		names, about = append(names, b.name), append(about, b.about)
	}
	return names, about
}

// run is the state that the benchmarks share.
type run struct {
	Config
	dir    string // of its files, removed at the end
	report *Report
	stamp  Stamp
	pace   float64 // share of the full time that a measurement gets, at most 1
}

// session is one benchmark at one place.
type session struct {
	*run
	bench, where string
	doing        string // the present step, for the row of an error
	swapped      int    // pages swapped by the machine since the session began
}

func (r *run) progressf(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}

// progressf reports the present step, which also names the row of an error.
func (s *session) progressf(format string, args ...any) {
	s.doing = fmt.Sprintf(format, args...)
	s.run.progressf("%s, %s: %s", s.bench, s.where, s.doing)
}

// put files a row.
func (s *session) put(row Row) {
	row.Bench, row.Where, row.Stamp = s.bench, s.where, s.stamp
	row.Swapped = swappedPages() - s.swapped
	s.report.Rows = append(s.report.Rows, row)
}

// failed files a row without a figure, unless the whole run is over.
func (s *session) failed(ctx context.Context, row Row, err error) {
	if ctx.Err() == nil {
		row.Failed = err.Error()
		s.progressf("%s: %v", row.line(), err)
		s.put(row)
	}
}

// attempt runs a part of a benchmark. If the part fails, attempt files a row without a figure, so that the next part can go on.
func (s *session) attempt(ctx context.Context, part func() error) {
	if err := part(); err != nil {
		s.failed(ctx, Row{What: s.doing}, err)
	}
}

// quick returns the smaller amount for a quick run.
func (r *run) quick(full, small int) int {
	if r.Quick {
		return small
	}
	return full
}

// series is the number of series of a cell.
func (r *run) series() int {
	if r.Series > 0 {
		return r.Series
	}
	return r.quick(5, 2)
}

// sizes are the requested ones of the studies' sizes, and in a quick run at most quick octets.
func (r *run) sizes(quick int, all ...int) []int {
	if len(r.Sizes) > 0 {
		return r.Sizes
	}
	if r.Quick {
		return slices.DeleteFunc(all, func(n int) bool { return n > quick })
	}
	return all
}

// UsageError is a wrong setting of a run.
type UsageError struct{ Text string }

// Error is the mistake in words.
func (e *UsageError) Error() string { return "bench: " + e.Text }

// Run measures. A failure makes a row that says why, and the run goes on: Run returns only errors of usage, of the context, or of missing
// room for files, with the results until then.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	names, _ := Names()
	places := make([]string, len(Places))
	for i, p := range Places {
		places[i] = p.Name
	}
	for _, list := range []struct {
		of         string
		have, want []string
	}{{"benchmark", names, cfg.Only}, {"place", places, cfg.Where}} {
		for _, n := range list.want {
			if !slices.Contains(list.have, n) {
				return nil, &UsageError{fmt.Sprintf("there is no %s %q: %s", list.of, n, strings.Join(list.have, ", "))}
			}
		}
	}
	machine := thisMachine(ctx, cfg)
	if machine.Gateway == "" {
		return nil, &UsageError{fmt.Sprintf("%s is no gateway that runs", cfg.Gateway)}
	}
	if cfg.Jars != "" {
		if _, err := os.Stat(filepath.Join(cfg.Jars, field.KindJXSE27, "target", "peer.jar")); err != nil {
			return nil, &UsageError{fmt.Sprintf("the JXTA peers are not built (make -C field-tests/peers): %v", err)}
		}
	}
	dir, err := os.MkdirTemp("", "aldis-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer os.RemoveAll(dir)
	report := &Report{Machine: machine, Began: time.Now().UTC(), Quick: cfg.Quick}
	defer func() { report.Took = time.Since(report.Began) }()
	r := &run{Config: cfg, dir: dir, report: report, pace: 1}
	if r.Profile == "" {
		r.Profile = "iridium-dialup"
	}
	r.stamp = Stamp{Cores: runtime.NumCPU(), Machine: report.Machine.name(), Commit: report.Machine.Gateway,
		Date: report.Began.Format(time.DateOnly), Command: cfg.command(report.Machine), Quick: cfg.Quick}
	plan := planOf(r)
	for i, at := range plan {
		schedule(r, plan, i)
		before, first := workNow(), len(report.Rows)
		s := &session{run: r, bench: at.name, where: at.where, doing: at.about, swapped: swappedPages()}
		limit := 3*takes(r.Quick, plan[i:i+1]) + 5*time.Minute // so that a step that hangs does not end the night
		within, cancel := context.WithTimeout(ctx, limit)
		err := at.run(s, within)
		if within.Err() != nil {
			err = fmt.Errorf("given up after %v: %w", limit, cmp.Or(err, within.Err()))
		}
		cancel()
		if ctx.Err() != nil {
			report.cut = [2]string{at.name, at.where}
			return report, fmt.Errorf("bench: %s, %s: %w", at.name, at.where, errors.Join(err, ctx.Err()))
		}
		if err != nil {
			s.failed(ctx, Row{What: s.doing}, err)
		}
		load := others(before, workNow())
		for k := first; k < len(report.Rows); k++ {
			report.Rows[k].Load = load
		}
		if r.Done != nil {
			r.Done(report)
		}
	}
	return report, nil
}

// peers says whether a benchmark needs unmodified JXTA peers at a place.
func (b *benchmark) peers(where string) bool {
	return slices.Contains([]string{"ops", "layers", "jxta-c"}, b.name) || slices.Contains([]string{jxse, jxseHTTP, multicast}, where)
}

// command is the command that makes such a report again.
func (c Config) command(m Machine) string {
	s := "gateway bench"
	if m.Nice != 0 {
		s = fmt.Sprintf("nice -n %d %s", m.Nice, s)
	}
	for _, l := range []struct {
		flag string
		list []string
	}{{"only", c.Only}, {"where", c.Where}} {
		if len(l.list) > 0 {
			s += " --" + l.flag + " " + strings.Join(l.list, ",")
		}
	}
	if len(c.Sizes) > 0 {
		s += " --sizes " + strings.ReplaceAll(strings.Trim(fmt.Sprint(c.Sizes), "[]"), " ", ",")
	}
	if c.Series > 0 {
		s += fmt.Sprintf(" --seeds %d", c.Series)
	}
	if c.Profile != "" {
		s += " --profile " + c.Profile
	}
	if c.Most > 0 {
		s += " --most " + c.Most.String()
	}
	if c.Quick {
		s += " --quick"
	}
	if m.Autogroup != 0 {
		s = fmt.Sprintf("setsid -w sh -c 'echo %d >/proc/self/autogroup; %s'", m.Autogroup, s)
	}
	return s
}
