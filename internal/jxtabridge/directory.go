package jxtabridge

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"aldis/internal/advcache"
	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// directory holds the advertisements that are published here and at other sites, the questions of peers and sites, and who is
// to get which.
type directory struct {
	*step
	outlets   *outlets
	ghosts    *ghosts
	far       *far
	multicast *multicast
	rules     *rules
	views     *views
	cache     *advcache.Cache
	// sent is what far sites know of a local advertisement, so that a mere renewal seldom travels and a withdrawal
	// names the same item.
	sent      map[advcache.Key]told
	questions questions // of local peers that wait for an answer
	pushes    pushes
	asked     map[string]ownAsk         // questions that went to far sites, by Item.Key
	asking    map[string]laterAsk       // questions that will go to far sites, by Item.Key
	purposes  map[advcache.Key]purpose  // of local advertisements
	serving   map[purpose]keySet        // local advertisements, by purpose
	toAll     map[advcache.Key]bool     // sent to all sites
	to        map[advcache.Key][]uint16 // sent to the sites that asked
	index     map[advcache.Key]bool     // local pipe advertisements that nobody has published remotely
	hereAt    time.Time                 // when local peers are asked next for what far sites look for; zero: never
}

func newDirectory(s *step, o *outlets, g *ghosts, f *far, e *multicast, r *rules) *directory {
	return &directory{step: s, outlets: o, ghosts: g, far: f, multicast: e, rules: r, views: newViews(s, o, f),
		cache: advcache.New(s.cfg.MaxAdverts, s.cfg.MaxAdvertOctets), sent: map[advcache.Key]told{}, questions: newQuestions(),
		asked: map[string]ownAsk{}, asking: map[string]laterAsk{}, purposes: map[advcache.Key]purpose{}, serving: map[purpose]keySet{},
		toAll: map[advcache.Key]bool{}, to: map[advcache.Key][]uint16{}, index: map[advcache.Key]bool{}}
}

const maxAnswers = 50 // JXTA's own cap (wire 7)

// discoveryQuery answers from local and far advertisements at once, or remembers the question.
func (dir *directory) discoveryQuery(in inbound, rq jxta.ResolverQuery) error {
	dq, err := jxta.ParseDiscoveryQuery([]byte(rq.Query))
	if err != nil {
		return err
	}
	dir.stats.Queries++
	q := question{queryID: rq.QueryID, threshold: min(dq.Threshold, maxAnswers),
		wish: wish{peer: in.from.id, group: in.group, handler: jxta.HandlerDiscovery,
			ask: advcache.Question{Group: in.group, Type: uint8(dq.Type), Attr: dq.Attr, Value: dq.Value, Peer: in.dest}}}
	var found []jxta.Found
	if dq.Type == jxta.TypePeer {
		if dq.Threshold <= 0 {
			q.threshold = maxAnswers // "every peer answers with its own"
		}
		found = dir.findPeers(&q)
	} else if q.threshold > 0 {
		if dq.Attr == "RdvServiceName" && in.from.leases[in.group] == nil {
			if own := dir.ghosts.ownService(in.group, dq.Value); own != nil {
				found = append(found, jxta.Found{Life: peerLife, Doc: string(own)})
			}
		}
		// The asker's own advertisements are left out afterwards, so look for that many more.
		for _, e := range byDistance(dir.far, dir.cache.Find(dir.now, q.ask, q.threshold+maxAnswers), func(e *advcache.Entry) uint16 { return e.Site }) {
			if len(found) < q.threshold && (e.Site != 0 || e.Peer != in.from.id) {
				found = append(found, jxta.Found{Life: e.Expires.Sub(dir.now), Doc: document(e.Doc)})
			}
		}
	}
	dir.askFar(in.from, &q, len(found))
	if len(found) > 0 {
		dir.stats.Answers++
		dir.answer(in.from, &q, found)
	} else if q.threshold > 0 && q.ask.Peer == "" {
		dir.await(q)
	}
	return nil
}

