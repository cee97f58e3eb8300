package field

import (
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/report"
	"encoding/json"
	"math"
	"slices"
	"time"
)

// Result is the output of `gateway lab blue-game --json`.
type Result struct {
	Gateway   string          `json:"gateway,omitempty"` // the version that the gateway under test prints
	Profile   string          `json:"profile"`
	Seed      uint64          `json:"seed"`
	DurationS float64         `json:"duration_s"`
	RateS     float64         `json:"rate_s"`
	Size      int             `json:"size_bytes"`
	Peers     string          `json:"peers"`
	ShipPeers string          `json:"ship_peers,omitempty"` // kind of the ships' peers if it is another one
	Transport string          `json:"transport"`            // of the peers: "tcp" or "http"
	Ships     int             `json:"ships"`
	Shapes    string          `json:"shapes"`             // of the messages: "tracks" or "strangers"
	Arrivals  string          `json:"arrivals"`           // of strangers: lab/shapes
	Squeezed  bool            `json:"squeezed,omitempty"` // a busy loop ran for each processor
	Reorder   bool            `json:"reorder,omitempty"`  // packets overtook each other on the link
	Twice     float64         `json:"twice_percent,omitempty"`
	Runs      map[string]*Run `json:"runs"`      // "gateway", "unaided"
	Published json.RawMessage `json:"published"` // figures of the source documents, see published.json
}

// Run is one way of playing the game. Times in seconds count from the start of the ship's peer; null is never. With
// several ships the first four are the slowest ship's. Bytes and packets are IP octets and packets on the air at the
// emulator from the start of the run until the last message had arrived or was given up; with several ships their sum.
type Run struct {
	Start
	MessagesSent      int     `json:"messages_sent"`      // after the far end had its pipe open; per message and listener
	MessagesDelivered int     `json:"messages_delivered"` // of the messages sent
	Duplicates        int     `json:"duplicates"`
	Corrupted         int     `json:"corrupted"`
	OutOfOrder        int     `json:"out_of_order"` // short messages that came after a newer one, and by more than the constant together
	Latency           Latency `json:"latency_s"`    // send call to listener
	LinkBytes         UpDown  `json:"link_bytes"`
	LinkPackets       UpDown  `json:"link_packets"`
	TCPConnections    int     `json:"tcp_connections_on_link"`
	ApplicationBytes  int64   `json:"application_bytes"`      // of all messages that arrived, each once per listener
	PayloadRatio      float64 `json:"payload_ratio_percent"`  // application_bytes of link_bytes, both directions
	Background        float64 `json:"background_bytes_per_s"` // on the link, both directions, while no peer sends anything
	AllSent           int     `json:"messages_sent_all"`      // also before the far end had its pipe open
	AllDelivered      int     `json:"messages_delivered_all"` // of all sent
	LocalDisconnects  int     `json:"local_disconnects"`      // times a peer lost its rendezvous during the game
	DroppedPackets    UpDown  `json:"link_packets_dropped"`   // by full queues
	LostPackets       UpDown  `json:"link_packets_lost"`      // by the medium or an outage
	EmulatorLateMS    float64 `json:"emulator_late_max_ms"`   // at worst
	Sites             []Site  `json:"sites"`                  // every peer's own start
	Incidents
	Missing       []Missed `json:"missing,omitempty"`        // of messages_sent; the first 20
	PeerErrors    []string `json:"peer_errors,omitempty"`    // reported by the peers; the first 20
	GatewayErrors []string `json:"gateway_errors,omitempty"` // a gateway that exited by itself, or with errors
	picture       *picture
}

// Start is the progress of a peer at its start, with times.
type Start struct {
	RendezvousS *float64 `json:"rendezvous_s"`
	DiscoveryS  *float64 `json:"discovery_s"`
	PipeReadyS  *float64 `json:"pipe_ready_s"`
	FirstDataS  *float64 `json:"first_data_s"`
}

// Incidents are the incidents of the game; nil is none of that kind.
type Incidents struct {
	Idle    *Idle    `json:"idle,omitempty"`    // the silence at the end
	Bulk    []Bulk   `json:"bulk,omitempty"`    // one long message each way
	Outage  *Outage  `json:"outage,omitempty"`  // link down and back
	Kill    *Killed  `json:"kill,omitempty"`    // a gateway was killed and started again
	Redial  *Redial  `json:"redial,omitempty"`  // a ship's address on the link changed
	Silence *Silence `json:"silence,omitempty"` // of ships that transmitted nothing
	Deaf    *Deaf    `json:"deaf,omitempty"`    // a ship without a listener
}

