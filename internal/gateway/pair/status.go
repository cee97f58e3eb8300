package pair

import "time"

// Status is what a machine of a site of two is, for operators.
type Status struct {
	Role      string    `json:"role"` // Role, as text
	Epoch     uint64    `json:"epoch"`
	Since     time.Time `json:"since"` // of the role
	Other     string    `json:"other"` // address of the other machine
	Connected bool      `json:"connected"`
	Refused   string    `json:"refused,omitempty"` // why the other machine is not taken
	Whole     bool      `json:"whole"`             // this machine's journal has all that was confirmed, as far as it knows
	Stuck     bool      `json:"stuck,omitempty"`   // it waits for the other machine, or for an order
	Silent    bool      `json:"silent,omitempty"`  // it leads and may not transmit now
	Passing   int       `json:"passing"`           // connections of local peers that are passed on to the leader
	Ready     bool      `json:"ready"`             // a leader: the other machine could lead at once
	// Of a leader: no other machine has what it confirms, and how much that is.
	Alone          bool      `json:"alone"`
	AloneSince     time.Time `json:"alone_since,omitzero"`
	OneDiskCommits uint64    `json:"one_disk_commits"`
	OneDiskOctets  uint64    `json:"one_disk_octets"`
	// Commits that the follower has not acknowledged; none of them is confirmed, unless the leader is alone.
	BehindCommits uint64 `json:"behind_commits"`
	BehindOctets  uint64 `json:"behind_octets"`

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
	BehindSince   time.Time `json:"behind_since,omitzero"`
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
