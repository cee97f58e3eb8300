package jxtabridge

import (
	"maps"
	"slices"
	"strings"
	"time"

	"aldis/internal/advcache"
	"aldis/internal/ground/due"
	"aldis/internal/jxta"
)

// Many peers publish a pipe only in their own cache. Peers of 2.2 push an index of it to their rendezvous, peers of 2.7 push nothing:
// there a rendezvous asks its peers when somebody looks for it. So a gateway asks for the advertisements that an index names,
// asks its peers for what a far site looks for by name, and keeps the pipes in the answers to itself. A pipe crosses when a far
// site asks for it.

// indexed looks through a peer's index for advertisements not seen yet and asks the peer for them.
func (dir *directory) indexed(p *peer, group string, s jxta.SRDI) {
	kind := -1
	switch s.Key {
	case "Groups":
		kind = jxta.TypeGroup
	case "Adv":
		kind = jxta.TypeAdv
	default:
		return
	}
	unknown := false
	for _, entry := range s.Entries {
		if entry.Life > 0 && entry.Key == "Name" && !dir.cache.Has(group, uint8(kind), entry.Key, entry.Value) &&
			dir.multicast.seen.Add(strings.ToUpper("i"+p.id+" "+group+" "+s.Key+" "+entry.Value+" "+dir.now.Truncate(indexAgain).String())) {
			unknown = true
		}
	}
	if unknown { // values come in upper case, so one question for all of them
		dir.askPeer(p, group, jxta.DiscoveryQuery{Type: kind, Threshold: maxAnswers})
	}
}

// indexAgain is the least time between two questions to a peer for one name in its index: rules may keep its answer from the
// directory, or it has expired there.
const indexAgain = time.Hour

// askPeer sends a discovery query to a local peer, from the gateway.
func (dir *directory) askPeer(p *peer, group string, q jxta.DiscoveryQuery) {
	dir.outlets.enqueue(p, dir.ghosts.routedHere(p, group, jxta.URN(jxta.ClassResolver), group+"ORes", []jxta.Element{dir.query(group, q)}))
}

// query is a discovery query of the gateway itself.
func (dir *directory) query(group string, q jxta.DiscoveryQuery) jxta.Element {
	dir.token++
	rq := jxta.ResolverQuery{Handler: jxta.HandlerDiscovery, QueryID: int(dir.token & 0x7fffffff), Src: dir.me,
		Route: dir.ghosts.ownRoute(), Query: string(q.Append(nil))}
	return xmlElement(group+"ORes", rq.Append(nil))
}

// promote turns an advertisement that was only indexed into one that its peer has published: far sites may not know it yet.
func (dir *directory) promote(k advcache.Key) {
	if dir.index[k] {
		delete(dir.index, k)
		delete(dir.sent, k)
	}
}

// named says whether a question is for something certain: a name, an id, or a part of one.
func named(q advcache.Question) bool { return q.Attr != "" && strings.Trim(q.Value, "*") != "" }

// fits says whether an advertisement answers a question of a far site. An advertisement that is only indexed answers a question
// that is for something certain, unless a published one names the same pipe and answers, too.
func (dir *directory) fits(q advcache.Question, e *advcache.Entry) bool {
	switch {
	case !q.Matches(e):
		return false
	case !dir.index[e.Key]:
		return true
	case !named(q):
		return false
	}
	for k := range dir.serving[purpose{id: e.ID}].all() {
		if o := dir.cache.Get(dir.now, k); o != nil && q.Matches(o) {
			return false
		}
	}
	return true
}

// Local peers are asked again for what a far site still looks for, each time after twice as long: in the meantime a peer may
// have come, or published it. The questions wait while maxHere pushes wait.
const (
	hereAgain = 15 * time.Second
	maxHere   = maxPushes / 2
)

// askHere asks the peers of a group for what a far site looks for there, unless it is a single advertisement that is known.
func (dir *directory) askHere(a *ask) {
	q := &a.question
	a.here = time.Time{}
	if !named(*q) || q.Type == jxta.TypePeer || exact(*q) && dir.isHere(*q) {
		return
	}
	a.pause = max(hereAgain, 2*a.pause)
	a.here = dir.now.Add(a.pause)
	dir.hereAt = due.Earliest(dir.hereAt, a.here)
	dir.until(a.here)
	if len(dir.outlets.membersOf(q.Group)) > 0 && len(dir.pushes.queue) < maxHere {
		dir.stats.AskedHere++
		dir.handOut(&push{key: advcache.Key{Group: q.Group}, param: "ORes",
			element: dir.query(q.Group, jxta.DiscoveryQuery{Type: int(q.Type), Threshold: maxAnswers, Attr: q.Attr, Value: q.Value})})
	}
}

// isHere says whether an advertisement of this site answers a question.
func (dir *directory) isHere(q advcache.Question) bool {
	return slices.ContainsFunc(dir.cache.Find(dir.now, q, maxAnswers), func(e *advcache.Entry) bool { return e.Site == 0 })
}

// sweepHere asks local peers again.
func (dir *directory) sweepHere() {
	if !due.Reached(dir.now, dir.hereAt) {
		return
	}
	dir.hereAt = time.Time{}
	for _, n := range dir.far.order {
		asks := dir.far.sites[n].asks
		for _, key := range slices.Sorted(maps.Keys(asks)) {
			a := asks[key]
			switch {
			case a.here.IsZero() || !dir.now.Before(a.expires):
			case due.Reached(dir.now, a.here):
				dir.askHere(a)
			default:
				dir.hereAt = due.Earliest(dir.hereAt, a.here)
			}
		}
	}
}
