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
}
