// Package jxtabridge is the protocol adapter for JXTA. It acts as rendezvous and relay for unmodified JXTA peers on
// the LAN, and decides which of their traffic crosses the link. JXTA messages end here: the bridge answers queries from
// replicated state, and passes on applications' messages without the elements that JXTA adds on each hop. The far
// bridge rebuilds the messages as if the far peer (a "ghost") stood behind its own gateway.
//
// It follows docs/reference/jxta-ghosts.md, docs/reference/jxta-baseline.md and docs/reference/jxta-wire.md.
// docs/decisions/streams.md says why the reliability layer of BiDi pipes, sockets and secure pipes ends here. Package
// internal/jxta holds the formats, internal/edge/lan the sockets, and internal/jxtabridge/reliable the conversation with a
// local peer that streams and secure pipes share.
//
// # Parts
//
// Step hands an event to Bridge, which routes it to one of these parts. A part names the parts that it uses; no part
// knows Bridge. All share one step: configuration, counters, time and output of the Step under way.
//
//	outlets      connections, the queue of each peer, presence, calls, back-pressure
//	ghosts       the form of messages and documents of the gateway and of far peers
//	far          peers and open pipes of other sites
//	multicast    multicast, and the peers that are heard only there
//	rules        the operator's rules on what to hide from local peers
//	directory    advertisements, questions, and which peers and sites are told of them
//	views        which local peers other sites are told of
//	streams      BiDi pipes and sockets to far peers
//	secure       secure pipes to far peers
//	leases       rendezvous and relay leases; which pipes are open
//	propagation  messages to a whole group or a propagate pipe
//	arrivals     messages of far sites for local peers, including absent ones
//	hostIdentity which connections speak for a peer
//
// A message of a local peer goes from outlets (the connection) to Bridge.open, and from there to one part. The answer
// goes back through ghosts (form) and outlets (queue, window, connection). Items and messages for other sites leave as
// site.Item or site.Carry. Those from other sites go to far, directory, streams, secure or arrivals, and on to
// local peers through ghosts and outlets.
//
// # Files
//
// Read api.go, bridge.go and router.go, then the files of one part.
//
//   - api.go: events of package lan, and orders to it
//   - bridge.go: Bridge, New, Step and Stats; the route of a message to its service
//   - router.go: routing between services, peers and sites: resolver, unicast, arrivals from the link
//   - step.go: the state that all parts share
//   - config.go: Config and Identity
//   - outlets.go: connections and the queue of each peer
//   - roster.go: the peers in the order in which they are due
//   - pressure.go: senders that wait for a slow receiver
//   - call.go: calls to peers with a lease and no connection
//   - ghosts.go: messages, routes and peer advertisements as peers see them
//   - far.go: peers and pipes of other sites
//   - multicast.go: multicast
//   - rules.go: the operator's rules, and the properties of items and messages that they see
//   - describe.go: the properties of an advertisement that the rules see
//   - directory.go: discovery: answers, and advertisements published here and at other sites
//   - indexed.go: advertisements that peers have only indexed, and asking these peers for far sites
//   - questions.go: questions that wait for an answer; which peer has a pipe open
//   - wanted.go: which advertisements go to other sites, and are asked from them
//   - views.go: what a view is, and which sites it tells
//   - viewrules.go: which view holds for a group, a site and its bearer
//   - viewtold.go: which local peers other sites know, and ask for
//   - viewfar.go: views of far sites on their peers, and on peers here
//   - push.go: new advertisements for peers that have not asked
//   - conversation.go: blocks and acknowledgements of streams and secure pipes for their local peers
//   - streams.go: a stream towards its local peer
//   - streamopen.go: opening a stream
//   - streamclose.go: closing, resetting or abandoning a stream
//   - streamlink.go: messages about a stream between the bridges of two sites
//   - streammemory.go: streams across a restart
//   - credentials.go: credentials of clients of streams
//   - secure.go: blocks of secure pipes
//   - securecross.go: two peers that open a secure connection to each other at once
//   - leases.go: leases: begin, end, loss
//   - pipes.go: pipes that open and close, and when other sites are told
//   - propagation.go: propagate pipes and group messages, both ways
//   - arrivals.go: messages of far sites until each has ended
//   - away.go: absent peers, and messages that wait for them
//   - hostidentity.go: which connections speak for a peer; which peer the gateway forgets first
//   - memory.go: peers and advertisements across a restart
//   - status.go: Status
//   - entries.go: the directory for operators
//   - metrics.go: figures for the operator's graphs
//
// # Where to change things
//
// For a new answer to a query: directory.go or router.go. For a new service of peers: Bridge.dispatch, and a method of
// the part that it belongs to. For a new limit: Config or a constant next to its user, with a count in Stats.Refused.
// Formats of records (memory.go, streammemory.go, credentials.go, secure.go) and of messages between bridges
// (streamlink.go, secure.go) stay readable, because older gateways wrote them. Tests replay runs, so the output of a
// Step has one order: code never iterates over a map where the order would show.
//
// # Time and units
//
// The package is pure: callers pass the time. Sizes are octets. Unique values in normal form name peers, groups and
// pipes.
package jxtabridge
