// Package takfiles is the file server of the TAK adapter. It stores data packages on the disk, serves them to devices
// of the LAN as a TAK server does (the Marti API over HTTP or TLS), accepts uploads, and carries out the adapter's
// orders.
//
// The SHA-256 of a file is its name, and the server never opens one. The size of a file, of all files, and their age
// are limited. Segments of a file that arrives over the link are durable before the adapter is told of them.
//
// Files: room.go the server and the adapter's orders, start here; serve.go the listener and its limits; marti.go
// requests of devices; store.go files on the disk; parts.go files that are under way; places.go who may hold a file in
// memory, and how long.
package takfiles
