// Package node is `gateway run`: it connects the rooms of a gateway, starts and stops them, and keeps its sockets.
//
// # Files
//
//   - audited.go: the entries of a running gateway in the audit record
//   - bearers.go: bearers of all kinds, and whose keys those over TLS accept
//   - gone.go: the journal taken away while the gateway runs
//   - journald.go: the log as fields of systemd's journal
//   - keep.go: the keeper: holds the LAN's sockets while gateways come and go
//   - lastrun.go: how long ago the last run began, independent of the wall clock
//   - log.go: the log, with a limit on repeats
//   - looks.go: reads between two turns of the loop
//   - meet.go: where adapters meet
//   - reloader.go: the configuration in force, and its replacement
//   - rights.go: restrictions of a running gateway
//   - run.go: `run`: connects the rooms of a gateway
//   - secret.go: the secret that seals the journal, from a file or the keyboard
//   - site.go: a machine of a site of several: the gateway while it leads, otherwise the follower
//   - sockets.go: listening sockets, own or inherited
//   - spared.go: records of the journal that a start goes on without
//   - tak.go: the TAK adapter
//   - xmpp.go: the XMPP adapter
//   - taught.go: the network's corpus that a start uses
//   - trust.go: the keys that the gateway trusts
//   - whatif.go: a rehearsal by the second program, for the page
package node
