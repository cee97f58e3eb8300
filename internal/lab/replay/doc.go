// Package replay plays a trace again: peers do what the applications of a capture did, through whole gateways, and the package measures
// the cost on a link. Run plays in virtual time (internal/lab/sim). A Script and a Record serve a live run as well (internal/lab/field).
//
// A Script says which peer does what when. A Record notes what then happened. A Result holds the figures of the replay next to those of
// the trace, under the names of `gateway analyse` (docs/traces.md).
//
// RunTAK plays the events of TAK devices the same way: all devices are on the ship's LAN, where the events were captured, and one more
// ashore watches. Times of events are moved to the world's. RunTAK measures the cost of the events, how long they take, and how far from
// their positions units are shown.
//
// # Judging plays
//
// Judge says before a mission how a trace would fare on a link: whether everything arrives in time, how long the transmitters are on the
// air, and the cost in the carrier's units. If messages are late, it gives the reason and a remedy. It judges several plays of one trace,
// which differ only in losses and jitter. The verdict is that of the worst play.
//
// The load on the link is that of the play that delivered most messages with the fewest octets: octets that another play sent again are
// luck. The verdict lists each play with its seed, and estimates how many of a hundred missions would go well.
//
// # The search for better settings
//
// A Search looks for values of a profile that serve a trace better: fewer octets on the link, or messages that arrive sooner, and neither
// at the cost of the other, of a lost message or of the slowest few. It plays nothing itself: Next returns the plays that it wants, and
// Tell takes their results, until Next returns none. The same SearchConfig and the same results give the same Tuning, whichever program
// makes the plays, and on however many processors.
//
// Every candidate is played several times with different losses, and on traces whose peers send at somewhat different times (Variant). A
// value that fits only the rhythm of one trace fails there. A change counts when it is better over all plays together and in most of
// them. At the end the settings are played against the untouched profile on variants that served no decision. Changes that fail there are
// taken back.
//
// # Time and units
//
// Times in a Result are seconds from the first event of the trace, sizes octets; octets on the link are IP octets.
// Nothing here reads a clock: the same trace and Options give the same Result. Values of
// knobs are those of the profile's file: milliseconds and octets. Money is in the user's currency; prices are the user's, none are
// built in.
//
// # Files
//
//   - cast.go: moves edge peers by a Script
//   - causes.go: why a message is late or never arrives, and the load on the link
//   - knobs.go: the values that a search may change
//   - lan.go: the LANs of both sites in virtual time
//   - luck.go: the plays one by one, and the conclusions from their number
//   - meter.go: figures of gateways and emulator
//   - record.go: the actions of the peers and the arrivals of messages
//   - rehearse.go: the verdict, the cost, and the remedies
//   - result.go: the figures compared with those of the trace
//   - run.go: Run: a whole play in virtual time
//   - script.go: the trace as actions of peers
//   - search.go: Search: chooses the next plays
//   - sizes.go: sizes of datagrams, for carriers that bill each message
//   - tak.go: RunTAK: a whole play of TAK devices in virtual time
//   - takevents.go: the events of TAK devices in a trace
//   - takrehearsal.go: the verdict on a trace of TAK devices
//   - takwatch.go: the view of a far device
//   - tariff.go: prices
//   - text.go: a result as text
//   - tuned.go: the gain of a change, and whether it counts
//   - tunewrite.go: the profile with the changed values marked
//   - variant.go: traces whose peers speak at other times, and the figures of a play
//   - ways.go: the traffic of each of two bearers, by rule
//   - window.go: a part of a trace
//   - xmpp.go: RunXMPP: a whole play of the stanzas of XMPP users, and the verdict on it
package replay
