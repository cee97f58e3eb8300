// Package node runs a gateway: it joins the rooms of one, starts and stops them, and keeps its sockets. `gateway run`.
//
// # Files
//
//   - audited.go: what a running gateway enters into the record of orders
//   - bearers.go: bearers of all kinds, and whose keys those over TLS take
//   - gone.go: the journal taken away while the gateway runs
//   - journald.go: the log as fields of systemd's journal
//   - keep.go: the keeper: holds the LAN's sockets while gateways come and go
//   - lastrun.go: how long ago the last run began, whatever the wall clock says
//   - log.go: the log, with a limit on repeats
//   - looks.go: what a running gateway is asked between two turns of its loop
//   - meet.go: where adapters meet
//   - reloader.go: the configuration in force, and a new one put in its place
//   - rights.go: what a running gateway may not do
//   - run.go: `run`: joins the rooms of a gateway
//   - secret.go: what seals the journal, from a file or the keyboard
//   - site.go: two machines at a site: the gateway while this one leads, otherwise what follows
//   - sockets.go: listening sockets, own or inherited
//   - spared.go: records of the journal that a start goes on without
//   - tak.go: the TAK adapter
//   - xmpp.go: the XMPP adapter
//   - taught.go: the network's corpus that a start uses
//   - trust.go: whose keys the gateway goes by
//   - whatif.go: a rehearsal by the second program, for the page
package node
