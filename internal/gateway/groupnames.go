package gateway

import (
	"maps"
	"time"

	"aldis/internal/link/entropy"
	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

// Names of flows in open messages: an origin says them twice, and then at intervals. Its other messages have a hash instead
// (docs/decisions/groups.md).

// naming is the names of a flow as one origin says them in a group, by their hash.
type naming struct {
	tag    entropy.Tag
	origin uint16
	ref    uint32
}

// groupNames are the messages that say names. Of those with the same names the one that is held longest counts.
type groupNames struct {
	number map[naming]uint64 // of the message
	most   int               // names beyond so many are dropped if no message with them is held any more
}

const (
	leastNames = 16 // octets of names that a hash stands for
	fewNames   = 256
)

// learn notes a message that says names.
func (gs *groups) learn(n naming, it *entropy.Item) {
	s := &gs.naming
	if had, held := gs.says(n); held && had.Until().After(it.Until()) {
		return
	}
	if s.number[n] = it.Number; len(s.number) > s.most {
		maps.DeleteFunc(s.number, func(n naming, _ uint64) bool {
			_, held := gs.says(n)
			return !held
		})
		s.most = 2*len(s.number) + fewNames
	}
}

// says is the message that says names; false: none is held.
func (gs *groups) says(n naming) (it entropy.Item, held bool) {
	return gs.engine.Item(n.tag, entropy.Name{Origin: n.origin, Number: gs.naming.number[n]})
}

// defined are the names that a message says; false: it says none, or its key is not here.
func (gs *groups) defined(now time.Time, it *entropy.Item) (envelope.Flow, bool) {
	body := content(it)
	if k := gs.secrets.of[it.Tag]; k != nil {
		h, err := k.Hear(now, it.Origin, it.Number, gs.signed(it, nil), body)
		if body = h.Content; err != nil {
			return "", false
		}
	}
	return envelope.Defined(body)
}

// pack is the content of a message of this node, with its names or their hash. says: later messages may have the hash of its names, n.
func (gs *groups) pack(now time.Time, it *entropy.Item, m *site.Message) (body []byte, n naming, says bool, err error) {
	coder, refers := &gs.g.coders.plain, false
	flow, octets := envelope.Names(m)
	n = naming{it.Tag, it.Origin, flow.Ref()}
	// Within a bound of a few hops, names may come to a gateway the long way and end there although the message goes on.
	if octets >= leastNames && (it.Hops == 1 || it.Hops == entropy.MostHops) {
		by, known := gs.says(n)
		had, k := flow, gs.secrets.of[it.Tag]
		if known {
			had, known = gs.defined(now, &by)
		}
		says = !known || had == flow // else two flows have this hash
		refers = known && says && by.Covers(it) && (k == nil || k.Newest(content(&by)))
		it.Names = known && says && !refers
	}
	body, err = envelope.PackedOpen(coder, m, !refers, &envelope.Texts{Coder: coder, Rules: gs.g.cfg.Rules})
	return body, n, says && !refers, err
}

// unpack is what a message of a group says to local peers; false: nothing, or nothing yet.
func (gs *groups) unpack(now time.Time, it *entropy.Item, body []byte) (m envelope.Message, ok bool) {
	var missing *naming
	m, flow, err := envelope.ParseOpen(body, func(ref uint32) (envelope.Flow, bool) {
		n := naming{it.Tag, it.Origin, ref}
		by, known := gs.says(n)
		if known {
			if flow, ok := gs.defined(now, &by); ok {
				return flow, true
			}
		}
		missing = &n
		return "", false
	}, &envelope.Texts{Coder: &gs.g.coders.plain})
	switch {
	case missing != nil:
		gs.await(now, it, lack{names: true, ref: missing.ref})
		return m, false
	case err != nil || m.Payload == nil || !m.Payload.Published || m.Payload.Adapter == site.Relay:
		gs.g.Drop("group_unreadable")
		return m, false
	case flow != "":
		n := naming{it.Tag, it.Origin, flow.Ref()}
		gs.learn(n, it)
		gs.readable(now, func(u unread, l lack) bool {
			return u.tag == n.tag && u.Origin == n.origin && l.names && l.ref == n.ref
		})
	}
	return m, it.Expires.After(now) // else it was held for its names alone
}
