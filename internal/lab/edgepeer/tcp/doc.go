// Package tcp gives an edge peer of internal/lab/edgepeer a TCP socket, for benchmarks and live replays. Many peers run
// in one process. Each has a goroutine that reads, and another that exists while there is something to write. No part
// of a gateway uses this package.
package tcp
