package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

// Reading is the figures of both gateways and the emulator at one moment.
type Reading struct {
	Ship, Shore         api.Status
	Link                linkemu.Stats
	ShipNode, ShoreNode string // their names in Link
	// Other is the traffic on the other of two bearers: with Link it is all that the gateways sent.
	Other UpDown[linkemu.Count]
}

// counters are those of the ship's two directions; on a shared channel, of the frames that each of the two sent.
func (r *Reading) counters(shared bool) (up, down linkemu.Counters) {
	up, down = r.Link.Node(r.ShipNode).Up, r.Link.Node(r.ShipNode).Down
	if shared {
		down = r.Link.Node(r.ShoreNode).Up
	}
	return up, down
}

// Meter computes the link's part of a Result from readings.
type Meter struct {
	Result *Result
	p      profile.Profile
	prev   [2]map[string]int64 // ledgers at the end of the last bin
	busy   [2]time.Duration
	lost   UpDown[int64]
	drops  UpDown[int64]
}

// NewMeter makes a Meter for a link of this profile.
func NewMeter(p profile.Profile) *Meter { return &Meter{Result: &Result{}, p: p} }

func queueOf(st api.Status) (q Queue) {
	for _, peer := range st.Peers {
		q.Messages += peer.Waiting
		q.UnderWay += peer.UnderWay
		q.Octets += peer.WaitingOctets
	}
	return q
}

// Idle says whether no message is under way between the gateways.
func (r *Reading) Idle() bool {
	a, b := queueOf(r.Ship), queueOf(r.Shore)
	return a.Messages+a.UnderWay+b.Messages+b.UnderWay == 0
}

// Bin notes the figures since from.
func (m *Meter) Bin(from time.Duration, r Reading) {
	kinds := [2]map[string]int64{{}, {}}
	for i, st := range []api.Status{r.Ship, r.Shore} {
		total := map[string]int64{}
		for _, row := range st.Ledger {
			if row.Direction == "sent" {
				total[row.Kind] += int64(row.Octets)
			}
		}
		for kind, octets := range total {
			if d := octets - m.prev[i][kind]; d > 0 {
				kinds[i][kind] = d
			}
		}
		m.prev[i] = total
	}
	up, down := r.counters(m.p.Shared)
	m.Result.Bins = append(m.Result.Bins, Bin{
		T: round(from.Seconds()), Octets: UpDown[map[string]int64]{kinds[0], kinds[1]},
		BusyS: UpDown[float64]{round((up.Busy - m.busy[0]).Seconds()), round((down.Busy - m.busy[1]).Seconds())},
		Queue: UpDown[Queue]{queueOf(r.Ship), queueOf(r.Shore)},
	})
	m.busy = [2]time.Duration{up.Busy, down.Busy}
	b := &m.Result.Bins[len(m.Result.Bins)-1]
	lost, drops := r.lost(m.p.Shared), UpDown[int64]{up.DroppedQueue.Frames, down.DroppedQueue.Frames}
	b.Lost = UpDown[int64]{lost.Up - m.lost.Up, lost.Down - m.lost.Down}
	b.Drops = UpDown[int64]{drops.Up - m.drops.Up, drops.Down - m.drops.Down}
	m.lost, m.drops = lost, drops
}

// lost are the datagrams that were lost on the air.
func (r *Reading) lost(shared bool) UpDown[int64] {
	if shared { // on a shared channel loss is drawn where a frame is heard
		return UpDown[int64]{r.Link.Node(r.ShoreNode).Down.DroppedLoss.Frames, r.Link.Node(r.ShipNode).Down.DroppedLoss.Frames}
	}
	up, down := r.counters(shared)
	return UpDown[int64]{up.DroppedLoss.Frames, down.DroppedLoss.Frames}
}

// Finish fills in all figures; elapsed is the time since the trace's beginning.
func (m *Meter) Finish(rec *Record, elapsed time.Duration, r Reading) {
	res := m.Result
	up, down := r.counters(m.p.Shared)
	res.LinkBytes = UpDown[int64]{up.OnAir.Octets + r.Other.Up.Octets, down.OnAir.Octets + r.Other.Down.Octets}
	res.LinkPackets = UpDown[int64]{up.OnAir.Frames + r.Other.Up.Frames, down.OnAir.Frames + r.Other.Down.Frames}
	res.Dropped = UpDown[int64]{up.DroppedQueue.Frames, down.DroppedQueue.Frames}
	res.Lost = r.lost(m.p.Shared)
	res.Ledger = slices.Concat(ledgerOf(r.Ship, r.Shore.Name), ledgerOf(r.Shore, r.Ship.Name))
	res.Waiting = UpDown[Queue]{queueOf(r.Ship), queueOf(r.Shore)}
	res.BusyPct = UpDown[float64]{percent(int64(up.Busy), int64(elapsed)), percent(int64(down.Busy), int64(elapsed))}
	var repeated int64
	for _, st := range []api.Status{r.Ship, r.Shore} {
		for _, peer := range st.Peers {
			repeated += int64(peer.Repeated)
		}
	}
	res.Captures.Replay.Retransmissions = &repeated
	for _, st := range []api.Status{r.Ship, r.Shore} {
		for _, peer := range st.Peers {
			res.Messages.Expired += int(peer.Expired)
			res.Messages.Superseded += int(peer.Superseded)
			res.Messages.Cancelled += int(peer.Cancelled)
			res.Messages.Refused += int(peer.Refused)
		}
		res.Messages.Stopped += int(st.Dropped["filter"])
	}
	if jam := rec.s.Header.Jam; jam != (trace.Jam{}) {
		res.Jam = &jam
		res.Remarks = append(res.Remarks, fmt.Sprintf("the trace is of a jammed link (%v): it has what got through, and when, not what the applications wanted", jam))
	}
	m.offered(rec.s)
	res.figures(rec, elapsed)
	res.link()
	res.Demand = UpDown[int64]{m.demand(r.Ship.Name, res.LinkBytes.Up, res.Waiting.Up), m.demand(r.Shore.Name, res.LinkBytes.Down, res.Waiting.Down)}
}

