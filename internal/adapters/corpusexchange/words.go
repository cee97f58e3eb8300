package corpusexchange

import (
	"time"

	"aldis/internal/link/compact"
)

// Name is a corpus as gateways and their operators name it: the first octets of its hash.
func Name(f *compact.CorpusFile) string { return hexOf(f.Hash[:4]) }

// What the operator orders.
type (
	// Send has the file of a corpus sent to sites.
	Send struct {
		Sites []uint16
		File  []byte
	}
	// Accept has a corpus that was received used from the next start on.
	Accept struct{ Name string }
	// Forget throws a received corpus away, and does not use it from the next start on if it was accepted.
	Forget struct{ Name string }
)

// AdapterEvent marks Send as an event of a protocol adapter.
func (Send) AdapterEvent() {}

// AdapterEvent marks Accept as an event of a protocol adapter.
func (Accept) AdapterEvent() {}

// AdapterEvent marks Forget as an event of a protocol adapter.
func (Forget) AdapterEvent() {}

// Status is what an operator is told; it shares nothing with the adapter.
type Status struct {
	// Accepted is the name of the corpus that a start uses in the place of the configured one; "": none was accepted.
	Accepted string `json:"accepted,omitempty"`
	// Received are those that other sites have sent, by site.
	Received []Row `json:"received,omitempty"`
	// Sent counts the orders to send one in this run, Refused what was received and not kept.
	Sent    int `json:"sent,omitempty"`
	Refused int `json:"refused,omitempty"`
}

// Row is a corpus that was received.
type Row struct {
	Name     string    `json:"corpus"`
	Site     uint16    `json:"site"`
	At       time.Time `json:"at"`
	Messages int       `json:"messages"`
	Octets   int       `json:"octets"` // of these together
}
