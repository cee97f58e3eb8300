// Package files carries files between sites on demand, for adapters that offer them: TAK's data packages, and uploads of XMPP clients.
// A file stays in the file room of its site (internal/edge/lan/fileroom) until somebody at another site asks for it; then it crosses in
// parts of PartOctets, as deferred messages, a window at a time. Parts that have arrived survive restarts. The hash decides
// whether they make the right file.
//
// Files: words.go events and orders between the file room and an adapter; desk.go files that are under way.
package files
