package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/life"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// Messages is the gateway seen by who asks for messages of this site. It is for the goroutine of the gateway; what it returns
// shares nothing with that.
type Messages struct{ g *Gateway }

// MessagesOf a gateway.
func MessagesOf(g *Gateway) Messages { return Messages{g} }

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
func (m Messages) Rows(ids []uint64) []api.MessageRow {
	rows := make([]api.MessageRow, 0, len(ids))
	for _, id := range ids {
		if row, ok := m.row(id); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// Row describes a message with its life; false: it is not known.
func (m Messages) Row(id uint64) (api.MessageRow, bool) {
	row, ok := m.row(id)
	if l := m.g.mail.Lives.Get(id); ok && l != nil {
		row.LifeLost = l.Lost
		for _, e := range l.Events {
			row.Life = append(row.Life, api.LifeRow{At: e.At, What: e.What, Site: m.site(e.Peer), Detail: lifeText(e)})
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

func (m Messages) row(id uint64) (row api.MessageRow, ok bool) {
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
	row = api.MessageRow{ID: life.Name(id), Number: id, Face: faceName(l.Face), From: l.From, ToPipe: l.To, Label: l.Label,
		Precedence: l.Precedence.String(), Octets: l.Octets, Accepted: l.Accepted, Expires: l.Expires, State: api.StateEnded}
	for _, f := range l.Fates {
		row.Coded = max(row.Coded, f.Sent)
		r := api.RecipientRow{ID: f.Peer, Site: m.site(f.Peer), State: string(f.State), Since: f.Since, Detail: f.Detail, SentAt: f.SentAt}
		switch {
		case f.State == life.Waiting, f.State == life.OnHold:
			row.State, row.Held = api.StateWaiting, row.Held || f.State == life.OnHold
		case f.State == life.UnderWay && row.State == api.StateEnded:
			row.State = api.StateUnderWay
		}
		if held != nil && !f.State.Final() {
			m.describe(held.For(f.Peer), &r)
		}
		row.Recipients = append(row.Recipients, r)
	}
	slices.SortFunc(row.Recipients, func(a, b api.RecipientRow) int { return cmp.Compare(a.ID, b.ID) })
	return row, true
}

// describe says why a message that has not ended for a recipient is where it is.
func (m Messages) describe(e *mail.Entry, r *api.RecipientRow) {
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
		if there, all := p.Link.Progress(e); all > 0 {
			r.Detail = fmt.Sprintf("%d of %d octets are there", there, all)
		}
	default:
		r.Detail = "others go first"
	}
}

// ExpectedUnderWay is when a message that is under way will be there: when its last datagram has had its time, or if that is
// over and nothing was heard, a round trip from now. A long message goes at the queue's pace.
func (q *Queue) ExpectedUnderWay(r api.RecipientRow, octets int) time.Time {
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
