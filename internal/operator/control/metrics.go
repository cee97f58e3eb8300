package control

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/api"
	"aldis/internal/site"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("aldis_"+name, help, labels, nil)
}

var (
	descInfo        = desc("info", "Always 1; the labels say what runs.", "version", "id", "name", "profile", "end")
	descUp          = desc("loop_answers", "1 when the loop gave its status in time for this scrape; 0 when its figures are missing.")
	descIncarnation = desc("incarnation", "Incarnation number of this start, part of the link's keys.")

	descLink = desc("link_bytes_total",
		"Airtime ledger: IP octets on the link by cause: payload, advertisement, state, ack, repair, header, key, link probe.",
		"direction", "peer", "kind")
	descLinkOn        = desc("bearer_bytes_total", "The airtime ledger by bearer, where there are several.", "direction", "peer", "kind", "bearer")
	descAdapter       = desc("adapter_bytes_total", "IP octets on all links by protocol adapter (jxta, tak, xmpp, corpus, other), of messages sealed for relays (relay), and of the gateway itself (gateway). Received octets of a message count when it has been read.", "direction", "adapter", "kind")
	descBearer        = desc("bearer_up", "Whether messages to a peer may take a bearer, where there are several: it answers, and nobody is silent there.", "peer", "bearer")
	descMonth         = desc("month_link_bytes", "IP octets of all datagrams in this calendar month (UTC), earlier runs included; peer is empty where the address is no peer's.", "direction", "peer")
	descMonthOn       = desc("month_bearer_bytes", "The same by bearer, where there are several.", "direction", "bearer")
	descBearerSeconds = desc("bearer_seconds", "Seconds that a routine message of 200 octets to a peer takes on a bearer now, by forecast, where there are several.", "peer", "bearer")
	descHops          = desc("bearer_hops", "Gateways on the way to a peer on a bearer, where there are several: 1 is a direct way.", "peer", "bearer")
	descDirect        = desc("direct_sessions", "Direct sessions of a bearer by state: open, opening, greylisted (could not be opened).", "bearer", "state")
	descDirectSpared  = desc("direct_spared_bytes", "Octets of messages that the open sessions of a bearer have carried in this run, and no relay once more.", "bearer")
	descLinkDatagrams = desc("link_datagrams_total", "Authentic datagrams exchanged with a peer.", "direction", "peer")
	descLinkDropped   = desc("link_dropped_total", "Dropped datagrams and packets from the link.", "reason")
	descLinkUp        = desc("link_up", "1 when the peer was heard in this run and answers; 0 also while it is silent by order: alert on link_state.", "peer")
	descLastHeard     = desc("link_last_heard_timestamp_seconds", "Time of the peer's last authentic datagram.", "peer")

	descMessages = desc("messages_total",
		"Messages. To a peer: accepted, refused, delivered (durable at its gateway), undeliverable (of those, not handed to every receiver there), expired, superseded, cancelled (for a more urgent one or by order), repeated. From it: received, handed_over (to all local receivers), undeliverable_here, duplicate, unreadable.",
		"peer", "event")
	descCustody      = desc("custody_messages", "Messages in custody: waiting and under_way to the peer, pending for local peers.", "peer", "state")
	descCustodyBytes = desc("custody_bytes", "Octets of the messages waiting and under way to the peer.", "peer")

	descItems     = desc("replica_items", "State items (peers, advertisements, pipes) of this site.")
	descPeerItems = desc("replica_peer_items", "State items: held (of this site, the peer has it), under_way (of this site, on its way to the peer), far (of the peer's site, here).", "peer", "state")

	descFilter = desc("filter_total",
		"Items and messages by operators' rule (its label, or its line in the configuration): fits (the rule matched); waited or dropped (the rule's rate was exceeded).",
		"rule", "action", "event")

	descNORM         = desc("norm_up", "1 while the libnorm process works.")
	descNORMFailures = desc("norm_failures_total", "Replacements of the libnorm process.")

	descNORMCell     = desc("norm_cell", "1 when the libnorm process has its whole sandbox; absent before its first start.")
	descProtection   = desc("protection", "1 for an active protection of the machine against an attacker in the gateway's process, 0 for a missing one.", "name")
	descNORMStarts   = desc("norm_starts_total", "Starts of the libnorm process.")
	descNORMStrange  = desc("norm_strange_packets_total", "Packets from other programs dropped at libnorm's loopback sockets.")
	descNORMCommands = desc("norm_commands_dropped_total", "Commands for the libnorm process while it was down.")

	descRadioDatagrams = desc("radio_datagrams_total", "UDP datagrams of the link's socket, authentic or not.", "direction")
	descRadioBytes     = desc("radio_bytes_total", "UDP payload octets of the link's socket, authentic or not.", "direction")
	descRadioDropped   = desc("radio_dropped_total", "Datagrams lost here: received while the inbox was full, or refused by the kernel when sent.", "direction")
)

