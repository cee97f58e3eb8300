package control

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("aldis_"+name, help, labels, nil)
}

var (
	descInfo = desc("info", "Always 1; says in its labels what runs.", "version", "id", "name", "profile", "end")
	descUp   = desc("loop_answers", "1 when the loop gave its status in time for this scrape; 0: what it knows is missing here.")
	descBoot = desc("boot_number", "Number of this start, as it is part of the link's keys.")

	descLink = desc("link_bytes_total",
		"Airtime ledger: IP octets on the link, by what they were for: payload, advertisement, state, ack, repair, header, key.",
		"direction", "peer", "kind")
	descLinkDatagrams = desc("link_datagrams_total", "Authentic datagrams exchanged with a peer.", "direction", "peer")
	descLinkDropped   = desc("link_dropped_total", "Received datagrams and packets that were dropped, by reason.", "reason")
	descLinkUp        = desc("link_up", "1 when the peer was heard in this run and answers.", "peer")
	descLastHeard     = desc("link_last_heard_timestamp_seconds", "When the last authentic datagram of the peer came.", "peer")

	descMessages = desc("messages_total",
		"Messages since the start. To a peer: accepted, refused, delivered (it has them durably), expired, superseded, withdrawn (for a more urgent one), repeated. From it: received, handed_over, duplicate, unreadable.",
		"peer", "event")
	descCustody      = desc("custody_messages", "Messages in custody: waiting and under_way to the peer, pending for local peers.", "peer", "state")
	descCustodyBytes = desc("custody_bytes", "Octets of the messages waiting and under way to the peer.", "peer")

	descItems     = desc("replica_items", "Items of state (peers, advertisements, pipes) of this site.")
	descPeerItems = desc("replica_peer_items", "Items: of this site known to be at the peer (held), on their way there (under_way), of the peer's site here (far).", "peer", "state")

	descFilter = desc("filter_total",
		"What the operator's rules took, by rule (its label, or its line in the configuration): fits, waited and dropped for its rate.",
		"rule", "action", "event")

	descNORM         = desc("norm_up", "1 when the child that runs libnorm works.")
	descNORMFailures = desc("norm_failures_total", "Times that the child had to be replaced.")

	descNORMStarts   = desc("norm_starts_total", "Children started to run libnorm.")
	descNORMStrange  = desc("norm_strange_packets_total", "Packets at libnorm's loopback sockets that were neither ours nor libnorm's: dropped.")
	descNORMCommands = desc("norm_commands_dropped_total", "Commands for a child that was down.")

	descPeers     = desc("jxta_peers", "Local peers with a lease or a connection, by generation: signed, unsigned, 2.2.", "generation")
	descQueue     = desc("jxta_waiting_messages", "Messages waiting for local peers.")
	descAdverts   = desc("jxta_adverts", "Advertisements of local peers.")
	descQuestions = desc("jxta_open_questions", "Questions of local peers that are remembered until an answer comes.")
	descJXTA      = desc("jxta_messages_total", "JXTA messages exchanged with local peers.", "direction")
	descRefused   = desc("jxta_refused_total", "Messages of local peers that were refused, by reason.", "reason")
	descQueries   = desc("jxta_queries_total", "Queries of local peers, by kind: discovery, pipe, route.", "kind")
	descAnswers   = desc("jxta_answers_total", "Answers to local peers, by when: at_once, late (when the answer became known).", "when")
	descPublished = desc("jxta_published_total", "Advertisements that local peers published.")
	descPushed    = desc("jxta_pushed_total", "Advertisements of far peers handed to local peers that had not asked.")
	descPayloads  = desc("jxta_payloads_total",
		"Applications' messages. Of local peers: wire (propagate pipe), carried (given to the link), carried_late (held for a listener first), local_copy. Of far peers: far, undeliverable, abandoned. Between local peers: overrun (lost, the receiver takes too little).",
		"fate")

	descStreams       = desc("jxta_streams", "BiDi pipes and sockets between local and far peers that are open.", "kind")
	descStreamsOpened = desc("jxta_streams_opened_total", "BiDi pipes and sockets opened between local and far peers.")
	descStreamsEnded  = desc("jxta_streams_ended_total", "Those that ended, by reason: closed_here, closed_there, reset_there, refused, not_accepted, not_taken, overflow, encrypted.", "reason")
	descStreamBytes   = desc("jxta_stream_bytes_total", "Octets of their blocks: out (taken from local peers), in (acknowledged by them).", "direction")
	descStreamLocal   = desc("jxta_stream_local_total",
		"What of their reliability layer stayed on the LAN: acknowledgements of local peers, duplicates of theirs, blocks they were sent again.", "event")
	descSecure = desc("jxta_secure_blocks_total",
		"Blocks of secure pipes to far peers: carried; delivered (a local peer has acknowledged it); duplicate (it was here before); repeat (to a local peer). Of connections: crossed (both peers opened one, one was kept).", "event")
	descMulticast = desc("jxta_multicast_total",
		"Multicast datagrams: heard; of these copy (the peer says it to its gateway too); sent; withheld (for the rate, or too long).", "event")
	descCalls = desc("jxta_calls_total", "Calls to leased peers that had no connection.")

	descRadioDatagrams = desc("radio_datagrams_total", "UDP datagrams of the link's socket, authentic or not.", "direction")
	descRadioBytes     = desc("radio_bytes_total", "UDP payload octets of the link's socket, authentic or not.", "direction")
	descRadioDropped   = desc("radio_dropped_total", "Datagrams lost here: received while the inbox was full, or refused by the kernel when sent.", "direction")
)

