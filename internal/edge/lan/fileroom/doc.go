// Package fileroom is the file server of an adapter. It stores files on the disk, serves them to the devices and clients of the LAN,
// accepts uploads, and carries out the adapter's orders. It offers two interfaces: that of a TAK server for data packages (the Marti API
// over HTTP or TLS), and HTTP uploads for XMPP clients (XEP-0363).
//
// The SHA-256 of a file is its name, and the server never looks into a file. The size of a file, of all files, and their age
// are limited. Segments of a file that arrives over the link are durable before the adapter learns of them.
//
// Files: room.go the server and the adapter's orders, start here; serve.go the listener and its limits; marti.go requests of TAK
// devices; uploads.go requests of XMPP clients; store.go files on the disk; parts.go files that are arriving; places.go who may hold
// a file in memory, and how long.
package fileroom
