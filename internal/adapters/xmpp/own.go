package xmpp

import (
	"math"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// A LAN without a server has one in the gateway (package server). It takes the place of the connections of components: a stanza that a
// component writes goes to it, and its stanzas for a component's domain are heard like those of any server. It has a stanza at
// once: in the same Step, and so in the same commit.

// ownConn is the first number of the connections without a socket: connections of sockets begin at 1.
const ownConn = site.ConnID(math.MaxUint64 - 1<<16)

// serve makes the server.
func (f *Adapter) serve() {
	own := server.Config{Domain: f.cfg.Domain, Users: f.cfg.Users}
	if f.cfg.Rooms != "" { // the rooms of this site are served like rooms of far sites
		here := &Site{ID: f.cfg.ID, Domain: f.cfg.Domain, Rooms: f.cfg.Rooms}
		f.components = append(f.components, &component{step: f.step, site: here, domain: here.Rooms, rooms: true})
	}
	for i, c := range f.components {
		c.conn = ownConn + site.ConnID(i)
		own.Reaches = append(own.Reaches, c.domain)
	}
	f.own = server.New(own, &f.trouble)
}

// start begins a run.
func (f *Adapter) start(now time.Time) {
	f.served = true
	f.own.Start(now)
	for _, c := range f.components {
		f.begun(now, c)
	}
}

// exchange passes stanzas between the server and the components until neither has more.
func (f *Adapter) exchange(now time.Time) {
	if f.own == nil {
		return
	}
	for {
		given := f.toOwn
		f.toOwn = nil
		for _, e := range given {
			f.own.Deliver(now, e)
		}
		f.own.Turn(now)
		out := f.own.Take()
		f.out.Orders = append(f.out.Orders, out.Orders...)
		f.out.Remember = append(f.out.Remember, out.Remember...)
		if len(out.Away) == 0 && len(given) == 0 {
			return
		}
		for _, e := range out.Away {
			if _, domain, _, ok := stanza.CutAddress(e.Get("to")); ok {
				f.heard(now, Heard{f.componentOf(domain).conn, e})
			}
		}
	}
}

// hosted says whether a room is on a server of this site, so that far occupants sit in it. All other rooms are served by the gateway.
func hosted(r *rooms, m *room) bool { return m.home == r.cfg.ID && r.own == nil }

// keep remembers a line for occupants who enter later, and also in the archive if the gateway is the room's server.
func keep(r *rooms, m *room, p past) (number string) {
	if r.own != nil && m.home == r.cfg.ID {
		said := p.Message
		said.Kind = code.Group
		e := elementOf(&said, r.address(m, p.from), "", p.id, "")
		p.number = r.f.archive.Keep(m.name, server.Line{At: p.at}, &e, r.remember)
	}
	m.keep(p)
	return p.number
}

// unused says of a room of this site that nobody is in it, and that no charter keeps it.
func unused(r *rooms, name string) bool {
	m, c := r.all[roomID{r.cfg.ID, name}], r.charters[name]
	return (m == nil || len(m.members) == 0) && (c == nil || !c.Kept)
}

// numbered is a line with the number that it has in the archive of its room (XEP-0359).
func numbered(r *rooms, m *room, e stanza.Element, number string) stanza.Element {
	if number == "" {
		return e
	}
	return e.With(stanza.New(server.NSID, "stanza-id", "by", r.address(m, ""), "id", number))
}

// recollect restores the last lines and the subject of a room of this site in which nobody was.
func recollect(r *rooms, m *room) {
	if r.own == nil || m.home != r.cfg.ID {
		return
	}
	for _, l := range r.f.archive.Lines(m.name) {
		e := l.Said()
		_, nick, _ := strings.Cut(e.Get("from"), "/")
		m.keep(past{l.At, nick, saidIn(&e).Message, e.Get("id"), l.ID()})
	}
}
