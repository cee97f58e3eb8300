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
	Ref      uint64 `json:"-"`
	Peer     string `json:"peer"`
	State    string `json:"state"`
	Text     string `json:"text,omitempty"`
	Budget   int    `json:"budget_octets"`
	Sent     int    `json:"sent_octets"`
	Received int    `json:"received_octets"`
	// Others counts the datagrams of other traffic on this end's link meanwhile: of many the figures are worse.
	Others uint64 `json:"other_datagrams"`
	// Packets are the datagrams of a survey that is done; shared, not to be changed.
	Packets []survey.Packet `json:"-"`
}
