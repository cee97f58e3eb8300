package jxtabridge

import "aldis/internal/site"

// metric is what the operator's graphs call a number, and the labels that tell its kinds apart.
type metric struct {
	name, help string
	labels     []string
}

var (
	metricPeers         = metric{"jxta_peers", "Local peers with a lease or a connection, by generation: signed, unsigned, 2.2.", []string{"generation"}}
	metricQueue         = metric{"jxta_waiting_messages", "Messages waiting for local peers.", nil}
	metricAdverts       = metric{"jxta_adverts", "Advertisements of local peers.", nil}
	metricQuestions     = metric{"jxta_open_questions", "Questions of local peers that are remembered until an answer comes.", nil}
	metricJXTA          = metric{"jxta_messages_total", "JXTA messages exchanged with local peers.", []string{"direction"}}
	metricRefused       = metric{"jxta_refused_total", "Messages of local peers that were refused, by reason.", []string{"reason"}}
	metricQueries       = metric{"jxta_queries_total", "Queries of local peers, by kind: discovery, pipe, route.", []string{"kind"}}
	metricAnswers       = metric{"jxta_answers_total", "Answers to local peers, by when: at_once, late (when the answer became known).", []string{"when"}}
	metricPublished     = metric{"jxta_published_total", "Advertisements that local peers published.", nil}
	metricPushed        = metric{"jxta_pushed_total", "Advertisements of far peers handed to local peers that had not asked.", nil}
	metricPayloads      = metric{"jxta_payloads_total", "Applications' messages. Of local peers: wire (propagate pipe), carried (given to the link), carried_late (held for a listener first), local_copy. Of far peers: far, undeliverable, abandoned. Between local peers: overrun (lost, the receiver takes too little).", []string{"fate"}}
	metricStreams       = metric{"jxta_streams", "BiDi pipes and sockets between local and far peers that are open.", []string{"kind"}}
	metricStreamsOpened = metric{"jxta_streams_opened_total", "BiDi pipes and sockets opened between local and far peers.", nil}
	metricStreamsEnded  = metric{"jxta_streams_ended_total", "Those that ended, by reason: closed_here, closed_there, reset_there, refused, not_accepted, not_taken, overflow, encrypted.", []string{"reason"}}
	metricStreamBytes   = metric{"jxta_stream_bytes_total", "Octets of their blocks: out (taken from local peers), in (acknowledged by them).", []string{"direction"}}
	metricStreamLocal   = metric{"jxta_stream_local_total", "What of their reliability layer stayed on the LAN: acknowledgements of local peers, duplicates of theirs, blocks they were sent again.", []string{"event"}}
	metricSecure        = metric{"jxta_secure_blocks_total", "Blocks of secure pipes to far peers: carried; delivered (a local peer has acknowledged it); duplicate (it was here before); repeat (to a local peer). Of connections: crossed (both peers opened one, one was kept).", []string{"event"}}
	metricMulticast     = metric{"jxta_multicast_total", "Multicast datagrams: heard; of these copy (the peer says it to its gateway too); sent; withheld (for the rate, or too long).", []string{"event"}}
	metricCalls         = metric{"jxta_calls_total", "Calls to leased peers that had no connection.", nil}
)

// Metrics are the numbers of the face for the operator's graphs.
func Metrics(st Status, s Stats) (list []site.Metric) {
	add := func(gauge bool, m metric, v float64, values []string) {
		labels := make([]site.Label, len(values))
		for i, value := range values {
			labels[i] = site.Label{Name: m.labels[i], Value: value}
		}
		list = append(list, site.Metric{Name: m.name, Help: m.help, Gauge: gauge, Labels: labels, Value: v})
	}
	count := func(m metric, v uint64, values ...string) { add(false, m, float64(v), values) }
	gauge := func(m metric, v float64, values ...string) { add(true, m, v, values) }
	generations := map[string]int{"signed": 0, "unsigned": 0, "2.2": 0}
	waiting := 0
	for _, p := range st.Peers {
		generations[p.Generation]++
		waiting += p.Waiting
	}
	for g, n := range generations {
		gauge(metricPeers, float64(n), g)
	}
	gauge(metricQueue, float64(waiting))
	gauge(metricAdverts, float64(st.Adverts))
	gauge(metricQuestions, float64(st.Questions))
	count(metricJXTA, s.Received, "received")
	count(metricJXTA, s.Sent, "sent")
	count(metricRefused, s.BadMessages, "unreadable")
	count(metricRefused, s.Disconnects, "no_lease")
	for reason, n := range s.Refused {
		if reason != "unreadable" && reason != "no_lease" {
			count(metricRefused, n, reason)
		}
	}
	for kind, n := range map[string]uint64{"discovery": s.Queries, "pipe": s.PipeQueries, "route": s.RouteQueries} {
		count(metricQueries, n, kind)
	}
	count(metricAnswers, s.Answers, "at_once")
	count(metricAnswers, s.LateAnswers, "late")
	count(metricPublished, s.Published)
	count(metricPushed, s.Pushed)
	count(metricQueries, s.Asked, "asked_afar")
	streams := map[string]int{"bidi": 0, "socket": 0}
	for _, st := range st.Streams {
		streams[st.Kind]++
	}
	for kind, n := range streams {
		gauge(metricStreams, float64(n), kind)
	}
	count(metricStreamsOpened, s.Streams)
	for reason, n := range s.StreamsEnded {
		count(metricStreamsEnded, n, reason)
	}
	count(metricStreamBytes, s.StreamOctetsOut, "out")
	count(metricStreamBytes, s.StreamOctetsIn, "in")
	for event, n := range map[string]uint64{"acknowledgement": s.StreamAcks, "duplicate": s.StreamDuplicates, "repeat": s.StreamRepeats} {
		count(metricStreamLocal, n, event)
	}
	for event, n := range map[string]uint64{"carried": s.SecureBlocks, "delivered": s.SecureDelivered, "duplicate": s.SecureDuplicates, "repeat": s.SecureRepeats, "crossed": s.SecureCrossed} {
		count(metricSecure, n, event)
	}
	for event, n := range map[string]uint64{"heard": s.MulticastHeard, "copy": s.MulticastCopies, "sent": s.MulticastSent, "withheld": s.MulticastWithheld} {
		count(metricMulticast, n, event)
	}
	count(metricCalls, s.Calls)
	for fate, n := range map[string]uint64{
		"wire": s.WireIn, "carried": s.Carried, "carried_late": s.CarriedLate, "local_copy": s.LocalFanOut,
		"far": s.FarPayloads, "undeliverable": s.FarUndeliverable, "abandoned": s.Abandoned, "overrun": s.Overrun,
	} {
		count(metricPayloads, n, fate)
	}
	return list
}
