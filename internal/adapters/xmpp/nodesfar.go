package xmpp

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// heard answers a client's request for a node of a far site (XEP-0060, 6); false: the stanza is not one.
func (p *nodes) heard(c *component, e *stanza.Element, from, to jid) bool {
	asks := e.Kid(nsPubSub, "pubsub")
	if e.Name != "iq" || asks == nil || c.rooms || c.nodes != (to.local == "") {
		return false
	}
	for i := range asks.Kids {
		what := &asks.Kids[i]
		if what.Name == "subscribe" || what.Name == "unsubscribe" || what.Name == "items" || what.Name == "publish" && c.site.ID == metSite {
			p.request(c, e, what, from, to)
			return true
		}
	}
	return false
}

func (p *nodes) request(c *component, e, what *stanza.Element, from, to jid) {
	id := nodeID{c.site.ID, to.local, what.Get("node")}
	_, ok := code.NodeOf(code.NodeName(id.name))
	if !ok {
		c.write(stanza.Refusal(e, "bad-request", ""))
		return
	}
	if w := p.f.presence.pairs[pair{c.site.ID, from.local, to.local}]; !c.nodes && (w == nil || !w.here) {
		c.write(stanza.Refusal(e, "not-authorized", "a subscription to the presence of "+to.bare()+" comes first"))
		return
	}
	n := p.all[id]
	if n == nil && id.home == metSite {
		c.write(stanza.Refusal(e, "item-not-found", ""))
		return
	} else if n == nil {
		n = p.get(id)
	}
	bare := from.bare()
	if n == nil || what.Name == "subscribe" && (len(n.subs) >= mostNodeSubs || p.subscribed(bare) >= mostOfUser) || what.Name == "items" && len(e.Append(nil, ns)) > mostAsk {
		c.write(stanza.Refusal(e, "resource-constraint", ""))
		return
	}
	reply := stanza.New(ns, "iq", "from", e.Get("to"), "to", e.Get("from"), "id", e.Get("id"), "type", "result")
	switch what.Name {
	case "publish":
		p.publish(c, e, what, n, from)
		return
	case "subscribe":
		if said, ok := parseJID(what.Get("jid")); !ok || said.bare() != bare {
			c.write(stanza.Refusal(e, "bad-request", "jid must be the client's own"))
			return
		}
		c.write(reply.With(stanza.New(nsPubSub, "pubsub").With(stanza.New(nsPubSub, "subscription", "node", n.name, "jid", bare, "subscription", "subscribed"))))
		n.subs[bare] = true
		p.remember(n.key(keyNode)+"\x00"+bare, []byte{1})
		p.tellAll(n, bare)
	case "unsubscribe":
		delete(n.subs, bare)
		p.remember(n.key(keyNode)+"\x00"+bare, nil)
		c.write(reply)
	default:
		n.until = p.now.Add(lease)
		if n.known || n.refused != "" || len(n.asks) >= mostNodeItems {
			c.write(p.itemsFor(n, e))
		} else {
			if len(n.asks) == 0 {
				n.reply = p.now.Add(askFor)
			}
			n.asks = append(n.asks, *e)
		}
	}
	p.turnFar(p.now, n)
}

// subscribed is how many nodes a user is subscribed to.
func (p *nodes) subscribed(bare string) (count int) {
	for _, n := range p.all {
		if n.subs[bare] {
			count++
		}
	}
	return count
}

// itemsFor answers a client that asks for the items of a node.
func (p *nodes) itemsFor(n *node, e *stanza.Element) stanza.Element {
	if n.refused != "" {
		return stanza.Refusal(e, n.refused, "")
	}
	if !n.known {
		return stanza.Refusal(e, "remote-server-timeout", "the site of the node has not answered yet")
	}
	asked := e.Kid(nsPubSub, "pubsub").Kid(nsPubSub, "items")
	most, err := strconv.Atoi(asked.Get("max_items"))
	list := stanza.New(nsPubSub, "items", "node", n.name)
	for i, one := range n.items {
		if err == nil && most > 0 && i < len(n.items)-most {
			continue
		}
		if named := asked.Kid(nsPubSub, "item"); named == nil || slices.ContainsFunc(asked.Kids, func(k stanza.Element) bool { return k.Get("id") == one.id }) {
			list = list.With(one.element(nsPubSub))
		}
	}
	return stanza.New(ns, "iq", "from", e.Get("to"), "to", e.Get("from"), "id", e.Get("id"), "type", "result").
		With(stanza.New(nsPubSub, "pubsub").With(list))
}

func (i *nodeItem) element(space string) stanza.Element {
	e := stanza.New(space, "item", "id", i.id)
	if payload, err := code.ParsePayload(i.doc); err == nil {
		e = e.With(payload)
	}
	return e
}

