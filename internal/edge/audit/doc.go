// Package audit records what people and peers tried to do to a gateway: its starts and stops, orders and who gave
// them, and refusals by reason. The record is a file of JSON lines. Each line carries the hash of the line before it,
// so changed, removed or inserted lines show.
//
// An attacker with write access can rewrite the file from any line on, with matching hashes. An operator who has noted
// the last hash elsewhere can detect this: Verify reports whether a noted hash is still in the record.
//
// Where the journal is encrypted, each line of the record is too (internal/edge/atrest). Without the secret, a thief of the
// disk sees only how many lines there are and how long they are.
//
// The files are audit.log and, in order of age, audit.log.1 to audit.log.N. A file that reaches its size limit is
// renamed, and the oldest is removed. Sizes are octets. Several goroutines may use one Log.
//
// Read entry.go (one line) first, then log.go (writing), read.go (reading and verifying) and sealed.go (encrypted
// lines).
package audit
