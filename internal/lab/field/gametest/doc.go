// Package gametest plays Blue Games with real gateways and unmodified JXTA peers, and holds the figures against what is
// promised. Needs root, Java 17, and the peers of field-tests/peers, which are built when they are not up to date.
//
// Without a build tag the games are short, and mostly play at the same time: about four minutes in all. With -tags long they
// are those of the promise: five minutes each, three seeds, all profiles and generations of peers.
package gametest
