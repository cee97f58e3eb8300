package xmpp

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// nodes are nodes of publish-subscribe (XEP-0060), also those of users (XEP-0163). The items of a node are state of its home,
// the site whose server has it: one item of the site for each item of a service's node, and one for the newest item of a user's
// node. A site receives the items that it has asked for, because somebody there has subscribed or asks (a Question to the
// home), or because the presence of a user there wants them (code.Presence.Wants). At other sites the gateway answers for the
// node with the items that it has received.
type nodes struct {
	*step
	f       *Adapter
	all     map[nodeID]*node
	clients map[string]map[string]*client // of this site, by local part and resource
	asked   map[string]nodeID             // questions to the server here, by id
	seq     int
	round   byte      // changes with each refusal: a later question differs from the earlier one, whose withdrawal may still be on its way
	at      time.Time // when something is due; zero: nothing is
}

// nodeID names a node. Owner is the local part of a user; "": it is a node of the site's service.
type nodeID struct {
	home        uint16
	owner, name string
}

type node struct {
	nodeID
	items   []nodeItem // the oldest first
	known   bool       // its items are known, even if there are none
	refused string     // why its home does not send its items; "": it does
	// At other sites:
	subs  map[string]bool // bare JIDs
	asks  []stanza.Element
	reply time.Time // when asks are answered at the latest
	until time.Time // until when the home is asked on behalf of clients that are not subscribed
	told  bool      // the home was asked
	// At the home:
	by []uint16 // sites that have asked
	as jid      // the far user of one of them who is subscribed here; zero: none
	// Of metSite:
	open bool // clients may publish
}

type nodeItem struct {
	id   string
	doc  []byte    // code.AppendPayload; nil: only known to exist, from an earlier run
	next time.Time // the earliest time at which other sites are told again
	late bool      // other sites are then to be told
	// Of metSite:
	until time.Time
	every time.Duration
}

// client holds the nodes from which a client here wants events (XEP-0115).
type client struct {
	ver   string
	asked time.Time // zero: it has answered
	wants []string  // nodes
}

// Bounds.
const (
	mostNodes     = 1000
	mostNodeItems = 20
	mostNodeSubs  = 1000
	mostWants     = 24
	mostOfUser    = 100         // nodes that one user is subscribed to
	mostAsk       = 4 << 10     // octets of a question that waits
	askFor        = time.Minute // how long a home has to answer a client that asks once
	lease         = time.Hour   // how long it sends news after that
	capsIn        = 500 * time.Millisecond
	capsNode      = "urn:aldis:gateway"
	nodeQuestion  = "aldis-node-"
	capsQuestion  = "aldis-caps-"
	usualID       = "current" // of the item of a user's node (XEP-0163, 3.1)
	notify        = "+notify"
	subHead       = 1 // site.Item.Sub of an item about the node itself
)

// seldom are beginnings of the names of nodes that only cross if a rule says so: pictures and keys of encryption.
var seldom = []string{"urn:xmpp:avatar:", "urn:xmpp:omemo:", "eu.siacs.conversations.axolotl.", "urn:xmpp:openpgp:"}

func (p *nodes) get(id nodeID) *node {
	n := p.all[id]
	if n == nil && len(p.all) < mostNodes {
		n = &node{nodeID: id, subs: map[string]bool{}}
		p.all[id] = n
	}
	if n == nil {
		p.trouble.Count("refused nodes")
	}
	return n
}

// address is the publisher of a node, for clients and the server here.
func (p *nodes) address(id nodeID) jid {
	service, users := p.cfg.PubSub, p.cfg.Domain
	if id.home == metSite {
		service = p.cfg.Nodes
	}
	for _, s := range p.cfg.Sites {
		if s.ID == id.home {
			service, users = s.PubSub, s.Domain
		}
	}
	if id.owner == "" {
		return jid{domain: service}
	}
	return jid{local: id.owner, domain: users}
}