// Latency is how long messages took, in seconds; null: there were none.
type Latency = report.Latency

// UpDown is ship to shore, and shore to ship.
type UpDown = report.UpDown

// Site is one peer; times count from the start of its own process.
type Site struct {
	Name string `json:"name"`
	Start
	Sent           int    `json:"sent"`
	RendezvousLost int    `json:"rendezvous_lost"`
	LinkBytes      UpDown `json:"link_bytes"` // a ship's own leg; on a shared channel the octets from it, and those to it
}

// Idle is the link during a silence.
type Idle struct {
	Seconds float64 `json:"seconds"`
	Bytes   UpDown  `json:"link_bytes"`
	Packets UpDown  `json:"link_packets"`
	Percent float64 `json:"percent_of_slower_rate"` // both directions together; 0 when the rate is unlimited
}

// Bulk is one long message.
type Bulk struct {
	From        string   `json:"from"`
	To          string   `json:"to"`
	Octets      int      `json:"octets"`
	Seconds     *float64 `json:"seconds"`      // send call to listener
	LimitS      float64  `json:"limit_s"`      // octets at the link's rate, and its mean delay
	OverLimit   *float64 `json:"over_limit"`   // seconds / limit_s
	ShortMedian *float64 `json:"short_median"` // latency of short messages of that direction while the long one was under way
	OtherMedian *float64 `json:"other_median"` // at other times
}

// Outage is the figures of an outage of the link.
type Outage struct {
	AtS              float64  `json:"at_s"`
	ForS             float64  `json:"for_s"`
	Sent             int      `json:"sent"` // sent during the outage, of messages_sent
	Delivered        int      `json:"delivered"`
	WorstS           *float64 `json:"worst_latency_s"`
	AfterS           *float64 `json:"last_arrived_after_end_s"` // until the last message of the outage had arrived
	LocalDisconnects int      `json:"local_disconnects"`        // from the outage's beginning to a minute after its end
	AnswerMS         *float64 `json:"answer_ms"`                // a second local peer's question for a far service, while the link was down
}

// Killed is the figures of a kill -9 of a gateway.
type Killed struct {
	Site  string  `json:"site"`
	AtS   float64 `json:"at_s"`
	DownS float64 `json:"down_s"` // until the new process took connections
	BackS float64 `json:"back_s"` // until the peer had its rendezvous again; 0: it did not notice
}

// Redial is the figures after the first ship got another address on the link.
type Redial struct {
	Site  string   `json:"site"`
	AtS   float64  `json:"at_s"`
	UpS   *float64 `json:"first_up_s"`   // from the change until a message sent afterwards arrived ashore
	DownS *float64 `json:"first_down_s"` // the same for a message to the ship
}

// Deaf is the octets that a ship without a listener received on its link while the others talked.
type Deaf struct {
	Site    string  `json:"site"`
	FromS   float64 `json:"from_s"` // until the peers stopped sending
	Seconds float64 `json:"seconds"`
	Bytes   UpDown  `json:"link_bytes"`
	Packets UpDown  `json:"link_packets"`
}

// Missed is a message that did not arrive.
type Missed struct {
	From      string  `json:"from"`
	To        string  `json:"to"`
	Seq       int64   `json:"seq"`
	AtS       float64 `json:"at_s"`              // sent, from the start of the ship's peer
	AfterOpen float64 `json:"after_pipe_open_s"` // how long the listener had had its pipe open
}

// listMax bounds the lists of errors in a Run.
const listMax = 20

// record is the output of one peer.
type record struct {
	name    string
	started time.Time
	events  []Event
}

// pair is a sender and a listener.
type pair struct{ from, to *record }

func service(site string) string { return site + "-svc" }

// first is the first event for which match is true.
func (r *record) first(match func(Event) bool) (Event, bool) {
	i := slices.IndexFunc(r.events, match)
	if i < 0 {
		return Event{}, false
	}
	return r.events[i], true
}

