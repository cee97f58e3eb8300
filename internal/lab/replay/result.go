package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/trace"
)

// Beside holds a figure of the trace and of the replay, and of the published run if the trace stands for one.
type Beside[T any] struct {
	Trace     T `json:"trace"`
	Replay    T `json:"replay"`
	Published T `json:"published,omitzero"`
}

// Capture has figures of one run by the names of `captures` in the published figures. On a link between gateways a packet is a datagram
// and a data packet one that carries a message; nil is unknown.
type Capture struct {
	TotalS          float64 `json:"total_s"`
	Packets         *int64  `json:"packets,omitempty"`
	DataBytes       *int64  `json:"data_bytes,omitempty"`
	TotalBytes      *int64  `json:"total_bytes,omitempty"` // IP octets
	Retransmissions *int64  `json:"retransmissions,omitempty"`
}

// Messages counts messages by recipient: one with two listeners counts twice.
type Messages struct {
	Expected   int `json:"expected"`
	Delivered  int `json:"delivered"`
	Lost       int `json:"lost"`
	Duplicates int `json:"duplicates"`
	Corrupted  int `json:"corrupted"` // messages that came and that no peer had sent
	OutOfOrder int `json:"out_of_order"`
	Unheard    int `json:"unheard"` // sent while no peer of the other side listened; not expected
	Local      int `json:"local"`   // deliveries to peers of the sender's own side
	// Untaken are those lost that the sender's gateway never took: it knew no listener of the other side while it kept them. Known only
	// in virtual time.
	Untaken int `json:"untaken,omitempty"`
	// Of those lost, by the gateways' rules and bounds: expired, replaced by a newer one, given up for a more urgent one,
	// refused (filters, no room), and not let in by the other side's filters.
	Expired    int `json:"expired,omitempty"`
	Superseded int `json:"superseded,omitempty"`
	Cancelled  int `json:"cancelled,omitempty"`
	Refused    int `json:"refused,omitempty"`
	Stopped    int `json:"stopped,omitempty"`
}

// explained says whether rules caused all losses.
func (m Messages) explained() bool {
	return m.Lost <= m.Expired+m.Superseded+m.Cancelled+m.Refused+m.Stopped
}

// Latency of delivered messages, from the send to the listener.
type Latency struct {
	Median *float64 `json:"median"`
	P95    *float64 `json:"p95"`
	Max    *float64 `json:"max"`
}

// UpDown is ship to shore, and shore to ship.
type UpDown[T any] struct {
	Up   T `json:"up"`
	Down T `json:"down"`
}

// Sample is one message and one recipient.
type Sample struct {
	From     string   `json:"from"`
	To       string   `json:"to"`
	Up       bool     `json:"up"`
	Octets   int      `json:"octets"`
	SentS    float64  `json:"sent_s"`
	ArrivedS *float64 `json:"arrived_s"` // null: never
	// TakenS is when the sender's gateway knew a listener and took the message. nil: never, or unknown.
	TakenS  *float64 `json:"taken_s,omitempty"`
	Untaken bool     `json:"untaken,omitempty"` // the gateway never took it
}

// Latency is how long it took; ok is false if it never came.
func (s Sample) Latency() (seconds float64, ok bool) {
	if s.ArrivedS == nil {
		return 0, false
	}
	return *s.ArrivedS - s.SentS, true
}

// Bin is a piece of the run, from T for Result.BinS seconds.
type Bin struct {
	T float64 `json:"t"`
	// Octets on the air by kind, from the ledgers of the sending gateways.
	Octets UpDown[map[string]int64] `json:"octets"`
	BusyS  UpDown[float64]          `json:"busy_s"`           // of the direction's transmitter; on a shared channel of the talker
	Queue  UpDown[Queue]            `json:"queue"`            // at the end of the bin
	Lost   UpDown[int64]            `json:"lost,omitzero"`    // datagrams, on the air
	Drops  UpDown[int64]            `json:"dropped,omitzero"` // datagrams, by full queues
}

