package gateway_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

func TestStateFollowsChanges(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 3)
	hq, ship := w.Nodes[0], w.Nodes[1]
	adv := site.Item{Kind: site.Document, Scope: "jxta-NetGroup", Owner: peerID(1), ID: "uuid-0102", Sub: 2,
		Doc: bytes.Repeat([]byte("<Desc>a service</Desc>"), 200), Expires: sim.Epoch.Add(2 * time.Hour)}
	hq.Site.Put(w, adv)
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	w.Run(time.Minute)
	if !reflect.DeepEqual(ship.Site.Far[1], hq.Site.Items) {
		t.Fatalf("after a minute the ship knows %d items of %d", len(ship.Site.Far[1]), len(hq.Site.Items))
	}
	gone := pipeItem(1, pipeHQ)
	gone.Gone = true
	w.Outage(ship, 5*time.Minute)
	hq.Site.Put(w, gone)
	adv.Doc = []byte("<Desc>moved</Desc>")
	hq.Site.Put(w, adv)
	w.Run(6 * time.Minute)
	if !reflect.DeepEqual(ship.Site.Far[1], hq.Site.Items) {
		t.Errorf("after an outage the ship knows %v, want %v", ship.Site.Far[1], hq.Site.Items)
	}
}

// An advertisement that its peer publishes again every few minutes crosses again only for its new lifetime: now and
// then, in six octets and the datagram around them.
func TestRepublishedAdvertisement(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 5)
	hq, ship := w.Nodes[0], w.Nodes[1]
	adv := site.Item{Kind: site.Document, Scope: "jxta-NetGroup", Owner: peerID(1), ID: "uuid-0102", Sub: 2,
		Doc: track(1, pipeHQ, 1, 900).Parts[0].Data, To: []uint16{2}, Home: true}
	again := func() {
		adv.Expires = w.Now.Add(2 * time.Hour)
		hq.Site.Put(w, adv)
	}
	again()
	w.Run(time.Minute)
	up, _ := w.Octets(hq)
	for i := range 100 {
		w.At(time.Duration(i)*5*time.Minute, again)
	}
	for i := range 50 {
		w.Run(10 * time.Minute)
		it, ok := ship.Site.Far[1][adv.Key()]
		must := check.Fatal(check.In(t, "after", w.Now.Sub(sim.Epoch)))
		check.True(must, "ok", ok)
		check.True(must, "it.Expires.After(w.Now.Add(50*time.Minute))", it.Expires.After(w.Now.Add(50*time.Minute)), it.Expires)
		check.True(must, "not it.Expires.After(adv.Expires)", !it.Expires.After(adv.Expires), it.Expires, adv.Expires)
		check.True(must, "bytes.Equal(it.Doc, adv.Doc)", bytes.Equal(it.Doc, adv.Doc))
		if i == 25 {
			w.Kill(hq, time.Second)
		}
	}
	now, _ := w.Octets(hq)
	t.Logf("%d octets in 500 minutes for an advertisement of %d octets that was published 100 times", now-up, len(adv.Doc))
	if now-up > 800 {
		t.Errorf("%d octets from HQ, want at most 800", now-up)
	}
	w.Run(2*time.Hour + 2*time.Minute)
	if _, ok := ship.Site.Far[1][adv.Key()]; ok && w.Now.Before(ship.Site.Far[1][adv.Key()].Expires) {
		t.Error("it outlives its last publication")
	}
}

// TestLateShipLearnsFast: a ship that starts long after HQ knows what HQ has within a few delays, whatever is lost.
func TestLateShipLearnsFast(t *testing.T) {
	var took []time.Duration
	for seed := range uint64(150) {
		w := world(t, 2, "iridium-directip", seed)
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.LoseStore(ship)
		w.Kill(ship, time.Minute)
		hq.Site.Put(w, pipeItem(1, pipeHQ))
		w.Run(time.Minute)
		start := w.Now
		for len(ship.Site.Far[1]) == 0 && w.Now.Sub(start) < time.Minute {
			w.Run(50 * time.Millisecond)
		}
		took = append(took, w.Now.Sub(start))
	}
	slices.Sort(took)
	t.Logf("median %v, 98 of 100 %v, worst %v", took[75], took[147], took[149])
	if took[75] > 4*time.Second || took[147] > 9*time.Second || took[149] > 12*time.Second {
		t.Errorf("median %v, 98 of 100 %v, worst %v; want 4 s, 9 s, 12 s", took[75], took[147], took[149])
	}
}
