// Package forecast judges before a mission what a trace would do on a link: whether everything arrives in time, how long
// the transmitters are on the air, and what that costs in the carrier's units. If something is late, it gives the reason
// and what would help. It judges several plays of one trace (internal/lab/replay), which differ only in losses and
// jitter. The verdict holds for the worst of them.
//
// # Units
//
// Times are seconds unless named otherwise, sizes octets, rates bits per second. Money is in the user's currency; prices are
// the user's, none are built in.
package forecast
