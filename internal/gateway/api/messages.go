package api

import (
	"time"
)

// AdvertRow is one advertisement of the cache as an operator sees it.
type AdvertRow struct {
	Origin    string   `json:"origin"`         // "local", or the name of the far site
	Group     string   `json:"group"`          // JXTA group that it belongs to
	Type      string   `json:"type"`           // as in filter rules
	Root      string   `json:"root,omitempty"` // name of its XML root element
	Name      string   `json:"name,omitempty"` // its Name element
	ID        string   `json:"id"`             // under which it is kept
	Peer      string   `json:"peer,omitempty"` // that published it
	Pipe      string   `json:"pipe,omitempty"` // that it names
	Octets    int      `json:"octets"`         // of its XML as it is kept
	Signed    bool     `json:"signed,omitempty"`
	LifetimeS int64    `json:"lifetime_s"` // that is left
	Sites     []Travel `json:"sites"`      // of a local one: how far it is to each far site
}

// Travel says how far an advertisement is on its way to a far site.
type Travel struct {
	Site  string `json:"site"`          // name of the far site
	State string `json:"state"`         // "held", "under way", "waits", "stays"
	Why   string `json:"why,omitempty"` // why it waits or stays
}

// Behind counts the messages that go before a message.
type Behind struct {
	Messages int `json:"messages"` // how many go before
	Octets   int `json:"octets"`   // as journalled
}

// MessageRow is one message of this site as an operator sees it.
type MessageRow struct {
	ID         string         `json:"id"`                  // for orders about the message
	Adapter    string         `json:"adapter"`             // protocol adapter that accepted it
	From       string         `json:"from"`                // address of the sender
	FromName   string         `json:"from_name,omitempty"` // of the sender, where known
	ToPipe     string         `json:"to_pipe"`             // a pipe or topic, or an endpoint and which part of it
	PipeName   string         `json:"pipe_name,omitempty"` // of the pipe, where known
	Label      string         `json:"label,omitempty"`     // what it is about, as the rules' last_value finds it
	Precedence string         `json:"precedence"`          // after rules and orders
	Octets     int            `json:"octets"`              // as journalled
	Coded      int            `json:"coded_octets"`        // that went on the air for the first time towards one recipient
	Accepted   time.Time      `json:"accepted,omitzero"`   // absent: nobody knows any more
	Expires    time.Time      `json:"expires,omitzero"`    // absent: never
	State      string         `json:"state"`               // "waiting", "under_way" or "ended", of the recipient that is furthest back
	Held       bool           `json:"held,omitempty"`      // for one recipient at least
	Behind     Behind         `json:"waits_behind"`        // the most of all recipients for whom it waits
	Expected   time.Time      `json:"expected,omitzero"`   // when the last recipient has it; absent: nobody can say
	Recipients []RecipientRow `json:"recipients"`          // by id
	Life       []LifeRow      `json:"life,omitempty"`      // of one message alone
	LifeLost   int            `json:"life_lost,omitempty"` // events that had no room, after the first

	Number uint64 `json:"-"` // ID as the gateway counts
}

// RecipientRow is where a message stands with one site.
type RecipientRow struct {
	Site     string    `json:"site"`              // name of the recipient
	State    string    `json:"state"`             // "waiting", "under_way" or how it ended
	Since    time.Time `json:"since,omitzero"`    // of the state
	Detail   string    `json:"detail,omitempty"`  // why it is in this state
	Bearer   string    `json:"bearer,omitempty"`  // link that it takes or waits for; absent: it has no name, or the message has ended
	Expected time.Time `json:"expected,omitzero"` // when it will be there; absent: nobody can say

	ID     uint16    `json:"-"` // of the recipient in the network
	SentAt time.Time `json:"-"` // when it was last on the air
	Long   bool      `json:"-"` // it goes in segments: sent at once, it takes its time
}

// LifeRow is something that happened to a message.
type LifeRow struct {
	At     time.Time `json:"at,omitzero"`      // absent: nobody knows
	What   string    `json:"what"`             // the event
	Site   string    `json:"site,omitempty"`   // the recipient concerned
	Detail string    `json:"detail,omitempty"` // more about the event
	Link   string    `json:"link,omitempty"`   // the link that the message takes from then on
	Rule   string    `json:"rule,omitempty"`   // the [[route]] rule by which it does
}

// The states of a message, of that recipient that is furthest back.
const (
	StateWaiting  = "waiting"
	StateUnderWay = "under_way"
	StateEnded    = "ended"
)
