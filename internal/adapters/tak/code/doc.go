// Package code encodes CoT events for the link: typed records instead of text. It spells out the elements that it does not know by
// name; nothing is dropped. The compression of messages in custody (link/compact) works on the result, and finds in it
// the octets of earlier messages. The package is pure.
//
// A single event (Append, Parse) is a head, a point and its elements. Words that events share are numbers (words.go).
// Ids, times and decimal numbers are binary (text.go). Uids and callsigns of units that the far side knows are the
// unit's number (Names).
//
// A Batch reports several units at once: a whole event for a unit that is new or has changed, and for later positions
// only the differences from that event (batch.go). So it does not matter which later position has arrived.
//
// Parse returns an event equal to the one given to Append (cot.Canonical). The tables of words are part of the
// protocol: words are only ever added at the end.
//
// Files: event.go single events, start here; batch.go positions of several units; words.go words that events share;
// text.go values; pack.go short texts; place.go coordinates; fix.go the position of a unit; usual.go the elements with
// which a device usually reports itself; chat.go chats.
package code