// Queue is the messages that wait in a gateway for its peer.
type Queue struct {
	Messages int `json:"messages"` // waiting, without a number yet
	UnderWay int `json:"under_way"`
	Octets   int `json:"octets"` // of both
}

// LedgerRow is one account of the airtime ledger.
type LedgerRow struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Kind   string `json:"kind"`
	Octets int64  `json:"octets"`
}

// LinkCapture is the gateways' traffic by a capture of the link, to compare with their ledgers.
type LinkCapture struct {
	Packets    int64   `json:"packets"`
	Octets     int64   `json:"octets"`       // IP octets of UDP
	Other      int64   `json:"other_octets"` // of other protocols, which no gateway sent
	Ledger     int64   `json:"ledger_octets"`
	Difference float64 `json:"difference_percent"` // of the ledger from the capture
}

// SetCapture notes a capture of the link.
func (res *Result) SetCapture(c *LinkCapture) {
	if c.Octets > 0 {
		c.Difference = math.Round(1e4*math.Abs(float64(c.Ledger-c.Octets))/float64(c.Octets)) / 100
	}
	res.Capture = c
}

// Result is the result of a replay.
type Result struct {
	Source   string   `json:"source,omitempty"` // of the trace
	Mode     string   `json:"mode"`             // "sim" or "live"
	Profile  string   `json:"profile"`
	Seed     uint64   `json:"seed"`
	Partial  bool     `json:"partial"`
	Problems []string `json:"problems,omitempty"`
	Notes    []string `json:"notes,omitempty"`   // gaps of the trace that were filled in
	Remarks  []string `json:"remarks,omitempty"` // caveats on the figures, although all was played

	Jam          *trace.Jam                     `json:"jam,omitempty"` // of the link on which the trace was recorded; nil: none, or unknown
	Captures     Beside[Capture]                `json:"captures"`
	DiscoveryS   Beside[map[string]float64]     `json:"discovery_s"` // the edge's, by service
	ShoreFindsS  Beside[map[string]float64]     `json:"discovery_ashore_s"`
	FindWaitS    *float64                       `json:"discovery_wait_s"` // from when a service was both published and asked for until it was found, at worst
	PipeSetupS   Beside[*float64]               `json:"pipe_setup_s"`
	PipeKnownS   *float64                       `json:"pipe_known_s"` // from a peer's open until the other side's gateway knows of it, at worst
	Application  Beside[trace.ApplicationBytes] `json:"application_bytes"`
	PayloadRatio Beside[float64]                `json:"payload_ratio_percent"`

	Messages    Messages         `json:"messages"`
	Latency     Latency          `json:"latency_s"`
	LatencyUp   Latency          `json:"latency_up_s"`
	LatencyDown Latency          `json:"latency_down_s"`
	LinkBytes   UpDown[int64]    `json:"link_bytes"` // IP octets
	LinkPackets UpDown[int64]    `json:"link_packets"`
	Demand      UpDown[int64]    `json:"demand_bytes"` // IP octets that the trace needs: link_bytes without repairs, and the messages left over
	Offered     UpDown[float64]  `json:"offered_bps"`  // load of the applications, over the trace's duration, before compaction
	RateBps     UpDown[int]      `json:"rate_bps"`     // of the link; 0: unlimited
	BusyPct     UpDown[float64]  `json:"busy_percent"`
	Lost        UpDown[int64]    `json:"link_packets_lost"`
	Dropped     UpDown[int64]    `json:"link_packets_dropped"` // by full queues
	Kinds       map[string]int64 `json:"kinds"`                // link octets by purpose, both directions
	Ledger      []LedgerRow      `json:"ledger"`
	Capture     *LinkCapture     `json:"link_capture,omitempty"` // live only
	Waiting     UpDown[Queue]    `json:"waiting_at_end"`
	BinS        float64          `json:"bin_s"`
	Bins        []Bin            `json:"bins"`
	// Datagrams counts the datagrams sent, by octets of UDP payload; a live run does not know them.
	Datagrams UpDown[map[int]int64] `json:"datagrams_by_octets,omitzero"`
	Samples   []Sample              `json:"samples"`
	Bearers   []Bearer              `json:"bearers,omitempty"` // if there are two; rates, losses and the time on the air above are those of the first
	Ways      []Way                 `json:"ways,omitempty"`
}

