package server

import (
	"slices"

	"aldis/internal/adapters/xmpp/stanza"
)

// asked is the element that says what a question is about; nil: there is none.
func asked(e *stanza.Element) *stanza.Element {
	for i := range e.Kids {
		if e.Kids[i].Name != "" {
			return &e.Kids[i]
		}
	}
	return nil
}

// own answers a question of a client to its own account, or to the server.
func (s *Server) own(c *session, e *stanza.Element) {
	a, q, kind := c.user, asked(e), e.Get("type")
	reply := stanza.New(ns, "iq", "from", e.Get("to"), "to", s.full(c), "id", e.Get("id"), "type", "result")
	if kind != "get" && kind != "set" {
		return // the answer to a push
	}
	if q == nil {
		s.write(c, stanza.Refusal(e, "bad-request", ""), nil)
		return
	}
	mine := e.Get("to") == s.bare(a)
	switch [2]string{q.Space, q.Name} {
	case [2]string{nsRoster, "query"}:
		if kind == "set" {
			s.setContact(c, e, q)
			return
		}
		c.interested = true
		s.keep(c)
		list := stanza.New(nsRoster, "query")
		for _, with := range sortedKeys(a.contacts) {
			list = list.With(a.contacts[with].item(with))
		}
		s.write(c, reply.With(list), nil)
	case [2]string{nsSession, "session"}:
		s.write(c, reply, nil)
	case [2]string{nsCarbons, "enable"}, [2]string{nsCarbons, "disable"}:
		c.carbons = q.Name == "enable"
		s.keep(c)
		s.write(c, reply, nil)
	case [2]string{NSArchive, "query"}:
		for _, r := range s.past.Answer(a.name, e) {
			s.write(c, r, nil)
		}
	case [2]string{nsPrivate, "query"}, [2]string{nsVCard, "vCard"}:
		paper(s, c, e, q)
	default:
		if !mine {
			a = nil
		}
		s.query(*e, a)
	}
}

// query answers a question to the server, or to the account of a user.
func (s *Server) query(e stanza.Element, a *account) {
	q := asked(&e)
	reply := stanza.New(ns, "iq", "from", e.Get("to"), "to", e.Get("from"), "id", e.Get("id"), "type", "result")
	if kind := e.Get("type"); kind != "get" && kind != "set" {
		return
	}
	allowed := a == nil // only its contacts may ask about an account
	if a != nil {
		k := a.contacts[bareOf(e.Get("from"))]
		allowed = bareOf(e.Get("from")) == s.bare(a) || k != nil && k.from
	}
	switch {
	case a != nil && q != nil && q.Space == nsVCard && e.Get("type") == "get": // everybody who knows the address may see the card
		card, ok := a.papers[nsVCard+" vCard"]
		if !ok {
			card = stanza.New(nsVCard, "vCard")
		}
		reply = reply.With(card)
	case q == nil || e.Get("type") != "get" || !allowed || q.Get("node") != "":
		s.bounce(e, "service-unavailable")
		return
	case q.Space == nsPing:
	case q.Space == nsInfo:
		identity := stanza.New(nsInfo, "identity", "category", "server", "type", "im", "name", "Aldis")
		features := []string{nsInfo, nsItems, nsPing, nsRoster, nsCarbons, "urn:xmpp:delay", "msgoffline"}
		if a != nil {
			identity = stanza.New(nsInfo, "identity", "category", "account", "type", "registered")
			features = []string{nsInfo, nsItems, nsPing, NSID}
		}
		if a != nil && bareOf(e.Get("from")) == s.bare(a) {
			features = append(features, NSArchive, nsCarbons)
		}
		info := stanza.New(nsInfo, "query").With(identity)
		for _, f := range features {
			info = info.With(stanza.New(nsInfo, "feature", "var", f))
		}
		reply = reply.With(info)
	case q.Space == nsItems:
		list := stanza.New(nsItems, "query")
		if a == nil {
			for _, domain := range s.cfg.Reaches {
				list = list.With(stanza.New(nsItems, "item", "jid", domain))
			}
		}
		reply = reply.With(list)
	default:
		s.bounce(e, "service-unavailable")
		return
	}
	s.route(reply, nil)
}

// setContact changes an entry of a roster.
func (s *Server) setContact(c *session, e, q *stanza.Element) {
	a, item := c.user, q.Kid(nsRoster, "item")
	refuse := func(condition string) { s.write(c, stanza.Refusal(e, condition, ""), nil) }
	if item == nil || len(item.Get("name")) > 1023 {
		refuse("bad-request")
		return
	}
	local, domain, _, ok := stanza.CutAddress(item.Get("jid"))
	with := domain
	if local != "" {
		with = local + "@" + domain
	}
	switch {
	case !ok:
		refuse("jid-malformed")
		return
	case item.Get("subscription") == "remove" && a.contacts[with] == nil:
		refuse("item-not-found")
		return
	case item.Get("subscription") == "remove":
		s.forgetContact(a, with)
	default:
		k, says := a.contact(with), contactIn(item)
		if k == nil {
			refuse("resource-constraint")
			return
		}
		k.name, k.groups = says.name, slices.Compact(says.groups)
		s.push(a, with)
	}
	s.write(c, stanza.New(ns, "iq", "from", e.Get("to"), "to", s.full(c), "id", e.Get("id"), "type", "result"), nil)
}

// paper stores a document for a client, or returns it: private data (XEP-0049) and the user's card (XEP-0054).
func paper(s *Server, c *session, e, q *stanza.Element) {
	a, what := c.user, q
	if q.Space == nsPrivate {
		if what = asked(q); what == nil || what.Space == "" || what.Space == ns {
			s.write(c, stanza.Refusal(e, "bad-request", ""), nil)
			return
		}
	}
	key := what.Space + " " + what.Name
	kept, known := a.papers[key]
	reply := stanza.New(ns, "iq", "from", e.Get("to"), "to", s.full(c), "id", e.Get("id"), "type", "result")
	if e.Get("type") == "get" {
		if !known {
			kept = stanza.New(what.Space, what.Name)
		}
		if q.Space == nsPrivate {
			kept = stanza.New(nsPrivate, "query").With(kept)
		}
		s.write(c, reply.With(kept), nil)
		return
	}
	xml := what.Append(nil, ns)
	if !known && len(a.papers) >= mostPapers || len(xml) > mostPaper || len(key) > 512 {
		s.write(c, stanza.Refusal(e, "resource-constraint", ""), nil)
		return
	}
	a.papers[key] = *what
	s.remember(keyPaper+a.name+"\x00"+key, xml)
	s.write(c, reply, nil)
}
