// Package gateway is the core of a node. One Step joins protocol adapters (adapters), operators' rules, replication,
// custody and carriers, and exchanges datagrams with the other gateways of the network. It is pure: edge packages give
// it events and carry out its Output, in its order.
//
//	peer -> lan -> jxtabridge -> rules -> mail (custody) -> carrier (envelope, frame, seal) -> journal -> radio -> air
//	air -> radio -> seal -> frame -> carrier (custody) -> envelope -> rules -> jxtabridge -> journal -> lan -> peer
//
// One Step covers the path from lan or radio to the journal. The loop (internal/edge/daemon) commits the records, and then
// sends.
//
// A gateway has a list of bearers (ways over the air). A peer has a leg on each bearer that reaches it. A bearer has carriers, of which the first
// takes new messages; package internal/gateway/carriage makes them. Package internal/gateway/mail holds every message, whichever carrier moves it:
// docs/decisions/bearers.md.
//
// # Calls and units
//
// New starts from the journal; its error names the record that it could not read. Step, Status and AdvertRows belong
// to one goroutine. Callers pass the time, which never goes back. Sizes are octets. The airtime ledger counts IP
// octets, including 28 for IP and UDP.
//
// # Files
//
// Read these first:
//
//   - api.go: events and outputs
//   - gateway.go: New and Step
//   - bearer.go: ways over the air
//   - choice.go: which bearer a message takes, and why
//   - legs.go: what becomes of messages when a bearer fails or is back
//   - emptied.go: numbers of messages that came empty, because they had arrived on another bearer
//   - connections.go: bearers on which each peer has a connection
//   - modem.go: reports of a bearer's modem
//   - adapters.go: protocol adapters, and where they exchange traffic
//   - receive.go: what arrives from the link
//
// Rules and orders of the operator:
//
//   - rules.go: what may cross the link, and rules that change while the gateway runs
//   - limited.go: items held back by the rate of a rule
//   - newlink.go: peers that change while the gateway runs
//   - enlist.go: peers that the roster names
//   - silence.go: radio silence (EMCON) and its calendar
//   - allowance.go: the octets that a bearer may carry in a day
//   - drain.go: the drain before a stop
//   - messageorders.go: orders about one message
//   - standing.go: orders about all messages of a precedence
//   - linkprobes.go: probing the link
//   - queries.go: questions for peers, answered without custody
//   - groups.go: groups and open messages
//   - groupair.go: when groups take the air, and how much of it
//   - groupstatus.go: groups in the status
//   - rollup.go: reports of the gateways of a fleet to the headquarters
//   - groupnames.go: names of flows in open messages, or their hash
//   - groupsecrets.go: groups with a key of their own
//
// State of sites, and messages after the carrier:
//
//   - state.go: replication of sites' state, and the copy of a peer's site
//   - relays.go: messages that gateways pass on for each other
//   - peer.go: another gateway of the network
//   - authenticator.go: what the gateway does for keys and rosters (package internal/gateway/keys)
//   - coders.go: which model codes and decodes a text
//   - outcomes.go: messages after they are acknowledged, until each has been handed over or has failed
//
// The journal:
//
//   - records.go: the records, and what a repair keeps
//   - restore.go: start from the journal, also from one of version 0.1
//   - putback.go: what happens when data was restored from an older copy
//
// For operators:
//
//   - status.go: the status
//   - distance.go: how far each site is on each bearer
//   - linkstate.go: the state of a link
//   - late.go: lateness of this machine that must not be blamed on the link
//   - differs.go: a link that differs from its profile
//   - bill.go: billing units of the tariff, and the bill of each month
//   - operators.go: where messages and advertisements are, and when they will be there (package internal/gateway/forecast)
package gateway
