package corpusexchange

import (
	"time"

	"aldis/internal/link/compact"
)

// Name is a corpus as gateways and their operators name it: the first octets of its hash.
func Name(f *compact.CorpusFile) string { return hexOf(f.Hash[:4]) }

// Orders of the operator.
type (
	// Send sends the file of a corpus to sites.
	Send struct {
		Sites []uint16
		File  []byte
	}
	// Accept makes the gateway use a received corpus from the next start on.
	Accept struct{ Name string }
	// Forget deletes a received corpus. If it was accepted, the gateway does not use it from the next start on.
	Forget struct{ Name string }
)

// AdapterEvent marks Send as an event of a protocol adapter.
func (Send) AdapterEvent() {}

// AdapterEvent marks Accept as an event of a protocol adapter.
func (Accept) AdapterEvent() {}

// AdapterEvent marks Forget as an event of a protocol adapter.
func (Forget) AdapterEvent() {}

// Status is the state of the adapter for operators; it shares no memory with the adapter.
type Status struct {
	// Accepted is the name of the corpus that a start uses in the place of the configured one; "": none was accepted.
	Accepted string `json:"accepted,omitempty"`
	// Received are the corpora that other sites have sent, by site.
	Received []Row `json:"received,omitempty"`
	// Sent counts the orders in this run to send a corpus, Refused the corpora that were received and not kept.
	Sent    int `json:"sent,omitempty"`
	Refused int `json:"refused,omitempty"`
}

// Row is a corpus that was received.
type Row struct {
	Name     string    `json:"corpus"`
	Site     uint16    `json:"site"`
	At       time.Time `json:"at"`
	Messages int       `json:"messages"`
	Octets   int       `json:"octets"` // of all messages together
}
