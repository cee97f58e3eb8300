package jxtabridge

import "aldis/internal/site"

// values are the values of one metric, by the value of its label; a metric without a label has one, under "".
type values map[string]uint64

// Metrics are the numbers of the adapter for the operator's graphs.
func Metrics(st Status, s Stats) (list []site.Metric) {
	add := func(name, help, label string, gauge bool, of values) {
		for v, n := range of {
			m := site.Metric{Name: "jxta_" + name, Help: help, Gauge: gauge, Labels: []site.Label{}, Value: float64(n)}
			if label != "" {
				m.Labels = []site.Label{{Name: label, Value: v}}
			}
			list = append(list, m)
		}
	}
	gauge := func(name, label string, of values, help string) { add(name, help, label, true, of) }
	count := func(name, label string, of values, help string) { add(name+"_total", help, label, false, of) }
	generations, streams, waiting := values{"signed": 0, "unsigned": 0, "2.2": 0}, values{"bidi": 0, "socket": 0}, 0
	for _, p := range st.Peers {
		generations[p.Generation]++
		waiting += p.Waiting
	}
	for _, st := range st.Streams {
		streams[st.Kind]++
	}
	refused := values{"unreadable": s.BadMessages, "no_lease": s.Disconnects}
	for reason, n := range s.Refused {
		if _, own := refused[reason]; !own {
			refused[reason] = n
		}
	}
	gauge("peers", "generation", generations, "Local peers with a lease or a connection: signed, unsigned, 2.2.")
	gauge("waiting_messages", "", values{"": uint64(waiting)}, "Messages waiting for local peers.")
	away := values{"messages": 0, "bytes": 0}
	for _, a := range st.Away {
		away["messages"] += uint64(a.Messages)
		away["bytes"] += uint64(a.Octets)
	}
	gauge("away_messages", "", values{"": away["messages"]}, "Messages that wait for absent local peers, counted once for each peer.")
	gauge("away_bytes", "", values{"": away["bytes"]}, "Octets of the messages in aldis_jxta_away_messages.")
	gauge("adverts", "", values{"": uint64(st.Adverts)}, "Advertisements of local peers.")
	gauge("open_questions", "", values{"": uint64(st.Questions)}, "Questions of local peers without an answer yet.")
	gauge("streams", "kind", streams, "Open BiDi pipes and sockets between local and far peers; lan.streams in /status lists them.")
	count("messages", "direction", values{"received": s.Received, "sent": s.Sent}, "JXTA messages exchanged with local peers.")
	count("refused", "reason", refused, "Refused messages of local peers.")
	count("queries", "kind", values{"discovery": s.Queries, "pipe": s.PipeQueries, "route": s.RouteQueries, "asked_afar": s.Asked, "asked_here": s.AskedHere},
		"Queries of local peers: discovery, pipe, route.")
	count("answers", "when", values{"at_once": s.Answers, "late": s.LateAnswers},
		"Answers to local peers: at_once, or late (once the answer was known).")
	count("published", "", values{"": s.Published}, "Advertisements that local peers published.")
	count("pushed", "", values{"": s.Pushed}, "Advertisements of far peers sent unasked to local peers.")
	count("calls", "", values{"": s.Calls}, "Dials to leased peers without a connection.")
	count("payloads", "fate", values{"wire": s.WireIn, "carried": s.Carried, "carried_late": s.CarriedLate, "unheard": s.Unheard, "local_copy": s.LocalFanOut,
		"far": s.FarPayloads, "undeliverable": s.FarUndeliverable, "abandoned": s.Abandoned, "overrun": s.Overrun},
		"Applications' messages. From local peers: wire (received on a propagate pipe), carried (given to the link), carried_late (given to the link once a far site listened), unheard (no far site listened to the propagate pipe in time), local_copy (copies handed to other local peers). From far peers: far (received), undeliverable (a local receiver did not get it), abandoned (lost: the receiver's queue was full). Between local peers: overrun (lost: the receiver is too slow).")
	count("streams_opened", "", values{"": s.Streams}, "BiDi pipes and sockets opened between local and far peers.")
	count("streams_ended", "reason", s.StreamsEnded,
		"Ended BiDi pipes and sockets: closed_here, closed_there (by the far peer), reset_there (by its gateway), refused (by the far site), not_accepted (no answer in time), not_taken (a peer read nothing), overflow (too much waited), encrypted (not supported).")
	count("stream_bytes", "direction", values{"out": s.Stream.OctetsOut, "in": s.Stream.OctetsIn},
		"Octets in blocks of BiDi pipes and sockets: out (accepted from local peers), in (acknowledged by them).")
	count("stream_local", "event", values{"acknowledgement": s.Stream.Acks, "duplicate": s.Stream.Duplicates, "repeat": s.Stream.Repeats},
		"Traffic of the streams' reliability layer that stayed on the LAN: acknowledgements and duplicates of local peers, blocks sent to them again.")
	count("secure_blocks", "event", values{"carried": s.Secure.Blocks, "delivered": s.Secure.Delivered, "duplicate": s.Secure.Duplicates,
		"repeat": s.Secure.Repeats, "crossed": s.SecureCrossed},
		"Blocks of secure pipes: carried (given to the link); delivered (a local peer acknowledged it); duplicate (from a local peer); repeat (sent to a local peer again). Connections: crossed (both peers opened one, and the gateway kept one).")
	count("multicast", "event", values{"heard": s.MulticastHeard, "copy": s.MulticastCopies, "sent": s.MulticastSent, "withheld": s.MulticastWithheld},
		"Multicast datagrams: heard; copy (heard, but from a peer that is connected to the gateway); sent; withheld (too frequent or too long).")
	return list
}
