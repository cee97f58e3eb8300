package trace

import (
	"fmt"
	"math"
	"strings"
)

// Condition is the state of a link by its capture.
type Condition string

// The conditions.
const (
	Unjudged Condition = "unjudged" // there is too little to judge, or nothing
	Clean    Condition = "clean"
	Strained Condition = "strained" // it costs time
	Jammed   Condition = "jammed"   // some of the traffic did not get through
)

// A link above these shares is strained or jammed. They are a choice: a LAN repeats less than 1 % of its packets, and the links of 2004
// repeated 7 to 24 % (table 5.7 of the report).
const (
	fewPackets     = 20  // fewer are not judged
	strainedAgain  = 2.0 // per cent of packets that were sent again
	jammedAgain    = 10.0
	strainedFailed = 10.0 // per cent of connections that were never set up
	jammedFailed   = 30.0
	slowSetup      = 3.0  // s, on average
	slowDiscovery  = 60.0 // s
)

// Jam is the signs of a jammed link: the trace of its capture has only the traffic that got through, at the times when it got through.
type Jam struct {
	RetransmitPct float64 `json:"retransmissions_percent"`
	Setups        int64   `json:"setups"`
	FailedSetups  int64   `json:"setups_failed"`
	CutMessages   int64   `json:"messages_cut,omitempty"` // begun and never finished
}

// String is the jam in words, as the end of a sentence.
func (j Jam) String() string {
	var parts []string
	if j.RetransmitPct >= strainedAgain {
		parts = append(parts, fmt.Sprintf("%.0f %% of all packets were sent again", j.RetransmitPct))
	}
	if j.FailedSetups > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d connections were never set up", j.FailedSetups, j.Setups+j.FailedSetups))
	}
	if j.CutMessages > 0 {
		parts = append(parts, fmt.Sprintf("%d messages were begun and never ended", j.CutMessages))
	}
	return listing(parts)
}

// Jam is the Jam of a capture's link; zero when it was not jammed.
func (r *Report) Jam() Jam {
	if r.Condition != Jammed {
		return Jam{}
	}
	return Jam{math.Round(10*r.RetransmitPct) / 10, r.Setups, r.FailedSetups, r.CutMessages}
}

// listing writes a list as part of a sentence.
func listing(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// judge says in one sentence what is wrong with the link, or that nothing is.
func (r *Report) judge() {
	r.Condition = Unjudged
	link := r.Link != nil && r.Link.Datagrams > 0
	switch f := r.Figures; {
	case f.Packets == 0 && link:
		r.Headline = r.Link.headline()
	case f.Packets == 0 && r.CoT != nil:
		r.Headline = strings.ToUpper(r.CoT.headline()[:1]) + r.CoT.headline()[1:] + "."
	case f.Packets == 0:
		r.Headline = "Nothing was found that could be judged."
	case f.Packets < fewPackets:
		r.Headline = fmt.Sprintf("%d packets of TCP are too few to judge a link by.", f.Packets)
	default:
		r.judgeTCP()
	}
}

func (r *Report) judgeTCP() {
	tried := r.Setups + r.FailedSetups
	failed := percent(r.FailedSetups, tried)
	r.Condition = Clean
	var wrong []string
	note := func(c Condition, format string, args ...any) {
		if r.Condition != Jammed {
			r.Condition = c
		}
		wrong = append(wrong, fmt.Sprintf(format, args...))
	}
	switch again := r.RetransmitPct; {
	case again >= jammedAgain:
		note(Jammed, "%.0f %% of all packets were sent again", again)
	case again >= strainedAgain:
		note(Strained, "%.1f %% of all packets were sent again", again)
	}
	switch {
	case failed >= jammedFailed && r.FailedSetups > 1:
		note(Jammed, "%d of %d connections were never set up", r.FailedSetups, tried)
	case failed >= strainedFailed:
		note(Strained, "%d of %d connections were never set up", r.FailedSetups, tried)
	}
	if r.Setups > 0 && r.Figures.SetupAvgS >= slowSetup {
		note(Strained, "setting one up took %.1f s on average", r.Figures.SetupAvgS)
	}
	if s, ok := r.firstForeign(); ok && s >= slowDiscovery {
		note(Strained, "another peer's service was found after %.0f s", s)
	}
	switch r.Condition {
	case Jammed:
		r.Headline = "This link was jammed: " + listing(wrong)
	case Strained:
		r.Headline = "This link was strained: " + listing(wrong)
	default:
		r.Headline = "Nothing is wrong with this link: no packet was sent again"
		if r.RetransmitPct > 0 {
			r.Headline = fmt.Sprintf("Nothing is wrong with this link: %.1f %% of all packets were sent again", r.RetransmitPct)
		}
		if tried > 0 && r.FailedSetups == 0 {
			r.Headline += ", and every connection was set up"
		}
	}
	switch {
	case r.CoT != nil && r.Messages == 0:
		r.Headline += "; " + r.CoT.headline()
	case r.Messages == 0:
		r.Headline += "; no JXTA was found on it"
	case r.Edge != "":
		r.Headline += fmt.Sprintf("; of 100 octets on the wire %.1f were the application's", percent(r.Application.Total, r.Figures.TotalBytes))
	}
	r.Headline += "."
}

// firstForeign is the time at which the edge found the first service of another peer, in seconds.
func (r *Report) firstForeign() (s float64, ok bool) {
	for _, d := range r.Discovery { // in order of time
		if !d.Own {
			return d.S, true
		}
	}
	return 0, false
}

// headline is for a capture that has datagrams of gateways and nothing else.
func (r *LinkReport) headline() string {
	if r.Opened == 0 {
		return fmt.Sprintf("%d datagrams of gateways, none of which could be opened: --key FILE with the network's key shows what they were for.", r.Datagrams)
	}
	s := fmt.Sprintf("Gateways sent %d datagrams", r.Datagrams)
	if r.Messages > 0 {
		s += fmt.Sprintf(" for %d messages: %d have their acknowledgement in the capture, %d frames were sent again", r.Messages, r.Acked, r.Repeats)
		if r.Acked > 0 {
			s += fmt.Sprintf(", and an acknowledgement took %.1f s on average", r.MeanS)
		}
	}
	return s + "."
}

// headline is a sentence on the events of TAK devices.
func (r *CoTReport) headline() string {
	return fmt.Sprintf("%d TAK devices and %d other units made %.1f reports a minute of %.0f octets each", r.Devices, r.Units-r.Devices, r.PerMinute, r.mean())
}

// mean is the mean number of octets of a report.
func (r *CoTReport) mean() float64 {
	for _, k := range r.Kinds {
		if k.Name == cotPosition {
			return float64(k.Octets) / float64(max(1, k.Count))
		}
	}
	return 0
}
