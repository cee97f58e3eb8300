package gateway_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// BenchmarkFleet: a shore gateway with ships, each of which says one line a minute and is told one; every tenth says it to the next ship,
// through the shore. An operation is a minute of that. The first figure is the share of a core that all gateways and their links take
// together, as processor time, so the shore gateway takes less; journal and sockets are not in it. The second is what they hold in memory. A
// roster has 256 members at most.
func BenchmarkFleet(b *testing.B) {
	for _, ships := range []int{16, 64, 255} {
		b.Run(fmt.Sprint(ships), func(b *testing.B) { fleetMinutes(b, ships) })
	}
}

// relayedTo is the ship that a ship tells its lines through the shore; 0: it tells them the shore.
func relayedTo(id uint16, ships int) uint16 {
	if id%10 == 0 && int(id) <= ships {
		return id + 1
	}
	return 0
}

func fleetMinutes(b *testing.B, ships int) {
	p, err := profile.Load("iridium-certus-100", nil)
	if err != nil {
		b.Fatal(err)
	}
	wire, err := profile.Load("wire", nil)
	if err != nil {
		b.Fatal(err)
	}
	before := held()
	w, err := sim.New(sim.Config{Nodes: ships + 1, Profile: p, Wire: wire, Seed: 1, Roster: true, Configure: func(n *sim.Node, c *gateway.Config) {
		if c.Relay = n.ID == 1; c.Relay {
			return
		}
		c.Peers = slices.DeleteFunc(c.Peers, func(p gateway.PeerConfig) bool {
			return p.ID != 1 && p.ID != relayedTo(n.ID, ships) && n.ID != relayedTo(p.ID, ships)
		})
		for i := range c.Peers {
			if one := &c.Peers[i]; one.ID != 1 {
				one.Addr, one.Via = netip.AddrPort{}, []uint16{1}
			}
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	hq := w.Nodes[0]
	for _, n := range w.Nodes {
		n.Site.Put(w, pipeItem(n.ID, pipeHQ))
	}
	arrived := func() (n int) {
		for _, one := range w.Nodes {
			n += len(one.Site.Got)
		}
		return n
	}
	minute := func(i int) {
		for k, ship := range w.Nodes[1:] {
			to := max(1, relayedTo(ship.ID, ships))
			at := time.Duration(k) * time.Minute / time.Duration(ships)
			w.At(at, func() { ship.Site.Send(w, textTrack(ship.ID, pipeHQ, i), to) })
			w.At(at+time.Second/9, func() { hq.Site.Send(w, textTrack(hq.ID, pipeHQ, i*ships+k), ship.ID) })
		}
		w.Run(time.Minute)
	}
	w.Run(5 * time.Minute)
	minute(0) // a ship that is told through the shore has met it
	w.Run(time.Minute)
	began, used := arrived(), processor(b)
	b.ResetTimer()
	for i := range b.N {
		minute(i + 1)
	}
	b.StopTimer()
	b.ReportMetric(100*(processor(b)-used).Seconds()/(60*float64(b.N)), "%core")
	b.ReportMetric(float64(held()-before)/1e6/float64(ships+1), "MB/gateway")
	b.ReportMetric(float64(arrived()-began)/float64(b.N), "messages/op")
	runtime.KeepAlive(w)
}

// processor is how much processor time this process has used.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// held is how many octets of memory the process holds.
func held() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
