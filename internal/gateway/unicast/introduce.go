package unicast

import (
	"time"

	"aldis/internal/gateway/mail"
)

// introduce sends the introduction of this node that a peer needs before it can read the HELLO that goes next, to all peers where they
// share a channel. false: the peer knows this node, or nothing is sent now.
func introduce(c *Carrier, now time.Time, l *peerLink) bool {
	if c.Introduce == nil || l.Gone {
		return false
	}
	parts := c.Introduce(l.ID, l.Handshake.Tries())
	air, rate := l.Air()
	to, ledger := l.Addr, &l.Ledger
	if c.Greeting.On() {
		to, ledger = c.Group, c.Ledger
	}
	for _, data := range parts {
		ledger.Add(mail.Sent, mail.Key, len(data))
		air.Sent(now, c.Profile, len(data), rate)
		c.Services.Send(to, data)
	}
	return len(parts) > 0
}