func (dir *directory) answer(p *peer, q *question, found []jxta.Found) {
	r := jxta.DiscoveryResponse{Type: int(q.ask.Type), Attr: q.ask.Attr, Value: q.ask.Value, Found: found}
	dir.multicast.respond(p, dir.me, q.group, jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, QueryID: q.queryID, Response: string(r.Append(nil))})
}

// peerLife is how long a far or local peer's advertisement lives in the asker's cache (wire 7).
const peerLife = 2 * time.Hour

// findPeers answers with peer advertisements: the gateway's own and those of all peers it speaks for.
func (dir *directory) findPeers(q *question) []jxta.Found {
	var found []jxta.Found
	add := func(id string, reduced []byte, index []jxta.Field) {
		if len(found) >= q.threshold || id == q.peer || q.ask.Peer != "" && q.ask.Peer != id || !peerMatches(index, q.ask) {
			return
		}
		if doc, err := dir.ghosts.ghostPeerDoc(reduced); err == nil {
			found = append(found, jxta.Found{Life: peerLife, Doc: string(doc)})
		}
	}
	for _, p := range dir.outlets.membersOf(q.group) {
		if len(found) >= q.threshold {
			return found
		}
		l := p.leases[q.group]
		add(p.id, l.doc, l.index)
	}
	for _, s := range byDistance(dir.far, dir.far.order, func(s uint16) uint16 { return s }) {
		for _, it := range dir.far.sites[s].peersOf(q.group) {
			add(it.Owner, it.Doc, it.index)
		}
	}
	if own := dir.ghosts.ownPeerDoc(q.group); len(found) < q.threshold && q.ask.Peer == "" && peerMatches(indexOf(own), q.ask) {
		found = append(found, jxta.Found{Life: peerLife, Doc: string(own)})
	}
	return found
}

func peerMatches(index []jxta.Field, ask advcache.Question) bool {
	ask.Peer = ""
	return ask.Matches(&advcache.Entry{Key: advcache.Key{Group: ask.Group, Type: ask.Type}, Index: index})
}

// indexOf finds the index fields of a document of ours; an unreadable one has none.
func indexOf(doc []byte) []jxta.Field {
	n, err := jxta.ParseXML(doc, jxta.DefaultXML)
	if err != nil {
		return nil
	}
	return jxta.Describe(n).Index
}

// peerKnown answers the questions for peers that a new one satisfies. The other peers were known when the questions came.
func (dir *directory) peerKnown(id, group string) {
	index := dir.far.peerIndex(id, group)
	var found []jxta.Found
	dir.questions.answer(func(q *question) bool {
		if q.handler == jxta.HandlerRouter && q.ask.Peer == id {
			if asker := dir.outlets.peers[q.peer]; asker != nil && dir.now.Before(q.until) {
				dir.stats.LateAnswers++
				dir.routeAnswer(asker, q.group, id, q.queryID)
			}
			return true
		}
		if q.handler != jxta.HandlerDiscovery || q.ask.Type != jxta.TypePeer || q.group != group || q.peer == id || !peerMatches(index, q.ask) {
			return false
		}
		asker := dir.outlets.peers[q.peer]
		if asker == nil {
			return true
		}
		if found == nil {
			doc, err := dir.ghosts.ghostPeerDoc(dir.far.peerDoc(id, group))
			if err != nil {
				return false
			}
			found = []jxta.Found{{Life: peerLife, Doc: string(doc)}}
		}
		dir.stats.LateAnswers++
		dir.answer(asker, q, found)
		return true
	})
}

// document makes a whole document of an entry in the cache: octets that were kept unchanged start with their own header.
func document(doc []byte) string {
	s := string(doc)
	if strings.HasPrefix(s, "<?xml") || !strings.HasPrefix(s, "<") {
		return s
	}
	root := strings.TrimLeft(s, "<")
	if i := strings.IndexAny(root, " \t\n/>"); i >= 0 {
		root = root[:i]
	}
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n<!DOCTYPE " + root + ">\n" + s + "\n"
}