// collector turns a Status into metrics at each scrape.
type collector struct{ src Source }

// Describe sends the descriptions of the fixed metrics; Collect sends the others.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descInfo, descUp, descIncarnation, descAdapter, descBearer, descLinkOn, descLink, descMonth, descMonthOn, descBearerSeconds, descHops, descDirect, descDirectSpared, descLinkDatagrams, descLinkDropped, descLinkUp, descLastHeard, descMessages,
		descCustody, descCustodyBytes, descItems, descPeerItems, descNORM, descNORMFailures,
		descNORMCell, descProtection, descNORMStarts, descNORMStrange, descNORMCommands, descRadioDatagrams, descRadioBytes, descRadioDropped,
		descFilter, descLinkState, descLinkSince, descLinkRate, descDiffers, descPace, descSilence, descSilenceEnd, descQueue, descQueueBytes, descLate, descQueueOldest, descDelay,
	} {
		ch <- d
	}
}

// Collect takes one Report and sends its metrics.
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
	if child.Cell != nil {
		gauge(descNORMCell, truth(child.Cell.Whole))
	}
	for _, p := range r.Protections {
		gauge(descProtection, truth(p.Active), p.Name)
	}
	gauge(descUp, truth(err == nil))
	if err != nil {
		return
	}
	gauge(descInfo, 1, r.Version, itoa(r.ID), r.Name, r.Profile, r.End)
	gauge(descIncarnation, float64(r.IncarnationNumber))
	gauge(descItems, float64(r.Items))
	gauge(descNORM, truth(r.NORM.Up))
	count(descNORMFailures, uint64(r.NORM.Failures))
	for reason, n := range r.Dropped {
		count(descLinkDropped, n, reason)
	}
	ledger(r.Status, count)
	months(r.Status, gauge)
	sessions(r.Status, gauge)
	named := map[string]bool{}
	for _, f := range r.Filters {
		line := "line " + strconv.Itoa(f.Line)
		rule := cmp.Or(f.Label, line)
		if named[rule] { // the operator chooses labels, and may use one twice
			rule += ", " + line
		}
		named[rule] = true
		count(descFilter, f.Fits, rule, f.Action, "fits")
		count(descFilter, f.Waited, rule, f.Action, "waited")
		count(descFilter, f.Dropped, rule, f.Action, "dropped")
	}
	names := api.Names(r.Peers)
	for i, p := range r.Peers {
		p.Name = names[i]
		peer(p, count, gauge)
		link(ch, p, gauge)
	}
	ends(r.Status, gauge)
	for _, m := range r.metrics {
		adapter(ch, m)
	}
}

// ledger sends the airtime ledger, by bearer too if there are several. Sites of one name have one account.
func ledger(s api.Status, count counter) {
	all, on := map[api.LedgerRow]uint64{}, map[api.LedgerRow]uint64{}
	for _, row := range s.Ledger {
		octets := row.Octets
		row.Octets = 0
		on[row] += octets
		row.Bearer = ""
		all[row] += octets
	}
	for row, octets := range all {
		count(descLink, octets, row.Direction, row.Peer, row.Kind)
	}
	for _, row := range s.Adapters {
		if row.Adapter != api.Unread { // it can become less
			count(descAdapter, row.Octets, row.Direction, row.Adapter, row.Kind)
		}
	}
	for row, octets := range on {
		if len(s.Bearers) > 0 {
			count(descLinkOn, octets, row.Direction, row.Peer, row.Kind, row.Bearer)
		}
	}
}

