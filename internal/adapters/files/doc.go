// Package files carries files between sites on demand, for adapters that offer them: TAK's data packages, and what XMPP clients upload.
// A file stays in the room of files of its site (internal/edge/lan/fileroom) until somebody at another site asks for it; then it comes in
// parts of PartOctets, as deferred messages, a window at a time. What has come survives restarts. The hash decides whether it is the file.
//
// Files: words.go what the room of files and its adapter tell each other; desk.go files that are under way.
package files
