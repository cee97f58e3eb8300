package server

import (
	"maps"
	"slices"
	"strconv"

	"aldis/internal/adapters/xmpp/stanza"
)

// contact is an entry of a roster (RFC 6121, 2).
type contact struct {
	name     string
	groups   []string
	to, from bool // the user is subscribed to the contact; the contact is subscribed to the user
	ask      bool // the contact has been asked
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// item is the roster item of a contact.
func (k *contact) item(with string) stanza.Element {
	subscription := [...]string{"none", "to", "from", "both"}[boolInt(k.to)+2*boolInt(k.from)]
	e := stanza.New(nsRoster, "item", "jid", with, "name", k.name, "subscription", subscription)
	if k.ask {
		e = e.Set("ask", "subscribe")
	}
	for _, g := range k.groups {
		e = e.With(stanza.New(nsRoster, "group").Says(g))
	}
	return e
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// contactIn reads a roster item from a memory or a client.
func contactIn(e *stanza.Element) *contact {
	k := &contact{name: e.Get("name"), ask: e.Get("ask") != ""}
	k.to = e.Get("subscription") == "to" || e.Get("subscription") == "both"
	k.from = e.Get("subscription") == "from" || e.Get("subscription") == "both"
	for i := range e.Kids {
		if g := e.Kids[i].Inside(); e.Kids[i].Name == "group" && g != "" && len(k.groups) < 32 {
			k.groups = append(k.groups, g[:min(len(g), 256)])
		}
	}
	return k
}

// contact is the entry for an address, which is made if there is none; nil: there are too many.
func (a *account) contact(with string) *contact {
	k := a.contacts[with]
	if k == nil && len(a.contacts) < mostContacts {
		k = &contact{}
		a.contacts[with] = k
	}
	return k
}

// push sends a changed entry to the clients of a user, and to the journal.
func (s *Server) push(a *account, with string) {
	s.pushes++
	item := stanza.New(nsRoster, "item", "jid", with, "subscription", "remove")
	if k := a.contacts[with]; k != nil {
		item = k.item(with)
		s.remember(keyContact+a.name+"\x00"+with, item.Append(nil, nsRoster))
	} else {
		s.remember(keyContact+a.name+"\x00"+with, nil)
	}
	for _, c := range slices.Clone(a.sessions) {
		if c.interested {
			s.write(c, stanza.New(ns, "iq", "type", "set", "id", "push-"+strconv.Itoa(s.pushes), "to", s.full(c)).With(stanza.New(nsRoster, "query").With(item)), nil)
		}
	}
}

// forgetContact takes an entry out of a roster, and ends its subscriptions.
func (s *Server) forgetContact(a *account, with string) {
	k := a.contacts[with]
	if k == nil {
		return
	}
	if k.to || k.ask {
		s.route(sub(s.bare(a), with, "unsubscribe"), nil)
	}
	if k.from {
		s.route(sub(s.bare(a), with, "unsubscribed"), nil)
	}
	delete(a.contacts, with)
	s.push(a, with)
}

// sub is a stanza about a subscription.
func sub(from, with, kind string) stanza.Element {
	return stanza.New(ns, "presence", "from", from, "to", with, "type", kind)
}

// presenceOf takes a presence stanza of a client.
func (s *Server) presenceOf(c *session, e stanza.Element, to string) {
	a, kind := c.user, e.Get("type")
	switch kind {
	case "subscribe", "subscribed", "unsubscribe", "unsubscribed":
		local, domain, _, ok := stanza.CutAddress(to)
		if ok && local != "" {
			s.subscription(a, e, local+"@"+domain, kind)
		}
		return
	case "", "unavailable":
	case "probe", "error":
		if to != "" {
			s.route(e, c)
		}
		return
	default:
		s.write(c, stanza.Refusal(&e, "bad-request", ""), nil)
		return
	}
	if to != "" {
		if _, known := c.directed[to]; !known && kind == "" {
			if len(c.directed) >= mostDirected {
				s.write(c, stanza.Refusal(&e, "resource-constraint", ""), nil)
				return
			}
			c.directed[to] = true
			s.keep(c)
		} else if known && kind != "" {
			delete(c.directed, to)
			s.keep(c)
		}
		s.route(e, c)
		return
	}
	if kind != "" {
		s.unavailable(c, e)
		s.keep(c)
		return
	}
	first := c.there == nil
	c.there = &e
	priority, _ := strconv.ParseInt(e.Kid(ns, "priority").Inside(), 10, 8)
	c.priority = int(priority)
	s.keep(c)
	s.tell(c, e)
	if first {
		s.greet(c)
	}
}

// tell shows the presence of a client to all subscribers, and to the user's other clients.
func (s *Server) tell(c *session, e stanza.Element) {
	for _, with := range sortedKeys(c.user.contacts) {
		if c.user.contacts[with].from {
			s.route(e.Set("to", with), c)
		}
	}
	for _, o := range slices.Clone(c.user.sessions) {
		if o.there != nil {
			s.write(o, e.Set("to", s.full(o)), nil)
		}
	}
}

// greet gives a client that has just become available the presences of the user's other clients, requests and letters, and asks
// contacts for theirs.
func (s *Server) greet(c *session) {
	for _, o := range slices.Clone(c.user.sessions) {
		if o != c && o.there != nil {
			s.write(c, o.there.Set("to", s.full(c)), nil)
		}
	}
	for _, with := range sortedKeys(c.user.contacts) {
		if c.user.contacts[with].to {
			s.route(stanza.New(ns, "presence", "type", "probe", "from", s.full(c), "to", with), c)
		}
	}
	for _, with := range sortedKeys(c.user.asks) {
		s.write(c, c.user.asks[with], nil)
	}
	if c.priority >= 0 {
		s.letters(c)
	}
}

// unavailable takes a client's presence away from all who have seen it.
func (s *Server) unavailable(c *session, e stanza.Element) {
	for _, to := range sortedKeys(c.directed) {
		delete(c.directed, to)
		s.route(e.Set("to", to), c)
	}
	if c.there != nil {
		c.there = nil
		s.tell(c, e)
	}
}

// subscription takes a user's request or answer to a contact about a subscription (RFC 6121, 3).
func (s *Server) subscription(a *account, e stanza.Element, with, kind string) {
	e = e.Set("from", s.bare(a)).Set("to", with)
	k := a.contacts[with]
	_, asked := a.asks[with]
	answer := func() {
		delete(a.asks, with)
		s.remember(keyAsk+a.name+"\x00"+with, nil)
	}
	switch kind {
	case "subscribe":
		if k = a.contact(with); k == nil {
			return
		}
		k.ask = !k.to
	case "unsubscribe":
		if k == nil || !k.to && !k.ask {
			return
		}
		k.to, k.ask = false, false
	case "subscribed":
		if !asked {
			return
		}
		answer()
		if k = a.contact(with); k == nil {
			return
		}
		k.from = true
	case "unsubscribed":
		if !asked && (k == nil || !k.from) {
			return
		}
		answer()
		if k != nil {
			k.from = false
		}
	}
	if k != nil {
		s.push(a, with)
	}
	s.route(e, nil)
	for _, c := range slices.Clone(a.sessions) { // some may end in the loop
		switch {
		case c.there == nil:
		case kind == "subscribed":
			s.route(c.there.Set("to", with), c)
		case kind == "unsubscribed":
			s.route(stanza.New(ns, "presence", "type", "unavailable", "from", s.full(c), "to", with), c)
		}
	}
}

// presence takes a presence stanza for a user here, or for the client c of the user.
func (s *Server) presence(a *account, c *session, e stanza.Element) {
	from := bareOf(e.Get("from"))
	k := a.contacts[from]
	switch kind := e.Get("type"); {
	case kind == "subscribe":
		if k != nil && k.from {
			s.route(sub(s.bare(a), from, "subscribed"), nil)
			return
		}
		if _, asked := a.asks[from]; !asked && len(a.asks) >= mostAsks {
			s.route(sub(s.bare(a), from, "unsubscribed"), nil)
			return
		}
		a.asks[from] = e
		s.remember(keyAsk+a.name+"\x00"+from, e.Append(nil, ns))
		s.showAll(a, e)
	case kind == "subscribed" && k != nil && k.ask:
		k.to, k.ask = true, false
		s.push(a, from)
		s.showAll(a, e)
	case kind == "unsubscribed" && k != nil && (k.to || k.ask):
		k.to, k.ask = false, false
		s.push(a, from)
		s.showAll(a, e)
	case kind == "unsubscribe":
		delete(a.asks, from)
		s.remember(keyAsk+a.name+"\x00"+from, nil)
		if k != nil && k.from {
			k.from = false
			s.push(a, from)
			s.showAll(a, e)
		}
	case kind == "probe":
		s.probed(a, k, e.Get("from"))
	case kind != "" && kind != "unavailable" && kind != "error":
	case c != nil: // a room, or somebody who has shown itself to this client
		s.write(c, e, nil)
	case k != nil && k.to && bareOf(e.Get("to")) == e.Get("to"):
		s.showAll(a, e)
	}
}

func (s *Server) showAll(a *account, e stanza.Element) {
	for _, c := range slices.Clone(a.sessions) {
		if c.there != nil {
			s.write(c, e, nil)
		}
	}
}

// probed answers a contact that asks whether a user is available.
func (s *Server) probed(a *account, k *contact, from string) {
	if k == nil || !k.from {
		s.route(sub(s.bare(a), from, "unsubscribed"), nil)
		return
	}
	there := false
	for _, c := range slices.Clone(a.sessions) { // some may end in the loop
		if c.there != nil {
			there = true
			s.route(c.there.Set("to", from), c)
		}
	}
	if !there {
		s.route(sub(s.bare(a), from, "unavailable"), nil)
	}
}
