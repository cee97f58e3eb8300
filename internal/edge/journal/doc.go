// Package journal stores a gateway's state so that it survives crashes: opaque keys and values in named buckets,
// changed in transactions that are durable when Commit returns (design 6, 10). Only internal/gateway knows what keys
// and values mean.
//
// The store is bbolt (file aldis.db in the data directory): one file, copy on write, without a recovery step. A data
// directory belongs to one node. The file names that node, the format and the store's id.
//
// bbolt trusts what it reads, and a damaged page crashes the process. Therefore every value carries a checksum, the
// journal keeps a tally of all records, and Open reads the whole file with internal/edge/journal/pages before bbolt maps
// it. A damaged record of a bucket that the caller can spare is set aside and named. For any other damage Open fails,
// with the remedy in the error: docs/decisions/journal-check.md.
//
// A failing disk loses nothing that Commit has confirmed: a page that the disk does not return is an error, not a
// crash (docs/decisions/failing-disk.md).
//
// With a secret, keys and values are encrypted (internal/edge/atrest). Checksums and tally cover the encrypted form, so a
// file can be checked without its secret: docs/decisions/journal-at-rest.md.
//
// Sizes are octets. One goroutine uses a Journal; only Backup and Gone may be called from others.
//
// # Files
//
// Read journal.go and open.go first. The other files matter when something is damaged.
//
//   - journal.go: load and commit
//   - open.go: lock, check and claim a data directory
//   - value.go: checksums and the tally
//   - store.go: bbolt on a disk that may fail
//   - trouble.go: disk errors in words
//   - mark.go: the file beside the journal that says that a journal exists
//   - sealed.go: a journal encrypted with a key that is not beside it
//   - backup.go: a copy while commits go on, and its restoration
//   - rewrite.go: writing the file anew, also from older formats
//   - follow.go: a journal that follows another machine's
//   - check.go: what a file holds and what is wrong with it
//   - extents.go: whether the whole file has space on the disk
//   - aside.go: records that were set aside
//   - log.go: the log of a site of three and more
//   - repair.go: what an operator can do with a journal that no gateway uses
//   - salvage.go: what can be read of a broken file
package journal
