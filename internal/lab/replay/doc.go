// Package replay plays a trace again: peers do what the applications of a capture did, through whole gateways, and the
// package measures what that costs on a link. Run plays in virtual time (internal/lab/sim). A Script and a Record serve
// a live run as well (internal/lab/field).
//
// A Script says which peer does what when. A Record notes what then happened. A Result holds the figures of both beside
// those of the trace, under the names of `gateway analyse` (docs/traces.md).
//
// RunTAK plays the events of TAK devices the same way: all devices are on the ship's LAN, where the events were captured, and one
// more ashore watches. Times of events are moved to the world's. It says what the events cost, how long they take, and how far
// units are shown from where they are.
//
// # Judging plays
//
// Judge says before a mission what a trace would do on a link: whether everything arrives in time, how long the transmitters are on
// the air, and what that costs in the carrier's units. If something is late, it gives the reason and what would help. It judges
// several plays of one trace, which differ only in losses and jitter. The verdict holds for the worst of them.
//
// What the link has to carry is judged by the play that brought most home with the fewest octets: what another play sent
// again is luck. Each play is told with its seed, and how many of a hundred missions would go well by that.
//
// # The search for better settings
//
// A Search looks for values of a profile that serve a trace better: fewer octets on the link, or messages that arrive sooner, and
// neither at the cost of the other, of a lost message or of the slowest few. It plays nothing itself: Next says which plays it
// wants, Tell takes their results, until Next wants no more. The same SearchConfig and the same answers give the same Tuning,
// whichever program makes the plays, and on however many processors.
//
// Every candidate is played several times with different losses, and on traces whose peers speak at somewhat different times
// (Variant). A value that fits only the rhythm of one trace fails there. A change counts when it is better over all plays
// together and in most of them. At the end the settings are played against the untouched profile on variants that no decision
// was made on. Changes that fail there are taken back.
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
//   - causes.go: why a message is late or never arrives, and what the link has to carry
//   - knobs.go: the values that a search may change
//   - lan.go: the LANs of both sites in virtual time
//   - luck.go: the plays one by one, and what their number can tell
//   - meter.go: figures of gateways and emulator
//   - record.go: what the peers did and when messages arrived
//   - rehearse.go: the verdict, the cost, and what would help
//   - result.go: the figures beside those of the trace
//   - run.go: Run: a whole play in virtual time
//   - script.go: the trace as actions of peers
//   - search.go: Search: which plays it wants next
//   - sizes.go: sizes of datagrams, for carriers that bill each message
//   - tak.go: RunTAK: a whole play of TAK devices in virtual time
//   - takevents.go: their events of a trace
//   - takrehearsal.go: the verdict on a trace of TAK devices
//   - takwatch.go: what a far device sees
//   - tariff.go: prices
//   - text.go: a result as text
//   - tuned.go: the gain of a change, and whether it counts
//   - tunewrite.go: the profile with the changed values marked
//   - variant.go: traces whose peers speak at other times, and the figures of a play
//   - ways.go: what each of two bearers carried, and by which rule
//   - window.go: a part of a trace
//   - xmpp.go: RunXMPP: a whole play of what XMPP users say, and the verdict on it
package replay
