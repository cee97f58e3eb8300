// Package daemon is the loop: the one goroutine that owns the gateway's state machine. Events of the LAN, the link,
// libnorm and the clock meet here and nowhere else. The loop keeps their order: the records of a Step are durable
// before the loop does anything else that the Step wants. It decides nothing about protocols.
//
// # Inboxes
//
// There are four, all bounded. Those of the LAN, of libnorm and of the operator's orders make the poster wait, so lan stops
// reading its sockets. That of the link answers that it is full, so radio drops the datagram and counts it. One turn of the
// loop takes what is there, up to a batch, datagrams first.
//
// # A busy machine
//
// Where something is due, the loop first hears what waits in the kernel (hear.go). The engine is told of each datagram how long it
// has lain in this machine, and whether more are behind it. It does what is due when it has heard the last.
//
// # The journal
//
// The journal writes beside the loop, so that local peers do not wait for a slow disk. An output with records, and
// everything for the link behind it, waits in order until its commit is done. A commit takes whatever has gathered
// since the last one. An output that is for local peers alone and has no record leaves at once, but never overtakes
// something that waits for the same connection: docs/decisions/commits.md.
//
// # When the journal cannot write
//
// While the journal cannot be written (disk full, or failing), the loop holds back every output that depends on it. It
// keeps outputs with records, in order, and tries the commit again every second. Until that works no datagram leaves,
// because a datagram could contain a receipt for something that is not durable yet. Datagrams made in the meantime are
// lost as on any link, and custody repairs that. Outputs without records still go to the LAN, so local peers get their
// answers. The log says what to do, once for each thing to do, and Trouble says it all the time. When 4 MiB are held
// back the loop takes no more events, and the LAN feels it.
//
// # Time
//
// Step gets the machine's monotonic clock, which the loop sets by the wall clock at the start. A wall clock that jumps
// therefore moves no timer. But expiry times are absolute and cross the link, so the two clocks must not differ for
// good. After a jump the loop's time runs up to 5 % faster or slower until it has caught up (an hour takes 20 hours),
// and never goes back. A jump is logged and counted. A restart takes over the wall clock at once.
package daemon
