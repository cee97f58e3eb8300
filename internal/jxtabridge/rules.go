package jxtabridge

import (
	"strings"

	"aldis/internal/advcache"
	"aldis/internal/jxta"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// DescribeMessage is an application's message as the operator's rules see it; the caller sets direction and site.
func DescribeMessage(m *site.Message) site.Subject {
	s := site.Subject{Type: filter.Message, Scope: m.Scope, Owner: m.From, Topic: m.Topic, Parts: m.Parts, Stream: ofStream(m)}
	if !m.Published {
		s.Topic, _ = strings.CutPrefix(m.Param, jxta.URN(""))
	}
	for _, e := range m.Parts {
		for p := &e; p != nil; p = p.Signature {
			s.Octets += len(p.Data)
		}
	}
	return s
}

// ofStream says whether a message belongs to a BiDi pipe, a socket or the secure pipes of two peers, which the rules judge
// as a whole when it is opened.
func ofStream(m *site.Message) bool {
	return !m.Published && (m.Service == svcStream || m.Service == svcTLS)
}

// DescribeItem is an item as the operator's rules see it; the caller sets direction and site.
func DescribeItem(it site.Item) site.Subject {
	s := site.Subject{Scope: it.Scope, Owner: it.Owner, Octets: len(it.Doc)}
	switch it.Kind {
	case site.Listener:
		s.Type, s.Topic = filter.Listener, it.ID
	case site.Question:
		s.Type = filter.Question
		_, s.Name, _ = strings.Cut(it.ID, "=")
	default:
		n, err := jxta.ParseXML(it.Doc, jxta.DefaultXML)
		if err != nil {
			s.Type = filter.Other
			return s
		}
		s = Describe(n, len(it.Doc))
		s.Scope, s.Owner = it.Scope, it.Owner
		if it.Kind == site.Endpoint {
			s.Type, s.Root = filter.Peer, "jxta:PA"
		}
	}
	return s
}

// DescribeItem is DescribeItem, for the core. An item of this site that names no listener is that of each who listens.
func (b *Bridge) DescribeItem(it site.Item) site.Subject {
	s := DescribeItem(it)
	if it.Kind == site.Listener && it.Owner == "" {
		s.Owners = b.outlets.listeners(pipeKey{it.Scope, it.ID})
	}
	return s
}

// DescribeMessage is DescribeMessage, for the core.
func (b *Bridge) DescribeMessage(m *site.Message) site.Subject { return DescribeMessage(m) }

// rules asks the operator's rules what a peer may do here. The core judges which data may cross the link.
type rules struct{ *step }

// mayOpen judges a stream that a peer opens to a pipe, as a message without octets.
func (r *rules) mayOpen(d site.Direction, siteID uint16, group, src, param string) bool {
	if r.cfg.Filter.Empty() {
		return true
	}
	s := site.Subject{Direction: d, Site: siteID, Type: filter.Message, Scope: group, Owner: src}
	s.Topic, _ = strings.CutPrefix(param, jxta.URN(""))
	v := r.cfg.Filter.Judge(&s)
	r.cfg.Filter.Count(v)
	return !v.Stays()
}

// denies says whether a rule keeps a local peer's advertisement from everybody.
func (r *rules) denies(n *jxta.Node, e *advcache.Entry) bool {
	if r.cfg.Filter.Empty() {
		return false
	}
	s := Describe(n, len(e.Doc))
	s.Direction, s.Scope, s.Owner = site.Out, e.Group, e.Peer
	return r.denied(&s)
}

// deniesMessage is denies for a message, which may be for other local peers.
func (r *rules) deniesMessage(m *site.Message) bool {
	if r.cfg.Filter.Empty() {
		return false
	}
	s := DescribeMessage(m)
	s.Direction = site.Out
	return r.denied(&s)
}

func (r *rules) denied(s *site.Subject) bool {
	v := r.cfg.Filter.Judge(s)
	if v.Action != filter.Deny {
		return false // it is counted when it is about to cross
	}
	r.cfg.Filter.Count(v)
	r.stats.Refused["filter"]++
	return true
}