// figures fills in the figures that follow from a script and a record. end is how long the play took.
func (res *Result) figures(r *Record, end time.Duration) {
	s := r.s
	res.Source, res.Notes = s.Header.Source, s.Notes
	res.Partial = res.Partial || s.Totals.Partial
	if s.Totals.Partial {
		res.Problems = append(res.Problems, "the capture that the trace was made from was incomplete")
	}
	res.Captures.Trace.TotalS = round(s.Duration.Seconds())
	res.Captures.Replay.TotalS = round(max(end, r.last).Seconds())
	res.Application.Trace = trace.ApplicationBytes{In: s.Totals.In, Out: s.Totals.Out, Total: s.Totals.In + s.Totals.Out}
	res.traceTimes(s)
	res.times(r)
	res.messages(r)
	if p, ok := trace.PublishedOf(&trace.File{Header: s.Header, Totals: s.Totals}); ok {
		setup := p.PipeSetupS
		res.Captures.Published = Capture{TotalS: p.TotalS, DataBytes: &p.Of}
		res.PipeSetupS.Published = &setup
		res.DiscoveryS.Published = map[string]float64{}
		for _, peer := range s.Peers {
			if !peer.Edge {
				res.DiscoveryS.Published[peer.Name] = p.DiscoverS
			}
		}
		res.Application.Published = trace.ApplicationBytes{In: p.In, Out: p.Out, Total: p.In + p.Out, Of: p.Of}
		res.PayloadRatio.Published = percent(p.In+p.Out, p.Of)
	}
}

// traceTimes fills in the trace's times of discovery and pipes: a service counts as found when a peer that had asked for it opened its
// pipe, and data as arrived when it was sent.
func (res *Result) traceTimes(s *Script) {
	res.DiscoveryS.Trace, res.ShoreFindsS.Trace = map[string]float64{}, map[string]float64{}
	service := map[int]string{}
	by := map[int]int{}
	var foundAt time.Duration = -1
	for _, a := range s.Actions {
		switch {
		case a.Do == Publish:
			service[a.Pipe], by[a.Pipe] = a.Name, a.Peer
		case a.Do == Open && service[a.Pipe] != "" && s.Peers[by[a.Pipe]].Edge != s.Peers[a.Peer].Edge:
			m := res.ShoreFindsS.Trace
			if s.Peers[a.Peer].Edge {
				m = res.DiscoveryS.Trace
				if foundAt < 0 {
					foundAt = a.At
				}
			}
			if _, ok := m[service[a.Pipe]]; !ok {
				m[service[a.Pipe]] = round(a.At.Seconds())
			}
		case a.Do == Send && !s.Peers[a.Peer].Edge && foundAt >= 0 && res.PipeSetupS.Trace == nil:
			v := round((a.At - foundAt).Seconds())
			res.PipeSetupS.Trace = &v
		}
	}
}

// times fills in discovery and pipe set-up of the replay.
func (res *Result) times(r *Record) {
	s := r.s
	res.DiscoveryS.Replay, res.ShoreFindsS.Replay = map[string]float64{}, map[string]float64{}
	published := map[string]time.Duration{}
	for _, a := range s.Actions {
		if a.Do == Publish {
			first(published, a.Name, a.At)
		}
	}
	for k, at := range r.found {
		if asked, ok := r.asked[k]; ok {
			if d := round((at - max(asked, published[k.name])).Seconds()); res.FindWaitS == nil || d > *res.FindWaitS {
				res.FindWaitS = &d
			}
		}
		m := res.ShoreFindsS.Replay
		if s.Peers[k.peer].Edge {
			m = res.DiscoveryS.Replay
		}
		if old, ok := m[k.name]; !ok || at.Seconds() < old {
			m[k.name] = round(at.Seconds())
		}
	}
	worst := func(to map[pipeOf]time.Duration, edge bool) (v *float64) {
		for k, from := range r.opened {
			at, ok := to[k]
			if d := round((at - from).Seconds()); ok && (!edge || s.Peers[k.peer].Edge) && (v == nil || d > *v) {
				v = &d
			}
		}
		return v
	}
	res.PipeSetupS.Replay = worst(r.usable, true)
	res.PipeKnownS = worst(r.known, false)
}

