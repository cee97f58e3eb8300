package linkemu

import "time"

// Count is frames and their IP octets.
type Count struct {
	Frames, Octets int64
}

func (c *Count) add(octets int) {
	c.Frames++
	c.Octets += int64(octets)
}

// Counters are one direction of one node. On the air are frames that took airtime, whether they then arrived or not; on a shared channel
// the down direction counts the frames to this node, not all that it heard.
type Counters struct {
	Offered        Count // came to the direction's queue
	OnAir          Count
	Delivered      Count // down only: arrived at the node
	DroppedQueue   Count // the queue was full
	DroppedLoss    Count
	DroppedOutage  Count
	DroppedSilent  Count // up only: the node may only receive
	DroppedMTU     Count // up only: longer than the profile's MTU
	DroppedNoRoute Count // up only: for a node that does not exist
	Busy           time.Duration
	QueueMax       int // octets, the longest it has been
}

func (c *Counters) sent(octets int, air time.Duration) {
	c.OnAir.add(octets)
	c.Busy += air
}

// ChannelStats is the time of a shared channel; zero for a star.
type ChannelStats struct {
	Busy       time.Duration // a node was sending
	Turnaround time.Duration // a frame waited for a change of talker, or for keying up
	Turns      int64         // changes of talker
}

// NodeStats is one node's part of Stats.
type NodeStats struct {
	Name     string
	Up, Down Counters
}

// Stats is a copy of all counters, nodes in the order of the configuration.
type Stats struct {
	Nodes   []NodeStats
	Channel ChannelStats
}

// Stats copies the counters.
func (l *Link) Stats() Stats {
	var s Stats
	for _, n := range l.nodes {
		s.Nodes = append(s.Nodes, NodeStats{n.Name, n.upStats, n.dnStats})
	}
	if l.chann != nil {
		s.Channel = l.chann.stats
	}
	return s
}

// Node finds a node's counters by name; zero when there is none.
func (s Stats) Node(name string) NodeStats {
	for _, n := range s.Nodes {
		if n.Name == name {
			return n
		}
	}
	return NodeStats{Name: name}
}
