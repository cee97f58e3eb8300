package jxtabridge

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"aldis/internal/advcache"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

const maxAnswers = 50 // JXTA's own cap (wire 7)

// discoveryQuery answers from local and far advertisements at once, or remembers the question.
func (b *Bridge) discoveryQuery(in inbound, rq jxta.ResolverQuery) error {
	dq, err := jxta.ParseDiscoveryQuery([]byte(rq.Query))
	if err != nil {
		return err
	}
	b.stats.Queries++
	q := question{queryID: rq.QueryID, threshold: min(dq.Threshold, maxAnswers),
		wish: wish{peer: in.from.id, group: in.group, handler: jxta.HandlerDiscovery,
			ask: advcache.Question{Group: in.group, Type: uint8(dq.Type), Attr: dq.Attr, Value: dq.Value, Peer: in.dest}}}
	var found []jxta.Found
	if dq.Type == jxta.TypePeer {
		if dq.Threshold <= 0 {
			q.threshold = maxAnswers // "every peer answers with its own"
		}
		found = b.findPeers(&q)
	} else if q.threshold > 0 {
		if dq.Attr == "RdvServiceName" && in.from.leases[in.group] == nil {
			if own := b.ownService(in.group, dq.Value); own != nil {
				found = append(found, jxta.Found{Life: peerLife, Doc: string(own)})
			}
		}
		// The asker's own are left out afterwards, so look for that many more.
		for _, e := range b.cache.Find(b.now, q.ask, q.threshold+maxAnswers) {
			if len(found) < q.threshold && (e.Site != 0 || e.Peer != in.from.id) {
				found = append(found, jxta.Found{Life: e.Expires.Sub(b.now), Doc: document(e.Doc)})
			}
		}
	}
	b.askFar(in.from, &q, len(found))
	if len(found) > 0 {
		b.stats.Answers++
		b.answerDiscovery(in.from, &q, found)
	} else if q.threshold > 0 && q.ask.Peer == "" {
		b.rememberQuestion(q)
	}
	return nil
}

func (b *Bridge) answerDiscovery(p *peer, q *question, found []jxta.Found) {
	r := jxta.DiscoveryResponse{Type: int(q.ask.Type), Attr: q.ask.Attr, Value: q.ask.Value, Found: found}
	b.respond(p, b.me, q.group, jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, QueryID: q.queryID, Response: string(r.Append(nil))})
}

// peerLife is what a far or local peer's advertisement lives in the asker's cache (wire 7).
const peerLife = 2 * time.Hour

// findPeers answers with peer advertisements: the gateway's own and those of all peers it speaks for.
func (b *Bridge) findPeers(q *question) []jxta.Found {
	var found []jxta.Found
	add := func(id string, reduced []byte, index []jxta.Field) {
		if len(found) >= q.threshold || id == q.peer || q.ask.Peer != "" && q.ask.Peer != id || !peerMatches(index, q.ask) {
			return
		}
		if doc, err := b.ghostPeerDoc(reduced); err == nil {
			found = append(found, jxta.Found{Life: peerLife, Doc: string(doc)})
		}
	}
	for _, p := range b.membersOf(q.group) {
		if len(found) >= q.threshold {
			return found
		}
		l := p.leases[q.group]
		add(p.id, l.doc, l.index)
	}
	for _, s := range b.sortedSites() {
		for _, it := range b.far[s].peersOf(q.group) {
			add(it.Owner, it.Doc, it.index)
		}
	}
	if own := b.ownPeerDoc(q.group); len(found) < q.threshold && q.ask.Peer == "" && peerMatches(indexOf(own), q.ask) {
		found = append(found, jxta.Found{Life: peerLife, Doc: string(own)})
	}
	return found
}

func peerMatches(index []jxta.Field, ask advcache.Question) bool {
	ask.Peer = ""
	return ask.Matches(&advcache.Entry{Key: advcache.Key{Group: ask.Group, Type: ask.Type}, Index: index})
}

// indexOf finds the index fields of a document of ours; what cannot be read has none.
func indexOf(doc []byte) []jxta.Field {
	n, err := jxta.ParseXML(doc, jxta.DefaultXML)
	if err != nil {
		return nil
	}
	return jxta.Describe(n).Index
}

// peerKnown answers the questions for peers that a new one satisfies.
func (b *Bridge) peerKnown(id, group string) {
	b.questions.answer(func(q *question) bool {
		if q.handler != jxta.HandlerDiscovery || q.ask.Type != jxta.TypePeer || q.group != group || q.peer == id {
			return false
		}
		asker := b.peers[q.peer]
		if asker == nil {
			return true
		}
		found := b.findPeers(q)
		if len(found) == 0 {
			return false
		}
		b.stats.LateAnswers++
		b.answerDiscovery(asker, q, found)
		return true
	})
}

// document makes a whole document of what the cache holds: kept octets start with their own header.
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

