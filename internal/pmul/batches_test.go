package pmul_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/pmul"
)

// batchWorld is nodes on HF that hear each other, and of which all know batches; octets on the air that are of batches are noted.
func batchWorld(t testing.TB, nodes int, pct float64, seed uint64) (*world, *batchesOnAir) {
	t.Helper()
	w := newWorld(t, setup{nodes: nodes, p: lossy(load(t, "hf-2400"), pct, false), coding: pmul.Compact, seed: seed, batches: true,
		change: func(c *pmul.Config) { c.AckGroup, c.Hears = true, true }})
	w.ride = true
	return w, watch(w)
}

// batchesOnAir is what of batches has been on the air.
type batchesOnAir struct {
	ids      []pmul.MessageID         // of batches, as they began
	data     map[pmul.MessageID]int   // Data_PDUs and shards of each message or batch
	discards map[pmul.MessageID]int   // Discard_Message_PDUs
	of       map[pmul.MessageID]*node // who sends it
}

func watch(w *world) *batchesOnAir {
	b := &batchesOnAir{data: map[pmul.MessageID]int{}, discards: map[pmul.MessageID]int{}, of: map[pmul.MessageID]*node{}}
	w.sent = func(from *node, data []byte) {
		pdus, err := pmul.ParseCompact(data, from.id, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, pdu := range pdus {
			switch pdu := pdu.(type) {
			case pmul.AddressPDU:
				if pdu.Batch && !slices.Contains(b.ids, pdu.Message) {
					b.ids = append(b.ids, pdu.Message)
				}
			case pmul.DataPDU:
				b.data[pdu.Message]++
			case pmul.ParityPDU:
				b.data[pdu.Message]++
			case pmul.DiscardPDU:
				b.discards[pdu.Message]++
			}
		}
	}
	return b
}

// sendTogether submits messages of so many octets while the node may not transmit, so that they wait for each other, and lets it.
func (w *world) sendTogether(from *node, octets []int, to ...*node) (keys []pmul.Key) {
	w.t.Helper()
	w.sendStep(from, pmul.EMCON{Silent: true})
	for i, n := range octets {
		keys = append(keys, w.send(from, content(n, uint64(i)), 0, time.Hour*time.Duration(2+i), to...))
	}
	w.sendStep(from, pmul.EMCON{Silent: false})
	return keys
}

// allThere wants messages to be at nodes, each once and as it was sent, and the sender to have heard so of each recipient once and to hold
// nothing.
func (w *world) allThere(in check.T, from *node, keys []pmul.Key, octets []int, to ...*node) {
	w.t.Helper()
	fates := map[pmul.Fate]int{}
	for _, f := range from.fates {
		fates[pmul.Fate{Message: f.Message, To: f.To, State: f.State}]++
	}
	for i, key := range keys {
		for _, n := range to {
			m, is := n.got[key]
			check.True(in, fmt.Sprint(n.name, " has message ", i), is && m.Key == key && bytes.Equal(m.Payload, content(octets[i], uint64(i))))
			check.Equal(in, fmt.Sprint("fates of message ", i, " for ", n.name), fates[pmul.Fate{Message: key.Message, To: n.id, State: pmul.Delivered}], 1)
		}
	}
	check.Equal(in, "fates", len(from.fates), len(keys)*len(to))
	for _, n := range w.nodes {
		check.Equal(in, n.name+": messages that came twice", n.twice, 0)
	}
	check.Equal(in, "messages that are held", len(from.sender.Messages()), 0)
}

var sizes = []int{150, 40, 0, 300, 90, 150, 700, 60}

// Messages that wait for the channel go as one, and are at each recipient what they would be by themselves.
func TestBatchOfWhatWaits(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		w, air := batchWorld(t, 4, float64(5*seed), seed)
		hq, ships := w.nodes[0], w.nodes[1:]
		keys := w.sendTogether(hq, sizes, ships...)
		w.run(3*time.Hour, func() bool { return len(hq.fates) == len(sizes)*len(ships) })
		in := check.In(t, "seed", seed)
		w.allThere(in, hq, keys, sizes, ships...)
		check.Equal(in, "batches", len(air.ids), 1)
		for i, key := range keys {
			check.Equal(in, fmt.Sprint("fragments of message ", i, " by itself"), air.data[key.Message], 0)
			for _, n := range ships {
				m := n.got[key]
				check.Equal(in, "its sequence", m.Sequence, uint32(i+1))
				check.Equal(in, "its expiry", m.Expiry, epoch.Add(time.Hour*time.Duration(2+i)))
				check.Equal(in, "its priority", m.Priority, 0)
			}
		}
		for _, n := range ships {
			check.Same(in, "the order at "+n.name, n.order, keys)
		}
		for _, f := range hq.fates {
			i := slices.IndexFunc(keys, func(k pmul.Key) bool { return k.Message == f.Message })
			check.Equal(in, "the sequence that a fate names", f.Sequence, uint32(i+1))
		}
	}
}

