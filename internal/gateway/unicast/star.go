package unicast

import (
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/custody"
	"aldis/internal/link/frame"
)

// A terminal of a star greets its shore when it starts, and other terminals that it has met before. A terminal that it has never heard it
// greets only when it has something for that terminal, or when its shore says that it has had messages from there: docs/decisions/star.md.

// greetsLate says that this start does not greet a peer until there is something to say, since it knows nothing of the peer.
func (c *Carrier) greetsLate(l *peerLink) bool {
	if c.Late {
		return l.Handshake.Store == 0
	}
	return c.Messages && !c.Shore && !l.Ashore && l.Handshake.Store == 0 && slices.ContainsFunc(c.order, func(l *peerLink) bool { return l.Ashore })
}

// timing is that of custody towards a peer. The profile's times are for one leg of a star, and there are two to another terminal.
func timing(c *Config, p *mail.Peer) custody.Config {
	t := c.Timing
	if c.Messages && !c.Shore && !p.Ashore && slices.ContainsFunc(c.Peers, func(p *mail.Peer) bool { return p.Ashore }) {
		t.RoundTrip, t.Prompt = 2*t.RoundTrip, 2*t.Prompt
	}
	return t
}

// holds says that messages for a peer wait until the peer has answered: before that, it would accept nothing but the HELLO. A peer that
// does not answer may be silent and know this node from an earlier store. It then accepts messages.
func (c *Carrier) holds(l *peerLink) bool {
	return l.Handshake.Tries() < heldTries && c.greetsLate(l)
}

// heldTries is how many HELLOs go alone.
const heldTries = 3

// talkers are the other sites from which this shore has had messages, state among them: a peer that starts with an empty store has
// to ask these sites for the state that they once told it. ok: there are such sites, and the peer reads the frame.
func (c *Carrier) talkers(to *peerLink) (f frame.Talkers, ok bool) {
	if !c.Shore || !to.Handshake.Ahead {
		return f, false
	}
	for _, l := range c.order {
		if l != to && !l.Gone && l.receiver.Cumulative(frame.Direct)+l.receiver.Cumulative(frame.Bulk) > 0 {
			f.IDs = append(f.IDs, l.ID)
		}
	}
	return f, len(f.IDs) > 0
}

// hearTalkers greets the sites in the shore's list that this node has not greeted yet. The list has no other effect.
func (c *Carrier) hearTalkers(now time.Time, from *peerLink, f frame.Talkers) mail.Kind {
	for _, id := range f.IDs {
		if l := c.links[id]; from.Ashore && l != nil && l.Handshake.Unmet {
			l.Handshake.Owe(now)
		}
	}
	return mail.Key
}
