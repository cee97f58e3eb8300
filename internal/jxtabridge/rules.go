package jxtabridge

import (
	"strings"

	"aldis/internal/advcache"
	"aldis/internal/jxta"
	"aldis/internal/rules/filter"
)

// Subject is what the operator's rules see of an application's message; direction and site are the caller's.
func Subject(pl *Payload) filter.Subject {
	s := filter.Subject{Type: filter.Message, Group: pl.Group, Peer: pl.Src, Pipe: pl.Pipe}
	if !pl.Wire {
		s.Pipe, _ = strings.CutPrefix(pl.Param, jxta.URN(""))
	}
	for _, e := range pl.Elements {
		for p := &e; p != nil; p = p.Signature {
			s.Octets += len(p.Data)
		}
	}
	return s
}

// OfStream says that a payload belongs to a BiDi pipe, a socket or the secure pipes of two peers, which the rules judge
// as a whole when it is opened.
func OfStream(pl *Payload) bool {
	return !pl.Wire && (pl.Service == svcStream || pl.Service == svcTLS)
}

// mayOpen judges a stream that a peer opens to a pipe, as a message without octets.
func (b *Bridge) mayOpen(d filter.Direction, site uint16, group, src, param string) bool {
	if b.cfg.Filter.Empty() {
		return true
	}
	s := filter.Subject{Direction: d, Site: site, Type: filter.Message, Group: group, Peer: src}
	s.Pipe, _ = strings.CutPrefix(param, jxta.URN(""))
	v := b.cfg.Filter.Judge(&s)
	b.cfg.Filter.Count(v)
	return !v.Stays()
}

// denies says whether a rule keeps a local peer's advertisement from everybody.
func (b *Bridge) denies(n *jxta.Node, e *advcache.Entry) bool {
	if b.cfg.Filter.Empty() {
		return false
	}
	s := filter.Describe(n, len(e.Doc))
	s.Direction, s.Group, s.Peer = filter.Out, e.Group, e.Peer
	return b.denied(&s)
}

// deniesMessage is denies for a message, which may be for other local peers.
func (b *Bridge) deniesMessage(pl *Payload) bool {
	if b.cfg.Filter.Empty() {
		return false
	}
	s := Subject(pl)
	s.Direction = filter.Out
	return b.denied(&s)
}

func (b *Bridge) denied(s *filter.Subject) bool {
	v := b.cfg.Filter.Judge(s)
	if v.Action != filter.Deny {
		return false // counted when it is about to cross
	}
	b.cfg.Filter.Count(v)
	b.stats.Refused["filter"]++
	return true
}
