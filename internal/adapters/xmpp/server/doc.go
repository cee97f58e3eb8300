// Package server is the XMPP server of a LAN that has no other (RFC 6120, 6121): a part of the adapter of internal/adapters/xmpp,
// which stands at its other end as it does at the end of a component's stream. It is pure.
//
// Login is what a client may do before it has proved who it is: the stream, TLS, SASL. The LAN package runs one for each connection, so
// that strangers reach neither the adapter nor the loop. Accepting and Dialling are the same between servers, where the LAN has a server and
// the gateway is another one (RFC 6120, XEP-0178). Server has the rest: resources, rosters, presence, messages, letters for
// users who are away, the archive (XEP-0313), stream management with resumption (XEP-0198), carbons (XEP-0280). Rooms are the adapter's.
//
// A message counts as taken when the journal has what became of it: the acknowledgement goes out after the commit. What a client with
// stream management was sent stays in the journal until the client has acknowledged it. Such a client finds its session again
// within five minutes, also after a restart of the gateway.
//
// Everything is bounded: contacts, letters, lines of the archive, stanzas that wait for an acknowledgement. What is beyond a bound ends
// with an error for its sender.
//
// Callers pass the time, which never goes back. The package belongs to one goroutine; a Login to that of its connection.
//
// Files: login.go the stream up to the login; peers.go the same between servers; users.go keys of users; server.go Server, its events, and the way of a stanza; session.go clients and
// stream management; presence.go rosters, subscriptions and presence; letters.go messages; archive.go the archive; query.go questions;
// memory.go what survives a restart.
package server
