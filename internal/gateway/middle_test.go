package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/sim"
	"aldis/internal/link/roster"
)

// TestManInTheMiddle gives the air to somebody without a key for an hour: he drops datagrams, holds them up for minutes, sends
// them twice, later, back to their senders, to others and in the names of others, cuts them, turns bits, and puts the header of one
// start or epoch before the body of another. Meanwhile gateways are killed and rosters change. Afterwards all messages have
// come once and in order, nobody got a message that nobody sent, and memory and journals are bounded.
func TestManInTheMiddle(t *testing.T) {
	t.Parallel()
	for seed := range 4 * seeds(25) {
		if m := newMiddle(t, seed); !m.play() {
			t.Errorf("seed %d, %s: %s\ndone: %v\n%s", seed, m.name, strings.Join(m.faults, "\n"), m.did, tail(m.w.Notes))
		}
	}
}

// middle is one run.
type middle struct {
	w      *sim.World
	rng    *rand.Rand
	name   string
	trust  bool
	group  bool
	share  float64 // of the datagrams that he touches; 0: he has gone
	heard  []passed
	did    map[string]int
	sent   map[[2]uint16]*[]offered // by sender and recipient
	roster *roster.Roster
	faults []string
	kept   [][]byte // one of each ten, for later
}

// passed is a datagram that was on the air.
type passed struct {
	from, to *sim.Node
	data     []byte
}

const (
	warm      = 20 * time.Minute // all is well meanwhile
	mischief  = time.Hour
	mostHeard = 4000
)

func newMiddle(t *testing.T, seed uint64) *middle {
	m := &middle{rng: rand.New(rand.NewPCG(seed, 2029)), trust: seed%2 == 0, group: seed%4 >= 2, did: map[string]int{}, sent: map[[2]uint16]*[]offered{}}
	links := []string{"iridium-directip", "iridium-dialup", "iridium-certus-100"}
	if m.group {
		links = []string{"vhf-cnr-16k", "hf-2400"}
	}
	link := links[m.rng.IntN(len(links))]
	m.name = fmt.Sprintf("%s, keys of nodes: %v", link, m.trust)
	m.w = world(t, 3, link, 60_000+seed, func(c *sim.Config) { c.Group, c.Roster = m.group, m.trust })
	m.roster = m.w.First()
	m.w.Tap = m.tap
	return m
}

func (m *middle) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// tap is the air.
func (m *middle) tap(from, to *sim.Node, data []byte) [][]byte {
	if m.share == 0 {
		return [][]byte{data}
	}
	if m.heard = append(m.heard, passed{from, to, data}); len(m.heard) > mostHeard {
		m.heard = slices.Delete(m.heard, 0, mostHeard/4)
	}
	if m.rng.IntN(10) == 0 && len(m.kept) < mostHeard {
		m.kept = append(m.kept, data)
	}
	if m.rng.Float64() >= m.share {
		return [][]byte{data}
	}
	later := time.Duration(m.rng.ExpFloat64() * float64(time.Minute))
	old := m.heard[m.rng.IntN(len(m.heard))]
	other := m.w.Nodes[m.rng.IntN(len(m.w.Nodes))]
	switch m.rng.IntN(12) {
	case 0:
		m.did["dropped"]++
		return nil
	case 1:
		m.did["held up"]++
		m.w.At(later, func() { m.w.Late(from, to, data) })
		return nil
	case 2:
		m.did["twice"]++
		m.w.At(later, func() { m.w.Late(from, to, data) })
		return [][]byte{data, data}
	case 3:
		m.did["an old one"]++
		m.w.At(later, func() { m.w.Late(old.from, old.to, old.data) })
		return [][]byte{old.data, data}
	case 4:
		m.did["of an hour ago"]++
		if len(m.kept) > 0 {
			return [][]byte{m.kept[m.rng.IntN(len(m.kept))], data}
		}
	case 5:
		m.did["reflected"]++
		m.w.At(0, func() { m.w.Late(to, from, data) })
		m.w.Inject(from, data)
	case 6:
		m.did["to another, in another's name"]++
		m.w.At(0, func() { m.w.Late(other, m.w.Nodes[m.rng.IntN(len(m.w.Nodes))], data) })
	case 7:
		m.did["in another's name"]++ // the hint of the sender's id
		bad := slices.Clone(data)
		bad[0] = bad[0]&0xf0 | byte(other.ID)
		m.w.At(0, func() { m.w.Late(other, to, bad) })
	case 8:
		m.did["mixed"]++
		return [][]byte{splice(old.data, data), splice(data, old.data), data}
	case 9:
		m.did["cut"]++
		return [][]byte{data[:m.rng.IntN(len(data))], append(slices.Clone(data), data[:m.rng.IntN(len(data))]...), data}
	case 10:
		m.did["bits turned"]++
		bad := slices.Clone(data)
		for range 1 + m.rng.IntN(3) {
			bad[m.rng.IntN(len(bad))] ^= 1 << m.rng.IntN(8)
		}
		return [][]byte{bad, data}
	default:
		if m.rng.IntN(40) == 0 { // each costs half a minute (docs/decisions/addresses.md)
			m.did["from his own address"]++
			m.w.Inject(to, data)
			return nil
		}
	}
	return [][]byte{data}
}

