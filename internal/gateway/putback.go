package gateway

import (
	"time"

	"aldis/internal/gateway/mail"
)

// beginAnew begins a new stream after a datagram in which a peer refuses ours and reports what it has of it.
func (g *Gateway) beginAnew(now time.Time, p *leg) {
	met := &p.Handshake
	switch met.Reissued {
	case mail.Taken:
		return
	case mail.Void:
		g.Note("warn", "this gateway runs on an older copy of its data; messages that local peers had submitted since then and that were not yet sent are lost",
			"peer", p.Name)
		if r := g.bearers[len(g.bearers)-1].Relay; r != nil {
			r.PutBack(now)
		}
	}
	met.Reissued, met.Ending, met.KnowsUs = mail.Taken, false, false
	g.newStore(now, p, false)
	met.Owe(now)
	g.RecordPeer(p.Peer)
}
