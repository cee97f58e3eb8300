// Package hearing records who hears whom on each channel, as greetings say, and derives which gateways of a channel speak
// first for others (docs/decisions/groups.md).
//
// Two gateways that hear a third are not assumed to hear each other: HF skips. A pair of which nothing was said is Unknown,
// and counts as hearing. Only a gateway itself says whom it hears, so a lie about that affects only messages sent for the
// liar's sake.
//
// The package is pure. Memory: mostNames entries for each node that Present has named.
package hearing

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// State is whether one gateway hears another.
type State uint8

// States.
const (
	Unknown State = iota
	No
	Yes
)

// Name is a gateway, and the start of it that another says it has heard, a Unix time in seconds; 0: the other does not say.
type Name struct {
	ID    uint16
	Start uint32
}

const (
	// Age is how long a greeting counts: a gateway that has nobody to greet does not repeat it.
	Age = 24 * time.Hour
	// mostUp bounds the value of a long time up: a gateway that claims to be up for years does not precede one that is up for a day.
	mostUp = 24 * time.Hour

	mostNames = 1 << 10
)

// Net is the channels of one gateway. It is not for concurrent use.
type Net struct {
	self     Name
	channels map[int]map[uint16]*node
}

// node is another gateway on a channel.
type node struct {
	start uint32
	here  bool
	since time.Time // when this start was noticed
	whole time.Time // when it last listed all gateways that it hears; zero: it has not
	names map[uint16]named
}

type named struct {
	start uint32
	at    time.Time
}

// New makes a Net of a gateway, with the start that it names itself by.
func New(self Name) *Net { return &Net{self: self, channels: map[int]map[uint16]*node{}} }

// Present says that a gateway may be on a channel, and with which start it was heard there; 0: it was not heard. here: it
// can be reached there.
func (n *Net) Present(now time.Time, channel int, who Name, here bool) {
	on := n.channels[channel]
	if on == nil {
		on = map[uint16]*node{}
		n.channels[channel] = on
	}
	o := on[who.ID]
	switch {
	case o == nil:
		on[who.ID] = &node{start: who.Start, here: here, since: now}
	case o.start != who.Start: // a new start has heard nobody yet
		*o = node{start: who.Start, here: here, since: now}
	default:
		o.here = here
	}
}

// Greets takes the gateways that a gateway says it has heard on a channel. whole: it hears no others; not so in the first
// greeting of a start.
func (n *Net) Greets(now time.Time, channel int, who Name, names []Name, whole bool) {
	n.Present(now, channel, who, true)
	o := n.channels[channel][who.ID]
	if whole || o.names == nil {
		o.names = map[uint16]named{}
	}
	if whole {
		o.whole = now
	}
	for _, each := range names {
		if _, is := o.names[each.ID]; is || len(o.names) < mostNames {
			o.names[each.ID] = named{each.Start, now}
		}
	}
}

// On says that a gateway can be reached on a channel.
func (n *Net) On(channel int, id uint16) bool {
	o := n.channels[channel][id]
	return id == n.self.ID || o != nil && o.here
}

// Hears is whether one gateway hears another on a channel.
func (n *Net) Hears(now time.Time, channel int, who, whom uint16) State {
	on := n.channels[channel]
	o, other := on[who], on[whom]
	start, since := n.self.Start, time.Time{}
	if whom != n.self.ID {
		if start = 0; other != nil {
			start, since = other.start, other.since
		}
	}
	if who == n.self.ID {
		if start != 0 && other != nil && other.here {
			return Yes
		}
		return Unknown
	}
	if o == nil {
		return Unknown
	}
	said, is := o.names[whom]
	switch {
	case is && said.start != 0 && now.Sub(said.at) < Age && (start == 0 || said.start == start):
		return Yes
	case !is && !o.whole.IsZero() && now.Sub(o.whole) < Age && start != 0 && since.Before(o.whole):
		return No
	}
	return Unknown
}

// Uncovered are the gateways of a list that hear this one, and do not hear another.
func (n *Net) Uncovered(now time.Time, channel int, by uint16, list []uint16) (ids []uint16) {
	for _, id := range list {
		if id != by && n.Hears(now, channel, id, by) == No && n.Hears(now, channel, id, n.self.ID) == Yes {
			ids = append(ids, id)
		}
	}
	return ids
}

// Order is this gateway and the others on a channel that may speak there, the most stable first: by the share of the others
// that hear them, times their time up. Gateways that have heard the same greetings get the same order.
func (n *Net) Order(now time.Time, channel int, may func(id uint16) bool) (ids []uint16) {
	on := n.here(channel)
	worth := map[uint16]float64{}
	for _, id := range on {
		if id != n.self.ID && !may(id) {
			continue
		}
		start := n.self.Start
		if id != n.self.ID {
			start = n.channels[channel][id].start
		}
		up := min(max(now.Sub(time.Unix(int64(start), 0)), 0), mostUp)
		deaf := 0
		for _, other := range on {
			if other != id && n.Hears(now, channel, other, id) == No {
				deaf++
			}
		}
		ids = append(ids, id)
		worth[id] = up.Seconds() * (1 - float64(deaf)/math.Max(1, float64(len(on)-1)))
	}
	slices.SortFunc(ids, func(a, b uint16) int { return cmp.Or(cmp.Compare(worth[b], worth[a]), cmp.Compare(a, b)) })
	return ids
}

// Ahead is how many gateways are before this one in Order.
func (n *Net) Ahead(now time.Time, channel int, may func(id uint16) bool) int {
	return slices.Index(n.Order(now, channel, may), n.self.ID)
}

// here is this gateway and those that were heard on a channel and can be reached there, by id.
func (n *Net) here(channel int) []uint16 {
	ids := []uint16{n.self.ID}
	for id, o := range n.channels[channel] {
		if o.here && o.start != 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Row lists the gateways that one gateway hears on a channel, by id.
type Row struct {
	ID         uint16
	Hears, Not []uint16  // as it says; of others nothing is known
	Said       time.Time // when it last listed all; zero: it has not
}

// Rows are the gateways on a channel, this one included, by id.
func (n *Net) Rows(now time.Time, channel int) (rows []Row) {
	on := n.here(channel)
	for _, id := range on {
		row := Row{ID: id}
		if o := n.channels[channel][id]; o != nil {
			row.Said = o.whole
		}
		for _, other := range on {
			switch hears := n.Hears(now, channel, id, other); {
			case other == id:
			case hears == Yes:
				row.Hears = append(row.Hears, other)
			case hears == No:
				row.Not = append(row.Not, other)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// Components are the sets of gateways on a channel that reach each other there, over one another if need be, by mutual
// hearing. Each set is in order of id, and the sets in order of their first.
func (n *Net) Components(now time.Time, channel int) (list [][]uint16) {
	left := n.here(channel)
	for len(left) > 0 {
		part := []uint16{left[0]}
		left = left[1:]
		for i := 0; i < len(part); i++ {
			left = slices.DeleteFunc(left, func(id uint16) bool {
				joins := n.Hears(now, channel, id, part[i]) == Yes && n.Hears(now, channel, part[i], id) == Yes
				if joins {
					part = append(part, id)
				}
				return joins
			})
		}
		slices.Sort(part)
		list = append(list, part)
	}
	return list
}
