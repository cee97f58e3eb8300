package trace

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
)

// Figures are the figures of one capture, with the names and units of `captures` in the published figures.
type Figures struct {
	Connections     int64   `json:"connections"`
	TotalS          float64 `json:"total_s"`
	ConnMinS        float64 `json:"conn_min_s"`
	ConnMaxS        float64 `json:"conn_max_s"`
	ConnAvgS        float64 `json:"conn_avg_s"`
	ConnMinPkts     int64   `json:"conn_min_pkts"`
	ConnMaxPkts     int64   `json:"conn_max_pkts"`
	Packets         int64   `json:"packets"`
	ConnAvgPkts     float64 `json:"conn_avg_pkts"`
	SetupMinS       float64 `json:"setup_min_s"`
	SetupMaxS       float64 `json:"setup_max_s"`
	SetupAvgS       float64 `json:"setup_avg_s"`
	DataPackets     int64   `json:"data_packets"`
	DataBytes       int64   `json:"data_bytes"`
	TCPBytes        int64   `json:"tcp_bytes"`
	TotalBytes      int64   `json:"total_bytes"`
	Retransmissions int64   `json:"retransmissions"`
}

// ApplicationBytes are the application's octets at the edge, as in table 5.10. Of is data_bytes.
type ApplicationBytes struct {
	In    int64 `json:"in"`
	Out   int64 `json:"out"`
	Total int64 `json:"total"`
	Of    int64 `json:"of"`
}

// Service is the time at which the edge first received a service's advertisement.
type Service struct {
	Name string  `json:"name"`
	S    float64 `json:"s"`   // from the capture's first TCP packet
	Own  bool    `json:"own"` // the edge had published it itself
}

// Row is one line of a table of octets.
type Row struct {
	Name string `json:"name"`
	Tally
}

// Report is the results of a capture.
type Report struct {
	Headline  string    `json:"headline"` // the fault of this link, in one sentence
	Condition Condition `json:"condition"`

	Figures     Figures          `json:"figures"`
	Edge        string           `json:"edge,omitempty"`
	EdgePeer    string           `json:"edge_peer,omitempty"` // its PID's unique value
	EdgeGuessed bool             `json:"edge_guessed,omitempty"`
	Discovery   []Service        `json:"discovery_s"`
	PipeSetupS  *float64         `json:"pipe_setup_s"` // from the first foreign service's advertisement to the first foreign data; null: never
	Application ApplicationBytes `json:"application_bytes"`
	PayloadPct  float64          `json:"payload_ratio_percent"`

	InMessages      int64   `json:"application_messages_in"`
	OutMessages     int64   `json:"application_messages_out"`
	EchoedBytes     int64   `json:"application_bytes_echoed"` // of application_bytes in: the edge's own, sent back to it
	Setups          int64   `json:"setups"`                   // connections whose set-up is in the capture
	FailedSetups    int64   `json:"setups_failed"`            // begun and never finished
	RefusedSetups   int64   `json:"setups_refused"`           // reset at once: the link carried the answer
	MidConnections  int64   `json:"connections_begun_before"` // no SYN seen
	DataPacketsPct  float64 `json:"data_packets_percent"`
	DataBytesPct    float64 `json:"data_bytes_percent"`
	RetransmitPct   float64 `json:"retransmissions_percent"`
	ConnsPerMinute  float64 `json:"connections_per_minute"`
	CapturedPackets int64   `json:"captured_packets"` // of any kind

	StreamBytes   int64 `json:"stream_bytes"` // TCP payload, each octet once
	WelcomeBytes  int64 `json:"welcome_bytes"`
	HTTPBytes     int64 `json:"http_bytes"`
	HTTPRequests  int64 `json:"http_requests"`
	FramingBytes  int64 `json:"framing_bytes"`
	TrailerBytes  int64 `json:"trailer_bytes"`
	Trailers      int64 `json:"trailers"`
	UnreadBytes   int64 `json:"unread_bytes"`
	Messages      int64 `json:"messages"`
	CutMessages   int64 `json:"messages_cut"`
	Gaps          int64 `json:"gaps"` // places where TCP payload is missing in the capture
	Kinds         []Row `json:"message_kinds"`
	Elements      []Row `json:"elements"`
	Foreign       int64 `json:"foreign_streams"`
	OtherPackets  int64 `json:"other_packets"`
	MissingBytes  int64 `json:"missing_bytes"` // TCP payload that was acknowledged and is not in the capture
	Partial       bool  `json:"partial"`
	BackwardsTime int64 `json:"packets_back_in_time,omitempty"`

	Link *LinkReport `json:"link,omitempty"` // datagrams of gateways

	CoT      *CoTReport  `json:"cot,omitempty"` // events of TAK devices
	CoTBytes int64       `json:"cot_bytes"`     // of CoT events in TCP streams
	XMPP     *XMPPReport `json:"xmpp,omitempty"`

	Problems []string `json:"problems,omitempty"`
	Remarks  []string `json:"remarks,omitempty"` // caveats on the figures, although nothing is missing

	Fragments FragmentCounts `json:"ip_fragments,omitzero"`
	NotThere  CaptureLoss    `json:"not_captured,omitzero"`

	Timeline *Timeline     `json:"timeline,omitempty"` // of TCP
	SetupS   *Distribution `json:"setup_s,omitempty"`
	Lengths  []Length      `json:"connections_by_length,omitempty"`
	PipeRTTS *Distribution `json:"pipe_round_trip_s,omitempty"` // from a message of the edge to the next for it
	Ends     *Ends         `json:"ends,omitempty"`              // of captures at both ends

	start, end int64
}

