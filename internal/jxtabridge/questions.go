package jxtabridge

import (
	"container/list"
	"slices"
	"time"

	"aldis/internal/advcache"
	"aldis/internal/ground/due"
	"aldis/internal/jxta"
)

// question is a query for which there was no answer when it came.
type question struct {
	until time.Time
	wish
	queryID   int
	threshold int    // discovery
	kind      string // pipe resolver: pipe type as asked
	host      string // of the asker

	all, mine, near *list.Element // its places in questions.all and in the lists of its peer and of its host
}

// wish holds the properties that make two questions the same, except for the listener in the asking peer.
type wish struct {
	peer    string // asker
	group   string
	handler string            // of the resolver
	ask     advcache.Question // discovery; of a route only Peer
	pipe    string            // pipe resolver
}

const repeats = 4 // query ids remembered of one wish: each has its own listener in the asking peer

// questions are the questions that wait for an answer, oldest first.
type questions struct {
	all    list.List             // of *question
	byPeer map[string]*list.List // the same, by peer
	byHost map[string]*list.List // the same, by host
	same   map[wish][]*question
}

func newQuestions() questions {
	return questions{byPeer: map[string]*list.List{}, byHost: map[string]*list.List{}, same: map[wish][]*question{}}
}

func (q *questions) count() int { return q.all.Len() }

func (q *questions) add(x *question) {
	x.all = q.all.PushBack(x)
	x.mine, x.near = pushTo(q.byPeer, x.peer, x), pushTo(q.byHost, x.host, x)
	q.same[x.wish] = append(q.same[x.wish], x)
}

// pushTo puts a question into the list with this key.
func pushTo(lists map[string]*list.List, key string, x *question) *list.Element {
	if lists[key] == nil {
		lists[key] = list.New()
	}
	return lists[key].PushBack(x)
}

// pullFrom takes one out again.
func pullFrom(lists map[string]*list.List, key string, at *list.Element) {
	if lists[key].Remove(at); lists[key].Len() == 0 {
		delete(lists, key)
	}
}

func (q *questions) drop(x *question) {
	q.all.Remove(x.all)
	pullFrom(q.byPeer, x.peer, x.mine)
	pullFrom(q.byHost, x.host, x.near)
	same := q.same[x.wish]
	for i, o := range same {
		if o == x {
			same = append(same[:i:i], same[i+1:]...)
			break
		}
	}
	q.same[x.wish] = same
	if len(same) == 0 {
		delete(q.same, x.wish)
	}
}

// answer drops the questions for which f returns true, oldest first.
func (q *questions) answer(f func(*question) bool) {
	for e := q.all.Front(); e != nil; {
		x := e.Value.(*question)
		e = e.Next()
		if f(x) {
			q.drop(x)
		}
	}
}

// forget drops a peer's questions in a group.
func (q *questions) forget(peer, group string) {
	mine := q.byPeer[peer]
	if mine == nil {
		return
	}
	for e := mine.Front(); e != nil; {
		x := e.Value.(*question)
		e = e.Next()
		if x.group == group {
			q.drop(x)
		}
	}
}

// oldest is when the oldest question expires; zero: there is none. All live equally long.
func (q *questions) oldest() time.Time {
	if e := q.all.Front(); e != nil {
		return e.Value.(*question).until
	}
	return time.Time{}
}

// expire drops questions that have waited long enough.
func (q *questions) expire(now time.Time) {
	for due.Reached(now, q.oldest()) {
		q.drop(q.all.Front().Value.(*question))
	}
}

// await keeps a question until somebody can answer it.
func (dir *directory) await(x question) {
	p := dir.outlets.peers[x.peer]
	if p == nil {
		return // a stranger's: it asks again, or takes a lease
	}
	q := &dir.questions
	x.host = p.identity.host
	x.until = dir.now.Add(dir.cfg.Question)
	for _, o := range q.same[x.wish] {
		if o.queryID == x.queryID {
			q.drop(o)
			break
		}
	}
	if same := q.same[x.wish]; len(same) >= repeats {
		q.drop(same[0])
	}
	if mine := q.byPeer[x.peer]; mine != nil && mine.Len() >= max(1, dir.cfg.MaxQuestions/8) {
		q.drop(mine.Front().Value.(*question))
	} else if near := q.byHost[x.host]; near != nil && near.Len() >= max(1, dir.cfg.MaxQuestions/2) {
		q.drop(near.Front().Value.(*question))
	} else if q.count() >= dir.cfg.MaxQuestions {
		q.drop(q.all.Front().Value.(*question))
	}
	q.add(&x)
	dir.until(x.until)
}