// turnFar asks the home of a node for its items, or gives the node up, and answers clients that have waited too long.
func (p *nodes) turnFar(now time.Time, n *node) {
	if n.home == metSite {
		return // a client that asks is answered at once
	}
	if n.home == p.cfg.ID {
		if len(n.by) == 0 && len(n.items) == 0 {
			delete(p.all, n.nodeID)
		}
		return
	}
	if due.Reached(now, n.reply) {
		c := p.service(n.nodeID)
		for i := range n.asks {
			if c != nil {
				c.write(p.itemsFor(n, &n.asks[i]))
			}
		}
		n.asks, n.reply = nil, time.Time{}
	}
	wanted := len(n.subs)+len(n.asks) > 0 || now.Before(n.until) && n.refused == ""
	if wanted != n.told {
		it := site.Item{Kind: site.Question, Owner: n.owner, ID: code.NodeName(n.name), Doc: bytes.Repeat([]byte{p.round}, int(min(1, p.round))), Home: true, To: []uint16{n.home}}
		n.told = wanted
		if !wanted {
			p.remember(n.key(keyWant), nil)
			p.out.Items = append(p.out.Items, it.Withdrawal())
		} else {
			p.remember(n.key(keyWant), []byte{1, p.round})
			p.out.Items = append(p.out.Items, it)
		}
	}
	if !wanted {
		n.refused = ""
	}
	if !wanted && len(n.items) == 0 && !n.known && n.refused == "" {
		delete(p.all, n.nodeID)
	}
	p.at = due.Earliest(p.at, n.reply)
	if now.Before(n.until) {
		p.at = due.Earliest(p.at, n.until)
	}
}

// farItem takes in an item of a node of a far site.
func (p *nodes) farItem(now time.Time, from uint16, it site.Item) {
	name, ok := code.NodeOf(it.Scope)
	id := cmpID(it)
	if _, err := code.ParsePayload(it.Doc); !ok || !p.isOwner(it.Owner) || len(id) > code.MaxNode || !stanza.Printable(id) ||
		it.Sub == 0 && !it.Gone && len(it.Doc) > 0 && err != nil || it.Sub > subHead || it.Sub == subHead && len(it.Doc) > 1 {
		p.trouble.Count("far_unreadable")
		return
	}
	n := p.all[nodeID{from, it.Owner, name}]
	if n == nil && it.Gone {
		return
	}
	if n = p.get(nodeID{from, it.Owner, name}); n == nil {
		return
	}
	c := p.service(n.nodeID)
	switch {
	case it.Sub == subHead && it.Gone:
		n.refused = ""
	case it.Sub == subHead:
		n.known, n.refused = true, ""
		if len(it.Doc) > 0 {
			n.refused = code.Reason(it.Doc[0]).String()
			n.known = false
			p.refusedSubs(n, c)
		}
	case it.Gone:
		n.items = slices.DeleteFunc(n.items, func(i nodeItem) bool { return i.id == id })
		p.tell(n, "", stanza.New(nsEvent, "items", "node", n.name).With(stanza.New(nsEvent, "retract", "id", id)))
	default:
		n.known, n.refused = true, ""
		if len(n.items) >= 2*mostNodeItems {
			n.items = slices.Delete(n.items, 0, 1)
		}
		if i, news := n.put(id, it.Doc); news {
			p.trouble.Count("far_items")
			p.tell(n, "", stanza.New(nsEvent, "items", "node", n.name).With(i.element(nsEvent)))
		}
	}
	if len(n.asks) > 0 { // other items may come in the same message
		n.reply = due.Earliest(n.reply, now.Add(gather))
		p.at = due.Earliest(p.at, n.reply)
	}
}

// cmpID is the id of an item as clients know it.
func cmpID(it site.Item) string {
	if it.Owner != "" {
		return usualID
	}
	return it.ID
}

// refusedSubs tells subscribers that their subscription has ended, because the home refuses the node (XEP-0060, 8.8.4).
func (p *nodes) refusedSubs(n *node, c *component) {
	for to := range n.subs {
		if c != nil {
			c.write(stanza.New(ns, "message", "from", p.address(n.nodeID).String(), "to", to, "type", "headline").With(stanza.New(nsEvent, "event").
				With(stanza.New(nsEvent, "subscription", "node", n.name, "jid", to, "subscription", "none"))))
		}
		p.remember(n.key(keyNode)+"\x00"+to, nil)
	}
	clear(n.subs)
	p.round++
	p.turnFar(p.now, n)
}

// tell gives an event to one client here, or with to "" to all that want it.
func (p *nodes) tell(n *node, to string, what stanza.Element) {
	c := p.service(n.nodeID)
	if c == nil {
		return
	}
	list := []string{to}
	if to == "" {
		list = list[:0]
		for bare := range n.subs {
			list = append(list, bare)
		}
		for local, all := range p.clients {
			w := p.f.presence.pairs[pair{n.home, local, n.owner}]
			bare := jid{local: local, domain: p.cfg.Domain}.bare()
			for resource, k := range all {
				if w != nil && w.here && !n.subs[bare] && slices.Contains(k.wants, n.name) {
					list = append(list, bare+"/"+resource)
				}
			}
		}
		slices.Sort(list)
	}
	for _, to := range list {
		c.write(stanza.New(ns, "message", "from", p.address(n.nodeID).String(), "to", to, "type", "headline").With(stanza.New(nsEvent, "event").With(what)))
	}
}