// Start is the time of the first packet that counts, ns since 1970 UTC; the times of events count from it.
func (r *Report) Start() int64 { return r.start }

// Seconds is the time from that packet to the last.
func (r *Report) Seconds() float64 { return float64(max(0, r.end-r.start)) / 1e9 }

func (a *Analyser) report() *Report {
	t := a.totals
	r := &Report{
		Figures: Figures{
			Connections: a.connCount, TotalS: float64(t.last-t.first) / 1e9,
			ConnMinS: a.duration.min, ConnMaxS: a.duration.max, ConnAvgS: a.duration.mean(),
			ConnMinPkts: int64(a.perConn.min), ConnMaxPkts: int64(a.perConn.max), ConnAvgPkts: a.perConn.mean(),
			Packets: t.packets, SetupMinS: a.setup.min, SetupMaxS: a.setup.max, SetupAvgS: a.setup.mean(),
			DataPackets: t.dataPackets, DataBytes: t.dataOctets, TCPBytes: t.octets - t.dataOctets, TotalBytes: t.octets,
			Retransmissions: t.retransmissions,
		},
		Setups: a.setup.n, FailedSetups: a.failedSetups, RefusedSetups: a.refused, MidConnections: a.halfSeen,
		DataPacketsPct: percent(t.dataPackets, t.packets), DataBytesPct: percent(t.dataOctets, t.octets),
		RetransmitPct: percent(t.retransmissions, t.packets), CapturedPackets: a.packets,
		StreamBytes: a.read.stream, WelcomeBytes: a.read.welcome, HTTPBytes: a.read.http, HTTPRequests: a.httpRequests,
		FramingBytes: a.framing, TrailerBytes: a.trailers, Trailers: a.trailerCount, UnreadBytes: a.read.unread,
		CutMessages: a.cutMessages, CoTBytes: a.read.cot, Gaps: a.gaps, Foreign: a.foreign, OtherPackets: a.other, MissingBytes: a.missed.octets, BackwardsTime: a.backwards,
		start: a.start, end: a.end,
		Timeline: a.line.result(), SetupS: a.setups.result(),
		Remarks: a.remarks(), Fragments: a.fragments.FragmentCounts, NotThere: CaptureLoss{a.lost.cutPackets, a.lost.cutOctets, a.lost.drops},
		Problems: a.said, Partial: len(a.said) > 0, Discovery: []Service{}, Kinds: []Row{}, Elements: []Row{},
	}
	r.Lengths = a.byLength()
	if r.Figures.TotalS > 0 {
		r.ConnsPerMinute = float64(a.connCount) * 60 / r.Figures.TotalS
	}
	for kind, t := range a.kinds {
		r.Kinds = append(r.Kinds, Row{string(kind), *t})
		r.Messages += t.Count
	}
	for name, t := range a.elements {
		r.Elements = append(r.Elements, Row{name, *t})
	}
	for _, rows := range [][]Row{r.Kinds, r.Elements} {
		slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(b.Octets, a.Octets), cmp.Compare(a.Name, b.Name)) })
	}
	a.edgeFigures(r)
	if a.link != nil {
		r.Link = a.link.finish()
	}
	r.CoT, r.XMPP = a.cot.finish(), a.xmpp.finish()
	r.judge()
	return r
}

// edgeFigures fills in the figures of tables 5.8 to 5.10.
func (a *Analyser) edgeFigures(r *Report) {
	edge := a.opt.Edge
	if !edge.IsValid() {
		edge, r.EdgeGuessed = a.guessEdge(), true
	}
	if !edge.IsValid() {
		r.EdgeGuessed = false
		return
	}
	r.Edge = edge.String()
	r.Application.Of = r.Figures.DataBytes
	h := a.hosts[edge]
	if h == nil {
		return
	}
	r.EdgePeer = h.peer
	r.Application.In, r.Application.Out, r.Application.Total = h.in, h.out, h.in+h.out
	r.PayloadPct = percent(r.Application.Total, r.Application.Of)
	r.InMessages, r.OutMessages, r.EchoedBytes = h.inMessages, h.outMessages, h.echoed
	r.PipeRTTS = h.answers.result()
	first := int64(math.MaxInt64)
	for name, at := range h.heard {
		own := h.published[name]
		r.Discovery = append(r.Discovery, Service{name, float64(at-a.start) / 1e9, own})
		if !own {
			first = min(first, at)
		}
	}
	slices.SortFunc(r.Discovery, func(a, b Service) int { return cmp.Or(cmp.Compare(a.S, b.S), cmp.Compare(a.Name, b.Name)) })
	if first != math.MaxInt64 && h.firstData != 0 {
		s := float64(h.firstData-first) / 1e9
		r.PipeSetupS = &s
	}
}

// guessEdge is the address that set up the most connections: rendezvous and relays are dialled. An address that passes on messages of
// others is one of those, and is the edge only if no other address dialled.
func (a *Analyser) guessEdge() netip.Addr {
	var best netip.Addr
	for addr := range a.opened {
		if !best.IsValid() || a.likelierEdge(addr, best) {
			best = addr
		}
	}
	return best
}

func (a *Analyser) likelierEdge(one, other netip.Addr) bool {
	if r := a.passesOn(one); r != a.passesOn(other) {
		return !r
	}
	if n, m := a.opened[one], a.opened[other]; n != m {
		return n > m
	}
	return one.Less(other)
}

// passesOn says whether most octets that an address sent were of other peers.
func (a *Analyser) passesOn(addr netip.Addr) bool {
	h := a.hosts[addr]
	return h != nil && 2*h.passed > h.out
}

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
