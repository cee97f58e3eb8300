// Package takfiles is the room of files of the TAK face: it keeps data packages on the disk, gives them to devices of the LAN
// as a TAK server does (the Marti API over HTTP or TLS), takes them from devices, and does what the face orders.
//
// A file is named by its SHA-256 and never opened. What is kept is bounded: one file, all together, and for how long. Parts of
// a file that comes over the link are durable when the face is told so.
//
// Files: store.go files on the disk; parts.go files that are on their way; serve.go the listener and its bounds; places.go whose
// files are in memory, and for how long; marti.go what devices ask for; room.go what the face orders.
package takfiles
