package hearing

import (
	"slices"
	"testing"
	"time"
)

const channel = 1

var begun = time.Unix(1_000_000, 0)

// name is a gateway that started so many hours before begun.
func name(id uint16, hours int64) Name {
	return Name{id, uint32(begun.Unix() - hours*3600)}
}

// skips is the view of 2 where 1 hears 2, 2 hears 1 and 3, and 1 and 3 do not hear each other.
func skips() *Net {
	n := New(name(2, 2))
	for _, id := range []uint16{1, 3} {
		n.Present(begun, channel, name(id, int64(id)), true)
		n.Greets(begun.Add(time.Minute), channel, name(id, int64(id)), []Name{name(2, 2)}, true)
	}
	return n
}

func TestWhoHearsWhom(t *testing.T) {
	now := begun.Add(time.Hour)
	for what, c := range map[string]struct {
		who, whom uint16
		after     func(n *Net)
		at        time.Time
		want      State
	}{
		"who is named":                           {who: 1, whom: 2, want: Yes},
		"who was not named":                      {who: 1, whom: 3, want: No},
		"this gateway":                           {who: 2, whom: 3, want: Yes},
		"after a day without a greeting":         {who: 1, whom: 3, at: begun.Add(Age + time.Hour), want: Unknown},
		"of a stranger":                          {who: 9, whom: 1, want: Unknown},
		"who came after the greeting":            {who: 1, whom: 4, after: func(n *Net) { n.Present(now, channel, name(4, 0), true) }, want: Unknown},
		"who has started since":                  {who: 1, whom: 3, after: func(n *Net) { n.Present(now, channel, name(3, 0), true) }, want: Unknown},
		"by who has started since":               {who: 1, whom: 2, after: func(n *Net) { n.Present(now, channel, name(1, 0), true) }, want: Unknown},
		"who is named by its old start":          {who: 1, whom: 3, after: func(n *Net) { n.Greets(now, channel, name(1, 1), []Name{name(3, 9)}, true) }, want: Unknown},
		"of whom it says nothing":                {who: 1, whom: 3, after: func(n *Net) { n.Greets(now, channel, name(1, 1), []Name{{3, 0}}, true) }, want: Unknown},
		"who is named later, among some":         {who: 1, whom: 3, after: func(n *Net) { n.Greets(now, channel, name(1, 1), []Name{name(3, 3)}, false) }, want: Yes},
		"who is not among some that are named":   {who: 1, whom: 2, after: func(n *Net) { n.Greets(now, channel, name(1, 1), nil, false) }, want: Yes},
		"who is not named any more":              {who: 1, whom: 2, after: func(n *Net) { n.Greets(now, channel, name(1, 1), nil, true) }, want: No},
		"among as many names as nobody may have": {who: 1, whom: 2, after: crowded, want: No},
	} {
		n, at := skips(), now.Add(time.Second)
		if c.after != nil {
			c.after(n)
		}
		if !c.at.IsZero() {
			at = c.at
		}
		if got := n.Hears(at, channel, c.who, c.whom); got != c.want {
			t.Errorf("%s: %d hears %d: %d, want %d", what, c.who, c.whom, got, c.want)
		}
	}
}

// crowded has one name more than are kept, and then 2.
func crowded(n *Net) {
	var names []Name
	for id := range uint16(mostNames) {
		names = append(names, Name{id + 100, 7})
	}
	n.Greets(begun.Add(time.Hour), channel, name(1, 1), append(names, name(2, 2)), true)
}

func TestWhoIsNotCovered(t *testing.T) {
	n, now := skips(), begun.Add(time.Hour)
	if got := n.Uncovered(now, channel, 1, []uint16{1, 3}); !slices.Equal(got, []uint16{3}) {
		t.Errorf("not covered by 1: %v", got)
	}
	n.Greets(now, channel, name(3, 3), []Name{name(1, 1)}, true) // it hears 1, and does not hear this gateway any more
	if got := n.Uncovered(now, channel, 1, []uint16{1, 3}); got != nil {
		t.Errorf("not covered by 1, whom all hear: %v", got)
	}
	if got := New(name(2, 2)).Uncovered(now, channel, 1, []uint16{1, 3}); got != nil {
		t.Errorf("not covered where nothing is known: %v", got)
	}
}

// Three gateways that hear each other get the same order; a gateway that few hear comes after them.
func TestAllReckonTheSameOrder(t *testing.T) {
	now := begun.Add(time.Hour)
	starts := []Name{name(1, 30), name(2, 50), name(3, 2), name(4, 9)}
	hears := map[uint16][]Name{1: {starts[1], starts[2], starts[3]}, 2: {starts[0], starts[2]}, 3: {starts[0], starts[1]}, 4: {starts[0], starts[1], starts[2]}}
	every := func(uint16) bool { return true }
	for _, self := range starts[:3] {
		n := New(self)
		for _, other := range starts {
			if other != self {
				n.Present(begun, channel, other, true)
			}
		}
		for _, other := range starts {
			if other != self {
				n.Greets(begun.Add(time.Minute), channel, other, hears[other.ID], true)
			}
		}
		// 1 and 2 are up for more than a day, so the lower number counts. 4 is up for longer than 3; of three others one or two do not hear it.
		got := n.Order(now, channel, every)
		if !slices.Equal(got, []uint16{1, 2, 4, 3}) {
			t.Errorf("%d reckons the order %v", self.ID, got)
		}
		if n.Ahead(now, channel, func(id uint16) bool { return id == 1 }) != min(int(self.ID)-1, 1) {
			t.Errorf("%d is behind %d of those that 1 is of", self.ID, n.Ahead(now, channel, func(id uint16) bool { return id == 1 }))
		}
	}
}

func TestComponents(t *testing.T) {
	n, now := skips(), begun.Add(time.Hour)
	check := func(what string, want ...[]uint16) {
		t.Helper()
		if got := n.Components(now, channel); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("1 and 3 reach each other over this one", []uint16{1, 2, 3})
	n.Greets(now, channel, name(3, 3), nil, true)
	check("who does not hear this one is by itself", []uint16{1, 2}, []uint16{3})
	n.Present(now, channel, name(1, 1), false)
	check("who cannot be reached is in none", []uint16{2}, []uint16{3})
	n.Present(now, channel, Name{}, true)
	check("who was never heard is in none", []uint16{2}, []uint16{3})
	rows := n.Rows(now, channel)
	if len(rows) != 2 || !slices.Equal(rows[0].Hears, []uint16{3}) || !slices.Equal(rows[1].Not, []uint16{2}) {
		t.Errorf("who hears whom: %+v", rows)
	}
}
