// Package takplay plays the events of TAK devices through two whole gateways with TAK faces over an emulated link, in virtual
// time, and says what that costs and how the far map looks: octets on the link, how long events take, and how far units are
// shown from where they are.
//
// All devices are on the ship's LAN, where the events were captured; one more device ashore watches. Times of events are
// moved to the world's. Nothing here reads a clock: the same events, profile and seed give the same Result.
//
// Files: play.go the play; tracefile.go events of a trace; watch.go what the far device sees.
package takplay
