// Package tune searches the free values of a profile for those that serve a trace better: fewer octets on the link, or
// messages that arrive sooner, and neither at the cost of the other, of a lost message or of the slowest few. It only says
// which plays it wants and learns how they went: New, then Next and Tell until Next wants no more. The same Config and the
// same answers give the same result; who makes the plays, and on how many processors, does not matter.
//
// # Against over-fitting
//
// Every candidate is played several times with other losses, and on traces whose peers speak at somewhat other times
// (Variant): what serves only the rhythm of one trace does not serve these. A change counts when it is better over all of
// them and in most of them. At the end the settings are played against the untouched profile on variants that no decision
// was made on; changes that do not hold there are taken back.
//
// # Units
//
// Values of knobs are those of the profile's file: milliseconds and octets. Octets of a play are IP octets of both directions.
package tune