// Nothing goes as a batch before it is said that all know them, where datagrams are no turn of a channel, or where one holds all.
func TestNoBatch(t *testing.T) {
	for _, c := range []struct {
		name, profile string
		batches       bool
		sizes         []int
		most          int
	}{{"not said", "hf-2400", false, sizes, 0}, {"no turns", "iridium-directip", true, sizes, 0}, {"one datagram", "hf-2400", true, []int{40, 40, 40}, 0},
		{"one message", "hf-2400", true, []int{3000}, 0}, {"said", "hf-2400", true, sizes, 1}} {
		w := newWorld(t, setup{nodes: 3, p: lossy(load(t, c.profile), 0, false), coding: pmul.Compact, seed: 1, batches: c.batches})
		air := watch(w)
		keys := w.sendTogether(w.nodes[0], c.sizes, w.nodes[1:]...)
		w.run(time.Hour, func() bool { return len(w.nodes[0].fates) == 2*len(c.sizes) })
		in := check.In(t, c.name)
		w.allThere(in, w.nodes[0], keys, c.sizes, w.nodes[1:]...)
		check.Equal(in, "batches", len(air.ids), c.most)
	}
}

// compactSender is a sender by hand of a network of seven whose channel is free, and what it has recorded.
type compactSender struct {
	*pmul.Sender
	t       *testing.T
	cfg     pmul.Config
	now     time.Time
	next    time.Time
	sent    []pmul.PDU
	fates   []pmul.Fate
	journal map[string]pmul.Record
}

func newCompactSender(t *testing.T) *compactSender {
	s := &compactSender{t: t, now: epoch, journal: map[string]pmul.Record{}, cfg: pmul.ConfigFor(load(t, "hf-2400"), 1, pmul.Compact, sealOctets, nil)}
	s.cfg.Group, s.cfg.AckGroup, s.cfg.Hears, s.cfg.FirstMessage = 1, true, true, 1
	s.restart()
	return s
}

func (s *compactSender) restart() {
	var records []pmul.Record
	for _, r := range s.journal {
		records = append(records, r)
	}
	var err error
	s.Sender, err = pmul.NewSender(s.cfg, records)
	check.NoError(check.Fatal(s.t), err)
	s.Batch(true)
}

func (s *compactSender) step(ev pmul.Event) pmul.Output {
	out := s.Step(s.now, ev)
	s.next = out.Deadline
	for _, r := range out.Records {
		if key := r.Bucket + "\x00" + string(r.Key); r.Value == nil {
			delete(s.journal, key)
		} else {
			s.journal[key] = r
		}
	}
	s.fates = append(s.fates, out.Fates...)
	for _, p := range out.Send {
		s.sent = append(s.sent, p.PDUs...)
	}
	return out
}

func (s *compactSender) play(d time.Duration) {
	for until := s.now.Add(d); ; s.step(nil) {
		if s.next.IsZero() || s.next.After(until) {
			s.now = until
			return
		}
		s.now = s.next
	}
}

func (s *compactSender) submit(change func(*pmul.Submit)) pmul.MessageID {
	s.t.Helper()
	ev := pmul.Submit{Payload: content(200, 1), To: []pmul.NodeID{2, 3, 4, 5, 6}, Expires: s.now.Add(time.Hour)}
	if change != nil {
		change(&ev)
	}
	a := s.step(ev).Accepted
	check.NoError(check.Fatal(s.t), a[0].Err)
	return a[0].Message
}

