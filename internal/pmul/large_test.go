package pmul

import (
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// TestLargeDatagrams: batches go in large datagrams, all other messages in usual ones.
func TestLargeDatagrams(t *testing.T) {
	for _, tt := range []struct {
		name        string
		large       int
		count, each int
		most        int // octets of the largest datagram
	}{
		{"many messages", 1200, 30, 200, 1200},
		{"no large datagrams", 0, 30, 200, 500},
		{"a batch that one large datagram holds", 1200, 4, 200, 860},
		{"one long message", 1200, 1, 6000, 500},
	} {
		in := check.In(t, tt.name)
		l := newLoneSender(t)
		l.Sender.cfg.DatagramOctets, l.Sender.cfg.LargeOctets = 500, tt.large
		l.Batch(true)
		l.step(EMCON{Silent: true})
		for range tt.count {
			l.from("one", tt.each)
		}
		l.step(EMCON{})
		l.play(l.now.Add(2 * time.Minute))
		most := 0
		for _, p := range l.sent {
			most = max(most, l.Sender.cfg.octets(p))
		}
		check.True(in, "largest datagram", most <= tt.most && most > tt.most-60, most)
	}
}

// TestBatchForTheDead: two messages go again to a node that was heard, while another has them already; that node is dead
// again before they have been on the air. They wait for it, and the sender continues.
func TestBatchForTheDead(t *testing.T) {
	l := newLoneSender(t)
	l.from("one", 300)
	l.from("one", 300)
	l.play(l.now.Add(5 * time.Second))
	for _, by := range []NodeID{2, 3, 4} {
		l.acknowledged(by, 1)
		l.acknowledged(by, 2)
	}
	l.play(l.now.Add(5 * time.Second))
	l.Batch(true)
	for _, id := range []MessageID{1, 2} {
		m := l.messages[id]
		m.wakes = true
		check.True(check.Fatal(t), "goes again", goesWhole(l.Sender, m), id)
	}
	l.peers[5].unanswered, l.peers[5].probeAt = dead, l.now.Add(time.Hour)
	l.play(l.now.Add(time.Minute))
	for _, id := range []MessageID{1, 2} {
		state, ok := l.Fate(id, 5)
		check.True(t, "it waits", ok && state == Waiting, id, state)
	}
}

// TestProbesInAnOutage: while no node answers, questions stay as frequent for an hour. They become rarer sooner if another
// node answers, since that node needs the air.
func TestProbesInAnOutage(t *testing.T) {
	for _, tt := range []struct {
		name        string
		answers     bool // another node does
		asked       int
		least, most time.Duration
	}{
		{"no node answers", false, 60, 0, 40 * time.Second},
		{"no node answers for hours", false, 400, 200 * time.Second, 5 * time.Minute},
		{"another answers", true, 60, 200 * time.Second, 5 * time.Minute},
	} {
		l := newLoneSender(t)
		l.Sender.cfg.ProbeEvery = 30 * time.Second
		for _, n := range l.cfg.Peers {
			l.peer(n).unanswered = tt.asked
		}
		if tt.answers {
			l.peer(3).unanswered = 0
		}
		p := l.peer(5)
		p.probe(l.now, l.Sender)
		wait := p.probeAt.Sub(l.now)
		check.True(t, tt.name, wait >= tt.least && wait <= tt.most, wait)
	}
}
