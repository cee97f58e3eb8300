package gateway

import (
	"aldis/internal/gateway/api"
	"time"
)

// A gateway on a busy machine wakes late and finds what has come meanwhile. What it learns from its own lateness is not the link's.

// leastLate is what every machine may be late by.
const leastLate = 50 * time.Millisecond

// lateness tells the carriers by how much this Step is late: something was due before, or what comes has lain here.
func (g *Gateway) lateness(now time.Time, ev api.Event) {
	by := time.Duration(0)
	if g.looked && !g.linkDue.IsZero() {
		by = now.Sub(g.linkDue)
	}
	if d, ok := ev.(api.Datagram); ok {
		by = max(by, d.Waited)
	}
	if by < leastLate {
		return
	}
	for _, p := range g.peers {
		p.Link.Late(now, by)
	}
}
