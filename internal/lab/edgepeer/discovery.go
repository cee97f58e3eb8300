package edgepeer

import (
	"crypto/sha256"
	"strings"
	"time"

	"aldis/internal/jxta"
)

// own is an advertisement of this peer.
type own struct {
	group string
	desc  jxta.Description
	doc   string
	until time.Time
	index bool
	said  bool // announced to the present rendezvous
}

func (p *Peer) publish(ev Publish) {
	n, err := jxta.ParseXML([]byte(ev.Doc), jxta.DefaultXML)
	if err != nil {
		p.stats.Unsent++
		return
	}
	life := ev.Life
	if life == 0 {
		life = defaultLife
	}
	o := &own{group: groupOf(ev.Group), desc: jxta.Describe(n), doc: ev.Doc, until: p.now.Add(life), index: ev.Index}
	p.docs = append(p.docs, o)
	if len(p.docs) > p.cfg.MaxDocs {
		p.docs = p.docs[1:]
	}
	if p.Leased(o.group) {
		p.sayDoc(o)
	}
}

// sayDocs announces to a new rendezvous the advertisements that were published before there was a lease, and again those that only the
// peer itself keeps.
func (p *Peer) sayDocs(group string) {
	for _, o := range p.docs {
		if o.group == group && (o.index || !o.said) && p.now.Before(o.until) {
			p.sayDoc(o)
		}
	}
}

var indexKeys = map[uint8]string{jxta.TypePeer: "Peers", jxta.TypeGroup: "Groups", jxta.TypeAdv: "Adv"}

func (p *Peer) sayDoc(o *own) {
	o.said = true
	if o.index {
		s := jxta.SRDI{Peer: p.id, Key: indexKeys[o.desc.Type], TTL: 1}
		for _, f := range o.desc.Index {
			s.Entries = append(s.Entries, jxta.SRDIEntry{Key: f.Name, Value: f.Value, Life: o.until.Sub(p.now)})
		}
		p.pushSRDI(o.group, jxta.HandlerDiscovery, s)
		return
	}
	d := jxta.DiscoveryResponse{Type: int(o.desc.Type), Found: []jxta.Found{{Life: o.until.Sub(p.now), Doc: o.doc}}}
	r := jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, Response: string(d.Append(nil))}
	p.propagate(o.group, jxta.URN(jxta.ClassResolver), o.group+"IRes", xmlElement(o.group+"IRes", r.Append(nil)))
}

func (p *Peer) ask(ev Query) {
	threshold := ev.Threshold
	if threshold == 0 && ev.Type != jxta.TypePeer {
		threshold = 1
	}
	q := jxta.DiscoveryQuery{Type: ev.Type, Threshold: threshold, Attr: ev.Attr, Value: ev.Value}
	p.out.QueryID = p.nextQuery()
	p.question(groupOf(ev.Group), p.discoveryDoc(p.out.QueryID, q))
}

// nextQuery is the number of a new question.
func (p *Peer) nextQuery() int {
	p.query++
	if p.query == markQuery {
		p.query = 1
	}
	return p.query
}

// question sends a resolver query to the group.
func (p *Peer) question(group string, doc []byte) {
	p.propagate(group, jxta.URN(jxta.ClassResolver), group+"ORes", xmlElement(group+"ORes", doc))
}

// respond answers a resolver query, through the rendezvous.
func (p *Peer) respond(group string, q jxta.ResolverQuery, response string) {
	p.stats.Answered++
	r := jxta.ResolverResponse{Handler: q.Handler, QueryID: q.QueryID, Response: response}
	p.post(q.Src, group, jxta.URN(jxta.ClassResolver), group+"IRes", xmlElement(group+"IRes", r.Append(nil)))
}

// asked takes a question of another peer: the rendezvous passes it to the owner of an index entry, or to all peers (wire 6, 7).
func (p *Peer) asked(group string, data []byte) {
	data, err := jxta.Gunzip(data)
	if err != nil {
		p.stats.Bad++
		return
	}
	q, err := jxta.ParseResolverQuery(data)
	switch {
	case err != nil:
		p.stats.Bad++
	case q.Src == p.id:
	case q.Handler == jxta.HandlerPipe:
		p.pipeQuestion(group, q)
	case strings.EqualFold(q.Handler, jxta.HandlerDiscovery):
		p.discoveryQuestion(group, q)
	}
}

const maxAnswers = 50 // advertisements in one answer, JXTA's own cap (wire 7)

func (p *Peer) discoveryQuestion(group string, rq jxta.ResolverQuery) {
	q, err := jxta.ParseDiscoveryQuery([]byte(rq.Query))
	if err != nil {
		p.stats.Bad++
		return
	}
	r := jxta.DiscoveryResponse{Type: q.Type, Attr: q.Attr, Value: q.Value}
	if q.Type == jxta.TypePeer && (q.Threshold <= 0 || q.Attr == "PID" && q.Value == jxta.URN(p.id)) {
		r.Found = append(r.Found, jxta.Found{Life: defaultLife, Doc: string(p.Advertisement(group))})
	}
	for _, o := range p.docs {
		if len(r.Found) >= min(q.Threshold, maxAnswers) {
			break
		}
		if o.group == group && int(o.desc.Type) == q.Type && p.now.Before(o.until) && matches(o.desc, q) {
			r.Found = append(r.Found, jxta.Found{Life: o.until.Sub(p.now), Doc: o.doc})
		}
	}
	if len(r.Found) > 0 {
		p.respond(group, rq, string(r.Append(nil)))
	}
}

func matches(d jxta.Description, q jxta.DiscoveryQuery) bool {
	if q.Attr == "" {
		return true
	}
	for _, f := range d.Index {
		if f.Name == q.Attr && jxta.Match(q.Value, f.Value) {
			return true
		}
	}
	return false
}

// Specification is a module specification advertisement of that name with a pipe advertisement inside, as applications publish it to be
// found (wire 9.1). Its id follows from pipe and name.
func Specification(name, pipe, kind string) string {
	sum := sha256.Sum256([]byte(pipe + " " + name))
	sum[31] |= 1 // an id does not end in a zero octet
	id := jxta.IDParts{Kind: jxta.KindSpec, Group: [16]byte(sum[:16]), UUID: [16]byte(sum[16:])}.Unique()
	n := jxta.El("jxta:MSA", jxta.Leaf("MSID", jxta.URN(id)), jxta.Leaf("Name", name), jxta.Leaf("Crtr", "aldis"),
		jxta.Leaf("SURI", "urn:aldis"), jxta.Leaf("Vers", "1"),
		jxta.El("jxta:PipeAdvertisement", jxta.Leaf("Id", jxta.URN(pipe)), jxta.Leaf("Type", kind), jxta.Leaf("Name", name)))
	n.Attr = []jxta.Attr{{Name: "xml:space", Value: "default"}, {Name: "xmlns:jxta", Value: "http://jxta.org"}}
	return string(jxta.AppendDocument(nil, n))
}

// NamedPipe is the id, derived from a name, of a pipe in the net peer group. Two peers that agree on the name need not find each other's
// advertisement.
func NamedPipe(name string) string {
	sum := sha256.Sum256([]byte(name))
	sum[15] |= 1 // an id does not end in a zero octet
	return jxta.IDParts{Kind: jxta.KindPipe, Group: jxta.NetUUID, UUID: [16]byte(sum[:16])}.Unique()
}
