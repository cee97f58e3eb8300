package pmul_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/pmul"
)

// batchWorld is nodes on HF that hear each other and all know batches; the octets of batches on the air are recorded.
func batchWorld(t testing.TB, nodes int, pct float64, seed uint64) (*world, *batchesOnAir) {
	t.Helper()
	w := newWorld(t, setup{nodes: nodes, p: lossy(load(t, "hf-2400"), pct, false), coding: pmul.Compact, seed: seed, batches: true,
		change: func(c *pmul.Config) { c.AckGroup, c.Hears = true, true }})
	w.ride = true
	return w, watch(w)
}

// batchesOnAir records the batches that have been on the air.
type batchesOnAir struct {
	ids      []pmul.MessageID         // of batches, as they began
	data     map[pmul.MessageID]int   // Data_PDUs and shards of each message or batch
	discards map[pmul.MessageID]int   // Discard_Message_PDUs
	of       map[pmul.MessageID]*node // the node that sends it
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

// sendTogether submits messages of so many octets while the node may not transmit, so that they wait for each other, and
// then lets it transmit.
func (w *world) sendTogether(from *node, octets []int, to ...*node) (keys []pmul.Key) {
	w.t.Helper()
	w.sendStep(from, pmul.EMCON{Silent: true})
	for i, n := range octets {
		keys = append(keys, w.send(from, content(n, uint64(i)), 0, time.Hour*time.Duration(2+i), to...))
	}
	w.sendStep(from, pmul.EMCON{Silent: false})
	return keys
}

// allThere expects messages at nodes, each once and unchanged, and expects the sender to have learned of each recipient
// once and to hold nothing.
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

// Messages that wait for the channel go as one, and arrive at each recipient as they would singly.
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

// No batch goes before all nodes are known to know them, if datagrams take no turns of a channel, or if one datagram holds
// all messages.
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

// compactSender is a sender by hand of a network of seven whose channel is free, and its records.
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

// Messages join only if they are for the same recipients and of one Priority, and if none needs separate treatment.
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
	apart["behind others for some"] = s.submit(long) // its sequences are not greater by the same for all
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

// A message of a batch that is on the air is neither replaced nor held, and has the progress of the batch.
func TestBatchUnderWay(t *testing.T) {
	s, batch, ids := begun(t, nil)
	for _, id := range ids {
		check.True(t, "it waits no more", !s.Waits(id))
		a := s.step(pmul.Replace{Ref: 1, Message: id, Payload: []byte("new"), Expires: s.now.Add(time.Hour)}).Accepted
		check.True(t, "it is not replaced", len(a) == 1 && errors.Is(a[0].Err, pmul.ErrBegun), a)
		s.step(pmul.Hold{Message: id, On: true})
		check.Equal(t, "what was on the air", pmul.AiredOf(s.Sender, id), pmul.Aired{Begun: true, Whole: true})
		check.True(t, "it has left", pmul.HasLeft(s.now, s.Sender, id))
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

// Expiry and cancelling end a message of a batch for the nodes that lack it. The others continue, and the batch ends with
// the last of them.
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

// A node that gets nothing more is not named in a batch any more. For the others the batch continues; when none is left it ends.
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

// A batch ends with its last message, however late the sender notices its expiry, and frees its octets.
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

// A message of a batch that is acknowledged singly is delivered, once.
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

// After a restart the messages of a batch go singly.
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