// tellAll gives one client, or subscriber, the last item of a node.
func (p *nodes) tellAll(n *node, to string) {
	if len(n.items) > 0 {
		p.tell(n, to, stanza.New(nsEvent, "items", "node", n.name).With(n.items[len(n.items)-1].element(nsEvent)))
	}
}

// client takes in the presence of a client here, and asks it for its features, once for each version of them.
func (p *nodes) client(now time.Time, c *component, e *stanza.Element, from, to jid) {
	all := p.clients[from.local]
	caps := e.Kid(nsCaps, "c")
	if e.Get("type") == "unavailable" {
		delete(all, from.resource)
		if from.resource == "" || len(all) == 0 {
			delete(p.clients, from.local)
		}
		return
	}
	if e.Get("type") != "" || caps == nil || from.resource == "" || len(all) >= mostResources || len(p.clients) >= mostPairs {
		return
	}
	ver := caps.Get("node") + "#" + caps.Get("ver")
	if k := all[from.resource]; k != nil && k.ver == ver || len(ver) > stanza.MostPart {
		return
	}
	if all == nil {
		all = map[string]*client{}
		p.clients[from.local] = all
	}
	all[from.resource] = &client{ver: ver, asked: now}
	c.write(stanza.New(ns, "iq", "type", "get", "id", capsQuestion+from.local, "from", to.bare(), "to", from.String()).
		With(stanza.New(nsInfo, "query", "node", ver)))
}

// waits is how long the presence of a user here waits for the answer of a client.
func (p *nodes) waits(name string) (until time.Time) {
	for _, k := range p.clients[name] {
		if !k.asked.IsZero() {
			until = due.Earliest(until, k.asked.Add(capsIn))
		}
	}
	return until
}

// wants are the personal nodes from which clients of a user here want events.
func (p *nodes) wants(name string) (bits uint8) {
	for _, k := range p.clients[name] {
		for i, node := range code.Nodes {
			if slices.Contains(k.wants, node) {
				bits |= 1 << i
			}
		}
	}
	return bits
}

// capable takes in the features of a client, and gives it the items of the nodes that it wants.
func (p *nodes) capable(e *stanza.Element, from jid) {
	k := p.clients[from.local][from.resource]
	q := e.Kid(nsInfo, "query")
	if k == nil || k.asked.IsZero() {
		return
	}
	k.asked = time.Time{}
	for i := 0; q != nil && i < len(q.Kids); i++ {
		if name, ok := strings.CutSuffix(q.Kids[i].Get("var"), notify); ok && len(k.wants) < mostWants && len(name) <= code.MaxNode {
			k.wants = append(k.wants, name)
		}
	}
	p.f.presence.state(from.local)
	for _, n := range p.sorted() {
		if w := p.f.presence.pairs[pair{n.home, from.local, n.owner}]; n.home != p.cfg.ID && w != nil && w.here && slices.Contains(k.wants, n.name) {
			p.tellAll(n, from.String())
		}
	}
}

// features are the features of a far user's clients that the server here is shown, so that it sends the user the events that
// they want (XEP-0163).
func features(wants uint8) (list []string) {
	list = []string{nsInfo, nsPing, nsReceipts}
	for i, node := range code.Nodes {
		if wants&(1<<i) != 0 {
			list = append(list, node+notify)
		}
	}
	slices.Sort(list)
	return list
}

// capsOf is the element that names these features (XEP-0115).
func capsOf(wants uint8) stanza.Element {
	sum := sha1.Sum([]byte("client/pc//aldis<" + strings.Join(features(wants), "<") + "<"))
	return stanza.New(nsCaps, "c", "hash", "sha-1", "node", capsNode, "ver", base64.StdEncoding.EncodeToString(sum[:]))
}

func (p *nodes) lost(from uint16) {
	for _, n := range p.sorted() {
		n.by = slices.DeleteFunc(n.by, func(id uint16) bool { return id == from })
		if n.home == from {
			n.items, n.known, n.refused = nil, false, ""
		}
	}
}

// restore reads a memory: the site and the owner, a name, and after another 0 a subscriber or an item.
func (p *nodes) restore(kind string, home uint16, key string, value []byte) error {
	owner, rest, ok := strings.Cut(key, "\x00")
	name, last, _ := strings.Cut(rest, "\x00")
	if !ok || name == "" || len(value) == 0 {
		return errors.New("a node without its name")
	}
	if home != p.cfg.ID && p.cfg.domainOf(home) == "" && !(home == metSite && p.cfg.Nodes != "") { // of a site that is no longer configured
		return nil
	}
	n := p.get(nodeID{home, owner, name})
	switch {
	case n == nil:
	case kind == keyNode:
		n.subs[last] = true
	case kind == keyWant:
		n.told, p.round = true, max(p.round, value[len(value)-1])
		p.at = time.Unix(1, 0)
	case kind == keyItem:
		n.items = append(n.items, nodeItem{id: last})
	}
	return nil
}
