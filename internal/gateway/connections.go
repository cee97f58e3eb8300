package gateway

import (
	"net/netip"
	"time"

	"aldis/internal/gateway/api"
)

// connections are the connections of a bearer that needs one to each peer, as its edge reports them. On such a bearer a peer has the address
// of its connection, and a leg whose connection is lost is down at once: docs/decisions/tls.md. The zero value is that of a bearer without them.
type connections struct {
	needed bool
	told   bool // whether the edge may have connections, as it was last told
	at     map[uint16]netip.AddrPort
}

// take notes that a connection is there, or is lost.
func (s *connections) take(now time.Time, g *Gateway, ev api.Line) {
	if s.at == nil {
		s.at = map[uint16]netip.AddrPort{}
	}
	s.at[ev.Peer] = ev.Addr
	p := g.byID[ev.Peer]
	if p == nil || p.legs[ev.Bearer] == nil {
		return // the node may become a peer later
	}
	l := p.legs[ev.Bearer]
	s.join(l)
	if !ev.Addr.IsValid() || l.Off {
		return
	}
	if l.link.word == linkSilent {
		g.Note("info", "the link to a peer is back", append(l.named(), "address", ev.Addr)...)
	}
	l.Link.Heard(now) // the far end has the key: the peer is there
	l.Link.Ask()
	l.Link.RecordPaths()
}

// join gives a leg the address of its connection, where it needs one.
func (s *connections) join(l *leg) {
	if at := s.at[l.ID]; at.IsValid() {
		l.Join(at)
	}
	l.bearer.settle(l)
}

// hush tells the edge when it may have connections, and when it no longer may.
func (s *connections) hush(b *bearer, out *api.Output) {
	if may := !b.silence.quiet(); s.needed && may != s.told {
		s.told = may
		out.Hush = append(out.Hush, api.Hush{Bearer: b.index, On: !may})
	}
}
