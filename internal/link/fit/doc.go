// Package fit says from captures at both ends of a link what the link does to packets: rate, delay and jitter each way,
// loss and its bursts, the change of talker on a shared channel, and how the two clocks differ. It writes that as a profile.
//
// The captures are joined by their packets. Neither clock is trusted: the least delays of the two directions are taken to
// be equal on a star. Of rates and turnaround those are taken that make the rest of all delays most alike, when the packets
// are sent through a link with them, queues included. On a shared channel that link is internal/link/linkemu's.
//
// Times are nanoseconds or time.Duration, sizes IP octets, rates bits per second. Nothing here reads a clock or a file.
//
// # Files
//
//   - estimate.go: rate, delay, jitter and loss of one direction
//   - few.go: the same of a star by few packets, as a survey has them
//   - fit.go: Join, Fit
//   - survey.go: OfSurvey
//   - text.go: what was found, as JSON and as text
//   - write.go: a profile with where each number comes from
package fit