// collector turns a Status into metrics whenever it is asked.
type collector struct{ src Source }

// Describe sends what is always there; the rest follows from Collect.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descInfo, descUp, descBoot, descLink, descLinkDatagrams, descLinkDropped, descLinkUp, descLastHeard, descMessages,
		descCustody, descCustodyBytes, descItems, descPeerItems, descNORM, descNORMFailures,
		descNORMStarts, descNORMStrange, descNORMCommands, descRadioDatagrams, descRadioBytes, descRadioDropped,
		descPeers, descQueue, descAdverts, descQuestions, descJXTA, descRefused, descQueries, descAnswers, descPublished,
		descPushed, descPayloads, descFilter, descStreams, descStreamsOpened, descStreamsEnded, descStreamBytes,
		descStreamLocal, descSecure, descMulticast, descCalls,
	} {
		ch <- d
	}
}

// Collect asks for one Report and tells it.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	r, err := c.src.report(context.Background())
	count(descRadioDatagrams, r.Radio.ReceivedDatagrams, "received")
	count(descRadioDatagrams, r.Radio.SentDatagrams, "sent")
	count(descRadioBytes, r.Radio.ReceivedOctets, "received")
	count(descRadioBytes, r.Radio.SentOctets, "sent")
	count(descRadioDropped, r.Radio.DroppedDatagrams, "received")
	count(descRadioDropped, r.Radio.UnsentDatagrams, "sent")
	child := c.src.NORM()
	count(descNORMStarts, child.Starts)
	count(descNORMStrange, child.StrangePacket)
	count(descNORMCommands, child.Dropped)
	gauge(descUp, truth(err == nil))
	if err != nil {
		return
	}
	gauge(descInfo, 1, r.Version, itoa(r.ID), r.Name, r.Profile, r.End)
	gauge(descBoot, float64(r.BootNumber))
	gauge(descItems, float64(r.Items))
	gauge(descNORM, truth(r.NORM.Up))
	count(descNORMFailures, uint64(r.NORM.Failures))
	for reason, n := range r.Dropped {
		count(descLinkDropped, n, reason)
	}
	for _, row := range r.Ledger {
		count(descLink, row.Octets, row.Direction, row.Peer, row.Kind)
	}
	named := map[string]bool{}
	for _, f := range r.Filters {
		line := "line " + strconv.Itoa(f.Line)
		rule := cmp.Or(f.Label, line)
		if named[rule] { // a label is the operator's, and may be there twice
			rule += ", " + line
		}
		named[rule] = true
		count(descFilter, f.Fits, rule, f.Action, "fits")
		count(descFilter, f.Waited, rule, f.Action, "waited")
		count(descFilter, f.Dropped, rule, f.Action, "dropped")
	}
	for _, p := range r.Peers {
		peer(p, count, gauge)
	}
	lan(r, count, gauge)
}

type (
	counter func(d *prometheus.Desc, v uint64, labels ...string)
	gauger  func(d *prometheus.Desc, v float64, labels ...string)
)

