package api

import (
	"aldis/internal/link/probe"
)

// The states of a link probe.
const (
	LinkProbeRuns    = "running"
	LinkProbeDone    = "done"
	LinkProbeFailed  = "failed"  // nothing came of it: Text says why
	LinkProbeRefused = "refused" // it was not begun: Text says why
)

// LinkProbeStatus says what became of an order for a link probe. Octets are IP octets.
type LinkProbeStatus struct {
	Ref      uint64 `json:"-"`               // number that the order had
	Peer     string `json:"peer"`            // name of the peer
	Bearer   string `json:"link,omitempty"`  // name of the bearer that is measured, if it has one
	State    string `json:"state"`           // one of the states above
	Text     string `json:"text,omitempty"`  // why it failed or was refused
	Budget   int    `json:"budget_octets"`   // most octets of both directions together
	Sent     int    `json:"sent_octets"`     // by this end
	Received int    `json:"received_octets"` // by this end
	// Others counts the datagrams of other traffic on this end's link meanwhile: many of them make the figures worse.
	Others uint64 `json:"other_datagrams"`
	// Packets are the datagrams of a link probe that is done; shared, not to be changed.
	Packets []probe.Packet `json:"-"`
}
