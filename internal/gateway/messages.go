package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/life"
	"aldis/internal/gateway/unicast"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// Messages is the gateway seen by who asks for messages of this site. It is for the goroutine of the gateway; what it returns
// shares nothing with that.
type Messages struct{ g *Gateway }

// MessagesOf a gateway.
func MessagesOf(g *Gateway) Messages { return Messages{g} }

// MessageRow is one message of this site as an operator sees it.
type MessageRow struct {
	ID         string         `json:"id"`
	Face       string         `json:"face"`
	From       string         `json:"from"`
	FromName   string         `json:"from_name,omitempty"`
	ToPipe     string         `json:"to_pipe"` // a pipe or topic, or an endpoint and which part of it
	PipeName   string         `json:"pipe_name,omitempty"`
	Label      string         `json:"label,omitempty"` // what it is about, as the rules' supersede finds it
	Precedence string         `json:"precedence"`
	Octets     int            `json:"octets"`              // as journalled
	Coded      int            `json:"coded_octets"`        // that went on the air for the first time towards one recipient
	Accepted   time.Time      `json:"accepted,omitzero"`   // absent: nobody knows any more
	Expires    time.Time      `json:"expires,omitzero"`    // absent: never
	State      string         `json:"state"`               // "waiting", "under_way" or "ended", of the recipient that is furthest back
	Held       bool           `json:"held,omitempty"`      // for one recipient at least
	Behind     Behind         `json:"waits_behind"`        // the most of all recipients for whom it waits
	Expected   time.Time      `json:"expected,omitzero"`   // when the last recipient has it; absent: nobody can say
	Recipients []RecipientRow `json:"recipients"`          // by id
	Life       []LifeRow      `json:"life,omitempty"`      // of one message alone
	LifeLost   int            `json:"life_lost,omitempty"` // events that had no room, after the first

	Number uint64 `json:"-"`
}

// RecipientRow is where a message stands with one site.
type RecipientRow struct {
	Site     string    `json:"site"`
	State    string    `json:"state"`
	Since    time.Time `json:"since,omitzero"`
	Detail   string    `json:"detail,omitempty"`
	Expected time.Time `json:"expected,omitzero"`

	ID     uint16    `json:"-"`
	SentAt time.Time `json:"-"` // when it was last on the air
	Long   bool      `json:"-"` // it goes in segments: sent at once, it takes its time
}

