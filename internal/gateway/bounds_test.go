package gateway_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// blank is an envelope with documents that are all alike, deflated, in a deflated envelope: as a malicious member of the
// network may send it.
func blank(items, octets int) []byte {
	coder := compact.Coder{NoModel: true}
	var m envelope.Message
	for i := range items {
		m.Items = append(m.Items, site.Item{Kind: site.Document, Scope: "jxta-NetGroup", Owner: peerID(2), Sub: 2,
			ID: fmt.Sprintf("uuid-%032x%08x", octets, i), Doc: make([]byte, octets)})
	}
	b, err := envelope.AppendCoded(nil, m, 0, false, &envelope.Texts{Coder: &coder})
	if err != nil {
		panic(err)
	}
	return bytes.Clone(envelope.Pack(&coder, b))
}

// meter sees what each turn of a node's loop does.
type meter struct {
	records int      // octets for the journal
	work    []uint64 // octets that the model was asked for, in each turn
	worked  uint64
	turn    time.Time
}

func (m *meter) step(w *sim.World, n *sim.Node, out api.Output) {
	for _, r := range out.Records {
		m.records += len(r.Value)
	}
	worked := n.GW.Status(w.Now).Modelled
	if !w.Now.Equal(m.turn) || len(m.work) == 0 {
		m.work, m.turn = append(m.work, 0), w.Now
	}
	m.work[len(m.work)-1] += worked - m.worked
	m.worked = worked
}

// metered is a world whose node of this number is metered.
func metered(t *testing.T, profile string, seed uint64, id uint16) (*sim.World, *meter) {
	m := &meter{}
	var w *sim.World
	w = world(t, 2, profile, seed, func(c *sim.Config) {
		c.LAN = func(n *sim.Node, out api.Output) {
			if w != nil && n.ID == id {
				m.step(w, n, out)
			}
		}
	})
	return w, m
}

// Whatever a datagram of 20 kB of a member of the network holds, its expansion and its traces in memory and journal are
// bounded, and no turn of the loop takes all of it. The peer's next honest message is read.
func TestDatagramsThatExpand(t *testing.T) {
	one := func(number uint16, body []byte) []byte {
		return frame.Append(nil, frame.Data{Number: number, Body: body}, false)
	}
	var many, early []byte
	small := blank(3, 10_000)
	for n := uint16(1); len(many)+len(small)+5 < 20_000 && n < 255; n++ {
		small = blank(3, 10_000+int(n))
		many = append(many, one(n, small)...)
		early = append(early, one(n+1, small)...)
	}
	var slow []byte
	var coder compact.Coder
	for n := uint16(1); len(slow) < 18_000; n++ {
		p := track(2, pipeHQ, int(n), 1)
		p.Parts[0].Data = report(int(n), 12_000)
		b, err := envelope.Packed(&coder, envelope.Message{Payload: &p}, 0, true, &envelope.Texts{Coder: &coder})
		if err != nil {
			t.Fatal(err)
		}
		slow = append(slow, one(n, b)...)
	}
	for _, tt := range []struct {
		name   string
		frames []byte
		after  []byte // in another datagram
		next   uint16 // the number of the honest message
	}{
		{"64 documents of 256 KiB", one(1, blank(64, 256<<10)), nil, 2},
		{"600 documents of 256 KiB", one(1, blank(600, 256<<10)), nil, 2},
		{"as many messages as there is room for", many, nil, 255},
		{"the same, and the first comes last", early, one(1, small), 255},
		{"reports that take the model long", slow, nil, 255},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, m := metered(t, "iridium-directip", 41, 1)
			w.Run(time.Minute)
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Kill(ship, time.Hour)
			if len(tt.frames) > 20_000 {
				t.Fatalf("%d octets", len(tt.frames))
			}
			liar := seal.NewSealer(seal.Key{1, 2, 3}, 2, seal.Incarnation{Number: ship.Incarnation() + 1})
			hello := frame.Append(nil, frame.Hello{Store: 99, Stream: 1}, false)
			inject := func(frames []byte) {
				data, err := liar.Seal(nil, 1, true, slices.Concat(hello, frames))
				if err != nil {
					t.Fatal(err)
				}
				w.Inject(hq, data)
				w.Run(10 * time.Second)
			}
			*m = meter{worked: m.worked}
			held := heap()
			inject(tt.frames)
			if tt.after != nil {
				inject(tt.after)
			}
			const most = 40 << 20
			grown := heap() - held
			t.Logf("%d octets on the link: %d octets of memory, %d for the journal, %d dropped", len(tt.frames), grown, m.records,
				hq.GW.Status(w.Now).Dropped["beyond_limit"])
			if grown > most || m.records > most {
				t.Errorf("%d octets on the link: %d octets of memory, %d for the journal, at most %d wanted", len(tt.frames), grown, m.records, most)
			}
			if work := slices.Max(m.work); work > mostWork {
				t.Errorf("a turn of the loop gave the model %d octets", work)
			}
			honestly := track(2, pipeHQ, 1, 100)
			honest, err := envelope.Append(nil, envelope.Message{Payload: &honestly}, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			before := hq.GW.Status(w.Now).Peers[0].Received
			for number := tt.next; hq.GW.Status(w.Now).Peers[0].Received == before && number > 0; number-- {
				inject(one(number, honest))
			}
			if hq.GW.Status(w.Now).Peers[0].Received == before {
				t.Errorf("nothing more is read of the peer: %+v\n%s", hq.GW.Status(w.Now).Peers[0], tail(w.Notes))
			}
		})
	}
}

