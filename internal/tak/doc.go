// Package tak is the face towards TAK devices and servers, which speak Cursor-on-Target. It is pure: its LAN room
// (internal/lan/taklan) hands it the events of streams and of the mesh, and carries out its orders.
//
// It is the TAK server of its LAN: an event of one device goes to all others as it came, or to those that it names (marti).
// Pings are answered here; keep-alives, versions and authentication never cross.
//
// Towards far sites events become four kinds of messages:
//
//   - Positions (types a-...) go by a table of units (internal/tak/track) as batches of typed records. What waits is always
//     the newest. A batch's fate says when the next one goes.
//   - Other events go one by one, typed (internal/tak/code), each with the precedence of its type.
//   - Words (GeoChat) in the form that ATAK gives them, with a number, and receipts that say it.
//   - Asks name units of which a Whole is missing.
//
// A data package stays in its site's room of files (internal/lan/takfiles). Its offer crosses as an event; the file follows in
// parts when a device of a far site asks for it.
//
// At the far site units are shown by their last report and course at the cadence of the local maps, and go stale with the
// truth. Markers and shapes stay in a table until they are stale, for devices that come later. Chats wait for a device.
//
// Callers pass now, which never goes back. All is for one goroutine.
//
// # Files
//
//   - lan.go: what the LAN room says and is told
//   - face.go: Face and Step
//   - streams.go: devices
//   - mesh.go: the LAN's mesh
//   - unicast.go: devices of the mesh one by one
//   - reports.go: positions of this site
//   - events.go: other events of this site
//   - address.go: events for somebody by name
//   - far.go: what comes from other sites
//   - met.go: clients of other faces of this gateway
//   - keep.go: events that stay until they are stale
//   - placed.go: what was put on the map of this site and stays there
//   - words.go: chats and their receipts
//   - files.go: what the room of files says and is told
//   - offers.go: data packages of this site
//   - pulls.go: data packages of far sites
//   - wants.go: what sites want to be told
//   - memory.go: what outlives a restart
//   - trouble.go: what was refused
//   - describe.go: what rules and operators see
package tak
