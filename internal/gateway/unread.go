package gateway

import (
	"time"

	"aldis/internal/due"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

// Unread tells a peer that a message of it is here and cannot be read, so that it does not count as delivered there.
func (g *Gateway) Unread(now time.Time, from *mail.Peer, at mail.Attempt) {
	g.byID[from.ID].ends.unread(now, at)
}

// Gone notes that a peer cannot read a message of ours that it has acknowledged, and that we do not have any more.
func (g *Gateway) Gone(now time.Time, to *mail.Peer, at mail.Attempt) {
	g.byID[to.ID].ends.lost(now, []envelope.Lost{{Why: site.Unread, Stream: to.Met.Stream, Lane: uint8(at.Lane), Numbers: []uint64{at.Number}}})
}

// unread ends a message of the peer that nobody here will see. What it held is not known: of a site's state the peer tells
// again what is missing.
func (e *endings) unread(now time.Time, at mail.Attempt) {
	p := e.peer
	if len(e.untold) >= envelope.MaxLost { // a peer that sends so much nonsense need not know of each
		return
	}
	e.last = e.last%maxToken + 1
	u := untold{uint64(p.ID)<<48 | e.last, origin{p.Met.Store, p.Met.Era, p.Met.InStream, at}, site.Unread}
	e.road.Record(bucketDeliver, tokenKey(u.token), u.origin.append([]byte{valueEnded, byte(u.why)}))
	e.untold = append(e.untold, u)
	if e.tellAt.IsZero() {
		e.tellAt = due.Latest(now.Add(tellSoon), e.told.Add(tellAgain))
	}
}
