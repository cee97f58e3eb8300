// Package daemon is the loop that drives a gateway: one goroutine owns the gateway's state machine and feeds it the
// events of the LAN, the link, libnorm and the clock. The loop makes no protocol decision. It keeps one order: the
// records of a Step are durable before anything else that the Step wants is carried out.
//
// Read daemon.go first (inboxes and turns), then settle.go (commit and carry out), hear.go (datagrams on a busy
// machine), clock.go (time) and metrics.go. The package has goroutines and channels and reads the clock; it is not
// pure.
//
// # Inboxes
//
// The loop has four inboxes, all bounded. Those of the LAN, of libnorm and of operators' orders block the sender, so
// that the LAN stops reading its sockets. The inbox of the link does not block: when it is full, radio drops the
// datagram and counts it. One turn of the loop takes what has gathered, up to a batch, datagrams first.
//
// # A busy machine
//
// Before the loop acts on a timer, it reads the datagrams that wait in the kernel (hear.go). It tells the gateway how
// long each datagram has waited in this machine and whether more follow. The gateway runs its timers after the last
// one.
//
// # The journal
//
// The journal writes beside the loop, so that local peers do not wait for a slow disk. An output with records waits
// for its commit, and so does everything for the link behind it, in order. A commit takes all records that have
// gathered since the last one. An output that has no record and concerns only local peers leaves at once, but never
// overtakes output for the same connection: docs/decisions/commits.md. When a silence begins, datagrams that still wait
// are dropped, and custody repairs the loss.
//
// # When the journal cannot write
//
// While the journal cannot be written (disk full or failing), the loop keeps outputs with records, in order, and
// retries the commit every second. No datagram leaves in that time, because it could acknowledge something that is not
// durable yet. Datagrams made meanwhile are lost as on any link, and custody repairs the loss. Outputs without records
// still reach the LAN, so local peers get answers. The log names each remedy once; Trouble reports it for as long as
// it applies. Beyond 4 MiB of waiting output the loop takes no more events, and the LAN slows down.
//
// # Time
//
// Step receives the machine's monotonic clock, which the loop sets to the wall clock at its start. A wall clock that
// jumps therefore moves no timer. Expiry times however are absolute and cross the link, so the two clocks must not
// differ for good. After a jump the loop's time runs up to 5 % faster or slower until it has caught up (20 hours for
// one hour), and never goes back. The loop logs and counts the jump. A restart adopts the wall clock at once.
package daemon
