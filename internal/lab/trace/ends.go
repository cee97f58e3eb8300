package trace

import (
	"fmt"
	"math"
	"slices"

	"aldis/internal/lab/linkemu"
)

// lengthEdges divide connections by how long they last, seconds.
var lengthEdges = [...]float64{1, 10, 60, 600}

// Length is the connections within a range of lengths.
type Length struct {
	FromS       float64 `json:"from_s"`
	BelowS      float64 `json:"below_s,omitempty"` // 0: none is longer
	Connections int64   `json:"connections"`
	DataPackets int64   `json:"data_packets"`
}

// name is the range in words.
func (l Length) name() string {
	if l.BelowS == 0 {
		return fmt.Sprintf("of %g s and longer", l.FromS)
	}
	return fmt.Sprintf("of %g to %g s", l.FromS, l.BelowS)
}

// length adds a connection to those of its length.
func (l *connections) length(c *conn) {
	seconds, i := float64(c.last-c.first)/1e9, 0
	for i < len(lengthEdges) && seconds >= lengthEdges[i] {
		i++
	}
	l.lengths[i].Connections++
	l.lengths[i].DataPackets += c.data
}

// byLength are the ranges that have connections.
func (l *connections) byLength() (list []Length) {
	for i, of := range l.lengths {
		if i > 0 {
			of.FromS = lengthEdges[i-1]
		}
		if i < len(lengthEdges) {
			of.BelowS = lengthEdges[i]
		}
		if of.Connections > 0 {
			list = append(list, of)
		}
	}
	return list
}

// Ends is figures that captures at both ends of one run show and a single one does not. All times are by the first capture's clock.
type Ends struct {
	From         Passing `json:"from_the_first"`
	To           Passing `json:"to_the_first"`
	ClockS       float64 `json:"clock_offset_s"` // of the second capture's clock, ahead of the first's
	DriftPPM     float64 `json:"clock_drift_ppm"`
	TerminationS float64 `json:"termination_s"` // from the first packet's sending to the last one's arrival
	Alone        int     `json:"of_third_stations"`
	Found        []Found `json:"until_found,omitempty"`
}

// Passing is the packets of one direction.
type Passing struct {
	Packets int           `json:"packets"`
	Octets  int64         `json:"octets"` // of IP
	Lost    int           `json:"lost"`
	DelayS  *Distribution `json:"one_way_s"` // null: none arrived
}

// Found is the traffic on the link until the edge first received another's service, both ways, lost packets included.
type Found struct {
	Name    string  `json:"name"`
	S       float64 `json:"s"` // from the first packet of TCP
	Packets int     `json:"packets"`
	Octets  int64   `json:"octets"` // of IP
}

// Join adds the figures of a capture of the other end: j joins both, this one first.
func (r *Report) Join(j linkemu.Joined) {
	e := &Ends{ClockS: j.Offset.Seconds(), DriftPPM: j.DriftPPM, Alone: j.Alone}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, way := range []struct {
		to   *Passing
		list []linkemu.Crossing
	}{{&e.From, j.Up}, {&e.To, j.Down}} {
		var delays samples
		for _, c := range way.list {
			first = min(first, c.Sent)
			way.to.Packets++
			way.to.Octets += int64(c.Octets)
			if c.Lost {
				way.to.Lost++
				continue
			}
			last = max(last, c.Arrived)
			delays.add(float64(c.Arrived-c.Sent) / 1e9)
		}
		way.to.DelayS = delays.result()
	}
	e.TerminationS = float64(max(0, last-first)) / 1e9
	for _, s := range r.Discovery {
		if s.Own {
			continue
		}
		f := Found{Name: s.Name, S: s.S}
		for _, c := range slices.Concat(j.Up, j.Down) {
			if float64(c.Sent-r.start)/1e9 <= s.S {
				f.Packets++
				f.Octets += int64(c.Octets)
			}
		}
		e.Found = append(e.Found, f)
	}
	r.Ends = e
}

func (e *Ends) writeText(w *Writer) {
	if e == nil {
		return
	}
	w.F("\nBoth ends: the second clock is %.3f s ahead of the first and gains %.1f millionths; all was there after %.1f s\n", e.ClockS, e.DriftPPM, e.TerminationS)
	for _, way := range []struct {
		name string
		p    Passing
	}{{"from the first end", e.From}, {"to the first end", e.To}} {
		w.row(way.name, "%d packets of %d octets, %d lost", way.p.Packets, way.p.Octets, way.p.Lost)
		if d := way.p.DelayS; d != nil {
			w.row("  one way, seconds", "least %.3f, median %.3f, 95th %.3f, most %.3f", d.Sorted[0], d.MedianS, d.P95S, d.MaxS)
		}
	}
	if e.Alone > 0 {
		w.row("of third stations", "%d packets", e.Alone)
	}
	for _, f := range e.Found {
		w.row("until "+clean(f.Name)+" was found", "%d packets, %d octets", f.Packets, f.Octets)
	}
}
