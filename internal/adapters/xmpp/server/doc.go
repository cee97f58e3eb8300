// Package server is the XMPP server of a LAN that has no other (RFC 6120, 6121): a part of the adapter of internal/adapters/xmpp,
// which is connected to it as to the other end of a component's stream. It is pure.
//
// Login is the part of a connection before a client has proved who it is: the stream, TLS, SASL. The LAN package runs one for
// each connection, so that strangers reach neither the adapter nor the loop. Accepting and Dialling do the same between
// servers, if the LAN has a server and the gateway is another one (RFC 6120, XEP-0178). Server does everything else: resources,
// rosters, presence, messages, letters for users who are away, the archive (XEP-0313), stream management with resumption
// (XEP-0198), carbons (XEP-0280). Rooms are the adapter's.
//
// A message counts as taken when the journal has its outcome: the acknowledgement goes out after the commit. A stanza sent to a
// client with stream management stays in the journal until the client has acknowledged it. Such a client finds its session
// again within five minutes, also after a restart of the gateway.
//
// Everything is bounded: contacts, letters, lines of the archive, stanzas that wait for an acknowledgement. A stanza beyond a bound ends
// with an error for its sender.
//
// Callers pass the time, which never goes back. The package belongs to one goroutine; a Login to that of its connection.
//
// Files: login.go the stream up to the login; peers.go streams between servers; users.go keys of users; server.go Server, its
// events, and the route of a stanza; session.go clients and stream management; presence.go rosters, subscriptions and presence;
// letters.go messages; archive.go the archive; query.go questions; memory.go state that survives a restart.
package server
