package gateway

import (
	"slices"
	"time"

	"aldis/internal/gateway/unicast"
	"aldis/internal/site"
)

// drain is the operator's order to take nothing more from local peers: what waits goes out, until the gateway has nothing that
// a stop would hold up. It is of this run alone.
type drain struct {
	on      bool
	since   time.Time
	refused uint64 // messages, each of them once for each site
}

// DrainStatus is what an operator is told of a drain; nil while there is none.
type DrainStatus struct {
	Since   time.Time `json:"since"`
	Refused uint64    `json:"refused"` // messages that were not taken since then, once for each site
	// Messages of this site that have not ended, and of other sites that wait for local peers.
	Messages int            `json:"messages"`
	Sites    map[string]int `json:"sites,omitempty"` // of these, by the site for which they are
	Pending  int            `json:"pending"`
}

// obey begins or ends a drain.
func (e Drain) obey(g *Gateway, now time.Time) {
	d := &g.faces.drain
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

// obey pays every receipt that is owed, whatever the air is doing. The Step does nothing else: a message that it read after that would
// be handed over, and its peer would not know.
func (Stop) obey(g *Gateway, now time.Time) {
	g.bearers[0].billed.months.record(g)
	if g.silence.quiet() {
		return
	}
	for _, b := range g.bearers {
		unicast.Settle(b.lines, now)
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
func (d *drain) status(g *Gateway) *DrainStatus {
	if !d.on {
		return nil
	}
	s := &DrainStatus{Since: d.since.UTC().Round(0), Refused: d.refused, Sites: map[string]int{}}
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
