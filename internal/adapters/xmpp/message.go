package xmpp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// topicOutcome is the topic of the outcomes of messages; its flow is one of those that every network knows (link/envelope).
const topicOutcome = "outcome"

// heard takes a stanza of the server. A stanza for one component may come on the connection of another: ejabberd gives each
// connection of a listener all of its domains, unless it has global_routes: false.
func (f *Adapter) heard(now time.Time, ev Heard) {
	c, e := f.connected(ev.Conn), ev.Element
	from, ok := parseJID(e.Get("from"))
	to, ok2 := parseJID(e.Get("to"))
	if other := f.componentOf(to.domain); !ok || !ok2 || other == nil {
		f.refuse(now, c, &e, "address", "jid-malformed", "")
		return
	} else if other.conn != 0 {
		c = other
	}
	kind := e.Get("type")
	if event := e.Kid(nsEvent, "event"); event != nil && e.Name == "message" && from.resource == "" && (from.domain == f.cfg.PubSub || from.domain == f.cfg.Domain) {
		for i := range event.Kids {
			f.nodes.event(from, &event.Kids[i], false)
		}
		return
	}
	if e.Name == "iq" && kind != "get" && kind != "set" && (from.domain == f.cfg.PubSub || from.domain == f.cfg.Domain) {
		f.nodes.answered(c, &e, from, to)
	}
	if from.domain == f.cfg.PubSub && from.domain != "" {
		return
	}
	if from.domain == f.cfg.Rooms && !c.rooms && !c.nodes && from.domain != "" {
		f.rooms.fromHome(now, c, &e, from, to)
		return
	}
	if from.domain != f.cfg.Domain {
		f.refuse(now, c, &e, "foreign", "policy-violation", "only users of "+f.cfg.Domain+" reach "+c.domain)
		return
	}
	if e.Name == "iq" && (kind == "result" || kind == "error") {
		if c.answered(e.Get("id")); c.rooms && kind == "error" {
			f.rooms.absent(now, c, &e, from, to)
		}
		return
	}
	state := e.Name == "presence" && !slices.Contains(code.Subscriptions, kind) // presence has a bound of its own
	if b := f.rates.Of(now, from.bare()); !state && (b == nil || !b.Allow(now, rate, burst)) {
		f.refuse(now, c, &e, "rate", "resource-constraint", fmt.Sprintf("more than %d stanzas a second", rate))
		return
	}
	if c.upload {
		f.uploads.heard(c, &e, to)
		return
	}
	if c.rooms && (e.Name != "iq" || to.resource != "") {
		f.rooms.heard(now, c, &e, from, to)
		return
	}
	if f.nodes.heard(c, &e, from, to) {
		return
	}
	switch e.Name {
	case "message":
		f.message(now, c, &e, from, to)
	case "presence":
		f.nodes.client(now, c, &e, from, to)
		f.presence.heard(now, c, &e, from, to)
	case "iq":
		f.query(c, &e, to)
	default:
		f.trouble.Count("refused unknown")
	}
}

// message takes a message of a client here.
func (f *Adapter) message(now time.Time, c *component, e *stanza.Element, from, to jid) {
	n := f.numbers[c.site.ID]
	if e.Get("type") == "error" { // the server, or the client, does not take a message of ours
		if t := n.of(func(t *theirs) bool { return t.id == e.Get("id") && t.to == from.local }); t != nil {
			f.trouble.Count("bounced")
			f.tell(now, c.site.ID, code.Outcome{Number: t.number, Became: code.Failed, Reason: conditionOf(e)})
		}
		return
	}
	s := saidIn(e)
	f.trouble.Of["stripped"] += s.stripped
	if s.Kind == code.Group || to.local == "" {
		f.refuse(now, c, e, "nobody", "service-unavailable", "")
		return
	}
	for i, o := range s.became {
		if t := n.of(func(t *theirs) bool { return t.id == s.ended[i] && t.to == from.local && t.from == to.local }); t != nil {
			o.Number = t.number
			f.tell(now, c.site.ID, o)
		}
	}
	if s.empty() {
		f.trouble.Count("kept_local")
		return
	}
	if s.About != code.Nothing {
		var known bool
		if s.Ref, known = n.ref(s.ref); !known && s.Body != "" {
			s.About = code.Nothing
			s.Drop(code.ReplyTo, code.Fallback)
		} else if !known {
			f.refuse(now, c, e, "reference", "item-not-found", "the message that this is about is not known any more")
			return
		}
	}
	if why := f.uploads.fault(&s.Message); why != "" {
		f.refuse(now, c, e, "file", "policy-violation", why)
		return
	}
	s.Message = f.uploads.offer(s.Message)
	data := s.Append(nil)
	if len(data) > code.MaxOctets {
		f.refuse(now, c, e, "too_long", "policy-violation", fmt.Sprintf("messages of more than %d octets do not cross", code.MaxOctets))
		return
	}
	about, _ := SubjectOf(e)
	about.Site = c.site.ID
	mark, keeps := f.judge(now, about)
	if keeps == nil {
		keeps = f.uploads.keeps(&s.Message, about.From, about.To, about.Site)
	}
	if keeps != nil {
		f.refuse(now, c, e, "rule", "not-allowed", "rule "+keeps.String()+" keeps the message here")
		return
	}
	o := n.add(ours{id: e.Get("id"), from: from, to: to.local, kind: s.Kind})
	s.Number = o.number()
	f.trouble.Count("messages")
	f.out.Carry = append(f.out.Carry, site.Carry{Sites: []uint16{c.site.ID}, Message: site.Message{From: from.local, To: to.local,
		Parts: []site.Part{{Data: s.Append(nil)}}, Mark: mark, Token: o.token(c.site.ID), Lasting: true}})
}