// batch is the only batch that was on the air.
func (s *compactSender) batch() (id pmul.MessageID) {
	s.t.Helper()
	for _, pdu := range s.sent {
		if a, is := pdu.(pmul.AddressPDU); is && a.Batch {
			check.True(check.Fatal(s.t), "one batch", id == 0 || id == a.Message, id, a.Message)
			id = a.Message
		}
	}
	check.Differ(check.Fatal(s.t), "batch", id, 0)
	return id
}

func (s *compactSender) parts(id pmul.MessageID) (ids []pmul.MessageID) {
	for _, p := range s.Parts(pmul.AddressPDU{Source: 1, Message: id}) {
		ids = append(ids, p.Message)
	}
	return ids
}

func (s *compactSender) acknowledged(by pmul.NodeID, m pmul.MessageID) {
	s.step(pmul.AckPDU{Source: by, Entries: []pmul.AckEntry{{Source: 1, Message: m}}})
}

// begun is a sender whose batch of three messages to nodes 2 to 6 is on the air and waits for answers.
func begun(t *testing.T, change func(i int, ev *pmul.Submit)) (s *compactSender, batch pmul.MessageID, ids []pmul.MessageID) {
	t.Helper()
	s = newCompactSender(t)
	s.step(pmul.EMCON{Silent: true})
	for i := range 3 {
		ids = append(ids, s.submit(func(ev *pmul.Submit) {
			if change != nil {
				change(i, ev)
			}
		}))
	}
	s.step(pmul.EMCON{Silent: false})
	s.play(10 * time.Second)
	batch = s.batch()
	check.Same(check.Fatal(t), "messages of the batch", s.parts(batch), ids)
	return s, batch, ids
}

// Only messages for the same recipients and of one Priority join, of which nothing needs to be done by itself.
func TestWhatJoinsABatch(t *testing.T) {
	s := newCompactSender(t)
	s.step(pmul.EMCON{Silent: true})
	apart := map[string]pmul.MessageID{"to others": s.submit(func(ev *pmul.Submit) { ev.To = ev.To[:2] })}
	long := func(ev *pmul.Submit) { ev.Payload = content(700, 1) } // short ones share the room that others leave
	first := s.submit(long)
	for name, change := range map[string]func(*pmul.Submit){
		"held":         func(ev *pmul.Submit) { ev.Held = true },
		"fleeting":     func(ev *pmul.Submit) { ev.Fleeting = true },
		"prompt":       func(ev *pmul.Submit) { ev.AtOnce = true },
		"more urgent":  func(ev *pmul.Submit) { ev.Priority = 1 },
		"another path": func(ev *pmul.Submit) { ev.Group = 7 },
	} {
		apart[name] = s.submit(change)
	}
	second, third := s.submit(long), s.submit(long)
	apart["to some"] = s.submit(func(ev *pmul.Submit) { ev.To = ev.To[:2] })
	apart["behind others for some"] = s.submit(long) // its sequences are not as much greater for all
	s.step(pmul.EMCON{Silent: false})
	s.play(20 * time.Minute)
	batch := pmul.MessageID(0)
	alone := map[pmul.MessageID]bool{}
	for _, pdu := range s.sent {
		switch pdu := pdu.(type) {
		case pmul.AddressPDU:
			if pdu.Batch && batch == 0 {
				batch = pdu.Message
			}
		case pmul.DataPDU:
			alone[pdu.Message] = true
		}
	}
	check.Same(t, "messages of the batch", s.parts(batch), []pmul.MessageID{first, second, third})
	for name, id := range apart {
		check.Equal(t, name+": it goes by itself", alone[id], name != "held")
		check.Same(t, name+": what it goes with", s.parts(id), []pmul.MessageID{id})
	}
	check.True(t, "the held one waits", s.Waits(apart["held"]))
}

