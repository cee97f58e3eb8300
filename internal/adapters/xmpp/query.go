package xmpp

import (
	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
)

// query answers a question to a far user or domain: none crosses.
func (f *Adapter) query(c *component, e *stanza.Element, to jid) {
	reply := stanza.New(ns, "iq", "from", e.Get("to"), "to", e.Get("from"), "id", e.Get("id"), "type", "result")
	var asked *stanza.Element
	for i := range e.Kids {
		if e.Kids[i].Name != "" {
			asked = &e.Kids[i]
			break
		}
	}
	get := e.Get("type") == "get"
	switch {
	case asked != nil && get && asked.Space == nsPing:
	case asked != nil && asked.Space == server.NSArchive && c.rooms && f.own != nil && c.site.ID == f.cfg.ID && to.local != "":
		for _, line := range f.archive.Answer(to.local, e) {
			c.write(line)
		}
		return
	case asked != nil && get && asked.Space == nsInfo && asked.Get("node") == "":
		category, kind, features := "server", "im", []string{nsInfo, nsItems, nsPing, nsReceipts}
		switch {
		case c.rooms:
			category, kind, features = "conference", "text", []string{nsInfo, nsItems, nsPing, nsRoom, "muc_public", "muc_open", "muc_semianonymous"}
			if f.own != nil && c.site.ID == f.cfg.ID {
				features = append(features, server.NSArchive)
			}
		case to.local != "":
			category, kind = "account", "registered"
		}
		name := c.domain
		if to.local != "" {
			name = to.local
		}
		info := stanza.New(nsInfo, "query").With(stanza.New(nsInfo, "identity", "category", category, "type", kind, "name", name))
		for _, feature := range features {
			info = info.With(stanza.New(nsInfo, "feature", "var", feature))
		}
		reply = reply.With(info)
	case asked != nil && get && asked.Space == nsItems && asked.Get("node") == "":
		list := stanza.New(nsItems, "query")
		nicks, rooms := f.rooms.look(c, e, to)
		for _, nick := range nicks {
			list = list.With(stanza.New(nsItems, "item", "jid", jid{to.local, to.domain, nick}.String(), "name", nick))
		}
		for _, name := range rooms {
			list = list.With(stanza.New(nsItems, "item", "jid", jid{local: name, domain: to.domain}.String(), "name", name))
		}
		reply = reply.With(list)
	default:
		c.write(refusal(e, "service-unavailable", ""))
		return
	}
	c.write(reply)
}
