package tak_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// BenchmarkReport is one report of one of 200 devices on a LAN whose far site has 200 units, too: a hundred reports a second
// may take 2 % of a core, 200 us each.
func BenchmarkReport(b *testing.B) {
	near, err := tak.New(tak.Config{Sites: []uint16{1}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	far, err := tak.New(tak.Config{Sites: []uint16{2}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	now, token := sim.Epoch, uint64(0)
	tell := func(f, other *tak.Adapter, from uint16, ev site.Event) {
		for _, c := range f.Step(now, ev).Carry {
			token++
			other.Step(now, site.FarMessage{Site: from, Token: token, Message: c.Message})
			f.Step(now, site.Fate{Token: c.Message.Token})
		}
	}
	units := make([]*unit, 200)
	report := func(i int) {
		u := units[i%200]
		u.move(2 * time.Second)
		tell(near, far, 2, tak.Heard{Conn: site.ConnID(i%200 + 1), Frame: []byte(u.report(now))})
		now = now.Add(10 * time.Millisecond)
	}
	for i := range units {
		units[i] = newUnit(i)
		units[i].speed, units[i].course = 5, float64(i)
		for f, other := range map[*tak.Adapter]*tak.Adapter{near: far, far: near} {
			tell(f, other, 1, tak.Opened{Conn: site.ConnID(i + 1), Remote: fmt.Sprintf("10.0.0.%d:1", i)})
		}
		v := *newUnit(1000 + i)
		v.speed = 5
		tell(far, near, 1, tak.Heard{Conn: site.ConnID(i + 1), Frame: []byte(v.report(now))})
	}
	for i := range 2000 {
		report(i)
	}
	b.ResetTimer()
	for i := range b.N {
		report(i)
	}
}