// A message of a batch that is on the air is neither replaced nor held, and what is known of the batch is known of it.
func TestBatchUnderWay(t *testing.T) {
	s, batch, ids := begun(t, nil)
	for _, id := range ids {
		check.True(t, "it waits no more", !s.Waits(id))
		a := s.step(pmul.Replace{Ref: 1, Message: id, Payload: []byte("new"), Expires: s.now.Add(time.Hour)}).Accepted
		check.True(t, "it is not replaced", len(a) == 1 && errors.Is(a[0].Err, pmul.ErrBegun), a)
		s.step(pmul.Hold{Message: id, On: true})
		check.Equal(t, "what was on the air", pmul.AiredOf(s.Sender, id), pmul.Aired{Begun: true, Whole: true})
		check.True(t, "it has left", pmul.HasLeft(s.now, s.Sender, id, 2))
		_, sent, fragments := s.Progress(id, 2)
		check.True(t, "its progress is that of the batch", sent == fragments && fragments > 1, sent, fragments)
	}
	for node := pmul.NodeID(2); node <= 6; node++ {
		s.acknowledged(node, batch)
	}
	check.Equal(t, "fates", len(s.fates), 15)
	for _, f := range s.fates {
		check.Equal(t, "the state", f.State, pmul.Delivered)
	}
	check.Equal(t, "messages that are held", len(s.Messages()), 0)
	for key, r := range s.journal {
		if r.Bucket == "pmul-out" || r.Bucket == "pmul-begun" {
			t.Errorf("the journal has %q", key)
		}
	}
}

// Expiry and cancelling end a message of a batch for those who lack it. The others go on, and with the last of them the batch ends.
func TestBatchWithoutSomeOfItsMessages(t *testing.T) {
	s, batch, ids := begun(t, func(i int, ev *pmul.Submit) {
		if i == 0 {
			ev.Expires = epoch.Add(10 * time.Minute)
		}
	})
	s.acknowledged(2, batch)
	check.Equal(t, "fates", len(s.fates), 3)
	s.step(pmul.Cancel{Message: ids[1]})
	check.Equal(t, "fates", len(s.fates), 7)
	s.play(11 * time.Minute)
	check.Equal(t, "fates", len(s.fates), 11)
	s.acknowledged(3, batch)
	check.Equal(t, "fates", len(s.fates), 12)
	want := map[pmul.MessageID]pmul.State{ids[0]: pmul.Expired, ids[1]: pmul.Cancelled, ids[2]: pmul.Delivered}
	seen := map[fateOf]bool{}
	for _, f := range s.fates {
		if f.To == 2 {
			check.Equal(t, "what became of it for node 2", f.State, pmul.Delivered)
		} else {
			check.Equal(t, "what became of it", f.State, want[f.Message])
		}
		check.True(t, "it is said once", !seen[fateOf{f.Message, f.To}])
		seen[fateOf{f.Message, f.To}] = true
	}
	s.sent = nil
	s.step(pmul.Cancel{Message: ids[2]})
	s.play(time.Minute)
	check.Equal(t, "fates", len(s.fates), 15)
	check.Equal(t, "messages that are held", len(s.Messages()), 0)
	check.Same(t, "what ends the batch", slices.DeleteFunc(s.sent, notOf[pmul.DiscardPDU]), []pmul.PDU{pmul.DiscardPDU{Source: 1, Message: batch}})
}

type fateOf struct {
	message pmul.MessageID
	to      pmul.NodeID
}

func notOf[P pmul.PDU](pdu pmul.PDU) bool {
	_, is := pdu.(P)
	return !is
}

// Who gets nothing more is told no more of a batch. For the others it goes on; without any it ends.
func TestBatchAndGone(t *testing.T) {
	s, batch, _ := begun(t, nil)
	s.step(pmul.Gone{Node: 4})
	check.Equal(t, "fates", len(s.fates), 3)
	for _, f := range s.fates {
		check.Equal(t, "the state", f.State, pmul.Refused)
		check.Equal(t, "the node", f.To, 4)
	}
	s.sent = nil
	s.play(5 * time.Minute)
	for _, pdu := range s.sent {
		if a, is := pdu.(pmul.AddressPDU); is && slices.ContainsFunc(a.Destinations, func(d pmul.Destination) bool { return d.Node == 4 }) {
			t.Errorf("it is asked: %+v", a)
		}
	}
	for _, node := range []pmul.NodeID{2, 3, 5} {
		s.acknowledged(node, batch)
	}
	check.Equal(t, "fates", len(s.fates), 12)
	s.sent = nil
	s.step(pmul.Gone{Node: 6})
	s.play(time.Minute)
	check.Equal(t, "fates", len(s.fates), 15)
	check.Equal(t, "messages that are held", len(s.Messages()), 0)
	check.Same(t, "what ends the batch", slices.DeleteFunc(s.sent, notOf[pmul.DiscardPDU]), []pmul.PDU{pmul.DiscardPDU{Source: 1, Message: batch}})
}