// demand is how many octets a side has to send for the trace, without repairs. Waiting messages count by their own size, reduced in the
// same proportion as those that came.
func (m *Meter) demand(from string, sent int64, waits Queue) int64 {
	res := m.Result
	smaller := 1.0
	var came int64
	for _, x := range res.Samples {
		if x.ArrivedS != nil {
			came += int64(x.Octets)
		}
	}
	if came > 0 {
		smaller = min(1, float64(res.Kinds["payload"])/float64(came))
	}
	for _, row := range res.Ledger {
		if row.From == from && row.Kind == "repair" {
			sent -= row.Octets
		}
	}
	return sent + int64(smaller*float64(waits.Octets))
}

// offered compares the load of the applications with the rate of the link.
func (m *Meter) offered(s *Script) {
	m.Result.RateBps = UpDown[int]{m.p.Up.RateBps, m.p.Down.RateBps}
	var up, down int64
	for _, x := range s.Messages {
		switch {
		case len(x.To) == 0:
		case s.Peers[x.Peer].Edge:
			up += int64(x.Octets)
		default:
			down += int64(x.Octets)
		}
	}
	if d := s.Duration.Seconds(); d > 0 {
		m.Result.Offered = UpDown[float64]{round(float64(up) * 8 / d), round(float64(down) * 8 / d)}
	}
}

// OverloadError says that a profile cannot carry a trace, and by how much.
type OverloadError struct {
	Profile    string
	Direction  string  // "ship to shore", "shore to ship", or "both ways" on a shared channel
	OfferedBps float64 // rate that the trace needs on the air, without repairs, over its duration
	RateBps    int
}

// Error is the overload in a sentence.
func (e *OverloadError) Error() string {
	return fmt.Sprintf("profile %s cannot carry the trace: %s %.0f bit/s are offered, the link takes %d (%.1f times too much)",
		e.Profile, e.Direction, e.OfferedBps, e.RateBps, e.OfferedBps/float64(e.RateBps))
}

// Overload returns an *OverloadError when messages were left over because the link takes less than was offered, and makes that a problem
// of the result. When all came in the end, it only adds a note.
func (m *Meter) Overload(s *Script) error {
	res := m.Result
	if s.Duration <= 0 {
		return nil
	}
	type direction struct {
		name   string
		demand int64
		rate   int
	}
	list := []direction{{"ship to shore", res.Demand.Up, m.p.Up.RateBps}, {"shore to ship", res.Demand.Down, m.p.Down.RateBps}}
	if m.p.Shared {
		list = []direction{{"both ways", res.Demand.Up + res.Demand.Down, m.p.Up.RateBps}}
	}
	var errs []error
	for _, d := range list {
		bps := float64(d.demand) * 8 / s.Duration.Seconds()
		if d.rate > 0 && bps > float64(d.rate) {
			errs = append(errs, &OverloadError{m.p.Name, d.name, round(bps), d.rate})
		}
	}
	err := errors.Join(errs...)
	switch {
	case err == nil:
		if m := res.Messages; m.Lost > 0 && m.explained() {
			res.Remarks = append(res.Remarks, fmt.Sprintf("%d messages were not carried: %d expired, %d replaced by newer ones, %d given up for more urgent ones, %d refused, by filters or for want of room, %d not let in by filters",
				m.Lost, m.Expired, m.Superseded, m.Cancelled, m.Refused, m.Stopped))
		} else if m.Lost > 0 && m.Lost == m.Untaken {
			res.Problem("%d messages were never taken: their gateway knew of nobody who listens on the other side when they were sent", m.Lost)
		} else if m.Lost > 0 {
			res.Problem("%d messages had not arrived %.0f s after the end of the trace", res.Messages.Lost, res.Captures.Replay.TotalS-s.Duration.Seconds())
		}
		return nil
	case res.Messages.Lost == 0 || res.Messages.explained():
		res.Remarks = append(res.Remarks, fmt.Sprintf("%v: the last message came %.0f s after the end of the trace", err, lastCame(res)-s.Duration.Seconds()))
		return nil
	}
	res.Problem("%v", err)
	return err
}

// lastCame is when the last message came.
func lastCame(res *Result) (last float64) {
	for _, x := range res.Samples {
		if x.ArrivedS != nil {
			last = max(last, *x.ArrivedS)
		}
	}
	return last
}
