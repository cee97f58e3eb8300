// Package gateway is the road: one Step joins faces, rules, replication, custody and carriers into a node that talks to its
// sister gateways. It is pure: edges give it events and carry out its Output, in its order.
//
//	peer -> lan -> jxtabridge -> rules -> mail (custody) -> carrier (envelope, frame, seal) -> journal -> radio -> air
//	air -> radio -> seal -> frame -> carrier (custody) -> envelope -> rules -> jxtabridge -> journal -> lan -> peer
//
// One Step makes the way from lan or radio to journal. The loop (internal/daemon) commits and then sends.
//
// A gateway has bearers (ways over the air), of length one today; a bearer has carriers, of which the first takes new
// messages. Messages are held by internal/gateway/mail, whichever carrier moves them: docs/decisions/bearers.md.
//
// # Calls and units
//
// New starts from the journal and fails with a sentence that names the record; Step, Status and AdvertRows are for one
// goroutine. Callers pass now, which never goes back. Sizes are octets; the ledger counts IP octets, 28 of IP and UDP
// included.
//
// # Files
//
//   - api.go: events and outputs
//   - gateway.go: New and Step
//   - bearer.go: ways over the air
//   - faces.go: the LAN sides
//   - meeting.go: where faces meet
//   - rules.go: what the operator lets cross
//   - newrules.go: rules that change while the gateway runs
//   - newlink.go: peers that change while it runs
//   - limited.go: items that wait for the rate of a rule
//   - drain.go: the drain before a stop
//   - billed.go: units of the bill
//   - bill.go: the bill of each month
//   - state.go: replication
//   - far.go: what we hold of a peer's site
//   - door.go: which datagrams count
//   - trust.go: whose keys count
//   - rollover.go: newer rosters
//   - shelf.go: which rosters a peer keeps
//   - receive.go: what came in
//   - coders.go: which model codes and reads a text
//   - endings.go: what becomes of messages behind their receipts
//   - unread.go: messages that cannot be read
//   - peer.go: a sister gateway
//   - silence.go: EMCON
//   - windows.go: the calendar of silence
//   - surveys.go: measuring the link
//   - restore.go: start from the journal
//   - adopt.go: a journal of version 0.1
//   - putback.go: data that was put back to an older copy
//   - records.go: what records are, and what a repair keeps
//   - status.go: what the operator is told
//   - late.go: what lateness of this machine is not the link's
//   - linkstate.go: the state of a link
//   - differs.go: a link that is not as its profile says
//   - foreseen.go: what will expire before it can be there
//   - outlook.go: when all that waits will be there
//   - delays.go: how long the messages took that came
//   - adverts.go: where advertisements are
//   - messages.go: where messages of this site are
//   - messageorders.go: what may be ordered of a message
//   - standing.go: what is ordered of a precedence
//   - arrival.go: when one message will be there
package gateway
