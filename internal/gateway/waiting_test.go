package gateway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// queue is a ship that is silent while messages come: all of them wait. Its silence ends, and its datagrams are kept.
type queue struct {
	*sim.World
	ship *sim.Node
	sent []letterOf
}

// letterOf is one datagram of the ship's with messages in it.
type letterOf struct {
	to     uint16
	octets int // of UDP payload
	bodies []int
}

func newQueue(t *testing.T, nodes int, name string) *queue {
	t.Helper()
	q, e := &queue{}, newEars(nodes)
	q.World = world(t, nodes, name, 1, func(c *sim.Config) {
		c.Profile.LargeOctets = 0 // datagrams of one size
		c.LAN = func(n *sim.Node, out api.Output) {
			for _, d := range out.Datagrams {
				by, _, frames := e.open(n.ID, d)
				if n.ID != 2 {
					continue
				}
				l := letterOf{to: by, octets: len(d.Data)}
				for _, f := range frames {
					if data, ok := f.(frame.Data); ok {
						l.bodies = append(l.bodies, len(data.Body))
					}
				}
				if len(l.bodies) > 0 {
					q.sent = append(q.sent, l)
				}
			}
		}
	})
	q.ship = q.Nodes[1]
	q.Run(time.Minute)
	q.sent = nil
	order(q.World, q.ship, api.Silence{On: true})
	return q
}

// speak ends the silence.
func (q *queue) speak(d time.Duration) {
	order(q.World, q.ship, api.Silence{})
	q.Run(d)
}

// Which of several messages that wait goes first: the most urgent, and of those the oldest; a newer message has the place
// of the one that it replaces.
func TestWaitingOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		came string // "text" or "text/precedence" or "text/precedence/key", in the order in which they came
		goes string
	}{
		{"one precedence keeps its order", "a b c d", "a b c d"},
		{"all six", "a/deferred b/routine c/priority d/immediate e/flash f/override", "f e d c b a"},
		{"urgent ones keep their order too", "a b/flash c d/flash e/flash", "b d e a c"},
		{"deferred goes last though it came first", "a/deferred b/deferred c", "c a b"},
		{"the newer one has the older one's place", "a b/routine/k c d/routine/k", "a d c"},
		{"only the newest of three is left", "a/routine/k b/routine/k c d/routine/k", "d c"},
		{"keys do not meet", "a/routine/k b/routine/l c/routine/k", "c b"},
		{"what replaces may be more urgent", "a b/routine/k c/flash/k", "c a"},
		{"and less", "a/flash/k b/routine c/deferred/k", "b c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := newQueue(t, 2, "iridium-dialup")
			for _, m := range strings.Fields(tt.came) {
				word := append(strings.Split(m, "/"), "routine", "")
				p := jxtaMessage("t", "ship", word[0])
				if len(word) > 3 {
					p.Precedence, _ = site.ParsePrecedence(word[1])
				}
				if len(word) > 4 {
					p.LastValue, p.Key = word[2], uint32(word[2][0])
				}
				q.ship.Site.Send(q.World, p, 1)
			}
			q.Run(time.Second)
			q.speak(2 * time.Minute)
			if got := strings.Join(jxtaTexts(q.Nodes[0]), " "); got != tt.goes {
				t.Errorf("of %q goes %q, want %q", tt.came, got, tt.goes)
			}
		})
	}
}

// How datagrams are filled with waiting messages: in order, as many as fit, and none is broken up.
func TestDatagramsAreFilled(t *testing.T) {
	for _, tt := range []struct {
		name   string
		octets []int // of incompressible messages that wait
		want   []int // messages in each datagram
	}{
		{"one alone", []int{100}, []int{1}},
		{"small ones share a datagram", []int{20, 20, 20, 20}, []int{4}},
		{"as many as fit", []int{100, 100, 100, 100, 100, 100}, []int{4, 2}},
		{"a large one does not go with another", []int{300, 300, 300}, []int{1, 1, 1}},
		{"nobody overtakes to fill a gap", []int{300, 300, 20}, []int{1, 2}},
		{"the large one goes last in a datagram", []int{20, 20, 300, 300}, []int{3, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := newQueue(t, 2, "iridium-dialup")
			for i, octets := range tt.octets {
				q.ship.Site.Send(q.World, track(2, pipeHQ, i, octets), 1)
			}
			q.Run(time.Second)
			q.speak(3 * time.Second)
			var got []int
			for _, l := range q.sent {
				got = append(got, len(l.bodies))
				if most := load(t, "iridium-dialup").DatagramOctets; l.octets > most {
					t.Errorf("a datagram of %d octets, at most %d are allowed", l.octets, most)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("messages of %v octets go as %v to a datagram, want %v: %+v", tt.octets, got, tt.want, q.sent)
			}
		})
	}
}

// Whose turn it is when one transmitter serves several peers: each in turn, one datagram at a time. The ship's last
// datagram before its silence went to node 3, so that node 4 is the next.
func TestTurnsOfTheAir(t *testing.T) {
	for _, tt := range []struct {
		name string
		want string // peers of the datagrams, by number
		wait string // a message of 300 octets to each of these, in the order in which they came
	}{
		{"one peer", "1 1 1", "1 1 1"},
		{"two peers alternate", "1 3 1 3", "1 1 3 3"},
		{"three peers alternate", "4 1 3 4 1 3", "4 4 3 3 1 1"},
		{"who has more waits longer", "1 3 1 1", "1 1 1 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := newQueue(t, 4, "iridium-dialup")
			for i, to := range strings.Fields(tt.wait) {
				q.ship.Site.Send(q.World, track(2, pipeHQ, i, 300), uint16(to[0]-'0'))
			}
			q.Run(time.Second)
			q.speak(10 * time.Second)
			var got []string
			for _, l := range q.sent[:min(len(q.sent), len(strings.Fields(tt.wait)))] { // after them lost ones go again
				got = append(got, string('0'+byte(l.to)))
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("datagrams go to %q, want %q", text, tt.want)
			}
		})
	}
}
