package gateway

import (
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// heed compares numbers: once in each start of a peer those that it begins with, and always what it has of ours.
// docs/decisions/put-back.md.
func (g *Gateway) heed(now time.Time, p *peer, h frame.Hello) {
	met, numbers := &p.Met, p.bearer.lines.Numbers(p.Peer)
	numbers.Compare(h, g.keys.Boot(p.ID))
	if h.End && h.Stream == met.InStream && met.Refused == mail.Taken {
		met.Refused = mail.Ended
		g.RecordPeer(p.Peer)
	}
	if met.Refused != mail.Taken { // also when that was said before: the peer may not have heard it
		numbers.Refuse(now)
	}
	if met.KnowsUs {
		numbers.Known()
	}
	for _, c := range p.bearer.carriers {
		c.Compare(now, p.Peer, h)
	}
}

// beginAnew follows a datagram in which a peer refuses our stream and has told what it has of it.
func (g *Gateway) beginAnew(now time.Time, p *peer) {
	met := &p.Met
	switch met.Anew {
	case mail.Taken:
		return
	case mail.Void:
		g.Note("warn", "the data of this gateway was put back to an older copy: what local peers had given it since then and it had not sent is lost",
			"peer", p.Name)
	}
	met.Anew, met.Ending, met.KnowsUs = mail.Taken, false, false
	g.newStore(now, p)
	met.Owe(now)
	g.RecordPeer(p.Peer)
}