// messages fills in deliveries and latencies.
func (res *Result) messages(r *Record) {
	s := r.s
	var all, up, down []float64
	var out int64
	taken := r.takenAt()
	for i, at := range r.sent {
		m := &s.Messages[i]
		if at == notSent {
			continue
		}
		if s.Peers[m.Peer].Edge {
			out += int64(m.Octets)
		}
		if len(m.To) == 0 {
			res.Messages.Unheard++
		}
		for _, p := range m.To {
			res.Messages.Expected++
			x := Sample{From: s.Peers[m.Peer].Name, To: s.Peers[p].Name, Up: s.Peers[m.Peer].Edge, Octets: m.Octets, SentS: round(at.Seconds())}
			if got, ok := r.got[delivery{i, p}]; ok {
				v := round(got.Seconds())
				x.ArrivedS = &v
				d := (got - at).Seconds()
				all = append(all, d)
				if x.Up {
					up = append(up, d)
				} else {
					down = append(down, d)
				}
			}
			if at, ok := taken[i]; ok {
				v := round(at.Seconds())
				x.TakenS = &v
			} else if x.Untaken = r.custody && x.ArrivedS == nil && !s.Pipes[m.Pipe].Unicast; x.Untaken {
				res.Messages.Untaken++
			}
			res.Samples = append(res.Samples, x)
		}
	}
	res.Messages.Delivered, res.Messages.Lost = r.delivered, res.Messages.Expected-r.delivered
	res.Messages.Duplicates, res.Messages.Corrupted, res.Messages.OutOfOrder = r.duplicates, r.strange, r.disorder
	res.Messages.Local = r.local
	res.Latency, res.LatencyUp, res.LatencyDown = latency(all), latency(up), latency(down)
	res.Application.Replay.In, res.Application.Replay.Out = r.octetsIn, out
	res.Application.Replay.Total = r.octetsIn + out
	if r.refused > 0 {
		res.Problem("%d messages could not be sent by their peers", r.refused)
	}
}

// Problem notes why a result is partial.
func (res *Result) Problem(format string, args ...any) {
	res.Partial = true
	res.Problems = append(res.Problems, fmt.Sprintf(format, args...))
}

// link fills in the figures that follow from LinkBytes, LinkPackets and Ledger.
func (res *Result) link() {
	total, packets := res.LinkBytes.Up+res.LinkBytes.Down, res.LinkPackets.Up+res.LinkPackets.Down
	res.Captures.Replay.TotalBytes, res.Captures.Replay.Packets, res.Captures.Replay.DataBytes = &total, &packets, &total
	res.Application.Replay.Of = total
	res.PayloadRatio.Replay = percent(res.Application.Replay.Total, total)
	res.Kinds = map[string]int64{}
	for _, row := range res.Ledger {
		res.Kinds[row.Kind] += row.Octets
	}
}

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(1e4*float64(part)/float64(whole)) / 100
}

func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

func latency(values []float64) Latency {
	slices.Sort(values)
	return Latency{share(values, 0.5), share(values, 0.95), share(values, 1)}
}

// share is a quantile of sorted values; nil when there are none.
func share(values []float64, q float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	v := round(linkemu.Between(values, q))
	return &v
}

// ledgerOf is the accounts of the octets that a gateway sent.
func ledgerOf(st api.Status, to string) (rows []LedgerRow) {
	for _, row := range st.Ledger {
		if row.Direction != "sent" || row.Octets == 0 {
			continue
		}
		peer := row.Peer
		if peer != "group" {
			peer = to
		}
		rows = append(rows, LedgerRow{st.Name, peer, row.Kind, int64(row.Octets)})
	}
	slices.SortFunc(rows, func(a, b LedgerRow) int {
		return cmp.Or(strings.Compare(a.To, b.To), strings.Compare(a.Kind, b.Kind))
	})
	return rows
}
