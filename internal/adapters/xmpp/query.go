package xmpp

import (
	"strconv"
	"strings"

	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
)

// query answers a question to a far user or domain; questions do not cross.
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
	if govern(&f.rooms, f.now, c, e, asked, to) {
		return
	}
	switch {
	case asked != nil && get && asked.Space == nsPing:
	case asked != nil && asked.Space == server.NSArchive && c.rooms && f.own != nil && c.site.ID == f.cfg.ID && to.local != "":
		if !f.mayRead(to.local, e) {
			c.write(stanza.Refusal(e, "forbidden", ""))
			return
		}
		for _, line := range f.archive.Answer(to.local, e) {
			c.write(line)
		}
		return
	case asked != nil && get && asked.Space == nsInfo && asked.Get("node") == "":
		category, kind, provides := "server", "im", []string{nsInfo, nsItems, nsPing, nsReceipts}
		switch {
		case c.rooms:
			category, kind, provides = "conference", "text", []string{nsInfo, nsItems, nsPing, nsRoom, "muc_public", "muc_open", "muc_semianonymous"}
			if f.own != nil && c.site.ID == f.cfg.ID {
				provides = append(provides, server.NSArchive)
			}
		case c.nodes:
			category, kind, provides = "pubsub", "service", []string{nsInfo, nsItems, nsPing, nsPubSub, nsPubSub + "#subscribe", nsPubSub + "#retrieve-items"}
			if c.site.ID == metSite {
				provides = append(provides, nsPubSub+"#publish")
			}
		case c.upload:
			category, kind, provides = "store", "file", []string{nsInfo, nsPing, nsUpload}
		case to.local != "":
			category, kind = "account", "registered"
			provides = append(provides, nsPubSub)
		}
		name := c.domain
		if to.local != "" {
			name = to.local
		}
		says := []stanza.Element(nil)
		if c.rooms && to.local != "" && c.site.ID == f.cfg.ID {
			name, says = describe(&f.rooms, to.local)
		}
		info := stanza.New(nsInfo, "query").With(stanza.New(nsInfo, "identity", "category", category, "type", kind, "name", name)).With(says...)
		for _, feature := range provides {
			if says == nil {
				info = info.With(stanza.New(nsInfo, "feature", "var", feature))
			}
		}
		if c.upload {
			info = info.With(stanza.New(nsForm, "x", "type", "result").With(
				stanza.New(nsForm, "field", "var", "FORM_TYPE", "type", "hidden").With(stanza.New(nsForm, "value").Says(nsUpload)),
				stanza.New(nsForm, "field", "var", "max-file-size").With(stanza.New(nsForm, "value").Says(strconv.FormatInt(f.cfg.Files.Most, 10)))))
		}
		reply = reply.With(info)
	case asked != nil && get && asked.Space == nsInfo && strings.HasPrefix(asked.Get("node"), capsNode+"#"):
		info := stanza.New(nsInfo, "query", "node", asked.Get("node")).With(stanza.New(nsInfo, "identity", "category", "client", "type", "pc", "name", "aldis"))
		wants := uint8(0)
		if u := f.presence.far[c.site.ID][to.local]; u != nil {
			wants = u.Wants
		}
		for _, feature := range features(wants) {
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
		for _, n := range f.nodes.sorted() {
			if c.nodes && n.home == c.site.ID && n.owner == "" && n.known {
				list = list.With(stanza.New(nsItems, "item", "jid", c.domain, "node", n.name))
			}
		}
		reply = reply.With(list)
	default:
		c.write(stanza.Refusal(e, "service-unavailable", ""))
		return
	}
	c.write(reply)
}
