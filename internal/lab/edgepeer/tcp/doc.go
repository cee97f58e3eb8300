// Package tcp puts an edge peer of internal/lab/edgepeer on a TCP socket, for benchmarks and live replays: many in one
// process, each with a goroutine that reads and one that comes and goes with what there is to write. Nothing of a
// gateway uses it.
package tcp