// A batch ends with its last message, however late the sender hears of its expiry, and lets its octets go.
func TestBatchExpires(t *testing.T) {
	s, batch, _ := begun(t, func(i int, ev *pmul.Submit) { ev.Expires = epoch.Add(time.Minute * time.Duration(10-i)) })
	s.sent = nil
	s.now = epoch.Add(24 * time.Hour)
	s.step(nil)
	s.play(time.Minute)
	check.Equal(t, "fates", len(s.fates), 15)
	check.Equal(t, "messages that are held", len(s.Messages()), 0)
	check.Same(t, "what ends the batch", slices.DeleteFunc(s.sent, notOf[pmul.DiscardPDU]), []pmul.PDU{pmul.DiscardPDU{Source: 1, Message: batch}})
}

// A message of a batch that is acknowledged by itself is delivered, once.
func TestBatchAcknowledgedByMessages(t *testing.T) {
	s, batch, ids := begun(t, nil)
	for node := pmul.NodeID(2); node <= 6; node++ {
		for _, id := range ids {
			s.acknowledged(node, id)
		}
		s.acknowledged(node, batch)
	}
	check.Equal(t, "fates", len(s.fates), 15)
	check.Equal(t, "messages that are held", len(s.Messages()), 0)
}

// After a restart the messages of a batch go by themselves.
func TestBatchAfterARestart(t *testing.T) {
	s, batch, ids := begun(t, nil)
	s.restart()
	s.sent = nil
	s.step(nil)
	check.Same(t, "messages that are held", s.Messages(), ids)
	s.play(5 * time.Minute)
	asked := map[pmul.MessageID]bool{}
	for _, pdu := range s.sent {
		if a, is := pdu.(pmul.AddressPDU); is {
			check.True(t, "no batch", !a.Batch && a.Message != batch, a)
			asked[a.Message] = true
		}
	}
	check.Equal(t, "messages that are asked about", len(asked), 3)
	fourth := s.submit(nil)
	check.True(t, "a new number", fourth > batch, fourth, batch)
	for node := pmul.NodeID(2); node <= 6; node++ {
		for _, id := range append(ids, fourth) {
			s.acknowledged(node, id)
		}
	}
	check.True(t, "messages that are held", len(s.Messages()) <= 1, s.Messages())
}

// deaths plays a world of one batch again and again, and kills one of its nodes once in each: before or after the commit of the first Step
// since messages wait for the first one to leave, of the second, and so on.
func deaths(t *testing.T, victim int, pct float64, seed uint64) {
	octets := []int{400, 150, 900, 0, 90, 300, 1200, 40, 700, 250}
	play := func(at int, early bool) (steps int) {
		w, air := batchWorld(t, 3, pct, seed)
		w.down = 20 * time.Second
		hq, ships := w.nodes[0], w.nodes[1:]
		var keys []pmul.Key
		for i, n := range octets {
			keys = append(keys, w.send(hq, content(n, uint64(i)), 0, 2*time.Hour, ships...))
		}
		w.dies = func(n *node) (before, after bool) {
			if n != w.nodes[victim] {
				return false, false
			}
			steps++
			return steps == at && early, steps == at && !early
		}
		w.run(90*time.Minute, func() bool {
			return len(hq.fates) == len(octets)*len(ships) && hq.sender != nil && (at == 0 || w.crashes > 0)
		})
		in := check.In(t, "seed", seed, "victim", victim, "killed at", at, "before the commit", early)
		w.allThere(in, hq, keys, octets, ships...)
		check.True(in, "batches", len(air.ids) == 1 || len(air.ids) <= 3 && victim == 0 && at > 0, len(air.ids)) // what had not begun may go as another, and what is lacking
		return steps
	}
	steps := play(0, false)
	check.True(check.Fatal(t), "steps", steps > 15, steps)
	for at := 1; at <= steps && !t.Failed(); at++ {
		play(at, true)
		play(at, false)
	}
	t.Logf("seed %d, node %d: killed at each of %d steps", seed, victim, steps)
}

