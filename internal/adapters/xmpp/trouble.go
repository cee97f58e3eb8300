package xmpp

import (
	"maps"
	"time"

	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// refuse tells a client that its stanza was refused, counts the refusal, and logs it: each reason once a minute.
func (f *Adapter) refuse(now time.Time, c *component, e *stanza.Element, reason, condition, text string) {
	f.trouble.Count("refused " + reason)
	if kind := e.Get("type"); (e.Name == "message" || e.Name == "iq") && kind != "error" && kind != "result" {
		c.write(stanza.Refusal(e, condition, text))
	}
	if f.trouble.May(now, "refused "+reason) {
		f.note("warn", "an XMPP stanza was refused", "reason", reason, "from", short(e.Get("from")), "to", short(e.Get("to")),
			"refused_so_far", f.trouble.Of["refused "+reason])
	}
}

// skipped takes in that a stanza broke a bound.
func (f *Adapter) skipped(now time.Time, c *component, ev Skipped) {
	f.refuse(now, c, &ev.Element, string(ev.Fault.Reason), "policy-violation", ev.Fault.Text)
}

// short cuts a text of a stranger for the log.
func short(text string) string { return text[:min(len(text), 128)] }

// farTrouble ends a message of a far site that could not be read: its gateway has another version, or lies.
func (f *Adapter) farTrouble(now time.Time, m site.FarMessage, err error) {
	f.trouble.Count("far_unreadable")
	f.out.Undelivered = append(f.out.Undelivered, site.Undelivered{Token: m.Token, Why: site.Unfit})
	if f.trouble.May(now, "far unreadable") {
		f.note("warn", "an XMPP message of a far site could not be read", "site", m.Site, "error", err)
	}
}

// Counts are the counters since the start of the process.
func (f *Adapter) Counts() map[string]int { return maps.Clone(f.trouble.Of) }

// Metrics are the counts and the present sizes of the tables.
func (f *Adapter) Metrics() []site.Metric {
	connected, waiting := 0, 0
	for _, c := range f.components {
		if c.conn != 0 {
			connected++
		}
		waiting += len(c.waiting) + len(c.given)
	}
	clients := 0
	if f.own != nil {
		clients = f.own.Sessions()
		waiting += f.own.Stored()
	}
	return append([]site.Metric{
		site.Gauge("xmpp_clients", "Clients that are logged in to the gateway as their XMPP server.", clients),
		site.Gauge("xmpp_components", "Far domains for which the LAN's XMPP server is connected.", connected),
		site.Gauge("xmpp_waiting", "Stanzas that the LAN's XMPP server, or a client of the gateway's own, has not confirmed.", waiting),
	}, site.Counters("xmpp_stanzas_total", "XMPP stanzas by what happened to them.", "what", f.Counts())...)
}

// DescribeItem returns the properties that rules of [[filter]] can match.
func (f *Adapter) DescribeItem(it site.Item) site.Subject {
	s := site.Subject{Type: "other", Owner: it.Owner, Octets: len(it.Doc)}
	if it.Kind != site.Endpoint {
		s.Scope, s.Owner = cutItem(it.Owner)
	}
	return s
}

// DescribeMessage returns the properties that rules of [[filter]] and [[message]] can match: local parts of the sender and of
// the receiver.
func (f *Adapter) DescribeMessage(m *site.Message) site.Subject {
	s := site.Subject{Type: "message", Owner: m.From, Topic: m.Topic}
	if !m.Published {
		s.Topic = m.To
	}
	for _, p := range m.Parts {
		s.Octets += len(p.Data)
	}
	return s
}
