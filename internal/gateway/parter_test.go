package gateway_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// TestPeerThatPartsOnPurpose: a member of the network says a thousand times a minute that it cannot read the messages to it, or sends
// unreadable ones. That costs the others nothing noticeable, and the link a bounded share, and the log names it.
func TestPeerThatPartsOnPurpose(t *testing.T) {
	for _, tt := range []struct {
		link  string
		every time.Duration
	}{{"iridium-directip", 2 * time.Second}, {"iridium-certus-100", 500 * time.Millisecond}} {
		t.Run(tt.link, func(t *testing.T) {
			t.Parallel()
			in := check.In(t, tt.link)
			alone, octets, _ := besideAParter(t, tt.link, tt.every, func(*sim.World) {})
			for how, part := range map[string]func(w *sim.World){
				"forgets": func(w *sim.World) {
					bad := w.Nodes[2]
					gateway.SayForgot(bad.GW, w.Now, 1)
					gateway.SayForgot(bad.GW, w.Now, 2)
					w.Give(bad, nil)
				},
				"cannot be read": func(w *sim.World) {
					gateway.Part(w.Nodes[0].GW, 3)
					gateway.Part(w.Nodes[1].GW, 3)
				},
			} {
				beside, more, w := besideAParter(t, tt.link, tt.every, part)
				check.True(in, how+": median of the others", beside[len(beside)/2] <= alone[len(alone)/2]*11/10, beside[len(beside)/2], alone[len(alone)/2]*11/10)
				check.True(in, how+": longest of the others", beside[len(beside)-1] <= alone[len(alone)-1]*12/10, beside[len(beside)-1], alone[len(alone)-1]*12/10)
				check.True(in, how+": octets that the others send", more <= octets*3/2, more, octets*3/2)
				if how == "forgets" {
					named := said(w, "again and again")
					check.True(in, "both name it, once a minute", named >= 2 && named <= 2*3, named)
				}
			}
		})
	}
}

// besideAParter lets part happen each 60 ms for two minutes, in a network of three. It returns how long the messages of the other two took,
// the shortest first, and how many octets those two sent.
func besideAParter(t *testing.T, link string, every time.Duration, part func(*sim.World)) (took []time.Duration, octets int64, w *sim.World) {
	t.Helper()
	w = world(t, 3, link, 5, lossless)
	hq, ship, bad := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	w.Run(time.Minute)
	n := int(2 * time.Minute / every)
	down, up := textTracks(w, hq, []uint16{2}, n, every), textTracks(w, ship, []uint16{1}, n, every)
	textTracks(w, bad, []uint16{1, 2}, n, every)
	for i := range 2000 {
		w.At(time.Duration(i)*60*time.Millisecond, func() { part(w) })
	}
	w.Run(4 * time.Minute)
	took = append(once(t, w, ship.Site, 1, *down), once(t, w, hq.Site, 2, *up)...)
	slices.Sort(took)
	for _, n := range w.Nodes[:2] {
		sent, _ := w.Octets(n)
		octets += sent
	}
	return took, octets, w
}

// TestManyFlowsPart: the memory of thousands of flows, with -tags long of ten thousand, is spoiled at once. Each message of them still comes
// once, and later messages do not wait for as many mendings.
func TestManyFlowsPart(t *testing.T) {
	t.Parallel()
	const every = 10 * time.Millisecond
	flows := int(2_000 * seeds(5))
	w := world(t, 2, "geo-satcom-128k", 8, lossless)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	sent := &[]offered{}
	for i := range flows + 500 {
		w.At(time.Duration(i)*every, func() {
			p := textTrack(2, pipeHQ, i%flows)
			p.From = peerID(uint16(1000 + i%flows))
			*sent = append(*sent, offered{At: w.Now, Message: p})
			ship.Site.Send(w, p, 1)
		})
	}
	w.At(time.Duration(flows)*every, func() { gateway.Part(hq.GW, 2) })
	w.Run(time.Duration(flows+500)*every + 5*time.Minute)
	took := once(t, w, hq.Site, 2, *sent)
	check.True(t, "the longest in three round trips", took[len(took)-1] < 2*time.Second, took[len(took)-1])
	check.True(t, "asked for again at most ten times", said(w, "asks for it again") <= 10, said(w, "asks for it again"))
}
