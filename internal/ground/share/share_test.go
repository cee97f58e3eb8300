package share

import (
	"fmt"
	"testing"
)

// Whose turn it is follows from the airtime used while several sources wait: nobody saves up by waiting or by being away, and
// once nobody waits, all are equal again.
func TestRota(t *testing.T) {
	var r Rota
	r.Begins()
	for range 100 {
		r.Went("flood", 500)
	}
	if got := r.Used("flood"); got != 50_000 {
		t.Errorf("the one that sends alone has used %d octets, want 50000", got)
	}
	r.Begins() // another source waits
	lead := r.Used("flood") - r.Used("other")
	if lead < AheadOctets || lead > AheadOctets+500 {
		t.Errorf("who begins to wait is %d octets behind, want about %d", lead, AheadOctets)
	}
	turns := map[string]int{}
	for range 100 {
		next := "flood"
		if r.Used("other") < r.Used("flood") {
			next = "other"
		}
		octets := map[string]int{"flood": 500, "other": 100}[next]
		turns[next] += octets
		r.Went(next, octets)
	}
	if d := turns["other"] - turns["flood"]; d < 0 || d > AheadOctets+600 { // its lead, and a message of each
		t.Errorf("of the air the one has had %d and the other %d octets", turns["other"], turns["flood"])
	}
	r.Ends() // the other source is away for long
	for range 100 {
		r.Went("flood", 500)
	}
	r.Begins()
	if lead := r.Used("flood") - r.Used("other"); lead > AheadOctets+500 {
		t.Errorf("who was away has saved up %d octets", lead)
	}
	if len(r.air) > 2 {
		t.Errorf("%d sources are remembered", len(r.air))
	}
	for i := range 3 * mostSources {
		r.Went(fmt.Sprint("invented ", i), 200)
	}
	if len(r.air) > mostSources {
		t.Errorf("%d sources are remembered", len(r.air))
	}
	r.Ends()
	r.Ends()
	r.Begins()
	if r.Used("flood") != r.Used("other") {
		t.Error("what was used counts although nobody waited")
	}
}
