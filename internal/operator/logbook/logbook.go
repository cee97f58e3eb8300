// Package logbook gives every line of the operator's log a stable key, which stays when the words change, and explains the
// line.
//
// The table is in events.go. docs/log.md is generated from it and from the source: go test ./internal/operator/logbook -run
// TestPage -args -write. A test finds every place in the source that writes to the log, and fails when its text is not
// in the table or when the table holds a text that no code writes.
package logbook

import "strings"

// Event is one kind of line.
type Event struct {
	Key     string // "peer.started": scripts and alerts use it; it never changes
	Text    string // of the line; a text that ends with a space or a colon is the beginning of the line
	Meaning string // for the operator, beyond what the text says
	Fields  string // fields that come from elsewhere than the place that writes the line, with spaces between
}

// Field is the name of the field that carries a line's key.
const Field = "event"

// Unknown is the key of a line that is not in the table.
const Unknown = "other"

var byText = func() map[string]string {
	m := map[string]string{}
	for _, e := range Events {
		m[e.Text] = e.Key
	}
	return m
}()

// KeyOf is the key of a line with this text.
func KeyOf(text string) string {
	if key := byText[text]; key != "" {
		return key
	}
	for _, e := range Events {
		if e.open() && strings.HasPrefix(text, e.Text) {
			return e.Key
		}
	}
	return Unknown
}

// open says whether lines of the event go on after its text.
func (e Event) open() bool { return strings.HasSuffix(e.Text, " ") || strings.HasSuffix(e.Text, ":") }