// months sends the traffic of this month, of each bearer if there are several. Sites of one name have one account.
func months(s api.Status, gauge gauger) {
	sites := map[string]api.BillRow{}
	if s.Month != nil {
		for _, row := range s.Month.Sites {
			sum := sites[row.Site]
			sum.SentOctets, sum.ReceivedOctets = sum.SentOctets+row.SentOctets, sum.ReceivedOctets+row.ReceivedOctets
			sites[row.Site] = sum
		}
	}
	for site, sum := range sites {
		gauge(descMonth, float64(sum.SentOctets), "sent", site)
		gauge(descMonth, float64(sum.ReceivedOctets), "received", site)
	}
	for _, b := range s.Bearers {
		if b.Month != nil && len(s.Bearers) > 1 {
			gauge(descMonthOn, float64(b.Month.Total.SentOctets), "sent", b.Name)
			gauge(descMonthOn, float64(b.Month.Total.ReceivedOctets), "received", b.Name)
		}
	}
}

// sessions sends the direct sessions of each bearer that takes some.
func sessions(s api.Status, gauge gauger) {
	for _, b := range s.Bearers {
		if d := b.Direct; d != nil {
			name, spared := cmp.Or(b.Name, b.Profile), int64(0)
			for _, one := range d.Sessions {
				spared += one.Spared
			}
			gauge(descDirect, float64(len(d.Sessions)), name, "open")
			gauge(descDirect, float64(len(d.Opening)), name, "opening")
			gauge(descDirect, float64(len(d.Greylist)), name, "greylisted")
			gauge(descDirectSpared, float64(spared), name)
		}
	}
}

type (
	counter func(d *prometheus.Desc, v uint64, labels ...string)
	gauger  func(d *prometheus.Desc, v float64, labels ...string)
)

// adapter sends a metric of an adapter, which brings its own description.
func adapter(ch chan<- prometheus.Metric, m site.Metric) {
	kind := prometheus.CounterValue
	if m.Gauge {
		kind = prometheus.GaugeValue
	}
	names, values := make([]string, len(m.Labels)), make([]string, len(m.Labels))
	for i, l := range m.Labels {
		names[i], values[i] = l.Name, l.Value
	}
	ch <- prometheus.MustNewConstMetric(desc(m.Name, m.Help, names...), kind, m.Value, values...)
}

// peer sends the metrics of a sister gateway.
func peer(p api.PeerStatus, count counter, gauge gauger) {
	count(descLinkDatagrams, p.DatagramsSent, "sent", p.Name)
	count(descLinkDatagrams, p.DatagramsReceived, "received", p.Name)
	gauge(descLinkUp, truth(p.Link == "up"), p.Name)
	for _, b := range p.Bearers {
		gauge(descBearer, truth(b.Up), p.Name, b.Bearer)
		gauge(descHops, float64(b.Hops), p.Name, b.Bearer)
		if b.Up {
			gauge(descBearerSeconds, b.ShortS, p.Name, b.Bearer)
		}
	}
	if t, err := time.Parse(time.RFC3339, p.LastHeard); err == nil {
		gauge(descLastHeard, float64(t.Unix()), p.Name)
	}
	for event, n := range map[string]uint64{
		"accepted": p.Accepted, "refused": p.Refused, "delivered": p.Delivered + p.Revoked, "undeliverable": p.Undeliverable, "repeated": p.Repeated,
		"expired": p.Expired, "superseded": p.Superseded, "cancelled": p.Cancelled,
		"received": p.Received, "handed_over": p.HandedOver, "undeliverable_here": p.UndeliverableHere, "duplicate": p.Duplicates, "unreadable": p.Unreadable,
	} {
		count(descMessages, n, p.Name, event)
	}
	waiting, underWay, octets := p.Messages()
	for state, n := range map[string]int{"waiting": waiting, "under_way": underWay, "pending": p.Pending} {
		gauge(descCustody, float64(n), p.Name, state)
	}
	gauge(descCustodyBytes, float64(octets), p.Name)
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
