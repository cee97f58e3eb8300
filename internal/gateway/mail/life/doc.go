// Package life remembers what has happened to each message of this site: when it was accepted, when it was on the air, what
// became of it for each recipient. It decides nothing and is not in the journal: lives begin anew at a start.
//
// All of it is bounded: events of a message, messages, octets. The lives of messages that have ended go first, the oldest
// before the others. Times are those of the turn in which something happened; sizes are octets.
package life