// canonical is the form in which an advertisement is kept and crosses the link: compact and without routes, but
// octet for octet where a signature covers it (wire 9.2). A signed one with routes loses the signature.
func canonical(n *jxta.Node, doc string, signed bool) []byte {
	routes := !n.Walk(func(k *jxta.Node) bool { return k.Name != "jxta:RA" && k.Name != "jxta:APA" })
	if signed && !routes {
		return []byte(doc)
	}
	if routes {
		n = withoutRoutes(n)
		n.Kids = slices.DeleteFunc(n.Kids, func(k *jxta.Node) bool { return k.Name == "XMLSignature" || k.Name == "XMLSignatureInfo" })
	}
	return jxta.AppendXML(nil, n)
}

// publish takes in the advertisements that a local peer publishes remotely, or, asked, its answer to a question of ours. Pipes
// that are only an answer come last: a specification next to them that names the same pipe says more.
func (dir *directory) publish(in inbound, r jxta.DiscoveryResponse, asked bool) {
	slow := jxta.DefaultXML.Slow
	var pipes []advertised
	for _, f := range r.Found {
		n, err := jxta.ParseWithin([]byte(f.Doc), jxta.DefaultXML, &slow)
		if err != nil {
			dir.complain(in.conn, "advertisement", err)
			continue
		}
		a := advertised{n, jxta.Describe(n), f}
		switch a.Root {
		case "jxta:PA", "jxta:RdvAdvertisement", "jxta:RA", "jxta:APA":
			continue // peers travel as items of the kind site.Endpoint; routes and rendezvous of this site are useless elsewhere
		case "jxta:MIA", "jxta:MCA":
			if asked {
				continue // trifles of a peer's own cache: not worth the air unless it publishes them itself
			}
		case "jxta:PipeAdvertisement":
			if asked {
				pipes = append(pipes, a)
				continue
			}
		}
		dir.keep(in, a, asked)
	}
	for _, a := range pipes {
		dir.keep(in, a, asked)
	}
}

// advertised is an advertisement in the form in which a local peer gave it.
type advertised struct {
	node *jxta.Node
	jxta.Description
	found jxta.Found
}

// keep keeps an advertisement of a local peer.
func (dir *directory) keep(in inbound, a advertised, asked bool) {
	e := advcache.Entry{Key: advcache.Key{Group: in.group, Type: a.Type, ID: a.ID}, Peer: in.from.id,
		Doc: canonical(a.node, a.found.Doc, a.Signed), Index: a.Index, Expires: dir.now.Add(a.found.Life), Signed: a.Signed}
	dir.cache.Share(&e)
	there := dir.cache.Get(dir.now, e.Key) != nil
	indexed := asked && a.Root == "jxta:PipeAdvertisement"
	if indexed && there && !dir.index[e.Key] {
		return // its peer has published it
	}
	if dir.cameFromAfar(&e, asked) || !dir.multicast.mayPublish(in.from, advKey(e.Key), there) || dir.rules.denies(a.node, &e) {
		return
	}
	dir.stats.Published++
	if indexed {
		dir.index[e.Key] = true
	} else {
		dir.promote(e.Key)
		dir.assign(a.node, &e)
	}
	dir.put(e)
	if dir.cache.Get(dir.now, e.Key) == nil {
		dir.removed(e.Key)
	}
}

// cameFromAfar is the split horizon: an advertisement that a peer got from another site does not go back there in its name.
func (dir *directory) cameFromAfar(e *advcache.Entry, asked bool) bool {
	if dir.cache.Get(dir.now, e.Key) != nil {
		return false // published here as well
	}
	k := e.Key
	for k.Site = range dir.far.sites {
		if old := dir.cache.Get(dir.now, k); old != nil && (asked || bytes.Equal(old.Doc, e.Doc)) {
			return true
		}
	}
	return false
}

func (dir *directory) put(e advcache.Entry) {
	changed, put := dir.cache.Put(dir.now, e)
	if dir.cache.Get(dir.now, e.Key) == nil && !changed {
		dir.stats.Refused["advertisement_size"]++
		return
	}
	for _, k := range put {
		dir.gone(k)
	}
	if !dir.now.Before(e.Expires) {
		if changed {
			dir.gone(e.Key)
		}
		return
	}
	dir.until(e.Expires)
	// A mere renewal crosses the link only when it is worth it: a quarter of its life later.
	last, known := dir.sent[e.Key]
	if !changed && known && e.Expires.Sub(last.expires) < e.Expires.Sub(dir.now)/4 && !e.Expires.Before(last.expires) {
		return
	}
	if !known {
		last.peer = e.Peer
	}
	dir.sent[e.Key] = told{e.Expires, last.peer}
	dir.rememberAdv(&e)
	dir.publishFar(&e)
	if changed {
		dir.announce(&e, e.Peer)
	}
}

