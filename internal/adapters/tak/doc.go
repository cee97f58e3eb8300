// Package tak is the protocol adapter for TAK devices and servers, which speak Cursor on Target (CoT). It is pure: its
// LAN package (internal/edge/lan/taklan) hands it the events of streams and of the mesh, and carries out its orders.
//
// The adapter is the TAK server of its LAN: an event of one device goes to all others unchanged, or to those that it
// names (marti). The adapter answers pings itself; keep-alives, versions and authentication never cross the link.
//
// Events cross to far sites as four kinds of messages:
//
//   - Positions (types a-...) go through a table of units (internal/adapters/tak/track) as batches of typed records. A batch
//     always has the newest reports. The outcome of a batch decides when the next one goes.
//   - Other events go one by one, typed (internal/adapters/tak/code), with the precedence of their type.
//   - Chats (GeoChat) go in the form that ATAK gives them, with a number; receipts refer to that number.
//   - Requests name units of which the full event (Whole) is missing.
//
// A data package stays in the file server of its site (internal/edge/lan/fileroom). Its offer crosses as an event. The file
// follows in segments when a device of a far site asks for it.
//
// The far site shows units by their last report and course, at the update rate of local maps, and lets them go stale
// when they are. Markers and shapes stay in a table until they are stale, for devices that connect later. Chats wait
// for a device.
//
// Callers pass the time, which never goes back. The package belongs to one goroutine.
//
// # Files
//
// Read lan.go and adapter.go first.
//
//   - lan.go: events from the LAN package, and orders to it
//   - adapter.go: Adapter and its Step
//   - step.go: the state that all parts share: configuration, counters, the output of a Step
//   - streams.go: devices of this LAN, and those on streams
//   - mesh.go: the multicast mesh of the LAN
//   - unicast.go: single devices of the mesh
//   - reports.go: positions of this site
//   - events.go: other events of this site
//   - address.go: events that name their recipients
//   - far.go: messages from other sites
//   - lately.go: events for devices that were away for a moment
//   - giving.go: events that are in custody until the devices' machines have them
//   - met.go: clients of other adapters of this gateway
//   - keep.go: events that stay until they are stale
//   - placed.go: objects that were placed on the map of this site and stay there
//   - words.go: chats and their receipts
//   - offers.go: data packages, which package internal/adapters/files carries
//   - wants.go: events that sites want to receive
//   - memory.go: state that survives a restart
//   - trouble.go: counters of events that were refused
//   - describe.go: properties that rules and operators see
package tak
