package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// Messages answers what operators ask about messages of this site. It is for one look, in the goroutine of the gateway; its answers
// share nothing with the gateway.
type Messages struct {
	store *mail.Store
	list  []Site
	name  func(uint16) string
}

// Look makes a Messages for the sites as they are now. name gives the name of any site of which a message may tell; "" for all.
func Look(store *mail.Store, sites []Site, name func(uint16) string) Messages {
	return Messages{store, sites, name}
}

// site is the one with this id; nil: there is none now.
func (m Messages) site(id uint16) *Site {
	i, ok := slices.BinarySearchFunc(m.list, id, func(s Site, id uint16) int { return cmp.Compare(s.ID, id) })
	if !ok {
		return nil
	}
	return &m.list[i]
}

// Queue copies the messages that wait for a site; empty: there is no site with this id.
func (m Messages) Queue(now time.Time, id uint16) (q Queue) {
	if s := m.site(id); s != nil {
		q = s.Queue(now)
	}
	return q
}

// IDs are the messages that are known, in no order: those in custody and those whose life is kept. A greater one was accepted
// later.
func (m Messages) IDs() []uint64 {
	lives := &m.store.Lives
	ids := lives.IDs(make([]uint64, 0, lives.Len()))
	if lives.Unkept() == 0 {
		return ids
	}
	for _, id := range m.store.IDs(nil) { // the lives of some had no room
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
	if l := m.store.Lives.Get(id); ok && l != nil {
		row.LifeLost = l.Lost
		for _, e := range l.Events {
			row.Life = append(row.Life, api.LifeRow{At: e.At, What: e.What, Site: m.name(e.Peer), Detail: lifeText(e), Link: e.Link, Rule: e.Rule})
		}
	}
	return row, ok
}

// lifeText says in words what an event has besides its kind.
func lifeText(e history.Event) string {
	text := e.Detail
	if e.What == history.Chosen {
		text = e.Link + ": " + text
		if e.Rule != "" {
			text += "; by rule " + e.Rule
		}
	}
	if e.What == history.OnTheAir || e.What == history.Repeated {
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

// Sites are the peers by name.
func (m Messages) Sites() map[string]uint16 {
	sites := map[string]uint16{}
	for _, s := range m.list {
		sites[s.Name] = s.ID
	}
	return sites
}

func adapterName(f site.Adapter) string {
	switch f {
	case site.JXTA:
		return "jxta"
	case site.TAK:
		return "tak"
	case site.XMPP:
		return "xmpp"
	case site.Corpora:
		return "corpora"
	}
	return fmt.Sprintf("face-%d", f)
}

func (m Messages) row(id uint64) (row api.MessageRow, ok bool) {
	l, held := m.store.Lives.Get(id), m.store.Get(id)
	if held != nil && held.Content.Payload == nil || l == nil && (held == nil || held.Ended()) {
		return row, false
	}
	if l == nil { // there was no room for its life
		p := held.Content.Payload
		l = &history.Life{ID: id, Adapter: p.Adapter, From: p.From, To: held.To(), Label: p.About(), Precedence: p.Precedence,
			Octets: len(held.Full), Accepted: held.Accepted, Expires: p.Expires}
		for _, peer := range held.Recipients() {
			l.Fates = append(l.Fates, history.Fate{Peer: peer, State: held.For(peer).Stands()})
		}
	}
	row = api.MessageRow{ID: history.Name(id), Number: id, Adapter: adapterName(l.Adapter), From: l.From, ToPipe: l.To, Label: l.Label,
		Precedence: l.Precedence.String(), Octets: l.Octets, Accepted: l.Accepted, Expires: l.Expires, State: api.StateEnded}
	for _, f := range l.Fates {
		row.Coded = max(row.Coded, f.Sent)
		r := api.RecipientRow{ID: f.Peer, Site: m.name(f.Peer), State: string(f.State), Since: f.Since, Detail: f.Detail, SentAt: f.SentAt}
		switch {
		case f.State == history.Waiting, f.State == history.OnHold:
			row.State, row.Held = api.StateWaiting, row.Held || f.State == history.OnHold
		case f.State == history.UnderWay && row.State == api.StateEnded:
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
	r.Long = e.At.Number != 0 && e.Queue != frame.Direct
	if r.Bearer = e.Peer.Bearer.Name; e.Way != nil {
		r.Bearer = e.Way.Bearer.Name
	}
	switch s := m.site(r.ID); {
	case s == nil:
		r.Detail = "no [[link.peer]] has this id now"
	case e.OnHold:
		r.Detail = "held by an order"
	case e.Way != nil:
		r.Detail = "it waits for its turn on that link"
	case e.Behind && !s.Spent:
		r.Detail = "an earlier message of its source is on another link"
	case s.why() != "":
		r.Detail = s.why()
	case r.State == string(history.UnderWay):
		r.Detail = "no acknowledgement yet"
		if there, all := s.Link.Progress(e); all > 0 {
			r.Detail = fmt.Sprintf("%d of %d octets are there", there, all)
		}
	default:
		r.Detail = "others go first"
	}
}