// A sender that is killed at any Step of a batch goes on with its messages by themselves. Each is delivered once, and none is lost.
func TestBatchSenderDies(t *testing.T) {
	for seed := uint64(1); seed <= seeds(3, 20); seed++ {
		deaths(t, 0, []float64{0, 10, 25}[seed%3], seed)
	}
}

// A receiver that is killed at any Step of a batch goes on with what its journal has of it.
func TestBatchReceiverDies(t *testing.T) {
	for seed := uint64(1); seed <= seeds(3, 20); seed++ {
		deaths(t, 1, []float64{0, 10, 25}[seed%3], seed)
	}
}

// Deaths of all, at any Step, with batches from two sides that lose a tenth: nothing is lost or comes twice.
func TestBatchesAndDeaths(t *testing.T) {
	for seed := uint64(1); seed <= seeds(6, 60); seed++ {
		w, air := batchWorld(t, 4, 10, seed)
		w.crash, w.down = 0.02, 15*time.Second
		total := 0
		for i, at := range []time.Duration{0, 0, 0, 0, 20, 20, 20, 300, 300, 301, 302, 500, 500, 500} {
			from := w.nodes[i%2]
			to := slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return n == from })
			total += len(to)
			for n := range 3 {
				w.at(epoch.Add(at*time.Second), func() {
					ev := pmul.Submit{Payload: content(100+100*n, uint64(i)), Expires: w.now.Add(20 * time.Hour)}
					for _, o := range to {
						ev.To = append(ev.To, o.id)
					}
					w.sendStep(from, ev)
				})
			}
		}
		w.run(time.Hour, nil)
		w.crash = 0
		w.run(19*time.Hour, func() bool {
			return w.nodes[0].sender != nil && w.nodes[1].sender != nil && len(w.nodes[0].sender.Messages())+len(w.nodes[1].sender.Messages()) == 0
		})
		in := check.In(t, "seed", seed)
		check.True(in, "batches", len(air.ids) > 0)
		for _, from := range w.nodes[:2] {
			seen := map[fateOf]bool{}
			for _, f := range from.fates {
				check.Equal(in, "the state", f.State, pmul.Delivered)
				check.True(in, "it is said once", !seen[fateOf{f.Message, f.To}])
				seen[fateOf{f.Message, f.To}] = true
				_, is := w.byID(f.To).delivered[pmul.Key{Source: from.id, Message: f.Message}]
				check.True(in, "it is there", is)
			}
			check.Equal(in, "messages that are held", len(from.sender.Messages()), 0)
		}
		for _, n := range w.nodes {
			check.Equal(in, "messages that came twice", n.twice, 0)
		}
		t.Logf("seed %d: %d deaths, %d batches", seed, w.crashes, len(air.ids))
	}
}

// A sender that is ordered to be silent amid a batch goes on with it afterwards.
func TestBatchAndEMCON(t *testing.T) {
	for seed := uint64(1); seed <= seeds(4, 40); seed++ {
		w, air := batchWorld(t, 4, 10, seed)
		hq, ships := w.nodes[0], w.nodes[1:]
		keys := w.sendTogether(hq, sizes, ships...)
		begin := epoch.Add(time.Duration(seed) * 1500 * time.Millisecond)
		frames := 0
		w.at(begin, func() { w.sendStep(hq, pmul.EMCON{Silent: true}); frames = hq.frames })
		w.at(begin.Add(20*time.Minute), func() {
			check.Equal(t, "datagrams in silence", hq.frames-frames, 0)
			w.sendStep(hq, pmul.EMCON{Silent: false})
		})
		w.run(3*time.Hour, func() bool { return w.now.After(begin.Add(20*time.Minute)) && len(hq.fates) == len(sizes)*len(ships) })
		in := check.In(t, "seed", seed)
		w.allThere(in, hq, keys, sizes, ships...)
		check.Equal(in, "batches", len(air.ids), 1)
	}
}

