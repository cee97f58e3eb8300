// Package config reads the gateway's configuration (TOML 1.0, without unknown keys) and the files that it names. It reports all
// mistakes at once, each with file, line, key and remedy, so that one edit repairs the file. docs/configure.md lists
// the keys: TestPage writes that list from the schema.
//
// Times are durations with a unit ("20s") and addresses are "ip:port". Relative paths start at the directory of the
// configuration file. Package internal/edge/keyfile reads key files, internal/link/profile profiles.
//
// The package reads files and is therefore not pure. It opens no sockets and starts nothing.
//
// # Files
//
// Read config.go first: it shows the configuration as a whole. schema.go has a line for each key: its name, how it is read,
// where its value goes, and what it means. Reading, Changes, Text and the page all use these lines. To rename a key, change its
// line there and add one to oldNames.
//
//   - config.go: the configuration as a whole
//   - schema.go: the sections and their keys
//   - slot.go: kinds of keys: text, numbers, times, addresses, choices
//   - tree.go: TOML as sections, keys and line numbers
//   - section.go: one section of the file
//   - nearest.go: the suggestion for a misspelt key
//   - warn.go: settings that are allowed but seldom intended
//   - changes.go: the differences between two configurations, for a reload
//   - trust.go: the roster and the node's own key
//   - secret.go: the secret that encrypts the journal
//   - control.go: who may give orders, where traces go, and the settings that commands for operators read
//   - filter.go: rules for what may cross the link
//   - message.go: rules for the precedence of messages
//   - group.go: groups of gateways
//   - fleet.go: reports of gateways to the headquarters
//   - route.go: rules for the link that a message takes, and the octets of a day on a link
//   - meet.go: rules that join JXTA pipes with TAK units and chats
//   - xmpp.go: where the LAN's XMPP server is, and the domains of far sites
//   - tak.go: where TAK devices connect, and the rules for their events
//   - relay.go: which peers pass on messages for others
//   - site.go: the second gateway of this site
//   - corpus.go: the network's own corpus for compression
//   - view.go: views of JXTA peers by group, site and link
package config
