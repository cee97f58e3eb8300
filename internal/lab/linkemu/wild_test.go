package linkemu

import (
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// wild sends a thousand frames over a leg with w. It returns how many arrived, how many of them again, and how many after a younger one.
func wild(t *testing.T, seed uint64, w Wild) (arrived, again, late int) {
	t.Helper()
	p := prof(t, "iridium-directip")
	p.Up.RateBps, p.Down.RateBps = 0, 0
	link, err := New(Config{Nodes: []Node{{Name: "hq", Profile: prof(t, "wire")}, {Name: "ship", Profile: p}}, Seed: seed, Wild: w})
	check.NoError(check.Fatal(t), err)
	l := &lab{t: t, link: link}
	for i := range 1000 {
		l.do(time.Duration(i)*100*time.Millisecond, frame("ship", "hq", 100+i))
	}
	l.drain()
	seen, youngest := map[int]bool{}, 0
	for _, d := range l.to("hq") {
		switch o := d.Frame.Octets; {
		case seen[o]:
			again++
		default:
			arrived++
			if o < youngest {
				late++
			}
			seen[o], youngest = true, max(youngest, o)
		}
	}
	return arrived, again, late
}

// TestWild: without Wild the jitter of a star keeps the order and no frame comes twice; with it frames overtake and come twice, and the
// same frames are lost.
func TestWild(t *testing.T) {
	for seed := range uint64(10) {
		arrived, again, late := wild(t, seed, Wild{})
		check.Equal(t, "again without", again, 0)
		check.Equal(t, "late without", late, 0)
		both, twice, late := wild(t, seed, Wild{Reorder: true, TwicePct: 10})
		check.Equal(t, "arrived", both, arrived)
		check.True(t, "about a fifth comes twice", twice > 60 && twice < 300)
		check.True(t, "many come late", late > 200)
		same, none, _ := wild(t, seed, Wild{Reorder: true})
		check.Equal(t, "arrived", same, arrived)
		check.Equal(t, "again", none, 0)
	}
}