// after is the time of the first such event, from the start of the process; nil: there was none.
func (r *record) after(match func(Event) bool) *float64 {
	if e, ok := r.first(match); ok {
		return seconds(e.At().Sub(r.started))
	}
	return nil
}

func (r *record) count(match func(Event) bool) (n int) {
	for _, e := range r.events {
		if match(e) {
			n++
		}
	}
	return n
}

func is(ev, name string) func(Event) bool {
	return func(e Event) bool { return e.Ev == ev && (name == "" || e.Name == name) }
}

func seconds(d time.Duration) *float64 {
	s := math.Round(d.Seconds()*1000) / 1000
	return &s
}

// message is one message and one listener.
type message struct {
	pair
	seq     int64
	size    int
	sent    time.Time
	counted bool      // the listener had its pipe open
	arrived time.Time // zero: it did not arrive
}

// together: messages received no further apart came together. JXSE 2.7 hands such messages to threads of its own, so that the order in
// which its listener sees them says nothing about the order on the wire (ghosts 6). Whole nets in virtual time check every message.
const together = 500 * time.Millisecond

// messages matches sent with arrived messages. Problems are counted in run.
func (r *Run) messages(p pair, bulk int) []message {
	svc := service(p.from.name)
	open, isOpen := p.to.first(is("pipe_ready", svc))
	var list []message
	index := map[int64]int{}
	crc := map[int64]string{}
	for _, e := range p.from.events {
		if e.Ev == "sent" && e.Name == svc {
			index[e.Seq] = len(list)
			crc[e.Seq] = e.CRC
			list = append(list, message{pair: p, seq: e.Seq, size: e.Size, sent: e.At(), counted: isOpen && !e.At().Before(open.At())})
		}
	}
	var younger []Event // in order of arrival, each with a higher number than the one before
	for _, e := range p.to.events {
		if e.Ev != "received" || e.Name != svc || e.From != p.from.name {
			continue
		}
		i, known := index[e.Seq]
		if !e.OK || !known || crc[e.Seq] != e.CRC {
			r.Corrupted++
			continue
		}
		if !list[i].arrived.IsZero() {
			r.Duplicates++
			continue
		}
		list[i].arrived = e.At()
		if list[i].size == bulk {
			continue // a long message may come at any time
		}
		if i := slices.IndexFunc(younger, func(y Event) bool { return y.Seq > e.Seq }); i < 0 {
			younger = append(younger, e)
		} else if e.At().Sub(younger[i].At()) > together {
			r.OutOfOrder++
		}
	}
	return list
}

// assess computes the figures of a run from the output of the peers. The first record is HQ's; zero is the start of the (last) ship's
// peer.
func assess(run *Run, hq *record, ships []*record, zero time.Time, bulk int) []message {
	var all []message
	for _, s := range ships {
		all = append(all, run.messages(pair{hq, s}, bulk)...)
		all = append(all, run.messages(pair{s, hq}, bulk)...)
	}
	for i, r := range append([]*record{hq}, ships...) {
		far := service(hq.name)
		if i == 0 {
			far = service(ships[0].name)
		}
		s := Site{
			Name: r.name, Start: Start{r.after(is("rendezvous", "")), r.after(is("discovered", far)),
				r.after(is("pipe_ready", far)), r.after(is("received", far))},
			Sent: r.count(is("sent", service(r.name))), RendezvousLost: r.count(is("rendezvous_lost", "")),
		}
		run.Sites = append(run.Sites, s)
		run.LocalDisconnects += s.RendezvousLost
		for _, e := range r.events {
			if e.Ev == "error" && len(run.PeerErrors) < listMax {
				run.PeerErrors = append(run.PeerErrors, r.name+": "+e.Text)
			}
		}
	}
	ship := run.Sites[1:]
	run.RendezvousS = slowest(ship, func(s Site) *float64 { return s.RendezvousS })
	run.DiscoveryS = slowest(ship, func(s Site) *float64 { return s.DiscoveryS })
	run.PipeReadyS = slowest(ship, func(s Site) *float64 { return s.PipeReadyS })
	run.FirstDataS = slowest(ship, func(s Site) *float64 { return s.FirstDataS })
	var times []float64
	for _, m := range all {
		run.AllSent++
		if !m.arrived.IsZero() {
			run.AllDelivered++
			run.ApplicationBytes += int64(m.size)
		}
		if !m.counted {
			continue
		}
		run.MessagesSent++
		if m.arrived.IsZero() {
			if len(run.Missing) < listMax {
				open, _ := m.to.first(is("pipe_ready", service(m.from.name)))
				run.Missing = append(run.Missing, Missed{m.from.name, m.to.name, m.seq, *seconds(m.sent.Sub(zero)), *seconds(m.sent.Sub(open.At()))})
			}
			continue
		}
		run.MessagesDelivered++
		if m.size != bulk {
			times = append(times, m.latency())
		}
	}
	if run.picture != nil {
		run.picture.latencies = times
	}
	run.Latency = latencyOf(times)
	return all
}