// publish takes in what a local peer publishes remotely, or, asked, answers to a question of ours.
func (b *Bridge) publish(in inbound, r jxta.DiscoveryResponse, asked bool) {
	for _, f := range r.Found {
		n, err := jxta.ParseXML([]byte(f.Doc), jxta.DefaultXML)
		if err != nil {
			b.complain(in.conn, "advertisement", err)
			continue
		}
		d := jxta.Describe(n)
		switch d.Root {
		case "jxta:PA", "jxta:RdvAdvertisement", "jxta:RA", "jxta:APA":
			continue // peers travel as ItemPeer, routes and rendezvous of this site are of no use elsewhere
		case "jxta:PipeAdvertisement", "jxta:MIA", "jxta:MCA":
			if asked {
				continue // the small change of a peer's own cache: not worth the air unless it publishes them itself
			}
		}
		e := advcache.Entry{Key: advcache.Key{Group: in.group, Type: d.Type, ID: d.ID}, Peer: in.from.id,
			Doc: canonical(n, f.Doc, d.Signed), Index: d.Index, Expires: b.now.Add(f.Life), Signed: d.Signed}
		b.cache.Share(&e)
		if b.cameFromAfar(&e, asked) || !b.mayPublish(in.from, advKey(e.Key), b.cache.Get(b.now, e.Key) != nil) {
			continue
		}
		if b.denies(n, &e) {
			continue
		}
		b.stats.Published++
		b.usedBy(n, &e)
		b.putLocal(e)
		if b.cache.Get(b.now, e.Key) == nil {
			b.unused(e.Key)
		}
	}
}

// cameFromAfar holds the split horizon: what a peer got from another site does not go back there in its name.
func (b *Bridge) cameFromAfar(e *advcache.Entry, asked bool) bool {
	if b.cache.Get(b.now, e.Key) != nil {
		return false // published here as well
	}
	k := e.Key
	for k.Site = range b.far {
		if old := b.cache.Get(b.now, k); old != nil && (asked || bytes.Equal(old.Doc, e.Doc)) {
			return true
		}
	}
	return false
}

func (b *Bridge) putLocal(e advcache.Entry) {
	changed, put := b.cache.Put(b.now, e)
	if b.cache.Get(b.now, e.Key) == nil && !changed {
		b.stats.Refused["advertisement_size"]++
		return
	}
	for _, k := range put {
		b.advertGone(k)
	}
	if !b.now.Before(e.Expires) {
		if changed {
			b.advertGone(e.Key)
		}
		return
	}
	b.until(e.Expires)
	// A mere renewal crosses the link only when it has become worth it: a quarter of its life later.
	last, known := b.sent[e.Key]
	if !changed && known && e.Expires.Sub(last.expires) < e.Expires.Sub(b.now)/4 && !e.Expires.Before(last.expires) {
		return
	}
	if !known {
		last.peer = e.Peer
	}
	b.sent[e.Key] = told{e.Expires, last.peer}
	b.rememberAdv(&e)
	b.tellAdv(&e)
	if changed {
		b.announce(&e, e.Peer)
	}
}

// told is what far sites know of a local advertisement.
type told struct {
	expires time.Time
	peer    string
}

// advertGone ends a local advertisement's life: far sites see its expiry themselves, so only an early end travels.
func (b *Bridge) advertGone(k advcache.Key) {
	if k.Site != 0 {
		return
	}
	last, known := b.sent[k]
	delete(b.sent, k)
	b.forgetAdv(k)
	delete(b.ether.adverts, advKey(k))
	b.unused(k)
	if known && b.now.Before(last.expires) {
		b.tell(site.Item{Kind: site.Document, Scope: k.Group, Owner: last.peer, ID: k.ID, Sub: k.Type, Gone: true})
	}
}

// announce hands a new advertisement to the local peers of its group: as the answer to those who had asked, and
// unasked to the others, as a rendezvous passes on what is published (ghosts 5).
func (b *Bridge) announce(e *advcache.Entry, except string) {
	found := []jxta.Found{{Life: e.Expires.Sub(b.now), Doc: document(e.Doc)}}
	answered := map[string]bool{}
	b.questions.answer(func(q *question) bool {
		if q.handler != jxta.HandlerDiscovery || q.group != e.Group || q.peer == except || !q.ask.Matches(e) {
			return false
		}
		asker := b.peers[q.peer]
		if asker == nil || !b.now.Before(q.until) {
			return asker == nil
		}
		b.stats.LateAnswers++
		b.answerDiscovery(asker, q, found)
		answered[q.peer] = true
		return true
	})
	b.push(e, found, except, answered)
}

// indexed looks through a 2.2 peer's index for advertisements not seen yet and asks the peer for them.
func (b *Bridge) indexed(p *peer, group string, s jxta.SRDI) {
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
		if entry.Life > 0 && entry.Key == "Name" && !b.cache.Has(group, uint8(kind), entry.Key, entry.Value) &&
			b.seen.add(strings.ToUpper("i"+p.id+" "+group+" "+s.Key+" "+entry.Value)) {
			unknown = true
		}
	}
	if unknown { // values come in upper case, so one question for all of them
		b.ask(p, group, jxta.DiscoveryQuery{Type: kind, Threshold: maxAnswers})
	}
}

// ask sends a discovery query to a local peer, from the gateway.
func (b *Bridge) ask(p *peer, group string, q jxta.DiscoveryQuery) {
	b.token++
	rq := jxta.ResolverQuery{Handler: jxta.HandlerDiscovery, QueryID: int(b.token & 0x7fffffff), Src: b.me,
		Route: b.ownRoute(), Query: string(q.Append(nil))}
	e := []jxta.Element{xmlElement(group+"ORes", rq.Append(nil))}
	b.enqueue(p, b.routedHere(p, group, jxta.URN(jxta.ClassResolver), group+"ORes", e))
}