// told is what far sites know of a local advertisement.
type told struct {
	expires time.Time
	peer    string
}

// gone ends a local advertisement's life: far sites see its expiry themselves, so only an early end travels.
func (dir *directory) gone(k advcache.Key) {
	if k.Site != 0 {
		return
	}
	last, known := dir.sent[k]
	known = known && !dir.unasked(k)
	delete(dir.sent, k)
	dir.forget(advKey(k))
	delete(dir.multicast.adverts, advKey(k))
	dir.removed(k)
	if known && dir.now.Before(last.expires) {
		dir.announceItem(site.Item{Kind: site.Document, Scope: k.Group, Owner: last.peer, ID: k.ID, Sub: k.Type, Gone: true})
	}
}

// announce hands a new advertisement to the local peers of its group: as the answer to peers that had asked, and
// unasked to the others, like a rendezvous that passes on published advertisements (ghosts 5).
func (dir *directory) announce(e *advcache.Entry, except string) {
	found := []jxta.Found{{Life: e.Expires.Sub(dir.now), Doc: document(e.Doc)}}
	answered := map[string]bool{}
	dir.questions.answer(func(q *question) bool {
		if q.handler != jxta.HandlerDiscovery || q.group != e.Group || q.peer == except || !q.ask.Matches(e) {
			return false
		}
		asker := dir.outlets.peers[q.peer]
		if asker == nil || !dir.now.Before(q.until) {
			return asker == nil
		}
		dir.stats.LateAnswers++
		dir.answer(asker, q, found)
		answered[q.peer] = true
		return true
	})
	if !dir.index[e.Key] {
		dir.push(e, found, except, answered)
	}
}

func (dir *directory) learn(n uint16, it site.Item) {
	k := advcache.Key{Group: it.Scope, Type: it.Sub, ID: it.ID, Site: n}
	expires := it.Expires
	if expires.IsZero() {
		expires = dir.now.Add(jxta.MaxLife)
	}
	if it.Gone || !dir.now.Before(expires) {
		dir.cache.Remove(k)
		return
	}
	doc, err := jxta.ParseXML(it.Doc, jxta.DefaultXML)
	if err != nil {
		dir.stats.Refused["far_advertisement"]++
		return
	}
	d := jxta.Describe(doc)
	e := advcache.Entry{Key: k, Peer: it.Owner, Doc: it.Doc, Index: d.Index, Expires: expires, Signed: d.Signed}
	dir.cache.Share(&e)
	changed, put := dir.cache.Put(dir.now, e)
	for _, gone := range put {
		dir.gone(gone)
	}
	if changed && dir.cache.Get(dir.now, k) != nil {
		dir.until(expires)
		dir.announce(&e, "")
	}
}

// sweepAdverts is how many advertisements one sweep ends: a turn of the loop must stay short.
const sweepAdverts = 1000

// sweep ends questions and advertisements that have expired, and hands out the next portion of pushes.
func (dir *directory) sweep() {
	dir.questions.expire(dir.now)
	for _, k := range dir.cache.Expire(dir.now, sweepAdverts) {
		dir.gone(k)
	}
	if due.Reached(dir.now, dir.pushes.at) {
		dir.pushOn()
	}
}

func (dir *directory) rearm() {
	dir.until(dir.questions.oldest())
	dir.until(dir.pushes.at)
	dir.until(dir.hereAt)
	dir.until(dir.views.at)
	if t := dir.cache.Deadline(); !t.IsZero() {
		dir.until(due.Latest(t, dir.now.Add(time.Millisecond))) // the rest of many that expire together
	}
	for _, a := range dir.asking {
		dir.until(a.due)
	}
}
