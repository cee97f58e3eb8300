// Package forecast judges before a mission what a trace would do on a link: whether everything arrives in time, how long
// the transmitters are on the air, and what that costs in the carrier's units. If something is late, it gives the reason
// and what would help. It judges several plays of one trace (internal/lab/replay), which differ only in losses and
// jitter. The verdict holds for the worst of them.
//
// What the link has to carry is judged by the play that brought most home with the fewest octets: what another play sent
// again is luck. Each play is told with its seed, and how many of a hundred missions would go well by that.
//
// # Files
//
//   - causes.go: why a message is late or never arrives, and what the link has to carry
//   - luck.go: the plays one by one, and what their number can tell
//   - rehearse.go: the verdict, the cost, and what would help
//   - takrehearsal.go: the verdict on a trace of TAK devices
//   - tariff.go: prices
//
// # Units
//
// Times are seconds unless named otherwise, sizes octets, rates bits per second. Money is in the user's currency; prices are
// the user's, none are built in.
package forecast
