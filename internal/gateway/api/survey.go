package api

import (
	"aldis/internal/link/survey"
)

// The states of a survey.
const (
	SurveyRuns    = "running"
	SurveyDone    = "done"
	SurveyFailed  = "failed"  // nothing came of it: Text says why
	SurveyRefused = "refused" // it was not begun: Text says why
)

// SurveyStatus is what became of an order to survey. Octets are IP octets.
type SurveyStatus struct {
	Ref      uint64 `json:"-"`               // number that the order had
	Peer     string `json:"peer"`            // name of the peer
	State    string `json:"state"`           // one of the states above
	Text     string `json:"text,omitempty"`  // why it failed or was refused
	Budget   int    `json:"budget_octets"`   // most octets of both directions together
	Sent     int    `json:"sent_octets"`     // by this end
	Received int    `json:"received_octets"` // by this end
	// Others counts the datagrams of other traffic on this end's link meanwhile: of many the figures are worse.
	Others uint64 `json:"other_datagrams"`
	// Packets are the datagrams of a survey that is done; shared, not to be changed.
	Packets []survey.Packet `json:"-"`
}
