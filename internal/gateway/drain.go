package gateway

import (
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/site"
)

// drain is the operator's order to take nothing more from local peers: what waits goes out, until the gateway has nothing that
// a stop would hold up. It is of this run alone.
type drain struct {
	on      bool
	since   time.Time
	refused uint64 // messages, each of them once for each site
}

// order begins or ends a drain.
func (d *drain) order(g *Gateway, now time.Time, e api.Drain) {
	if e.On == d.on {
		return
	}
	*d = drain{on: e.On, since: now}
	if d.on {
		g.Note("info", "the gateway takes no messages of local peers any more: what waits goes out")
	} else {
		g.Note("info", "the gateway takes messages of local peers again")
	}
}

// refuses refuses a message of a local peer for those sites while a drain lasts; true: it did. Its sender hears of it as of a
// queue that is full.
func (d *drain) refuses(g *Gateway, sites []uint16, m *site.Message) bool {
	if !d.on {
		return false
	}
	for _, id := range sites {
		if p := g.byID[id]; p != nil {
			p.Counts.Refused++
			d.refused++
			g.faces.ended(m, true)
		}
	}
	return true
}

// status says what is left to do.
func (d *drain) status(g *Gateway) *api.DrainStatus {
	if !d.on {
		return nil
	}
	s := &api.DrainStatus{Since: d.since.UTC().Round(0), Refused: d.refused, Sites: map[string]int{}}
	ids := g.mail.IDs(nil)
	slices.Sort(ids)
	for _, id := range ids {
		m := g.mail.Get(id)
		if m == nil || m.Content.Payload == nil || m.Ended() {
			continue
		}
		s.Messages++
		for _, to := range m.Recipients() {
			s.Sites[MessagesOf(g).site(to)]++
		}
	}
	for _, p := range g.peers {
		s.Pending += int(p.Counts.Pending)
	}
	return s
}
