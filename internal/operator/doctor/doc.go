// Package doctor examines a machine and the gateway that runs on it, and reports what is wrong, each finding with a
// remedy. It changes nothing and sends nothing over the link. It asks the kernel for routes and limits, and the
// running gateway for its status.
//
// A fault stops messages from crossing, or soon will. A warning is about something that works badly or may not work later.
//
// Files: doctor.go findings and the order of checks, start here; clock.go the clock; disk.go data directory and key
// file; ports.go listening sockets and multicast; rights.go what the process may do; route.go the route to far
// gateways; far.go what the running gateway reports about far gateways.
package doctor
