package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/envelope"
)

// speak has a node send messages to its group, one each interval.
func speak(w *sim.World, n *sim.Node, first, count int, every time.Duration) {
	for i := range count {
		n.Site.Send(w, track(n.ID, pipeHQ, first+i, 200), 1)
		w.Run(every)
	}
}

// allHave says that all other nodes have these messages of a node once.
func allHave(t *testing.T, w *sim.World, n *sim.Node, first, count int) {
	t.Helper()
	for i := range count {
		check.Equal(t, fmt.Sprintf("how often the others have message %d", first+i), fmt.Sprint(saidBy(w, n, first+i)), fmt.Sprint(all(len(w.Nodes)-1)))
	}
}

// heldBy is how many messages of the group a node holds.
func heldBy(w *sim.World, n *sim.Node) int {
	for _, g := range n.GW.Status(w.Now).Groups {
		if g.Name == ops {
			return g.Held
		}
	}
	return 0
}

// A datagram with an open message of 256 octets of chance has 353 octets above UDP once its names were said: seal 19, group, origin,
// number and lifetime 11 with the frame, hash of the names 3, signature 64.
func TestOpenMessageWithoutItsNames(t *testing.T) {
	w := world(t, 5, "iridium-certus-100", 1, inGroup)
	w.Run(10 * time.Minute)
	ship, longest := w.Nodes[1], 0
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if from == ship {
			longest = max(longest, len(data))
		}
		return [][]byte{data}
	}
	var octets []int
	for i := range 6 {
		longest = 0
		ship.Site.Send(w, track(ship.ID, pipeHQ, i, 256), 1)
		w.Run(10 * time.Second)
		octets = append(octets, longest)
	}
	check.Equal(t, "octets of the datagrams", fmt.Sprint(octets), fmt.Sprint([]int{411, 411, 353, 353, 353, 353}))
}

// A gateway that has lost both messages with the names keeps those that refer to them, over a restart too, and passes them on.
func TestNamesAreLost(t *testing.T) {
	for _, deaf := range []int{0, 3} { // the shore, which passes on all messages, and a ship
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("node %d, restarts %v", deaf, restarts), func(t *testing.T) {
				w := world(t, 5, "iridium-certus-100", 1, inGroup)
				w.Run(10 * time.Minute)
				ship, n, hears := w.Nodes[1], w.Nodes[deaf], false
				w.Tap = func(_, to *sim.Node, data []byte) [][]byte {
					if to == n && !hears {
						return nil
					}
					return [][]byte{data}
				}
				speak(w, ship, 0, 2, 2*time.Second)
				hears = true
				speak(w, ship, 2, 1, 0)
				for i := 0; heldBy(w, n) == 0 && i < 1000; i++ {
					w.Run(10 * time.Millisecond)
				}
				check.Equal(t, "messages that it holds", heldBy(w, n), 1)
				check.Equal(t, "messages that its peers have", len(n.Site.Got), 0)
				if restarts {
					w.Kill(n, 5*time.Second)
				}
				speak(w, ship, 3, 3, 2*time.Second)
				w.Run(10 * time.Minute)
				allHave(t, w, ship, 0, 6)
			})
		}
	}
}

// An origin that starts again, has lost its journal, or has an older copy of it, is understood.
func TestNamesOfAnOriginThatStartsAgain(t *testing.T) {
	for name, again := range map[string]func(w *sim.World, n *sim.Node){
		"restart":     func(*sim.World, *sim.Node) {},
		"new journal": func(w *sim.World, n *sim.Node) { w.LoseStore(n) },
		"old journal": func(w *sim.World, n *sim.Node) { w.PutBack(n, 8) },
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, 4, "iridium-certus-100", 3, inGroup)
			w.Run(5 * time.Minute)
			ship := w.Nodes[1]
			speak(w, ship, 0, 5, 10*time.Second)
			w.Kill(ship, time.Second)
			again(w, ship)
			w.Run(10 * time.Minute)
			speak(w, ship, 5, 5, 10*time.Second)
			w.Run(20 * time.Minute)
			allHave(t, w, ship, 5, 5)
		})
	}
}

