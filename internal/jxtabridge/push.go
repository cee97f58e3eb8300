package jxtabridge

import (
	"slices"
	"time"

	"aldis/internal/advcache"
	"aldis/internal/jxta"
)

// A rendezvous hands published advertisements to all its peers, unasked (ghosts 5). With a thousand peers that is a thousand
// messages, so they go in portions, and the loop handles other events between them. The queue is bounded: a peer that
// asks for an advertisement is answered from the cache.
const (
	pushPortion = 128 // messages of one Step
	pushPause   = time.Millisecond
	maxPushes   = 1024 // advertisements that wait to be handed out
)

// push is one advertisement, or a question for advertisements, on its way to the members of a group.
type push struct {
	key      advcache.Key    // for a question only the group
	param    string          // of the resolver, without the group before it
	except   string          // its publisher
	answered map[string]bool // peers that had asked
	element  jxta.Element    // the same for all
	after    string          // the id of the last peer that has it
}

type pushes struct {
	queue []*push
	at    time.Time // when the next portion may go; zero: nothing waits
	room  int       // messages that may still go in this Step
}

// push hands an advertisement to the peers of its group.
func (dir *directory) push(e *advcache.Entry, found []jxta.Found, except string, answered map[string]bool) {
	if len(dir.outlets.membersOf(e.Group)) == 0 {
		return
	}
	d := jxta.DiscoveryResponse{Type: int(e.Type), Found: found}
	r := jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, Response: string(d.Append(nil))}
	dir.handOut(&push{key: e.Key, param: "IRes", except: except, answered: answered, element: xmlElement(e.Group+"IRes", r.Append(nil))})
}

// handOut puts a push at the end of the queue.
func (dir *directory) handOut(x *push) {
	if len(dir.pushes.queue) == maxPushes {
		dir.stats.Unpushed++
		dir.pushes.queue = slices.Delete(dir.pushes.queue, 0, 1)
	}
	dir.pushes.queue = append(dir.pushes.queue, x)
	dir.pushOn()
}

// pushOn sends as many messages as this Step has room for.
func (dir *directory) pushOn() {
	q := &dir.pushes
	for len(q.queue) > 0 && q.room > 0 {
		x := q.queue[0]
		if dir.pushPortion(x) {
			q.queue[0] = nil
			q.queue = q.queue[1:]
		}
	}
	q.at = (time.Time{})
	if len(q.queue) > 0 {
		q.at = dir.now.Add(pushPause)
		dir.until(q.at)
	}
}

// pushPortion sends one advertisement to further members, and reports whether all have it.
func (dir *directory) pushPortion(x *push) bool {
	if x.key.ID != "" && dir.cache.Get(dir.now, x.key) == nil {
		return true // the advertisement has gone in the meantime
	}
	group := x.key.Group
	members := dir.outlets.membersOf(group)
	at, found := slices.BinarySearchFunc(members, x.after, byID)
	if found {
		at++
	}
	elements := []jxta.Element{x.element}
	for ; at < len(members) && dir.pushes.room > 0; at++ {
		p := members[at]
		x.after = p.id
		if p.id == x.except || x.answered[p.id] {
			continue
		}
		dir.pushes.room--
		dir.stats.Pushed++
		dir.outlets.enqueue(p, dir.ghosts.routed(p, dir.me, group, jxta.URN(jxta.ClassResolver), group+x.param, elements))
	}
	return at == len(members)
}