// Of two receivers that lose much one is silent: it gets the batch by repetitions, and says so when its silence ends; the other does not
// wait for it.
func TestBatchToTheSilent(t *testing.T) {
	for seed := uint64(1); seed <= seeds(4, 40); seed++ {
		w, air := batchWorld(t, 3, 15, seed)
		hq, silent, talker := w.nodes[0], w.nodes[1], w.nodes[2]
		w.silence(silent, true, hq)
		keys := w.sendTogether(hq, sizes, silent, talker)
		if seed%2 == 0 {
			w.at(epoch.Add(30*time.Minute), func() { w.kill(silent) })
		}
		w.run(time.Hour, nil)
		in := check.In(t, "seed", seed)
		check.Equal(in, "fates before silence ends", len(hq.fates), len(sizes))
		check.Equal(in, "datagrams of the silent node", silent.frames, 0)
		check.True(in, "repetitions", hq.sender.Stats().Repeats > 0)
		for i, key := range keys {
			_, is := silent.got[key]
			check.True(in, fmt.Sprint("the silent node has message ", i), is)
		}
		w.silence(silent, false, hq)
		w.run(3*time.Hour, func() bool { return len(hq.fates) == 2*len(sizes) })
		w.allThere(in, hq, keys, sizes, silent, talker)
		check.Equal(in, "batches", len(air.ids), 1)
	}
}

// What of a batch has not been on the air is cancelled, held and replaced as if it waited by itself, whenever the order comes. The rest
// of the batch arrives as it was, with losses too, and nothing is left over.
func TestBatchesThatMessagesLeave(t *testing.T) {
	left := 0
	for seed := uint64(1); seed <= seeds(40, 400); seed++ {
		w, air := batchWorld(t, 4, []float64{0, 10, 20}[seed%3], seed)
		hq := w.nodes[0]
		rng := rand.New(rand.NewPCG(seed, 3))
		type sent struct {
			payload         []byte
			to              []*node
			cancelled, held bool
		}
		all := map[pmul.Key]*sent{}
		var keys []pmul.Key
		w.sendStep(hq, pmul.EMCON{Silent: true})
		for i := range 4 + rng.IntN(12) {
			s := &sent{payload: content(rng.IntN(900), seed*100+uint64(i)), to: w.nodes[1:3]}
			if rng.IntN(3) == 0 { // others, whose messages are between these in the queue
				s.to = w.nodes[3:]
			}
			key := w.send(hq, s.payload, 0, 5*time.Hour, s.to...)
			keys, all[key] = append(keys, key), s
		}
		w.sendStep(hq, pmul.EMCON{Silent: false})
		if len(air.ids) == 0 { // one datagram holds what there is for the same recipients
			continue
		}
		for i := range 12 {
			key := keys[rng.IntN(len(keys))]
			do := func() {
				s, waits := all[key], hq.sender.Waits(key.Message)
				if waits && air.data[air.ids[0]] > 0 {
					left++
				}
				switch op := rng.IntN(4); {
				case op == 0 && slices.Contains(hq.sender.Messages(), key.Message):
					if !waits {
						return // some may have it
					}
					w.sendStep(hq, pmul.Cancel{Message: key.Message})
					s.cancelled = true
				case op == 1 && waits:
					w.sendStep(hq, pmul.Hold{Message: key.Message, On: !s.held})
					s.held = !s.held
				case op >= 2:
					payload := content(rng.IntN(900), seed*1000+uint64(i))
					a := w.sendStep(hq, pmul.Replace{Message: key.Message, Payload: payload, Expires: epoch.Add(5 * time.Hour)}).Accepted
					check.Equal(t, "it is replaced", a[0].Err == nil, waits)
					if waits {
						s.payload = payload
					}
				}
			}
			if at := epoch.Add(time.Duration(rng.IntN(12)) * 800 * time.Millisecond); at.After(w.now) {
				w.at(at, do)
			} else {
				do()
			}
		}
		w.run(time.Hour, nil)
		in := check.In(t, "seed", seed)
		for _, key := range keys {
			for _, n := range all[key].to {
				if s := all[key]; s.held {
					check.True(in, "a held one is not there", n.got[key].Payload == nil)
				}
			}
			if all[key].held {
				w.sendStep(hq, pmul.Hold{Message: key.Message})
			}
		}
		w.run(4*time.Hour, func() bool { return len(hq.sender.Messages()) == 0 })
		fates := 0
		for _, key := range keys {
			for _, n := range all[key].to {
				fates++
				m, is := n.got[key]
				check.Equal(in, fmt.Sprint(n.name, " has ", key.Message), is, !all[key].cancelled)
				if is {
					check.True(in, fmt.Sprint(n.name, " has the octets of ", key.Message), bytes.Equal(m.Payload, all[key].payload))
				}
				state, _ := hq.sender.Fate(key.Message, n.id)
				check.Equal(in, "its fate", state, map[bool]pmul.State{false: pmul.Delivered, true: pmul.Cancelled}[all[key].cancelled])
			}
		}
		check.Equal(in, "fates", len(hq.fates), fates)
		check.Equal(in, "messages that are held", len(hq.sender.Messages()), 0)
		for _, n := range w.nodes {
			check.Equal(in, "messages that came twice", n.twice, 0)
			if n != hq {
				check.Equal(in, "illegal", n.receiver.Stats().Illegal, 0)
			}
		}
	}
	check.True(t, "messages that could leave a batch", left > 20, left)
}

