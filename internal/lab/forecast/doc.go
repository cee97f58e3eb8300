// Package forecast judges before a mission what a trace would do on a link: whether everything arrives in time, how long
// the transmitters are on the air, and what that costs in the carrier's units. If something is late, it gives the reason
// and what would help. It judges several plays of one trace (internal/lab/replay), which differ only in losses and
// jitter. The verdict holds for the worst of them.
//
// What the link has to carry is judged by the play that brought most home with the fewest octets: what another play sent
// again is luck. Each play is told with its seed, and how many of a hundred missions would go well by that.
//
// # The search for better settings
//
// A Search looks for values of a profile that serve a trace better: fewer octets on the link, or messages that arrive sooner, and
// neither at the cost of the other, of a lost message or of the slowest few. It plays nothing itself: Next says which plays it
// wants, Tell takes their results, until Next wants no more. The same SearchConfig and the same answers give the same Tuning,
// whoever makes the plays and on however many processors.
//
// Every candidate is played several times with different losses, and on traces whose peers speak at somewhat different times
// (Variant). A value that fits only the rhythm of one trace fails there. A change counts when it is better over all plays
// together and in most of them. At the end the settings are played against the untouched profile on variants that no decision
// was made on. Changes that fail there are taken back.
//
// # Files
//
//   - causes.go: why a message is late or never arrives, and what the link has to carry
//   - knobs.go: the values that a search may change
//   - luck.go: the plays one by one, and what their number can tell
//   - rehearse.go: the verdict, the cost, and what would help
//   - search.go: Search: which plays it wants next
//   - takrehearsal.go: the verdict on a trace of TAK devices
//   - tariff.go: prices
//   - tuned.go: the gain of a change, and whether it counts
//   - tunewrite.go: the profile with the changed values marked
//   - variant.go: traces whose peers speak at other times, and the figures of a play
//
// # Units
//
// Times are seconds unless named otherwise, sizes octets, rates bits per second. Values of knobs are those of the profile's file:
// milliseconds and octets. Money is in the user's currency; prices are
// the user's, none are built in.
package forecast
