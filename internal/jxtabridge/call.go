package jxtabridge

import (
	"net/netip"
	"strings"
	"time"

	"aldis/internal/jxta"
)

// The gateway calls a peer that has a lease and no connection, at the address where the peer listens, as JXTA's own
// rendezvous do. An idle JXSE 2.7 checks its relay only every 30 s, and would get nothing for that long after a restart of the
// gateway. A peer that cannot be called comes back by itself.

// Dial asks for a connection to a peer. The answer is Opened, or none.
type Dial struct{ Address string } // "ip:port"

const (
	callFirst  = 500 * time.Millisecond // after its last connection was lost: most peers are back by then
	callSpread = 10 * time.Millisecond  // between two peers after a restart
	callMost   = time.Minute            // between two calls to one peer, 1 s at first and doubled each time
)

// listens is the address of the welcome line where the peer takes connections; "" if it has none, or one that is
// not on the host from which the peer dials: nobody can make the gateway call a third party.
func listens(w jxta.Welcome, remote string) string {
	a, err := jxta.ParseAddress(w.Public)
	if err != nil || a.Scheme != "tcp" {
		return ""
	}
	at, err := netip.ParseAddrPort(a.Host)
	from, err2 := netip.ParseAddrPort(remote)
	if err != nil || err2 != nil || at.Addr().Unmap() != from.Addr().Unmap() || at.Port() == 0 {
		return ""
	}
	return strings.Clone(a.Host)
}

// learnAddress keeps the address at which a peer can be called, also across a restart.
func (o *outlets) learnAddress(c *conn, w jxta.Welcome) {
	p := c.peer
	p.calls = 0
	at := listens(w, c.remote)
	if c.scheme != "tcp" || at == "" || at == p.address {
		return
	}
	p.address = at
	if len(p.leases) > 0 {
		o.rememberPeer(p)
	}
}

// absent reports whether a peer is to be called: it has an address and a lease, and no connection.
func (p *peer) absent() bool {
	return p.address != "" && len(p.leases) > 0 && len(p.conns) == 0
}

// lost plans the first call to a peer that has just lost a connection.
func (o *outlets) lost(p *peer) {
	if p.absent() {
		p.calls, p.callAt = 0, o.now.Add(callFirst)
		o.peerAt(p, p.callAt)
	}
}

// callBack calls the peers whose time has come.
func (o *outlets) callBack(p *peer) {
	if !p.absent() || o.now.Before(p.callAt) {
		return
	}
	o.stats.Calls++
	o.post(Dial{p.address})
	p.callAt = o.now.Add(min(callMost, time.Second<<min(p.calls, 6)))
	p.calls++
}

// callAll plans calls to all peers that were remembered.
func (o *outlets) callAll() {
	at := o.now
	for _, p := range o.sortedPeers() {
		if p.absent() && p.callAt.IsZero() {
			p.callAt = at
			o.peerAt(p, at)
			at = at.Add(callSpread)
		}
	}
}