// splice is the header of one datagram before the sealed part of another.
func splice(head, body []byte) []byte {
	length := func(d []byte) int {
		if len(d) > 0 && d[0]&0x10 != 0 {
			return 11
		}
		return 3
	}
	return append(slices.Clone(head[:min(length(head), len(head))]), body[min(length(body), len(body)):]...)
}

// talk has everybody say something to everybody, one message every so often.
func (m *middle) talk(n int, every time.Duration) {
	m.sent = map[[2]uint16]*[]offered{}
	for _, from := range m.w.Nodes {
		var to []uint16
		for _, other := range m.w.Nodes {
			if other != from {
				to = append(to, other.ID)
			}
		}
		list := tracks(m.w, from, to, n, 60+m.rng.IntN(200), every)
		for _, id := range to {
			m.sent[[2]uint16{from.ID, id}] = list
		}
	}
}

// play answers whether all went as it must.
func (m *middle) play() bool {
	w := m.w
	w.Run(10 * time.Minute)
	for _, n := range w.Nodes {
		n.Site.Put(w, pipeItem(n.ID, pipeHQ))
	}
	every := 30 * time.Second
	if m.group {
		every = 2 * time.Minute
	}
	m.talk(int((warm+mischief)/every), every)
	w.Run(warm)
	before := live()
	m.share = 0.1 + 0.3*m.rng.Float64()
	for range 3 {
		w.At(time.Duration(m.rng.Int64N(int64(mischief))), func() { w.Kill(w.Nodes[m.rng.IntN(len(w.Nodes))], time.Duration(m.rng.IntN(60))*time.Second) })
		if m.trust {
			w.At(time.Duration(m.rng.Int64N(int64(mischief))), m.rollover)
		}
	}
	w.Run(mischief)
	m.share, m.heard, m.kept = 0, nil, nil
	calm := 30 * time.Minute
	if m.group {
		calm = 4 * time.Hour
	}
	w.Run(calm)
	m.judge()
	if grown := live() - before; grown > mostGrown {
		m.fault("%d octets more are held than before the hour", grown)
	}
	return len(m.faults) == 0
}

// mostGrown is how much more three gateways, their journals, their log and what their sites got may hold after the hour. Without him
// it is 1 to 10 MB, most of it what compaction has learned.
const mostGrown = 24 << 20

// live is how many octets are held in memory.
func live() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// rollover gives somebody the next roster.
func (m *middle) rollover() {
	n := m.w.Nodes[m.rng.IntN(len(m.w.Nodes))]
	if n.GW == nil {
		return
	}
	m.roster = m.w.Roster(m.roster, m.w.Now.Add(time.Duration(m.rng.IntN(20))*time.Minute), m.w.Nodes...)
	m.w.Give(n, gateway.NewRoster{Roster: m.roster})
}

func (m *middle) judge() {
	for _, n := range m.w.Nodes {
		s := n.GW.Status(m.w.Now)
		if m.trust && s.Roster.Serial != m.roster.Serial {
			m.fault("%s goes by roster %d, not %d", n.Name, s.Roster.Serial, m.roster.Serial)
		}
		if len(s.Dropped) == 0 {
			m.fault("%s has refused nothing", n.Name)
		}
		for _, p := range s.Peers {
			if p.Waiting+p.UnderWay+p.Pending > 0 || p.Link != "up" {
				m.fault("%s to %s: %d waiting, %d under way, %d pending, link %s", n.Name, p.Name, p.Waiting, p.UnderWay, p.Pending, p.Link)
			}
		}
		of := map[uint16][]string{}
		for _, g := range n.Site.Got {
			of[g.From] = append(of[g.From], head(g.Payload.Parts[0].Data))
		}
		for _, other := range m.w.Nodes {
			if other == n {
				continue
			}
			var want []string
			for _, o := range *m.sent[[2]uint16{other.ID, n.ID}] {
				want = append(want, head(o.Message.Parts[0].Data))
			}
			if !slices.Equal(of[other.ID], want) {
				m.fault("%s got %d messages of %s, of %d that were said: %v", n.Name, len(of[other.ID]), other.Name, len(want), differ(of[other.ID], want))
			}
		}
	}
	if len(m.did) < 10 {
		m.fault("he did too little: %v", m.did)
	}
}

// differ says where two lists part.
func differ(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("at %d %s, not %s", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d, not %d", len(got), len(want))
}
