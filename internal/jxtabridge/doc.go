// Package jxtabridge is the gateway's side of the JXTA conversation. It is the rendezvous and relay of unmodified JXTA
// peers on the LAN, and it decides what of their traffic crosses the link. Messages end here: the bridge answers
// queries from replicated state and gives the link what applications say, without the elements of a hop. The far
// bridge makes the messages anew, as if the far peer (a "ghost") stood behind its gateway.
//
// It follows docs/reference/jxta-ghosts.md, docs/reference/jxta-baseline.md and docs/reference/jxta-wire.md.
// docs/decisions/streams.md says why BiDi pipes, sockets and secure pipes have their reliability layer ended here.
// Formats are in internal/jxta, sockets in internal/lan.
//
// # Parts
//
// Step hands an event to Bridge, which routes it to the parts. Each part names the parts that it uses; none knows
// Bridge. All share one step: the configuration, the counters, the time and the output of the Step under way.
//
//	outlets      connections, the queue of each peer, who is there, calls, pressure
//	ghosts       how messages and documents of the gateway and of far peers look
//	far          which peers and open pipes other sites have
//	ether        multicast, and the peers that are heard there only
//	rules        what the operator's rules keep from local peers
//	directory    advertisements, questions, who is told of what, here and at other sites
//	streams      BiDi pipes and sockets to far peers
//	secure       secure pipes to far peers
//	leases       rendezvous and relay leases; which pipes are open
//	propagation  messages for a whole group or a propagate pipe
//	arrivals     messages of far sites for local peers, those who are away too
//	who          which connections speak for a peer
//
// A message of a local peer goes from outlets (the connection) to Bridge.open and from there to one part. What that
// part answers goes back through ghosts (form) and outlets (queue, window, connection); what is for other sites leaves
// as site.Item or site.Carry. What comes from other sites goes to far, directory, streams, secure or arrivals, and
// to local peers through the same two.
//
// # Files
//
//   - api.go: events of package lan and orders to it
//   - bridge.go: Bridge, New, Step, Stats; from a package to the service it is for
//   - router.go: Bridge between services, peers and sites: resolver, unicast, what arrives from the link
//   - step.go: what all parts share
//   - config.go: Config and Identity
//   - outlets.go: connections and the queue of each peer
//   - roster.go: the peers in order, and which is due next
//   - pressure.go: senders wait for a peer that takes too little
//   - call.go: peers with a lease and without a connection are called
//   - ghosts.go: messages, routes and peer advertisements as peers see them
//   - far.go: peers and pipes of other sites
//   - ether.go: multicast
//   - rules.go: the operator's rules, and what they see of items and messages
//   - describe.go: what they see of an advertisement
//   - directory.go: discovery: answers, what is published here and at other sites
//   - indexed.go: what local peers only index, and what they are asked for far sites
//   - questions.go: questions that wait for an answer; who has a pipe open
//   - wanted.go: which advertisements other sites are told of, and what they are asked
//   - push.go: new advertisements for peers that have not asked
//   - streams.go: a stream and its edge: blocks, acknowledgements, repeats
//   - streamclose.go: a stream is closed, reset or left
//   - streamopen.go: a stream opens
//   - streamlink.go: what the bridges of two sites say about a stream
//   - streammemory.go: streams over a restart
//   - credentials.go: the credentials of clients of streams
//   - secure.go: blocks of secure pipes
//   - securecross.go: two peers open a secure connection to each other at once
//   - leases.go: leases begin, end and are missing
//   - pipes.go: pipes open and close, and when other sites are told
//   - propagation.go: propagate pipes and group messages, both ways
//   - arrivals.go: messages of far sites, until each has ended
//   - away.go: who is away, and what waits for them
//   - who.go: which connections speak for a peer; whom the gateway forgets first
//   - memory.go: peers and advertisements over a restart
//   - status.go: Status
//   - entries.go: the directory for people
//   - metrics.go: numbers for the operator's graphs
//
// Package reliable below this one is the window that streams and secure pipes share.
//
// # What to touch
//
// A new answer to a query: directory.go or router.go. A new service of peers: Bridge.dispatch and a method of the part
// it belongs to. A new bound: Config or a constant beside its user, with a count in Stats.Refused. Formats of memory
// records (memory.go, streammemory.go, credentials.go, secure.go) and of what bridges say to each other (streamlink.go,
// secure.go) stay readable: gateways of before wrote them. Tests replay runs, so whatever leaves a Step has one order:
// no map is gone through where its order would show.
//
// # Time and units
//
// Callers pass now; nothing here reads a clock. Sizes are octets. Peers, groups and pipes are named by their unique
// values in normal form.
package jxtabridge
