package jxtabridge

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"aldis/internal/jxta"
)

// Advertisements reach every peer except their publisher once and in order, a portion at a time; a peer that leaves
// meanwhile, or an advertisement that is gone, holds up nobody.
func TestPushedInPortions(t *testing.T) {
	n := newNode(t, 1)
	var peers []*fake
	for i := range 300 {
		peers = append(peers, n.peer(fmt.Sprint("p", i), "uuid"))
	}
	docs := 0
	publish := func() {
		peers[0].publish(jxta.NetGroup, msa(string(rune('A'+docs))+"-service"), 2*time.Hour)
		docs++
	}
	had := func(f *fake) (names []byte) {
		for _, h := range f.got {
			if i := bytes.Index(h.body, []byte("-service")); i > 0 {
				names = append(names, h.body[i-1])
			}
		}
		return names
	}
	publish()
	first := 0
	for _, f := range peers {
		first += len(had(f))
	}
	if first != pushPortion {
		t.Errorf("%d in the first Step, want %d", first, pushPortion)
	}
	publish()
	peers[299].hangUp()
	peers[298].disconnect(jxta.NetGroup)
	n.pass(time.Second)
	for i, f := range peers[1:298] {
		if got := had(f); string(got) != "AB" {
			t.Fatalf("peer %d has %q", i+1, got)
		}
	}
	if got := had(peers[0]); len(got) != 0 {
		t.Errorf("the publisher has %q", got)
	}
	for range maxPushes - len(n.b.directory.pushes.queue) {
		n.b.directory.pushes.queue = append(n.b.directory.pushes.queue, &push{}) // of advertisements that are gone
	}
	publish()
	if len(n.b.directory.pushes.queue) >= maxPushes || n.b.Stats().Unpushed != 1 {
		t.Errorf("%d wait, %d given up", len(n.b.directory.pushes.queue), n.b.Stats().Unpushed)
	}
	n.pass(time.Second)
	if len(n.b.directory.pushes.queue) != 0 || !n.b.directory.pushes.at.IsZero() {
		t.Errorf("%d still wait", len(n.b.directory.pushes.queue))
	}
}