// LifeRow is something that happened to a message.
type LifeRow struct {
	At     time.Time `json:"at,omitzero"`
	What   string    `json:"what"`
	Site   string    `json:"site,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

// The states of a message, of that recipient that is furthest back.
const (
	StateWaiting  = "waiting"
	StateUnderWay = "under_way"
	StateEnded    = "ended"
)

// IDs are the messages that are known, in no order: those in custody and those whose life is kept. A greater one was accepted
// later.
func (m Messages) IDs() []uint64 {
	lives := &m.g.mail.Lives
	ids := lives.IDs(make([]uint64, 0, lives.Len()))
	if lives.Unkept() == 0 {
		return ids
	}
	for _, id := range m.g.mail.IDs(nil) { // the lives of some had no room
		if lives.Get(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Rows describes those of the messages that are still known. Behind and Expected are not set: see Queue.
func (m Messages) Rows(ids []uint64) []MessageRow {
	rows := make([]MessageRow, 0, len(ids))
	for _, id := range ids {
		if row, ok := m.row(id); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// Row describes a message with its life; false: it is not known.
func (m Messages) Row(id uint64) (MessageRow, bool) {
	row, ok := m.row(id)
	if l := m.g.mail.Lives.Get(id); ok && l != nil {
		row.LifeLost = l.Lost
		for _, e := range l.Events {
			row.Life = append(row.Life, LifeRow{At: e.At, What: e.What, Site: m.site(e.Peer), Detail: lifeText(e)})
		}
	}
	return row, ok
}

// lifeText says in words what an event has beside its kind.
func lifeText(e life.Event) string {
	text := e.Detail
	if e.What == life.OnTheAir || e.What == life.Repeated {
		text = fmt.Sprintf("%d octets", e.Octets)
		if e.N > 1 {
			text += fmt.Sprintf(" in %d datagrams, the last at %s", e.N, e.Until.UTC().Format(time.RFC3339))
		}
		switch {
		case e.Company == 1:
			text += ", with 1 other message"
		case e.Company > 1:
			text += fmt.Sprintf(", with %d other messages", e.Company)
		}
	}
	return text
}

// site is the name of a site; "" for all.
func (m Messages) site(id uint16) string {
	if p := m.g.byID[id]; p != nil {
		return p.Name
	}
	if p := m.g.away[id]; p != nil {
		return p.Name
	}
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("node-%d", id)
}

// Sites are the peers by name.
func (m Messages) Sites() map[string]uint16 {
	sites := map[string]uint16{}
	for _, p := range m.g.peers {
		sites[p.Name] = p.ID
	}
	return sites
}

func faceName(f site.Face) string {
	switch f {
	case site.JXTA:
		return "jxta"
	case site.Corpora:
		return "corpora"
	}
	return fmt.Sprintf("face-%d", f)
}

func (m Messages) row(id uint64) (row MessageRow, ok bool) {
	l, held := m.g.mail.Lives.Get(id), m.g.mail.Get(id)
	if held != nil && held.Content.Payload == nil || l == nil && (held == nil || held.Ended()) {
		return row, false
	}
	if l == nil { // there was no room for its life
		p := held.Content.Payload
		l = &life.Life{ID: id, Face: p.Face, From: p.From, To: held.To(), Label: p.About(), Precedence: p.Precedence,
			Octets: len(held.Full), Accepted: held.Accepted, Expires: p.Expires}
		for _, peer := range held.Recipients() {
			l.Fates = append(l.Fates, life.Fate{Peer: peer, State: held.For(peer).Stands()})
		}
	}
	row = MessageRow{ID: life.Name(id), Number: id, Face: faceName(l.Face), From: l.From, ToPipe: l.To, Label: l.Label,
		Precedence: l.Precedence.String(), Octets: l.Octets, Accepted: l.Accepted, Expires: l.Expires, State: StateEnded}
	for _, f := range l.Fates {
		row.Coded = max(row.Coded, f.Sent)
		r := RecipientRow{ID: f.Peer, Site: m.site(f.Peer), State: string(f.State), Since: f.Since, Detail: f.Detail, SentAt: f.SentAt}
		switch {
		case f.State == life.Waiting, f.State == life.OnHold:
			row.State, row.Held = StateWaiting, row.Held || f.State == life.OnHold
		case f.State == life.UnderWay && row.State == StateEnded:
			row.State = StateUnderWay
		}
		if held != nil && !f.State.Final() {
			m.describe(held.For(f.Peer), &r)
		}
		row.Recipients = append(row.Recipients, r)
	}
	slices.SortFunc(row.Recipients, func(a, b RecipientRow) int { return cmp.Compare(a.ID, b.ID) })
	return row, true
}

// describe says why a message that has not ended for a recipient is where it is.
func (m Messages) describe(e *mail.Entry, r *RecipientRow) {
	if e == nil {
		return
	}
	r.Long = e.At.Number != 0 && e.Lane != frame.Direct
	switch p := m.g.byID[r.ID]; {
	case p == nil:
		r.Detail = "no [[link.peer]] has this id now"
	case e.OnHold:
		r.Detail = "held by an order"
	case m.stands(p) != "":
		r.Detail = m.stands(p)
	case r.State == string(life.UnderWay):
		r.Detail = "no receipt yet"
		if there, all := unicast.Progress(p.bearer.lines, e); all > 0 {
			r.Detail = fmt.Sprintf("%d of %d octets are there", there, all)
		}
	default:
		r.Detail = "others go first"
	}
}

// ExpectedUnderWay is when a message that is under way will be there: when its last datagram has had its time, or if that is
// over and nothing was heard, a round trip from now. A long message goes at the queue's pace.
func (q *Queue) ExpectedUnderWay(r RecipientRow, octets int) time.Time {
	switch {
	case q.Why != "" || q.rate <= 0:
		return time.Time{}
	case r.Long || r.SentAt.IsZero():
		return there(q.now, min(octets, q.underWay), q.rate, q.delay)
	}
	at := r.SentAt.Add(q.delay)
	if at.Before(q.now) {
		at = q.now.Add(2 * q.delay)
	}
	return at
}
