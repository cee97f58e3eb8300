package cot

import "fmt"

// Reason is why something was not read: a word for counters.
type Reason string

// Reasons.
const (
	Syntax     Reason = "syntax"      // neither XML nor Protocol Buffers of an event
	TooLong    Reason = "too_long"    // more than MaxEvent octets
	TooDeep    Reason = "too_deep"    // more than MaxDepth levels or MaxNodes nodes
	Doctype    Reason = "doctype"     // a document type or an entity of its own
	NoName     Reason = "no_name"     // no uid or type, or one longer than MaxName
	NoTime     Reason = "no_time"     // time, start or stale is missing, or is not a time
	StaleFirst Reason = "stale_first" // stale is before start
	Nowhere    Reason = "nowhere"     // no point, or one outside of the world
)

// Reasons lists them all.
var Reasons = []Reason{Syntax, TooLong, TooDeep, Doctype, NoName, NoTime, StaleFirst, Nowhere}

// Fault is the error of all functions that read.
type Fault struct {
	Reason Reason
	Text   string // for people
}

// Error is the reason in a sentence.
func (f *Fault) Error() string { return "cot: " + f.Text }

func fault(r Reason, format string, args ...any) error {
	return &Fault{r, fmt.Sprintf(format, args...)}
}