// pipeQuery answers, in the owner's place, which peer has a pipe open (wire 8.2, ghosts 6.1).
func (dir *directory) pipeQuery(in inbound, rq jxta.ResolverQuery) error {
	q, err := jxta.ParsePipeResolver([]byte(rq.Query))
	if err != nil || q.Answer {
		return err
	}
	dir.stats.PipeQueries++
	only := q.Peers
	if in.dest != "" {
		only = []string{in.dest}
	}
	owners := dir.pipeOwners(in.group, q.Pipe, in.from.id, only)
	for _, o := range owners {
		dir.pipeAnswer(in.from, o, in.group, rq.QueryID, q, true)
	}
	switch {
	case len(owners) > 0:
	case len(only) > 0: // a directed question gets a no (wire 8.2), if it is about a peer for which we speak
		for _, peer := range only {
			if peer != in.from.id && dir.far.knows(peer) {
				dir.pipeAnswer(in.from, peer, in.group, rq.QueryID, q, false)
			}
		}
	default:
		dir.await(question{queryID: rq.QueryID, kind: q.Type,
			wish: wish{peer: in.from.id, group: in.group, handler: jxta.HandlerPipe, pipe: q.Pipe}})
	}
	return nil
}

const maxOwners = 8 // answers to one pipe query

// pipeOwners are the peers other than the asker that have the pipe open, local ones first; only restricts them.
func (dir *directory) pipeOwners(group, pipe, asker string, only []string) []string {
	k := pipeKey{group, pipe}
	var owners []string
	add := func(peer string) {
		if peer != "" && peer != asker && len(owners) < maxOwners && !slices.Contains(owners, peer) && (len(only) == 0 || slices.Contains(only, peer)) {
			owners = append(owners, peer)
		}
	}
	for _, p := range dir.outlets.sortedPeers() {
		if _, open := p.pipes[k]; open {
			add(p.id)
		}
	}
	for _, s := range dir.far.order {
		for _, peer := range dir.far.sites[s].pipeOwners(k) {
			add(peer)
		}
	}
	return owners
}

// pipeAnswer tells whether the owner has the pipe open.
func (dir *directory) pipeAnswer(asker *peer, owner, group string, queryID int, q jxta.PipeResolver, open bool) {
	a := jxta.PipeResolver{Answer: true, Pipe: q.Pipe, Type: q.Type, Peers: []string{owner}, Found: open}
	if open {
		if doc, err := dir.ghosts.ghostPeerDoc(dir.far.peerDoc(owner, group)); err == nil {
			a.PeerAdv = string(doc)
		}
	}
	dir.multicast.respond(asker, owner, group, jxta.ResolverResponse{Handler: jxta.HandlerPipe, QueryID: queryID, Response: string(a.Append(nil))})
}

// routeAnswer tells how to reach a peer.
func (dir *directory) routeAnswer(asker *peer, group, id string, queryID int) {
	dest := dir.ghosts.ghostRoute(id)
	dest.Hops = nil // the asker makes "via the answering peer" of it
	doc := jxta.RouteResponse{Dest: dest, Src: *dir.ghosts.ownRoute()}.Append(nil)
	dir.multicast.respond(asker, dir.me, group, jxta.ResolverResponse{Handler: jxta.HandlerRouter, QueryID: queryID, Response: string(doc)})
}

// pipeKnown answers the questions that waited for this pipe.
func (dir *directory) pipeKnown(owner string, k pipeKey) {
	dir.questions.answer(func(q *question) bool {
		if q.handler != jxta.HandlerPipe || q.group != k.group || q.pipe != k.pipe || q.peer == owner {
			return false
		}
		if asker := dir.outlets.peers[q.peer]; asker != nil && dir.now.Before(q.until) {
			dir.stats.LateAnswers++
			dir.pipeAnswer(asker, owner, q.group, q.queryID, jxta.PipeResolver{Pipe: q.pipe, Type: q.kind}, true)
		}
		return true
	})
}
