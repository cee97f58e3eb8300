// Package history records what happened to each message of this site: when it was accepted, when it was on the air, and
// its outcome for each recipient. It decides nothing. Lives are not in the journal; they begin anew at a start.
//
// The package is pure. The events of a message, the number of messages and their octets are bounded. When space runs
// out, the lives of ended messages go first, the oldest before the others. Times are those of the turn in which
// something happened. Sizes are octets. Read life.go first; name.go holds the printed names of messages.
package history