// service is the component that speaks for a node of a far site; nil: there is none.
func (p *nodes) service(id nodeID) *component { return p.f.componentOf(p.address(id).domain) }

// allowed says whether an item of a node of this site may cross.
func (p *nodes) allowed(n *node, to uint16, octets int) bool {
	r := rule.Judge(p.cfg.Rules, &rule.Subject{Kind: rule.PubSub, From: p.address(n.nodeID).bare(), To: n.name, Site: to, Octets: octets})
	if r != nil {
		return !r.Local
	}
	return !slices.ContainsFunc(seldom, func(begin string) bool { return strings.HasPrefix(n.name, begin) })
}

// wanting are the sites that want a node of this site.
func (p *nodes) wanting(n *node) []uint16 {
	sites := slices.Clone(n.by)
	if bit := slices.Index(code.Nodes, n.name); bit >= 0 && n.owner != "" {
		there := &p.f.presence
		for k, w := range there.pairs {
			if is := there.far[k.site][k.far]; k.here == n.owner && w.far && is != nil && is.Wants&(1<<bit) != 0 {
				sites = append(sites, k.site)
			}
		}
	}
	slices.Sort(sites)
	return slices.Compact(sites)
}

// item is the site.Item for an item of a node.
func (n *node) item(id string) site.Item {
	if n.owner != "" {
		id = ""
	}
	return site.Item{Kind: site.Document, Owner: n.owner, Scope: code.NodeName(n.name), ID: id, Home: true}
}

// state sends an item of a node of this site to other sites.
func (p *nodes) state(n *node, i *nodeItem) {
	if p.now.Before(i.next) {
		i.late, p.at = true, due.Earliest(p.at, i.next)
		return
	}
	it := n.item(i.id)
	it.Doc, i.late = i.doc, false
	for _, id := range p.wanting(n) {
		if p.allowed(n, id, len(it.Doc)) {
			it.To = append(it.To, id)
		}
	}
	if len(it.To) > 0 {
		i.next = p.now.Add(leastApart)
		p.trouble.Count("node_items")
		p.remember(n.key(keyItem)+"\x00"+i.id, []byte{1})
		p.out.Items = append(p.out.Items, it)
	}
}

func (p *nodes) withdraw(n *node, i nodeItem) {
	p.out.Items = append(p.out.Items, n.item(i.id).Withdrawal())
	p.remember(n.key(keyItem)+"\x00"+i.id, nil)
}

func (n *node) key(kind string) string {
	return kind + string([]byte{byte(n.home >> 8), byte(n.home)}) + n.owner + "\x00" + n.name
}

// head tells sites that have asked for a node why they do not get its items, or with "" that it has none.
func (p *nodes) head(n *node, why string, to ...uint16) {
	it := n.item("")
	it.Sub, it.To = subHead, to
	if why != "" {
		it.Doc = []byte{byte(code.ReasonOf(why))}
	}
	p.out.Items = append(p.out.Items, it)
}

// put takes an item into a node; false: the node has the same item already.
func (n *node) put(id string, doc []byte) (i *nodeItem, news bool) {
	at := slices.IndexFunc(n.items, func(i nodeItem) bool { return i.id == id })
	if at < 0 {
		n.items, at = append(n.items, nodeItem{id: id}), len(n.items)
	}
	i = &n.items[at]
	news = string(i.doc) != string(doc) || i.doc == nil
	i.doc = doc
	return i, news
}

