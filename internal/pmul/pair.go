package pmul

import "time"

// pairBusy counts the air that the other of two has used, or this node beside its Sender: what the radio holds leaves so much later,
// and answers to it are waited for from then. Of two nobody has to say whose turn it is. What the other says while the radio holds
// nothing puts off no question: on an empty channel one costs less than what waits for its answer.
func pairBusy(now time.Time, s *Sender, ev Busy) {
	if ev.By == s.cfg.Self {
		give(&s.pace, now, ev.Air)
		return
	}
	end := now.Add(-s.cfg.Delay)
	began := end.Add(-ev.Air)
	gap := began.Sub(s.channel.end)
	s.channel.end = end
	if !s.airAt.After(began) {
		return
	}
	by := ev.Air
	switch {
	case began.Before(s.heldFrom): // it spoke already when the radio was given something, which begins after it
		by = max(0, end.Add(s.cfg.Turnaround).Sub(s.heldFrom))
	case gap >= 2*s.cfg.Turnaround: // this node spoke between
		by += 2 * s.cfg.Turnaround
	case gap >= s.cfg.Turnaround:
		by += s.cfg.Turnaround
	}
	leavesLater(s, began, by)
}
