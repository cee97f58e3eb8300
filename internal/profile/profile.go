package profile

import "time"

// Direction is one way of a link: up from the terminal, down to it.
type Direction struct {
	RateBps     int           // bits per second of IP octets; 0 is unlimited
	Delay       time.Duration // one way, least
	Jitter      time.Duration // uniform on top of Delay
	QueueOctets int           // drop-tail; 0 is unlimited
	LossPct     float64       // independent, per frame
	LossRef     int           // octets; >0: LossPct is per started block of so many
	GEp, GEr    float64       // Gilbert-Elliott: good to bad, bad to good, per frame
	GEBadPct    float64       // loss while bad
	GEGoodPct   float64       // loss while good
}

// Profile is one link: what it does to packets, and how a gateway uses it.
type Profile struct {
	Name    string
	Summary string
	// The link.
	Shared        bool // one half-duplex channel that all hear; otherwise a star, each terminal with its own leg
	Up, Down      Direction
	Turnaround    time.Duration // shared: from the end of the last frame to another talker
	MaxHold       time.Duration // shared: the talker yields after so long when others wait
	KeyUp         time.Duration
	MTU           int // IP octets
	FrameOverhead int // octets per frame below IP
	Reorder       bool
	// The gateway's use of it.
	DatagramOctets int           // largest UDP payload that radio sends
	SegmentOctets  int           // NORM segment
	Window         int           // messages under way per peer, unacknowledged
	AckDelay       time.Duration // a receipt waits so long for something to ride on
	ProbeInterval  time.Duration // rare probe while a message is overdue and nothing is heard
	HoleAge        time.Duration // a hole under an acknowledged number is sent again when so old
	GRTT           time.Duration // fixed for NORM, the same at all members
	Bundle         time.Duration // what becomes ready within it shares a datagram
}
