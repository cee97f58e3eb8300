package unicast

import (
	"testing"

	"aldis/internal/link/frame"
)

func from(incarnation uint32, direct uint64) start {
	return start{incarnation, [frame.Queues]uint64{direct, 1}}
}

// A peer that knows a start does not know the numbers that the next one gave. Starts that gave no number are as if they had not been,
// and of too many the second and the third are told as one, from the lower number on.
func TestStartsSinceThePeerHasHeard(t *testing.T) {
	many := []start{from(10, 1), from(20, 5), from(30, 6), from(40, 7)}
	for incarnation := uint32(50); len(many) < frame.MaxStarts+2; incarnation += 10 {
		many = append(many, from(incarnation, uint64(incarnation)))
	}
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
		{"more than a HELLO tells", many, 30, 7, frame.MaxStarts},
		{"the oldest of those", many, 10, 5, frame.MaxStarts},
		{"the second of those", many, 20, 5, frame.MaxStarts},
	} {
		var s starts
		for _, one := range c.list {
			s.add(one)
		}
		if got := s.after(c.knows); got != [frame.Queues]uint64{c.want, 1} {
			t.Errorf("%s: numbers count below %v, want %d", c.name, got, c.want)
		}
		if got := len(s.list) - 1; got != c.tells {
			t.Errorf("%s: %d earlier starts are told, want %d", c.name, got, c.tells)
		}
	}
}
