// Package audit keeps the record of what people and peers tried on a gateway: starts and ends, orders and who gave them, and
// refusals by reason. It is a file of JSON lines, each with the hash of the line before it, so that a line that was changed,
// taken out or put in shows.
//
// Whoever can write the file can also write it anew from any line on, with hashes that fit. The last hash, noted elsewhere,
// shows that too: Verify tells whether a noted hash is still there.
//
// Where the journal is sealed, so is each line (internal/atrest): without the secret a thief of the disk sees how many there
// are and how long.
//
// Files are audit.log and, older, audit.log.1 to audit.log.N: a file that has reached its bound is renamed, and the oldest
// is removed. Sizes are octets. A Log may be used by several goroutines.
package audit
