// Package xmpp is the protocol adapter for XMPP (RFC 6120, 6121): the gateway is a component (XEP-0114) of the LAN's own server
// for the domains of far sites. It is pure: its LAN package (internal/edge/lan/xmpplan) hands it stanzas, and carries out its
// orders.
//
// XMPP's upkeep does not cross the link: streams, pings, service discovery, rosters, chat states and probes stay at their site.
// Four things cross:
//
//   - Messages, one by one, typed (internal/adapters/xmpp/code). The sender's client gets an error with
//     the reason if a message expires or is refused, here or by the far server; otherwise the far server has it.
//   - Outcomes of messages (receipts, markers, refusals), which name the message by its number.
//   - Items of nodes of publish-subscribe, as state of the home of the node.
//   - Presence, as state of the site: one item for each user to whose presence somebody at the far site is subscribed. Requests
//     for subscriptions cross as messages.
//
// A JID of this site crosses without its domain and resource: each site has one domain, which the configurations of the other
// sites name. So no site can speak for the users of another.
//
// A far message counts as delivered when the server has answered a ping that was written behind it: XEP-0114 has no
// acknowledgements, and a server that stops has not read the last stanzas that it was sent.
//
// Callers pass the time, which never goes back. The package belongs to one goroutine.
//
// Files: lan.go events from the LAN package, and orders to it; adapter.go Adapter and its Step; component.go connections and the
// stanzas on them; message.go messages of this site; far.go messages of far sites; numbers.go the numbers of messages; batch.go
// lines that go together; elements.go messages as stanzas; presence.go presence and subscriptions; rooms.go code that both
// sides of a room share; mirror.go rooms of far sites; home.go rooms of this site; own.go the server of a LAN without one;
// charter.go who may do what in its rooms; govern.go orders of their owners; private.go messages for one occupant alone, and
// invitations; nodes.go nodes of publish-subscribe at their home; nodesfar.go nodes of other sites; uploads.go files
// (XEP-0363); met.go clients of other adapters of this gateway; units.go their units; query.go questions; rules.go stanzas as
// the rules see them; address.go JIDs; memory.go state that survives a restart; trouble.go refusals, and properties that rules
// and operators see.
package xmpp
