// Package config reads the gateway's configuration (TOML 1.0, strict) and the key files. It reports every mistake
// at once, with file, line, key and remedy, so that one edit mends the file. docs/configure.md lists the keys.
//
// Times are durations with a unit ("20s"), addresses are "ip:port". Relative paths count from the directory of the
// configuration file. The format of a key file is that of internal/link/seal, profiles are those of internal/link/profile.
//
// # Files
//
//   - changes.go: what differs between two configurations
//   - config.go: the configuration as a whole
//   - control.go: who may give orders, and what commands read that give them
//   - corpus.go: what the net teaches its gateways
//   - destroy.go: keys and journals wiped
//   - filter.go: the rules for what may cross
//   - key.go: key files
//   - meet.go: what is the same in JXTA and TAK
//   - message.go: the rules for what goes first
//   - nearest.go: the key that was meant, where one is misspelt
//   - secret.go: what seals the journal
//   - section.go: the values of one section, checked
//   - silence.go: the calendar of silence
//   - tak.go: where TAK devices are, and the rules for their events
//   - takkeys.go: certificates of TAK devices
//   - takrevoke.go: certificates of TAK devices that were taken back
//   - traces.go: where traces of messages go
//   - tree.go: TOML as sections, keys and lines
//   - trust.go: a roster and a node's own key
//   - warn.go: what is allowed but seldom meant
package config