// mostWork is how many octets of the model's work a turn may take that reads a peer's messages: a slice, and where fewer
// contexts are looked at three times as many, which take as long.
const mostWork = 4 << 10

// However long the messages that arrive are and however many, a turn of the loop reads a slice of them. They arrive whole and
// in order, also when the gateway is killed between the slices.
func TestReadingIsBounded(t *testing.T) {
	w, m := metered(t, "iridium-certus-100", 43, 1)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	*m = meter{worked: m.worked}
	octets := []int{3000, 20_000, 200, 60_000, 1500}
	for i := range 60 {
		w.At(time.Duration(i)*200*time.Millisecond, func() {
			p := track(2, pipeHQ, i, 1)
			p.Parts[0].Data = report(i, octets[i%len(octets)])
			ship.Site.Send(w, p, 1)
		})
	}
	for i := range 40 {
		w.At(time.Duration(i)*317*time.Millisecond+8*time.Second, func() {
			if i%8 == 0 && hq.GW != nil {
				w.Kill(hq, 50*time.Millisecond)
				m.worked = 0
			}
		})
	}
	w.Run(10 * time.Minute)
	slices.Sort(m.work)
	p99, most := m.work[len(m.work)*99/100], m.work[len(m.work)-1]
	t.Logf("%d turns: the 99th of a hundred %d, at the most %d octets of the model's work", len(m.work), p99, most)
	if most > mostWork {
		t.Errorf("a turn gave the model %d octets, at most %d wanted", most, mostWork)
	}
	last := map[int]int{}
	for _, g := range hq.Site.Got {
		var line, i int
		fmt.Sscanf(string(g.Payload.Parts[0].Data), "line %d of report %d:", &line, &i)
		if !bytes.Equal(g.Payload.Parts[0].Data, report(i, octets[i%len(octets)])) {
			t.Errorf("report %d is not as it was sent", i)
		}
		queue := min(1, octets[i%len(octets)]/10_000)
		if i+1 <= last[queue] {
			t.Errorf("report %d of queue %d came behind %d", i, queue, last[queue]-1)
		}
		last[queue] = i + 1
	}
	if len(hq.Site.Got) != 60 {
		t.Errorf("%d of 60 messages arrived", len(hq.Site.Got))
	}
}

// heap is how many octets live there.
func heap() int {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

// report is a text of so many octets as people write them.
func report(i, octets int) []byte {
	var b []byte
	for line := 0; len(b) < octets; line++ {
		b = fmt.Appendf(b, "line %d of report %d: course %d, speed %d.%d, %s\n", line, i, (line*37+i*11)%360, (line+i)%23, line%10,
			[]string{"nothing to report", "fishing vessel abeam", "own sensor", "visibility is good"}[(line*7+i)%4])
	}
	return b[:octets]
}

// However many messages of 3 kB a local peer writes, a turn of the loop codes a slice of them. Where two of
// them share a datagram, the second is coded in one piece.
func TestSizingIsBounded(t *testing.T) {
	w, m := metered(t, "iridium-directip", 42, 2)
	w.Run(time.Minute)
	*m = meter{worked: m.worked}
	for i := range 150 {
		w.At(time.Duration(i)*20*time.Millisecond, func() {
			p := track(2, pipeHQ, i, 1)
			p.Parts[0].Data = report(i, 3000)
			w.Nodes[1].Site.Send(w, p, 1)
		})
	}
	w.Run(20 * time.Second)
	slices.Sort(m.work)
	median, p95, most := m.work[len(m.work)/2], m.work[len(m.work)*95/100], m.work[len(m.work)-1]
	t.Logf("%d turns: median %d, the 95th of a hundred %d, at the most %d octets of the model's work", len(m.work), median, p95, most)
	if p95 > 2<<10 || most > 16<<10 {
		t.Errorf("the 95th turn of a hundred gave the model %d octets, one %d; at most %d and %d wanted", p95, most, 2<<10, 16<<10)
	}
	w.Run(3 * time.Minute)
	if n := len(w.Nodes[0].Site.Got); n < 50 {
		t.Errorf("%d messages have arrived", n)
	}
	last := -1
	for _, g := range w.Nodes[0].Site.Got {
		var line, i int
		fmt.Sscanf(string(g.Payload.Parts[0].Data), "line %d of report %d:", &line, &i)
		if i != last+1 || len(g.Payload.Parts[0].Data) != 3000 {
			t.Fatalf("report %d of %d octets arrived behind %d", i, len(g.Payload.Parts[0].Data), last)
		}
		last = i
	}
}
