package field

import (
	"context"
	"time"

	"aldis/internal/lab/linkemu"
)

// silenceSettles is time for the announcement of silence, which a gateway sends when it gets the order.
const silenceSettles = 2 * time.Second

// Silence is the packets that the gateways of ships under EMCON gave to their modems, and the messages that their peers received
// meanwhile. Packets that a modem still held when the order came do not count: on a busy channel they go out later.
type Silence struct {
	Ships   []string `json:"ships"`
	FromS   float64  `json:"from_s"`
	Seconds float64  `json:"seconds"`
	Packets int64    `json:"packets"` // of all silent ships
	Bytes   int64    `json:"bytes"`
	// Live counts the messages of HQ that reached a silent ship's peer during the silence, out of those sent during it except the last
	// ones, which may have been on their way at its end.
	Live int `json:"live"`
	Sent int `json:"sent"`
}

// silent are the ships that are ordered to be silent: the last ones.
func (g *game) silent() []*lanSite {
	all := g.talking()
	return all[len(all)-g.o.Silent:]
}

// silenceActions order silence, measure it, and let the gateways end it by themselves.
func (g *game) silenceActions(ctx context.Context) []action {
	var before []linkemu.NodeStats
	begin, end := g.o.SilentAt, g.o.SilentAt+g.o.SilentFor
	return []action{
		{begin, func() error {
			until := g.zero.Add(end).UTC().Format(time.RFC3339)
			for _, s := range g.silent() {
				if err := s.gateway.order(ctx, "silence", "on", "--announce", "--until", until); err != nil {
					return err
				}
				g.logf("%s is silent until %.0f s", s.name, end.Seconds())
			}
			return nil
		}},
		{begin + silenceSettles, func() error {
			st := g.hub.Stats().Link
			for _, s := range g.silent() {
				before = append(before, st.Node(s.name))
			}
			return nil
		}},
		{end - time.Second, func() error { // the order ends at a full second
			st := g.hub.Stats().Link
			q := &Silence{FromS: (begin + silenceSettles).Seconds(), Seconds: (g.o.SilentFor - silenceSettles - time.Second).Seconds()}
			for i, s := range g.silent() {
				now := st.Node(s.name)
				q.Ships = append(q.Ships, s.name)
				q.Packets += now.Up.Offered.Frames - before[i].Up.Offered.Frames
				q.Bytes += now.Up.Offered.Octets - before[i].Up.Offered.Octets
			}
			g.quiet = q
			g.logf("silent ships have sent %d packets in %.0f s", q.Packets, q.Seconds)
			return nil
		}},
	}
}

// liveFigures counts the messages that silent ships' peers received during the silence.
func (g *game) liveFigures(hq *record, ships []*record) {
	q := g.quiet
	from := g.zero.Add(time.Duration(q.FromS * float64(time.Second)))
	to := from.Add(time.Duration(q.Seconds * float64(time.Second)))
	last := to.Add(-g.p.RoundTripMax(g.p.DatagramOctets) * 2) // later ones may have been on their way
	for _, sent := range hq.events {
		if sent.Ev != "sent" || sent.Name != service("hq") || sent.At().Before(from) || sent.At().After(last) {
			continue
		}
		for _, ship := range ships {
			for _, name := range q.Ships {
				if ship.name != name {
					continue
				}
				q.Sent++
				for _, got := range ship.events {
					if got.Ev == "received" && got.Name == service("hq") && got.From == "hq" && got.Seq == sent.Seq && got.At().Before(to) {
						q.Live++
						break
					}
				}
			}
		}
	}
}