// A gateway that was away while the names were said gets what is still in its lifetime, although the messages with the names are not.
func TestNamesOutliveTheirMessages(t *testing.T) {
	w := world(t, 4, "iridium-certus-100", 4, inGroup)
	w.Run(10 * time.Minute)
	ship, away := w.Nodes[1], w.Nodes[3]
	w.Cut(0, away, true)
	speak(w, ship, 0, 2, 30*time.Second)
	w.Run(24 * time.Minute)
	speak(w, ship, 2, 6, time.Minute)
	w.Run(26 * time.Minute) // the first were said an hour ago, less what the ways have rounded off
	w.Cut(0, away, false)
	w.Run(20 * time.Minute)
	for i := range 8 {
		check.Equal(t, fmt.Sprintf("how often it has message %d", i), saidBy(w, ship, i)[2], min(1, i/2))
	}
	w.Run(2 * time.Hour)
	check.Equal(t, "messages held in the end", heldBy(w, away), 0)
	speak(w, ship, 10, 4, 10*time.Second)
	w.Run(time.Minute)
	allHave(t, w, ship, 10, 4)
}

// Two flows of one origin whose names have the same hash are told apart.
func TestTwoFlowsWithOneHash(t *testing.T) {
	pipes, first, second := map[uint32]string{}, "", ""
	for i := 0; second == ""; i++ {
		pipe := fmt.Sprintf("uuid-59616261646162614E50472050325033%032X04", i)
		m := track(2, pipe, 0, 200)
		ref := envelope.FlowOf(&m).Ref()
		if first = pipes[ref]; first != "" {
			second = pipe
		}
		pipes[ref] = pipe
	}
	w := world(t, 3, "iridium-certus-100", 5, inGroup)
	w.Run(10 * time.Minute)
	ship := w.Nodes[1]
	for i := range 12 {
		ship.Site.Send(w, track(2, []string{first, second}[i/2%2], i, 200), 1)
		w.Run(10 * time.Second)
		if i == 7 {
			w.Kill(ship, time.Second)
			w.Run(5 * time.Minute)
		}
	}
	w.Run(5 * time.Minute)
	allHave(t, w, ship, 0, 12)
	for _, g := range w.Nodes[0].Site.Got {
		for i := range 12 {
			if want := track(2, "", i, 200); string(g.Payload.Parts[0].Data) == string(want.Parts[0].Data) {
				check.Equal(t, fmt.Sprintf("the pipe of message %d", i), g.Payload.Topic, []string{first, second}[i/2%2])
			}
		}
	}
}

// In a group with a key, names that were said under an earlier key are said again for who joins.
func TestNamesUnderAKey(t *testing.T) {
	w := world(t, 4, "iridium-certus-100", 8, keyed)
	ship, other := w.Nodes[1], w.Nodes[3]
	w.Run(20 * time.Minute)
	speak(w, ship, 0, 4, 20*time.Second)
	allHave(t, w, ship, 0, 4)
	order(w, other, gateway.GroupOrder{Name: ops})
	w.Run(5 * time.Minute)
	speak(w, ship, 4, 4, 20*time.Second)
	order(w, other, gateway.GroupOrder{Name: ops, In: true, Key: true})
	w.Run(10 * time.Minute)
	speak(w, ship, 8, 4, 20*time.Second)
	w.Run(5 * time.Minute)
	for i := range 4 {
		check.Equal(t, fmt.Sprintf("how often the others have message %d", 4+i), fmt.Sprint(saidBy(w, ship, 4+i)), fmt.Sprint([]int{1, 1, 0}))
	}
	allHave(t, w, ship, 8, 4)
}
