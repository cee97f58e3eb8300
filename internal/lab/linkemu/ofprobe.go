package linkemu

import (
	"fmt"
	"net/netip"
	"slices"

	"aldis/internal/link/probe"
	"aldis/internal/link/profile"
)

// fewestOfLinkProbe is how many datagrams of a link probe must have arrived in each direction. All of them are known.
const fewestOfLinkProbe = 10

// LinkProbe is the output of gateway probe --json after a link probe.
type LinkProbe struct {
	Status struct {
		Peer     string `json:"peer"`
		Budget   int    `json:"budget_octets"`
		Sent     int    `json:"sent_octets"`
		Received int    `json:"received_octets"`
	} `json:"link_probe"`
	Terminal bool           `json:"terminal"` // the near end: its datagrams went up
	Packets  []probe.Packet `json:"packets"`
}

// OfLinkProbe finds out from the datagrams of a link probe what the link does. terminal says that the near end is a terminal of the link,
// and not ashore: then its datagrams went up.
func OfLinkProbe(list []probe.Packet, base profile.Profile, terminal bool) (Result, error) {
	var ends [2][]Passage // near and far
	names := [2]netip.Addr{netip.AddrFrom4([4]byte{1}), netip.AddrFrom4([4]byte{2})}
	for i, p := range list {
		one := Passage{Octets: p.Octets, Sum: [16]byte{byte(i), byte(i >> 8)}}
		from, to := 0, 1
		if !p.Up {
			from, to = 1, 0
		}
		one.From, one.To = names[from], names[to]
		one.At = int64(p.Sent)
		ends[from] = append(ends[from], one)
		if !p.Lost {
			one.At = int64(p.Arrived)
			ends[to] = append(ends[to], one)
		}
	}
	if !terminal {
		ends[0], ends[1] = ends[1], ends[0]
	}
	for _, end := range ends {
		slices.SortStableFunc(end, func(x, y Passage) int { return int(x.At - y.At) })
	}
	j, err := join(ends[0], ends[1], fewestOfLinkProbe)
	if err != nil {
		return Result{}, err
	}
	r, err := Fit(j, base)
	r.probed = true
	return r, err
}

// Largest is the octets of the largest datagram that arrived.
func (r Result) Largest() int { return max(r.Up.Largest, r.Down.Largest) }

// enoughAir is how long the datagrams of a link probe in a direction must be on the air for its rate to show, as a multiple of the
// jitter: link probes of certus-100 with 0.65 show it at 5 of 10 seeds, with 1.5 at 9 (TestLinkProbeBudget).
const enoughAir = 2

// Budget is how many octets a link probe needs to show the rates, after one of used octets did not; 0: more than a link probe may have. A
// link that is still faster than it now seems may need another step.
func (r Result) Budget(base profile.Profile, used int) int {
	octets := float64(used)
	for _, d := range []struct {
		e    Estimate
		base profile.Direction
	}{{r.Up, base.Up}, {r.Down, base.Down}} {
		if !d.e.tellsRate(d.base) {
			rate := max(d.base.RateBps, min(d.e.RateBps, 4*d.base.RateBps))
			air := 8 * float64(used) / 2 / float64(rate)
			octets = max(octets, float64(used)*max(1.5, enoughAir*d.e.Jitter.Seconds()/air))
		}
	}
	if octets > probe.MostBudget {
		return 0
	}
	return (int(octets) + 999) / 1000 * 1000
}

// Doubts lists, in sentences, the values that the datagrams of a link probe of so many octets do not show, so that base gives them.
func (r Result) Doubts(base profile.Profile, used int) (list []string) {
	remedy := fmt.Sprintf("a link probe of at most %d octets does not tell it, captures of both ends may: gateway tune --fit", probe.MostBudget)
	if n := r.Budget(base, used); n > 0 {
		remedy = fmt.Sprintf("--budget %d would probably tell it", n)
	}
	for _, d := range []struct {
		name string
		e    Estimate
		base profile.Direction
	}{{"up", r.Up, base.Up}, {"down", r.Down, base.Down}} {
		if !d.e.tellsRate(d.base) {
			list = append(list, fmt.Sprintf("%s: %d datagrams do not tell the rate from the %d bit/s of profile %s, which stays; %s",
				d.name, d.e.Packets, d.base.RateBps, base.Name, remedy))
		}
		if !d.e.tellsLoss(d.base) {
			list = append(list, fmt.Sprintf("%s: %d of %d lost is as likely with the loss of profile %s, which stays", d.name, d.e.Lost, d.e.Packets, base.Name))
		}
	}
	if r.Shared && !r.TurnKnown {
		list = append(list, fmt.Sprintf("the change of talker does not show, for the delay is as long: that of profile %s stays", base.Name))
	}
	return list
}
