// Package journal keeps a gateway's state across crashes: opaque keys and values in named buckets, changed in
// transactions that are durable when Commit returns. It is the gateway's store (design 6, 10).
//
// The store is bbolt (file aldis.db in the data directory): one file, copy on write, no recovery step. A directory
// belongs to one node; the file says to which, in which format, and under which store id. What keys and values mean is
// known to internal/gateway alone.
//
// Sizes are octets. A Journal is used by one goroutine.
package journal