// lan tells of the local peers.
func lan(r Report, count counter, gauge gauger) {
	generations := map[string]int{"signed": 0, "unsigned": 0, "2.2": 0}
	waiting := 0
	for _, p := range r.LAN.Peers {
		generations[p.Generation]++
		waiting += p.Waiting
	}
	for g, n := range generations {
		gauge(descPeers, float64(n), g)
	}
	gauge(descQueue, float64(waiting))
	gauge(descAdverts, float64(r.LAN.Adverts))
	gauge(descQuestions, float64(r.LAN.Questions))
	s := r.counts
	count(descJXTA, s.Received, "received")
	count(descJXTA, s.Sent, "sent")
	count(descRefused, s.BadMessages, "unreadable")
	count(descRefused, s.Disconnects, "no_lease")
	for reason, n := range s.Refused {
		if reason != "unreadable" && reason != "no_lease" {
			count(descRefused, n, reason)
		}
	}
	for kind, n := range map[string]uint64{"discovery": s.Queries, "pipe": s.PipeQueries, "route": s.RouteQueries} {
		count(descQueries, n, kind)
	}
	count(descAnswers, s.Answers, "at_once")
	count(descAnswers, s.LateAnswers, "late")
	count(descPublished, s.Published)
	count(descPushed, s.Pushed)
	count(descQueries, s.Asked, "asked_afar")
	streams := map[string]int{"bidi": 0, "socket": 0}
	for _, st := range r.LAN.Streams {
		streams[st.Kind]++
	}
	for kind, n := range streams {
		gauge(descStreams, float64(n), kind)
	}
	count(descStreamsOpened, s.Streams)
	for reason, n := range s.StreamsEnded {
		count(descStreamsEnded, n, reason)
	}
	count(descStreamBytes, s.StreamOctetsOut, "out")
	count(descStreamBytes, s.StreamOctetsIn, "in")
	for event, n := range map[string]uint64{"acknowledgement": s.StreamAcks, "duplicate": s.StreamDuplicates, "repeat": s.StreamRepeats} {
		count(descStreamLocal, n, event)
	}
	for event, n := range map[string]uint64{"carried": s.SecureBlocks, "delivered": s.SecureDelivered, "duplicate": s.SecureDuplicates, "repeat": s.SecureRepeats, "crossed": s.SecureCrossed} {
		count(descSecure, n, event)
	}
	for event, n := range map[string]uint64{"heard": s.MulticastHeard, "copy": s.MulticastCopies, "sent": s.MulticastSent, "withheld": s.MulticastWithheld} {
		count(descMulticast, n, event)
	}
	count(descCalls, s.Calls)
	for fate, n := range map[string]uint64{
		"wire": s.WireIn, "carried": s.Carried, "carried_late": s.CarriedLate, "local_copy": s.LocalFanOut,
		"far": s.FarPayloads, "undeliverable": s.FarUndeliverable, "abandoned": s.Abandoned, "overrun": s.Overrun,
	} {
		count(descPayloads, n, fate)
	}
}

// peer tells of a sister gateway.
func peer(p gateway.PeerStatus, count counter, gauge gauger) {
	count(descLinkDatagrams, p.DatagramsSent, "sent", p.Name)
	count(descLinkDatagrams, p.DatagramsReceived, "received", p.Name)
	gauge(descLinkUp, truth(p.Link == "up"), p.Name)
	if t, err := time.Parse(time.RFC3339, p.LastHeard); err == nil {
		gauge(descLastHeard, float64(t.Unix()), p.Name)
	}
	for event, n := range map[string]uint64{
		"accepted": p.Accepted, "refused": p.Refused, "delivered": p.Delivered, "repeated": p.Repeated,
		"expired": p.Expired, "superseded": p.Superseded, "withdrawn": p.Withdrawn,
		"received": p.Received, "handed_over": p.HandedOver, "duplicate": p.Duplicates, "unreadable": p.Unreadable,
	} {
		count(descMessages, n, p.Name, event)
	}
	for state, n := range map[string]int{"waiting": p.Waiting, "under_way": p.UnderWay, "pending": p.Pending} {
		gauge(descCustody, float64(n), p.Name, state)
	}
	gauge(descCustodyBytes, float64(p.WaitingOctets), p.Name)
	for state, n := range map[string]int{"held": p.ItemsHeld, "under_way": p.ItemsUnderWay, "far": p.FarItems} {
		gauge(descPeerItems, float64(n), p.Name, state)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func itoa(id uint16) string { return strconv.Itoa(int(id)) }
