package gateway

import (
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/site"
)

// drain is the operator's order to take no more messages from local peers: those that wait go out, until a stop would hold up
// none. It is of this run alone.
type drain struct {
	on      bool
	since   time.Time
	refused uint64 // messages, each of them once for each site
}

// order begins or ends a drain, and says so.
func (d *drain) order(now time.Time, e api.Drain) (notes site.Notes) {
	if e.On == d.on {
		return nil
	}
	*d = drain{on: e.On, since: now}
	if d.on {
		notes.Note("info", "the gateway drains: it takes no messages of local peers, and sends what waits")
	} else {
		notes.Note("info", "the drain has ended; the gateway takes messages of local peers again")
	}
	return notes
}

// status says what is left to do: messages in custody, and pending messages from far sites that wait for local peers.
func (d *drain) status(store *mail.Store, name func(uint16) string, pending int) *api.DrainStatus {
	if !d.on {
		return nil
	}
	s := &api.DrainStatus{Since: d.since.UTC().Round(0), Refused: d.refused, Sites: map[string]int{}, Pending: pending}
	ids := store.IDs(nil)
	slices.Sort(ids)
	for _, id := range ids {
		m := store.Get(id)
		if m == nil || m.Content.Payload == nil || m.Ended() {
			continue
		}
		s.Messages++
		for _, to := range m.Recipients() {
			s.Sites[name(to)]++
		}
	}
	return s
}
