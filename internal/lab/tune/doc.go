// Package tune searches a profile for values that serve a trace better: fewer octets on the link, or messages that arrive
// sooner, and neither at the cost of the other, of a lost message or of the slowest few. It plays nothing itself: Next
// says which plays it wants, Tell takes their results, until Next wants no more. The same Config and the same answers
// give the same result, whoever makes the plays and on however many processors.
//
// # Against over-fitting
//
// Every candidate is played several times with different losses, and on traces whose peers speak at somewhat different
// times (Variant). A value that fits only the rhythm of one trace fails there. A change counts when it is better over all
// plays together and in most of them. At the end the settings are played against the untouched profile on variants that
// no decision was made on. Changes that fail there are taken back.
//
// # Units
//
// Values of knobs are those of the profile's file: milliseconds and octets. Octets of a play are IP octets of both directions.
package tune
