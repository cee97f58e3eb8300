// Package daemon is the loop: the one goroutine that owns the gateway's state machine, the one place where events of
// the LAN, the link, libnorm and the clock meet, and the one that keeps their order: what a Step wants remembered is
// durable before anything else that it wants is done. It decides nothing about protocols.
//
// # Inboxes
//
// Three, all bounded: the LAN's and libnorm's make the poster wait (so lan stops reading its sockets), the link's
// answers that it is full (so radio drops and counts). One turn takes what is there, up to a batch.
//
// # The journal
//
// writes beside the loop, so that a slow disk does not keep local peers waiting: an output with records, and everything
// for the link behind it, waits in order until its commit is done; a commit takes whatever has gathered since the last.
// What is for local peers alone and needs no record goes at once, but never past something that waits for the same
// connection: docs/decisions/commits.md.
//
// # When the journal cannot write
//
// Say, the disk is full. Then nothing is acted on that depends on it: outputs with records are kept, in order, and
// the commit is tried again every second. Until it works no datagram leaves, because a receipt could be inside for
// something not yet durable; those made meanwhile are lost as on any link, and custody repairs that. Outputs without
// records still go to the LAN, so local peers keep getting answers. When 4 MiB are kept the loop takes no more
// events, and the LAN feels it.
//
// # Time
//
// Step gets the machine's monotonic clock, set by the wall clock at the start: a wall clock that jumps moves no
// timer. Because expiry times are absolute and cross the link, the two must not differ for good: after a jump the
// loop's time runs up to 5 % faster or slower until it has caught up (an hour takes 20 hours), and never goes back. A
// jump is logged and counted; a restart takes over the wall clock at once.
package daemon
