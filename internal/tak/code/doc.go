// Package code makes CoT events small for the link: typed records instead of text. What it does not know by name it spells;
// nothing is dropped. Custody's own coding (link/compact) works on the octets that come out, and finds there what earlier
// messages had.
//
// An event alone (Append, Parse) is a head, a point and its elements. Words that events have in common are numbers
// (words.go); ids, times and decimal numbers are octets (text.go); uids and callsigns of units that the far side knows are
// the unit's number (Names).
//
// A Batch reports several units at once: a whole event for a unit that is new or has changed, of later positions only what
// is different from that event (batch.go). It does not depend on which later position arrived.
//
// Parse gives an event that is the same as Append's (cot.Canonical). The tables of words are part of the protocol: words
// are only ever added at the end.
//
// Files: words.go what events have in common; text.go values; pack.go short texts; place.go places; usual.go a device's
// report of itself; event.go events; batch.go positions of several units; fix.go
// where a unit is; chat.go words.
package code
