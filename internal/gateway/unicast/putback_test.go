package unicast

import (
	"testing"

	"aldis/internal/link/frame"
)

func from(boot uint32, direct uint64) start { return start{boot, [frame.Lanes]uint64{direct, 1}} }

// A peer that knows a start knows nothing of what the next one gave. Starts that gave no number are as if they had not been,
// and of too many the oldest two are told as one, from the lower number on.
func TestStartsSinceThePeerHasHeard(t *testing.T) {
	for _, c := range []struct {
		name  string
		list  []start
		knows uint32
		want  uint64
		tells int
	}{
		{"only this one", []start{from(10, 1)}, 0, 1, 0},
		{"none of two", []start{from(10, 1), from(20, 5)}, 7, 1, 1},
		{"the first of two", []start{from(10, 1), from(20, 5)}, 10, 5, 1},
		{"one that these data know nothing of", []start{from(10, 1), from(20, 5), from(30, 9)}, 15, 5, 2},
		{"one that gave no number", []start{from(10, 4), from(20, 4), from(30, 4)}, 10, 4, 0},
		{"more than a HELLO tells", []start{from(10, 1), from(20, 5), from(30, 6), from(40, 7), from(50, 8), from(60, 9)}, 30, 7, 4},
		{"the second of those", []start{from(10, 1), from(20, 5), from(30, 6), from(40, 7), from(50, 8), from(60, 9)}, 10, 1, 4},
	} {
		var s starts
		for _, one := range c.list {
			s.add(one)
		}
		if got := s.after(c.knows); got != [frame.Lanes]uint64{c.want, 1} {
			t.Errorf("%s: numbers count below %v, want %d", c.name, got, c.want)
		}
		if got := len(s.list) - 1; got != c.tells {
			t.Errorf("%s: %d earlier starts are told, want %d", c.name, got, c.tells)
		}
	}
}
