// Package gametest plays Blue Games with real gateways and unmodified JXTA peers, and compares the figures with those
// promised. It needs root, Java 17, and the peers of field-tests/peers, which it builds when they are not up to date.
//
// Without a build tag the games are short and mostly play at the same time: about four minutes in all. With -tags long
// they are the promised ones: five minutes each, three seeds, all profiles and generations of peers.
package gametest
