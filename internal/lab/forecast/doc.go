// Package forecast says beforehand what a trace would do on a link: whether everything arrives in time, how long the
// transmitters are on the air, what it costs in the carrier's units, and if not, why not and what would help. It judges
// several plays of one trace (internal/lab/replay), which differ only in what is lost and by how much packets jitter; what it
// promises holds in the worst of them.
//
// # Units
//
// Times are seconds unless named otherwise, sizes octets, rates bits per second. Money is in the user's currency; prices are
// the user's, none are built in.
package forecast
