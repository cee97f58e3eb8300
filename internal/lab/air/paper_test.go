package air

import (
	"context"
	"reflect"
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// An octet costs more than one on the air, in custody and to a group, and a message too long for a datagram reaches a group too.
func TestBySize(t *testing.T) {
	for _, octets := range []int{1, 4096} {
		for _, open := range []bool{false, true} {
			f, err := BySize(context.Background(), "iridium-certus-100", 1, open, octets)
			// Two hops of 400 to 750 ms each; upwards 2,750 octets a second.
			if err != nil || f.Octets < float64(2*octets) || f.Seconds < 0.8 || f.Goodput <= 0 || f.Goodput > 2750 {
				t.Errorf("%d octets, open %v: %+v, %v", octets, open, f, err)
			}
		}
	}
}

// A gateway that is away when a message is sent or comes does not count as a hearer, and messages to a gateway that was away count from
// its return.
func TestPresent(t *testing.T) {
	after := func(seconds int) time.Time { return sim.Epoch.Add(time.Duration(seconds) * time.Second) }
	var sent []Offered
	n := &sim.Node{Name: "ship", Site: &sim.Site{}}
	for i, at := range []int{0, 95, 110, 140} { // before, too short before, during and after the spell
		m := Track(2, Pipe, i, 20)
		sent = append(sent, Offered{after(at), m})
		n.Site.Got = append(n.Site.Got, sim.Got{At: after([]int{2, 131, 133, 141}[i]), From: 2, Payload: site.Message{Parts: m.Parts}})
	}
	off := []spell{{after(100), after(130)}}
	took, back, err := present(n, 2, sent, off, nil)
	if err != nil || len(took) != 2*behindEach || took[0] != 2*time.Second || took[len(took)-1] != time.Second || !reflect.DeepEqual(back, []time.Duration{3 * time.Second}) {
		t.Errorf("a gateway that was away: %v, %v, %v", took, back, err)
	}
	took, back, err = present(n, 2, sent, nil, [][]spell{off})
	if err != nil || len(took) != 4*behindEach-1 || len(back) != 0 {
		t.Errorf("a member that was away: %d hearers, %v, %v", len(took), back, err)
	}
	n.Site.Got = append(n.Site.Got, n.Site.Got[0])
	if _, _, err := present(n, 2, sent, nil, nil); err == nil {
		t.Error("a message that came twice is taken")
	}
	n.Site.Got = n.Site.Got[1:4]
	if _, _, err := present(n, 2, sent, nil, nil); err == nil {
		t.Error("a message that is missing is taken")
	}
}
