// Package doctor looks at a machine and at the gateway that runs on it, and says what is wrong there, with the way out. It
// changes nothing and sends nothing: the kernel is asked for routes and limits, the gateway for its status. What only a
// running gateway knows is asked of that.
//
// A fault keeps messages from crossing, or is about to. A warning is what works badly or might not work later.
//
// Files: doctor.go findings and who is asked; clock.go the clock; disk.go data directory and key file; ports.go listening
// sockets and multicast; rights.go what the process may do; route.go the way to the far gateways; far.go what the running gateway
// says of them.
package doctor
