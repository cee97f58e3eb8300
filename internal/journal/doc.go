// Package journal keeps a gateway's state across crashes: opaque keys and values in named buckets, changed in
// transactions that are durable when Commit returns. It is the gateway's store (design 6, 10).
//
// The store is bbolt (file aldis.db in the data directory): one file, copy on write, no recovery step. A directory
// belongs to one node; the file says to which, in which format, and under which store id. What keys and values mean is
// known to internal/gateway alone.
//
// bbolt believes what it reads, and a damaged page is a fault of the process. So every value carries a checksum, the
// journal keeps a tally of all records, and Open has the whole file read by internal/journal/pages before bbolt maps it.
// A damaged record of a bucket that its caller can spare is set aside and named; any other damage is a reason to refuse,
// with the way out in the error. docs/decisions/journal-check.md.
//
// A disk that fails is no reason to believe less: what Commit has confirmed is on it, and a page that it does not give is an
// error, never a fault. docs/decisions/failing-disk.md.
//
// With a secret the records are sealed (internal/atrest), keys as well as values. Checksums and tally are those of what the file
// has, so that a file can be checked without its secret. docs/decisions/journal-at-rest.md.
//
// Sizes are octets. A Journal is used by one goroutine, but for Backup and Gone.
//
// # Files
//
//   - aside.go: records that were set aside
//   - backup.go: a copy while commits go on, and one that is put back
//   - check.go: what a file holds and what is wrong with it
//   - extents.go: whether all of a file has a place on the disk
//   - journal.go: commit and load
//   - mark.go: the file beside it that says that there is a journal
//   - open.go: lock, check, claim
//   - repair.go: what an operator does with a journal that no gateway uses
//   - rewrite.go: a file written anew, and older formats
//   - sealed.go: a file whose records are sealed with a key that is not beside it
//   - salvage.go: what can be read of a broken file
//   - store.go: bbolt on a disk that may fail
//   - trouble.go: errors of a disk in words
//   - value.go: checksums and the tally
package journal