// event takes an event of the server here about a node of this site (XEP-0060, 7.1.2), or with whole all items of the node.
func (p *nodes) event(from jid, list *stanza.Element, whole bool) {
	name := list.Get("node")
	if _, ok := code.NodeOf(code.NodeName(name)); !ok || from.local == "" && from.domain != p.cfg.PubSub {
		return
	}
	id := nodeID{p.cfg.ID, from.local, name}
	n := p.all[id]
	if n == nil {
		probe := &node{nodeID: id}
		if list.Name != "items" || !slices.ContainsFunc(p.wanting(probe), func(to uint16) bool { return p.allowed(probe, to, 0) }) {
			return
		}
		if n = p.get(id); n == nil {
			return
		}
	}
	if list.Name != "items" && list.Name != "purge" && list.Name != "delete" {
		return
	}
	before := map[string]bool{}
	if whole || list.Name == "purge" || list.Name == "delete" {
		for _, i := range n.items {
			before[i.id] = true
		}
	}
	for i := range list.Kids {
		k := &list.Kids[i]
		item := cmp.Or(k.Get("id"), usualID)
		if n.owner != "" {
			item = usualID
		}
		switch {
		case k.Name == "retract":
			before[item] = true
		case k.Name != "item" || len(item) > code.MaxNode:
		default:
			delete(before, item)
			p.published(n, item, k)
		}
	}
	n.known = true
	n.items = slices.DeleteFunc(n.items, func(i nodeItem) bool {
		if before[i.id] {
			p.withdraw(n, i)
		}
		return before[i.id]
	})
	if whole && len(n.items) == 0 && len(n.by) > 0 {
		p.head(n, "", n.by...)
	} else if whole {
		p.out.Items = append(p.out.Items, site.Item{Kind: site.Document, Owner: n.owner, Scope: code.NodeName(n.name), Sub: subHead, Gone: true})
	}
}

// published takes one item of a node of this site.
func (p *nodes) published(n *node, id string, e *stanza.Element) {
	doc := []byte{}
	for i := range e.Kids {
		if k := &e.Kids[i]; k.Name != "" {
			var ok bool
			if doc, ok = code.AppendPayload(nil, k); !ok {
				p.trouble.Count("refused payload")
				if p.trouble.May(p.now, "refused payload") {
					p.note("warn", "an item of a node is too long to cross", "from", p.address(n.nodeID).bare(), "node", short(n.name), "most_octets", code.MaxPayload)
				}
				return
			}
			break
		}
	}
	if len(n.items) >= mostNodeItems && !slices.ContainsFunc(n.items, func(i nodeItem) bool { return i.id == id }) {
		p.withdraw(n, n.items[0])
		n.items = slices.Delete(n.items, 0, 1)
	}
	i, _ := n.put(id, doc) // an item that a site already has does not cross again
	p.state(n, i)
}

// answered takes an answer of the server here, or of a client.
func (p *nodes) answered(c *component, e *stanza.Element, from, to jid) {
	id, ok := p.asked[e.Get("id")]
	if strings.HasPrefix(e.Get("id"), capsQuestion) {
		p.capable(e, from)
		return
	}
	if n := p.all[id]; ok && n != nil && from.bare() == p.address(id).bare() {
		delete(p.asked, e.Get("id"))
		answer := e.Kid(nsPubSub, "pubsub")
		if e.Get("type") == "error" {
			n.refused = conditionOf(e).String()
			p.head(n, n.refused, n.by...)
		} else if answer != nil {
			if list := answer.Kid(nsPubSub, "items"); list != nil {
				p.event(from, list, true)
			}
		}
	}
}