// A batch that all of its messages have left ends.
func TestBatchThatAllLeave(t *testing.T) {
	s := newCompactSender(t)
	s.cfg.LargeOctets = 0 // so that some of it waits for the radio
	s.restart()
	s.step(pmul.EMCON{Silent: true})
	var ids []pmul.MessageID
	for range 4 {
		ids = append(ids, s.submit(func(ev *pmul.Submit) { ev.Payload = content(900, 1) }))
	}
	s.step(pmul.EMCON{Silent: false})
	batch := s.batch()
	waiting := 0
	for _, id := range ids {
		if s.Waits(id) {
			waiting++
			s.step(pmul.Hold{Message: id, On: true})
		} else {
			s.step(pmul.Cancel{Message: id})
		}
	}
	check.True(t, "some have not begun", waiting > 0 && waiting <= len(ids), waiting)
	s.play(time.Minute)
	check.Equal(t, "messages that are held", len(s.Messages()), waiting)
	before := len(s.sent)
	s.play(10 * time.Minute)
	for _, pdu := range s.sent[before:] {
		if a, is := pdu.(pmul.AddressPDU); is && a.Message == batch {
			t.Fatalf("it goes on: %+v", a)
		}
	}
}

// The first message of a batch is held while other messages wait behind the batch: all keep their places.
func TestBatchThatItsFirstLeaves(t *testing.T) {
	s := newCompactSender(t)
	s.cfg.LargeOctets = 0 // the first datagram has no room for a fragment
	s.restart()
	s.step(pmul.EMCON{Silent: true})
	to := func(nodes ...pmul.NodeID) func(*pmul.Submit) {
		return func(ev *pmul.Submit) { ev.To, ev.Payload = nodes, content(470*len(nodes), 1) } // a short one waits for its turn too
	}
	first, other := s.submit(to(2, 3)), s.submit(to(4))
	second := s.submit(to(2, 3))
	s.step(pmul.Busy{By: 9, Air: 3 * time.Second})
	s.step(pmul.TurnPDU{Source: 9, Number: 1, Next: 8, More: true}) // of which nobody expects this node: it says one datagram
	s.step(pmul.EMCON{Silent: false})
	batch := s.batch()
	check.True(check.Fatal(t), "nothing of its first message has been on the air", s.Waits(first))
	s.step(pmul.Hold{Message: first, On: true})
	s.step(pmul.Hold{Message: other, On: true})
	s.sent = nil
	s.play(2 * time.Minute)
	data := map[pmul.MessageID]int{}
	for _, pdu := range s.sent {
		if d, is := pdu.(pmul.DataPDU); is {
			data[d.Message]++
		}
	}
	check.True(t, "the batch goes on with its second message", data[batch] > 2 && !s.Waits(second), data)
	check.Equal(t, "fragments of what is held", data[first]+data[other], 0)
	s.acknowledged(2, batch)
	s.acknowledged(3, batch)
	check.Same(t, "messages that are held", s.Messages(), []pmul.MessageID{first, other})
	s.step(pmul.Hold{Message: first})
	s.step(pmul.Hold{Message: other})
	s.play(2 * time.Minute)
	check.True(t, "they go when they are let go", !s.Waits(first) && !s.Waits(other))
}
