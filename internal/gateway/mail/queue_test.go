package mail

import (
	"fmt"
	"testing"

	"aldis/internal/ground/share"
	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

func waits(q *queue, order uint64, from, topic string) *Entry {
	e := &Entry{Order: order, Message: &Message{Content: envelope.Message{Payload: &site.Message{Published: true, From: from, Topic: topic}}}}
	q.push(e)
	return e
}

// Of the pipes of one source the one that has used least goes first, each in its own order; before anything went, in the order of acceptance.
func TestTurnsOfPipes(t *testing.T) {
	var b PeerQueue
	q := &b.waiting[0]
	for i := range q.levels {
		q.levels[i].Rota = &b.rotas[i]
	}
	first := waits(q, 1, "a", "loud")
	second := waits(q, 2, "a", "loud")
	quiet := waits(q, 3, "a", "quiet")
	if got := q.first(false); got != first {
		t.Fatalf("number %d goes first, want 1", got.Order)
	}
	q.pull(first)
	b.Went(first, share.AheadOctets+1)
	if got := q.first(false); got != quiet {
		t.Errorf("after a long message of the loud pipe number %d goes, want 3", got.Order)
	}
	q.pull(quiet)
	if got := q.first(false); got != second {
		t.Errorf("then number %d goes, want 2", got.Order)
	}
	if q.pull(quiet) || !q.pull(second) || q.n != 0 || q.first(true) != nil {
		t.Errorf("%d wait after all was taken", q.n)
	}
}

// A peer that invents pipes gets no more turns, and nothing is lost among them.
func TestManyPipes(t *testing.T) {
	var b PeerQueue
	q := &b.waiting[0]
	for i := range q.levels {
		q.levels[i].Rota = &b.rotas[i]
	}
	for i := range 1000 {
		waits(q, uint64(1+i), "a", fmt.Sprint("pipe ", i))
	}
	level := &q.levels[routine]
	if n := len(level.sources[0].pipes); n > mostPipes || n < mostPipes/2 {
		t.Errorf("%d pipes take turns, want at most %d", n, mostPipes)
	}
	seen := map[uint64]bool{}
	for e := q.first(false); e != nil; e = q.first(false) {
		seen[e.Order] = true
		q.pull(e)
		b.Went(e, 100)
	}
	if len(seen) != 1000 || q.n != 0 || len(level.sources) != 0 {
		t.Errorf("%d of 1,000 went, %d wait, %d sources", len(seen), q.n, len(level.sources))
	}
}