// gather is how long an outcome waits for others to the same site: in a message with several, each costs a third.
const gather = 500 * time.Millisecond

// outcomes are the outcomes of a site's messages that are still to be sent to it.
type outcomes struct {
	data []byte
	at   time.Time // when they go; zero: as soon as possible
}

// tell tells a site what became of its message. An outcome that waits for others survives a restart.
func (f *Adapter) tell(now time.Time, to uint16, o code.Outcome) {
	f.trouble.Count("outcomes")
	t := f.told[to]
	if t == nil {
		t = &outcomes{at: now.Add(gather)}
		f.told[to] = t
	}
	t.data = o.Append(t.data)
	f.remember(f.numbers[to].key(keyTold, 0), t.data)
}

// turnOutcomes sends outcomes that have waited long enough.
func (f *Adapter) turnOutcomes(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(f.told)) {
		if t := f.told[id]; !now.Before(t.at) {
			delete(f.told, id)
			f.remember(f.numbers[id].key(keyTold, 0), nil)
			f.out.Carry = append(f.out.Carry, site.Carry{Sites: []uint16{id}, Message: site.Message{Published: true, Topic: topicOutcome, Parts: []site.Part{{Data: t.data}}}})
		}
	}
}

// reasons are the conditions and texts for the endings of messages that never reached the far site.
var reasons = map[site.Ending][2]string{
	site.Expired:   {"remote-server-timeout", "the message expired before the link could carry it"},
	site.Refused:   {"resource-constraint", "too much waits for the link to take it"},
	site.Forbidden: {"not-allowed", "a rule of this site keeps the message here"},
	site.Cancelled: {"recipient-unavailable", "the message was given up for more urgent ones, or by an operator"},
	site.Replaced:  {"conflict", "a later message has taken its place"},
}

// owed is an error that is still to be sent to the sender of a message.
type owed struct {
	site   uint16
	count  uint32 // of the message
	ending byte
}

// fate tells the sender of a message that the message did not reach the far site.
func (f *Adapter) fate(now time.Time, ev site.Fate) {
	id := uint16(ev.Token >> 32)
	if ev.Token&tokenOfRoom != 0 {
		id = 0
	}
	if n := f.numbers[id]; n != nil && ev.Failed() {
		for _, count := range n.with(uint32(ev.Token)) {
			if o := n.find(func(o *ours) bool { return o.count == count }); o.told { // told because of another site
				continue
			} else if o.told = true; id == 0 {
				n.keep(o)
			}
			f.owe(owed{id, count, byte(ev.Ending)})
		}
	}
}

func (f *Adapter) owe(o owed) {
	n, c := f.numbers[o.site], f.componentAt(o.site)
	if n == nil {
		return
	}
	key := n.key(keyError, o.count)
	if o.site == 0 {
		c = f.rooms.serviceOf(n.find(func(m *ours) bool { return m.count == o.count }))
	}
	m, why := n.find(func(m *ours) bool { return m.count == o.count }), reasons[site.Ending(o.ending)]
	if m == nil || c == nil || why[0] == "" {
		f.remember(key, nil)
		return
	}
	f.trouble.Count("failed")
	f.remember(key, []byte{o.ending})
	if o.site == 0 {
		why[1] += " to each site that is in the room; others may have it"
	}
	f.hold(c, failed(c, m, why[0], why[1]), held{memory: key})
}

// failed is the error stanza for a message of ours.
func failed(c *component, m *ours, condition, text string) stanza.Element {
	to := m.to
	if c.rooms {
		to, _, _ = strings.Cut(strings.TrimPrefix(to, roomTopic), atHome)
	}
	return stanza.New(ns, "message", "from", jid{local: to, domain: c.domain}.String(), "to", m.from.String(), "id", m.id, "type", "error").
		With(stanza.Failure(condition, text))
}

// copies holds one stanza for many clients, and makes its text only once.
func (f *Adapter) copies(c *component, e stanza.Element) func(to string, h held) bool {
	text := e.Append(nil, stanza.Component)
	return func(to string, h held) bool {
		h.to = to
		if c.own != nil {
			return f.hold(c, e.Set("to", to), h)
		}
		h.xml = stanza.Addressed(text, to)
		return f.hold(c, stanza.Element{}, h)
	}
}

// hold is component.hold; if too many wait, the stanza is counted and lost.
func (f *Adapter) hold(c *component, e stanza.Element, h held) bool {
	ok := c.hold(e, h)
	if !ok {
		f.trouble.Count("no_room")
	}
	return ok
}
