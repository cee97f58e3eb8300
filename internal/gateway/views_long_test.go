//go:build long

package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/jxtabridge"
)

// Ten minutes of 330 joins and leaves a second: pictures are right a minute later. The log has octets and memory; the memory is that of the
// gateways together with the code that plays their peers, so it is no assertion (docs/groups.md).
func TestChurnForTenMinutes(t *testing.T) {
	for _, view := range []jxtabridge.View{jxtabridge.Count, "tree(3)", jxtabridge.Complete} {
		t.Run(string(view), func(t *testing.T) {
			churn(t, view, 10*time.Minute)
		})
	}
}

// One peer more comes where n have come before: its cost on the link to one far site does not depend on n.
func TestOneMoreInEveryView(t *testing.T) {
	for _, tt := range []struct {
		view jxtabridge.View
		most int64
	}{{jxtabridge.Blind, 0}, {jxtabridge.Ask, 0}, {jxtabridge.Site, 0}, {jxtabridge.Count, 120}, {jxtabridge.Ring, 150}, {"random(2)", 150}, {"tree(3)", 150}, {jxtabridge.Complete, 150}} {
		for _, n := range []int{2, 1000, 10_000} {
			w, peers, _ := crowdOf(t, "iridium-certus-100", tt.view, n)
			w.Run(20 * time.Minute)
			idle := linkOctets(w)
			w.Run(5 * time.Minute)
			begun := linkOctets(w)
			idle = begun - idle
			peers.come(w, w.Nodes[0], 300+n, fmt.Sprint("peer ", n))
			w.Run(5 * time.Minute)
			cost := linkOctets(w) - begun - idle
			t.Logf("%s: one more of %d: %d octets", tt.view, n, cost)
			if cost > tt.most {
				t.Errorf("%s: one more of %d costs %d octets, want at most %d", tt.view, n, cost, tt.most)
			}
		}
	}
}
