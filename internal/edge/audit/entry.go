package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Kind is what an Entry is about.
type Kind string

// Kinds of entries.
const (
	Start        Kind = "start"         // a gateway has started
	End          Kind = "end"           // it has ended as it was told to
	Order        Kind = "order"         // somebody gave an order; it stands here before it is obeyed
	OrderFailed  Kind = "order_failed"  // the order before was not obeyed, or nobody knows
	OrderRefused Kind = "order_refused" // an order of a user who may not give it
	Changed      Kind = "changed"       // another configuration is in force: what is different
	Refused      Kind = "refused"       // datagrams of the link that were not taken, by reason
	Torn         Kind = "torn"          // the end of the file was no whole line, and was cut off
	Damaged      Kind = "damaged"       // the files before were put aside
)

// Entry is one line, without its place in the chain. Texts longer than MaxText are cut.
type Entry struct {
	Kind Kind `json:"kind"`
	// Name says which order it was; What is the order's text, or says what happened.
	Name string `json:"name,omitempty"`
	What string `json:"what,omitempty"`
	By   string `json:"by,omitempty"` // the user that gave it
	// Counts are the numbers of refusals, by reason, since the last Entry of this kind.
	Counts map[string]uint64 `json:"counts,omitempty"`
	// LeftOut is the number of entries of this kind that were not written because too many came in an hour.
	LeftOut int `json:"left_out,omitempty"`
}

// MaxText is the most octets that a text of an Entry keeps.
const MaxText = 512

// Line is an Entry and its place in the chain.
type Line struct {
	Number uint64    `json:"n"` // from 1
	Time   time.Time `json:"time"`
	Entry
	Before string `json:"before"` // the hash of the line before; of the first line zeros
	Hash   string `json:"hash"`   // SHA-256 of this line with an empty Hash, in hexadecimal
}

// zero is the hash before the first line of a gateway.
var zero = hex.EncodeToString(make([]byte, sha256.Size))

// sum is the hash that the line must have.
func (l Line) sum() string {
	l.Hash = ""
	text, err := json.Marshal(l)
	if err != nil {
		panic("audit: " + err.Error()) // strings, numbers and a time of ours
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ErrLine says that a text is not a line of an audit log.
var ErrLine = errors.New("this is no line of an audit log")

// parseLine reads a line, without its line feed, and checks that it is written as Log writes it and that its hash is right.
func parseLine(text []byte) (l Line, err error) {
	if err := json.Unmarshal(text, &l); err != nil {
		return l, ErrLine
	}
	if again, err := json.Marshal(l); err != nil || !bytes.Equal(again, text) {
		return l, ErrLine
	}
	if l.Hash != l.sum() {
		return l, fmt.Errorf("line %d was changed: its hash is not that of its text", l.Number)
	}
	return l, nil
}

// cut shortens the texts of an entry.
func (e Entry) cut() Entry {
	for _, s := range []*string{&e.Name, &e.What, &e.By} {
		*s = string(bytes.ToValidUTF8([]byte(*s), []byte("?")))
		if len(*s) > MaxText {
			*s = string(bytes.ToValidUTF8([]byte((*s)[:MaxText]), nil)) + "..."
		}
	}
	return e
}