// wanted takes in that a far site asks for a node of this site, or does not any more.
func (p *nodes) wanted(from uint16, it site.Item) {
	name, ok := code.NodeOf(it.ID)
	n := p.all[nodeID{p.cfg.ID, it.Owner, name}]
	if !ok || !p.isOwner(it.Owner) || n == nil && it.Gone {
		p.trouble.Count("far_unreadable")
		return
	}
	if n = p.get(nodeID{p.cfg.ID, it.Owner, name}); n == nil {
		return
	}
	n.by = slices.DeleteFunc(n.by, func(id uint16) bool { return id == from })
	if it.Gone {
		if len(n.by) == 0 && n.as != (jid{}) {
			p.ask(n, "set", stanza.New(nsPubSub, "unsubscribe", "node", n.name, "jid", n.as.bare()))
			n.as = jid{}
		}
		return
	}
	subscribed := n.owner == ""
	for k, w := range p.f.presence.pairs {
		subscribed = subscribed || k.site == from && k.here == n.owner && w.far
	}
	switch {
	case !p.allowed(n, from, 0):
		p.head(n, "not-allowed", from)
		return
	case n.owner == "" && p.cfg.PubSub == "":
		p.head(n, "item-not-found", from)
		return
	case !subscribed:
		p.head(n, "not-authorized", from)
		return
	}
	n.by = append(n.by, from)
	if n.as == (jid{}) || n.refused != "" {
		p.begin(n)
	} else if len(n.items) == 0 && n.known {
		p.head(n, "", from)
	}
	for i := range n.items {
		if n.items[i].doc != nil {
			p.state(n, &n.items[i])
		}
	}
}

func (p *nodes) isOwner(owner string) bool {
	local, ok := localOf(owner)
	return owner == "" || ok && local == owner
}

// begin subscribes to a node of this site on behalf of the sites that have asked, and asks for its items.
func (p *nodes) begin(n *node) {
	n.as, n.refused = jid{}, ""
	if c := p.f.componentAt(n.by[0]); n.owner == "" && c != nil {
		n.as = jid{local: "aldis", domain: c.domain}
	}
	for _, k := range p.f.presence.sorted(func(k pair) bool { return k.here == n.owner && n.owner != "" && slices.Contains(n.by, k.site) }) {
		if p.f.presence.pairs[k].far {
			n.as = jid{local: k.far, domain: p.cfg.domainOf(k.site)}
			break
		}
	}
	p.ask(n, "set", stanza.New(nsPubSub, "subscribe", "node", n.name, "jid", n.as.bare()))
	p.ask(n, "get", stanza.New(nsPubSub, "items", "node", n.name, "max_items", strconv.Itoa(mostNodeItems)))
}

// ask asks the server here about a node.
func (p *nodes) ask(n *node, kind string, what stanza.Element) {
	c := p.f.componentOf(n.as.domain)
	if c == nil || c.conn == 0 {
		return
	}
	if len(p.asked) > 4*mostNodes { // a server that does not answer
		clear(p.asked)
	}
	p.seq++
	id := nodeQuestion + strconv.Itoa(p.seq)
	if what.Name != "unsubscribe" { // nobody waits for that answer
		p.asked[id] = n.nodeID
	}
	c.write(stanza.New(ns, "iq", "type", kind, "id", id, "from", n.as.bare(), "to", p.address(n.nodeID).String()).With(stanza.New(nsPubSub, "pubsub").With(what)))
}

// opened subscribes again when the server is there, and gives subscribers here the items that they may have missed.
func (p *nodes) opened(c *component) {
	for _, n := range p.sorted() {
		if n.home == p.cfg.ID && len(n.by) > 0 && (n.as == (jid{}) || n.as.domain == c.domain) {
			p.begin(n)
		} else if n.home == c.site.ID && p.service(n.nodeID) == c {
			for to := range n.subs {
				p.tellAll(n, to)
			}
		}
	}
}

func (p *nodes) sorted() []*node {
	return slices.SortedFunc(maps.Values(p.all), func(a, b *node) int {
		return cmp.Or(cmp.Compare(a.home, b.home), cmp.Compare(a.owner, b.owner), cmp.Compare(a.name, b.name))
	})
}

// turn does what is due.
func (p *nodes) turn(now time.Time) {
	if !due.Reached(now, p.at) {
		return
	}
	p.at = time.Time{}
	for _, n := range p.sorted() {
		if n.home == metSite {
			p.turnUnits(now, n)
			continue
		}
		for i := range n.items {
			if n.items[i].late {
				p.state(n, &n.items[i])
			}
		}
		p.turnFar(now, n)
	}
}
