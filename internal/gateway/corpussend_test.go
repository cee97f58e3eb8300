package gateway_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/adapters/corpusexchange"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/compact"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

// taught is the file of a corpus, and what it teaches: soundings, and messages of 500 octets that cannot be made smaller.
func taught(t *testing.T, messages, noise int) ([]byte, *compact.CorpusFile) {
	t.Helper()
	r := rand.New(rand.NewPCG(9, 1))
	var list [][]byte
	for range messages {
		list = append(list, sounding(r))
	}
	for range noise {
		b := make([]byte, 500)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		list = append(list, b)
	}
	b, err := compact.AppendCorpus(nil, list)
	check.NoError(check.Fatal(t), err)
	f, err := compact.ReadCorpus(b)
	check.NoError(check.Fatal(t), err)
	return b, f
}

// schools is a world whose nodes have the adapter of package corpusexchange; configure may be nil.
func schools(t *testing.T, nodes int, profile string, seed uint64, configure func(n *sim.Node, c *corpusexchange.Config, g *gateway.Config)) (*sim.World, map[uint16]*corpusexchange.Adapter) {
	t.Helper()
	adapters := map[uint16]*corpusexchange.Adapter{}
	w := world(t, nodes, profile, seed, func(c *sim.Config) {
		c.Group = c.Profile.Shared
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			cfg := corpusexchange.Config{Name: n.Name, Shared: c.Profile.Shared}
			if configure != nil {
				configure(n, &cfg, g)
			}
			g.Adapters[site.Corpora] = func(memories []site.Memory) (gateway.Adapter, error) {
				adapters[n.ID] = corpusexchange.New(cfg, memories)
				return adapters[n.ID], nil
			}
		}
	})
	return w, adapters
}

// A corpus crosses over datagrams and over P_Mul, through losses and kills of both ends, while messages go before it. It is there
// once, whole, and used by nobody before the operator accepts it; then first messages of its kinds cost half.
func TestCorpusSent(t *testing.T) {
	file, c := taught(t, 120, 60)
	for profile, lasts := range map[string]time.Duration{"iridium-directip": time.Hour, "hf-2400": 3 * time.Hour} {
		w, adapters := schools(t, 2, profile, 3, func(n *sim.Node, c *corpusexchange.Config, g *gateway.Config) {
			g.Filter = filter.New([]filter.Rule{{Action: filter.Deny, Type: "message", Least: 1000}}) // for local peers,
			g.Messages = []mark.Rule{{Least: 1000, Precedence: site.Flash}}                           // as this one
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		loseEveryNinth(w)
		w.Run(2 * time.Minute)
		w.DeliverLAN(hq, site.Corpora, corpusexchange.Send{Sites: []uint16{2}, File: file})
		up := soundings(w, ship, []uint16{1}, 1, 20, time.Minute)
		for i, n := range []*sim.Node{ship, hq, ship} {
			w.At(time.Duration(40+47*i)*time.Second, func() { w.Kill(n, 5*time.Second) })
		}
		w.Run(lasts)
		arrived := air.Once
		if hq.GW.Status(w.Now).Link.Shared {
			arrived = air.Each
		}
		_, err := arrived(hq.Site.Got, 2, *up)
		check.NoError(t, err)
		s := adapters[2].Status()
		check.Equal(check.Fatal(t), profile+": received", len(s.Received), 1)
		check.Equal(t, "its name", s.Received[0].Name, corpusexchange.Name(c))
		got, _ := adapters[2].File(corpusexchange.Name(c))
		check.True(t, "the same file", bytes.Equal(got, file))
		check.Equal(t, "nobody uses it", ship.GW.Status(w.Now).Corpus, "")
		_, octets := w.Octets(ship)
		t.Logf("%s: a corpus of %d octets: %d octets to the ship with all else", profile, len(file), octets)

		w.DeliverLAN(ship, site.Corpora, corpusexchange.Accept{Name: corpusexchange.Name(c)})
		w.Run(time.Minute)
		for _, n := range w.Nodes {
			w.Reconfigure(n, func(g *gateway.Config) { g.Corpus = c.Learn() })
			w.Kill(n, time.Second)
		}
		w.Run(10 * time.Minute)
		check.Equal(t, "accepted after the restart", adapters[2].Status().Accepted, corpusexchange.Name(c))
		check.Equal(t, "and used", ship.GW.Status(w.Now).Peers[0].Corpus, corpusexchange.Name(c))
	}
}

// While a corpus crosses, a message that comes up waits for no more than a datagram of it.
func TestCorpusGivesWay(t *testing.T) {
	file, c := taught(t, 100, 80)
	slowest := func(send bool) (most time.Duration) {
		w, adapters := schools(t, 2, "iridium-dialup", 5, nil)
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(2 * time.Minute)
		if send {
			w.DeliverLAN(hq, site.Corpora, corpusexchange.Send{Sites: []uint16{2}, File: file})
		}
		down := soundings(w, hq, []uint16{2}, 2, 12, 5*time.Second)
		w.Run(time.Minute)
		under := len(adapters[2].Status().Received) == 0
		if send {
			progress(t, hq)
		}
		w.Run(20 * time.Minute)
		check.True(t, "it is under way all the while, and there at the end", !send || under && len(adapters[2].Status().Received) == 1 && adapters[2].Status().Received[0].Name == corpusexchange.Name(c))
		delays, err := air.Once(ship.Site.Got, 1, *down)
		check.NoError(t, err)
		for _, d := range delays {
			most = max(most, d)
		}
		return most
	}
	alone, beside := slowest(false), slowest(true)
	t.Logf("the slowest message takes %v, beside a corpus %v", alone, beside)
	check.True(t, "a corpus delays a message by 4 s at most", beside <= alone+4*time.Second, alone, beside)
}

// progress checks that the sender of a long message that is under way sees how much of it is there.
func progress(t *testing.T, n *sim.Node) {
	t.Helper()
	m := n.GW.Messages()
	for _, row := range m.Rows(m.IDs()) {
		if row.Adapter != "corpora" {
			continue
		}
		var there, all int
		_, err := fmt.Sscanf(row.Recipients[0].Detail, "%d of %d octets are there", &there, &all)
		check.True(t, "progress", err == nil && there > 1000 && there < all && row.State == api.StateUnderWay, row.Recipients[0])
		return
	}
	t.Error("no corpus among the messages")
}

// A gateway that has no such adapter says that nobody takes it, and goes on; a member that sends nonsense in its name does no harm.
func TestCorpusRefused(t *testing.T) {
	file, _ := taught(t, 30, 0)
	w, adapters := schools(t, 2, "iridium-directip", 7, func(n *sim.Node, c *corpusexchange.Config, _ *gateway.Config) { c.Refuse = n.ID == 2 })
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	w.DeliverLAN(hq, site.Corpora, corpusexchange.Send{Sites: []uint16{2}, File: file})
	up := soundings(w, ship, []uint16{1}, 3, 5, 10*time.Second)
	w.Run(20 * time.Minute)
	check.Equal(t, "refused", adapters[2].Status().Refused, 1)
	_, err := air.Once(hq.Site.Got, 2, *up)
	check.NoError(t, err)
	rows := hq.GW.Messages().Rows(hq.GW.Messages().IDs())
	check.True(t, "the sender knows", len(rows) == 1 && rows[0].Adapter == "corpora" && rows[0].Precedence == "deferred" && rows[0].Recipients[0].State == "undeliverable", rows)
}