func (m message) latency() float64 { return m.arrived.Sub(m.sent).Seconds() }

func slowest(list []Site, of func(Site) *float64) *float64 {
	var worst *float64
	for _, s := range list {
		v := of(s)
		if v == nil {
			return nil
		}
		if worst == nil || *v > *worst {
			worst = v
		}
	}
	return worst
}

// share is a quantile of values in any order; nil when there are none.
func share(values []float64, q float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	x := math.Round(linkemu.Between(slices.Sorted(slices.Values(values)), q)*1000) / 1000
	return &x
}

// latencyOf is the latency of messages that took these times, in seconds.
func latencyOf(times []float64) Latency {
	return Latency{Median: share(times, 0.5), P95: share(times, 0.95), Max: share(times, 1)}
}

// bulkFigures are the figures of the long messages; limit is the physical time from one node to another.
func bulkFigures(all []message, bulk int, limit func(from, to string) time.Duration) []Bulk {
	var list []Bulk
	for _, b := range all {
		if b.size != bulk {
			continue
		}
		f := Bulk{From: b.from.name, To: b.to.name, Octets: bulk, LimitS: *seconds(limit(b.from.name, b.to.name))}
		end := b.arrived
		if !end.IsZero() {
			f.Seconds = seconds(end.Sub(b.sent))
			over := math.Round(end.Sub(b.sent).Seconds()/f.LimitS*1000) / 1000
			f.OverLimit = &over
		}
		var during, other []float64
		for _, m := range all {
			if m.pair != b.pair || m.size == bulk || !m.counted || m.arrived.IsZero() {
				continue
			}
			if !m.sent.Before(b.sent) && (end.IsZero() || m.sent.Before(end)) {
				during = append(during, m.latency())
			} else {
				other = append(other, m.latency())
			}
		}
		f.ShortMedian, f.OtherMedian = share(during, 0.5), share(other, 0.5)
		list = append(list, f)
	}
	return list
}

// redialFigures are the figures of a ship that had another address from the time when on.
func redialFigures(all []message, ship string, zero, when time.Time) *Redial {
	r := &Redial{Site: ship, AtS: *seconds(when.Sub(zero))}
	first := func(dst **float64, m message) {
		if s := seconds(m.arrived.Sub(when)); *dst == nil || *s < **dst {
			*dst = s
		}
	}
	for _, m := range all {
		switch {
		case m.sent.Before(when) || m.arrived.IsZero():
		case m.from.name == ship:
			first(&r.UpS, m)
		case m.to.name == ship:
			first(&r.DownS, m)
		}
	}
	return r
}

// outageFigures are the figures of an outage from begin to end.
func outageFigures(all []message, records []*record, zero, begin, end time.Time) *Outage {
	o := &Outage{AtS: *seconds(begin.Sub(zero)), ForS: *seconds(end.Sub(begin))}
	var times []float64
	last := end
	for _, m := range all {
		if !m.counted || m.sent.Before(begin) || !m.sent.Before(end) {
			continue
		}
		o.Sent++
		if !m.arrived.IsZero() {
			o.Delivered++
			times = append(times, m.latency())
			if m.arrived.After(last) {
				last = m.arrived
			}
		}
	}
	o.WorstS = share(times, 1)
	if len(times) > 0 {
		o.AfterS = seconds(last.Sub(end))
	}
	for _, r := range records {
		o.LocalDisconnects += r.count(func(e Event) bool {
			return e.Ev == "rendezvous_lost" && e.At().After(begin) && e.At().Before(end.Add(time.Minute))
		})
	}
	return o
}
