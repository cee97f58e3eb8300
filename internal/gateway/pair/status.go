package pair

import (
	"fmt"
	"time"
)

// Status describes a machine of a site of two to operators.
type Status struct {
	Role      string    `json:"role"` // Role, as text
	Epoch     uint64    `json:"epoch"`
	Since     time.Time `json:"since"`              // of the role
	LedSince  time.Time `json:"led_since,omitzero"` // since when the leader leads, as this machine knows it; zero: none does
	Other     string    `json:"other"`              // address of the other machine
	Connected bool      `json:"connected"`
	Refused   string    `json:"refused,omitempty"` // why the other machine is not taken
	Whole     bool      `json:"whole"`             // this machine's journal has all that was confirmed, as far as it knows
	Stuck     bool      `json:"stuck,omitempty"`   // it waits for the other machine, or for an order
	Silent    bool      `json:"silent,omitempty"`  // it leads and may not transmit now
	Passing   int       `json:"passing"`           // connections of local peers that are passed on to the leader
	Ready     bool      `json:"ready"`             // a leader: the other machine could lead at once
	// Of a leader: no other machine has the commits that it confirms, and how many these are.
	Alone          bool      `json:"alone"`
	AloneSince     time.Time `json:"alone_since,omitzero"`
	OneDiskCommits uint64    `json:"one_disk_commits"`
	OneDiskOctets  uint64    `json:"one_disk_octets"`
	// Commits that the follower has not acknowledged; none of them is confirmed, unless the leader is alone.
	BehindCommits uint64    `json:"behind_commits"`
	BehindOctets  uint64    `json:"behind_octets"`
	BehindSince   time.Time `json:"behind_since,omitzero"`

	Witness      string    `json:"witness,omitempty"` // its address; "": there is none
	WitnessHeard time.Time `json:"witness_heard,omitzero"`
	WitnessLost  bool      `json:"witness_lost,omitempty"`

	Members []Member `json:"members,omitempty"` // of three and more; then Other is the leader, and "": there is none
}

// Member is one of three machines and more.
type Member struct {
	At            string    `json:"at"`
	Self          bool      `json:"self,omitempty"`
	Leads         bool      `json:"leads,omitempty"`
	Connected     bool      `json:"connected"`
	Version       string    `json:"version,omitempty"` // of its gateway, as it said last
	Refused       string    `json:"refused,omitempty"` // why it is not taken
	Heard         time.Time `json:"heard,omitzero"`
	BehindCommits uint64    `json:"behind_commits"` // that it has not acknowledged, as the leader knows it
	BehindOctets  uint64    `json:"behind_octets"`  // of these
	BehindSince   time.Time `json:"behind_since,omitzero"`
}

// noticed is for how long a member may be behind before operators are told: under load each is for a moment.
const noticed = 2 * time.Second

// Words say what a member is, and since is from when; zero: that does not matter, or is not known.
func (m *Member) Words(s *Status, now time.Time) (text string, since time.Time) {
	switch {
	case m.Leads:
		text, since = "leads", s.LedSince
	case m.Self:
		text, since = s.Role, s.Since
	case m.Refused != "":
		text = "refused: " + m.Refused
	case !m.Connected:
		text, since = "NOT CONNECTED", m.Heard
	case m.BehindCommits > 0 && now.Sub(m.BehindSince) > noticed:
		text, since = fmt.Sprintf("behind by %d commits (%d octets)", m.BehindCommits, m.BehindOctets), m.BehindSince
	default:
		text = "connected"
	}
	if m.Self {
		text += " (this machine)"
	}
	return text, since
}

// All are the machines of a site, two or more.
func (s *Status) All() []Member {
	if len(s.Members) > 0 {
		return s.Members
	}
	leads := s.Role == Leading.String()
	return []Member{
		{At: "this machine", Self: true, Leads: leads, Connected: true},
		{At: s.Other, Leads: s.Role == Following.String(), Connected: s.Connected, Refused: s.Refused, BehindCommits: s.BehindCommits, BehindOctets: s.BehindOctets, BehindSince: s.BehindSince},
	}
}

// Spare is how many machines more may be lost before nobody leads, of three and more.
func (s *Status) Spare() int {
	up := 0
	for _, m := range s.Members {
		if m.Connected {
			up++
		}
	}
	return up - len(s.Members)/2 - 1
}

// Others are the addresses of the other machines.
func (s *Status) Others() (list []string) {
	for _, m := range s.Members {
		if !m.Self {
			list = append(list, m.At)
		}
	}
	if len(s.Members) == 0 {
		list = []string{s.Other}
	}
	return list
}
