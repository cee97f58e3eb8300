package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/link/envelope"
)

// TestPutBack: a node is put back to a copy of its data, and some messages later. Nothing after that is lost, repeated,
// taken for a duplicate or held up, and both ends say what happened.
func TestPutBack(t *testing.T) {
	for _, link := range []string{"iridium-directip", "iridium-dialup", "vhf-cnr-16k"} {
		for _, which := range []string{"sender", "receiver"} {
			for _, missed := range []int{3, 10, 40, 400} {
				if missed == 400 && link != "vhf-cnr-16k" { // more than P_Mul reserves numbers
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", link, which, missed), func(t *testing.T) {
					w := world(t, 2, link, 7, func(c *sim.Config) { c.Group = link == "vhf-cnr-16k" })
					hq, ship := w.Nodes[0], w.Nodes[1]
					hq.Site.Put(w, pipeItem(1, pipeHQ))
					tracks(w, ship, []uint16{1}, 20, 60, 2*time.Second)
					w.Run(2 * time.Minute)
					node := map[string]*sim.Node{"sender": ship, "receiver": hq}[which]
					before := node.Journal()
					tracks(w, ship, []uint16{1}, missed, 60, 2*time.Second)
					w.Run(time.Duration(missed)*2*time.Second + 2*time.Minute)
					if len(hq.Site.Got) != 20+missed {
						t.Fatalf("%d of %d messages before", len(hq.Site.Got), 20+missed)
					}
					w.Notes, hq.Site.Got = nil, nil
					node.SetJournal(before)
					w.Kill(node, 5*time.Second)
					w.Run(6 * time.Second)
					up := tracks(w, ship, []uint16{1}, 50, 200, 2*time.Second)
					down := tracks(w, hq, []uint16{2}, 50, 200, 2*time.Second)
					w.Run(5 * time.Minute)
					if link == "vhf-cnr-16k" { // messages that cannot be read are asked for again, and come late
						slices.SortFunc(hq.Site.Got, bySending)
						slices.SortFunc(ship.Site.Got, bySending)
					}
					once(t, w, hq.Site, 2, *up)
					once(t, w, ship.Site, 1, *down)
					if n := ship.GW.Status(w.Now).Peers[0]; n.Waiting+n.UnderWay > 0 {
						t.Errorf("%d waiting, %d under way", n.Waiting, n.UnderWay)
					}
					if (link != "vhf-cnr-16k" || which == "receiver") && strings.Count(strings.Join(w.Notes, "\n"), "older copy of its data") == 0 {
						t.Errorf("nobody says that the %s was put back\n%v", which, tail(w.Notes))
					}
				})
			}
		}
	}
}

// TestPutBackWithinAStart: the copy is of a start of which the peer has heard, and of which the node did not know yet that it
// has. The next start tells of both, and the peer compares with the later one: the messages that it has under the copy's own
// numbers count, and those sent under the numbers after them do not hide the ones sent under these again.
func TestPutBackWithinAStart(t *testing.T) {
	for _, link := range []string{"iridium-directip", "iridium-certus-100"} {
		for ms := 1200; ms < 5000; ms += 200 {
			w := world(t, 2, link, 7)
			hq, ship := w.Nodes[0], w.Nodes[1]
			before := tracks(w, ship, []uint16{1}, 12, 60, 200*time.Millisecond)
			w.Run(time.Duration(ms) * time.Millisecond)
			waited := waiting(ship)
			data := ship.Journal()
			w.Run(time.Minute)
			once(t, w, hq.Site, 2, *before)
			hq.Site.Got = nil
			ship.SetJournal(data)
			w.Kill(ship, time.Second)
			w.Run(500 * time.Millisecond)
			after := tracks(w, ship, []uint16{1}, 20, 90, 200*time.Millisecond)
			w.Run(3 * time.Minute)
			again := len(hq.Site.Got) - len(*after)
			hq.Site.Got = slices.DeleteFunc(hq.Site.Got, func(g sim.Got) bool { return len(g.Payload.Parts[0].Data) == 60 })
			once(t, w, hq.Site, 2, *after)
			if again > waited {
				t.Errorf("%s, a copy after %d ms: %d messages came again; %d in it had no number", link, ms, again, waited)
			}
		}
	}
}

// waiting is how many messages without a number are in a node's data: its receiver cannot know them again.
func waiting(n *sim.Node) (count int) {
	for _, r := range n.Journal() {
		if r.Bucket == "to" && [8]byte(r.Value[1:9]) == [8]byte{} {
			count++
		}
	}
	return count
}

// promises are the messages that, by its data, a node has accepted and that have not ended.
func promises(t *testing.T, n *sim.Node) map[string]bool {
	t.Helper()
	list := map[string]bool{}
	for _, r := range n.Journal() {
		if r.Bucket != "mail" {
			continue
		}
		m, _, _, err := envelope.Parse(r.Value, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m.Payload != nil {
			list[string(m.Payload.Parts[0].Data)] = true
		}
	}
	return list
}

// bySending orders tracks by their number.
func bySending(a, b sim.Got) int {
	number := func(g sim.Got) (n int) {
		fmt.Sscanf(string(g.Payload.Parts[0].Data[2:]), "%d", &n)
		return n
	}
	return number(a) - number(b)
}

// TestPutBackAnywhere takes back some commits of a node that crashes anywhere on a link that loses. Messages in the
// sender's journal are delivered once; a receiver that forgets messages that it handed over hands over at most those again, and
// messages that it had confirmed and forgotten are counted.
func TestPutBackAnywhere(t *testing.T) {
	for seed := range plays(10, 1000) {
		rng := rand.New(rand.NewPCG(seed, 7142))
		link := []string{"iridium-directip", "iridium-dialup", "vhf-cnr-16k"}[rng.IntN(3)]
		given := map[uint16][]int{} // after each commit of a node: how much it has handed over
		w := world(t, 2, link, 9000+seed, func(c *sim.Config) {
			c.Group = link == "vhf-cnr-16k"
			c.Committed = func(n *sim.Node, out api.Output) {
				if len(out.Records) > 0 {
					given[n.ID] = append(given[n.ID], len(n.Site.Got))
				}
			}
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		hq.Site.Put(w, pipeItem(1, pipeHQ))
		up := tracks(w, ship, []uint16{1}, 20, 40+rng.IntN(1500), 3*time.Second)
		down := tracks(w, hq, []uint16{2}, 20, 40+rng.IntN(300), 3*time.Second)
		w.Run(time.Duration(10+rng.IntN(50)) * time.Second)
		node := w.Nodes[rng.IntN(2)]
		back := 1 + rng.IntN(min(60, node.Commits()))
		w.PutBack(node, back)
		handed := len(node.Site.Got) // in the commits that are taken back: one may hand over several messages
		if rest := given[node.ID][:len(given[node.ID])-back]; len(rest) > 0 {
			handed -= rest[len(rest)-1]
		}
		waited := waiting(node)
		promised := [2]map[string]bool{promises(t, ship), promises(t, hq)}
		w.Kill(node, time.Duration(rng.IntN(20))*time.Second)
		if rng.IntN(3) == 0 { // nobody hears of that start, which gives numbers again
			w.Outage(node, 40*time.Second)
			w.Run(time.Duration(20+rng.IntN(18)) * time.Second)
			w.Kill(node, time.Second)
		}
		w.Run(4 * time.Minute)
		name := fmt.Sprintf("seed %d: %s, %s put back by %d", seed, link, node.Name, back)
		last := [2]*[]offered{tracks(w, ship, []uint16{1}, 3, 30, time.Second), tracks(w, hq, []uint16{2}, 3, 30, time.Second)} // shorter than all before
		w.Run(3 * time.Minute)                                                                                                  // P_Mul asks once more after a minute
		for i, n := range w.Nodes {
			sent := [2]*[]offered{up, down}[i]
			count := map[string]int{}
			for _, g := range n.Site.Got {
				count[string(g.Payload.Parts[0].Data)]++
			}
			lost, twice := 0, 0
			for _, o := range *sent {
				switch c := count[string(o.Message.Parts[0].Data)]; {
				case c == 0:
					lost++
				case c > 1:
					twice++
				}
			}
			if n != node && twice > waited {
				t.Errorf("%s: %d messages came twice at %s, whose data is whole; %d waited in the copy\n%v", name, twice, n.Name, waited, tail(w.Notes))
			}
			most := back
			if n == node {
				most = max(back, handed)
			}
			if lost+twice > most {
				t.Errorf("%s: at %s %d messages lost, %d twice\n%v", name, n.Name, lost, twice, tail(w.Notes))
			}
			for data := range promised[i] {
				if n != node && count[data] == 0 { // the other may have confirmed it in a datagram that is on its way
					t.Errorf("%s: %.6q was in the journal of %s's sender, and never came\n%v", name, data, n.Name, tail(w.Notes))
				}
			}
			for _, o := range *last[i] {
				if c := count[string(o.Message.Parts[0].Data)]; c != 1 {
					t.Errorf("%s: what was sent after it came %d times at %s\n%v", name, c, n.Name, tail(w.Notes))
					break
				}
			}
		}
	}
}

// TestPutBackReceiverHearsFirst: a message that a receiver gets after it was put back, and before its sender knows that, comes
// before its turn, because the receiver lacks messages that it had acknowledged. It is confirmed, and the stream ends: it is still
// handed over, once.
func TestPutBackReceiverHearsFirst(t *testing.T) {
	for _, link := range []string{"iridium-directip", "iridium-dialup"} {
		for i := range 12 {
			w := world(t, 2, link, uint64(7+i))
			hq, ship := w.Nodes[0], w.Nodes[1]
			tracks(w, ship, []uint16{1}, 20, 60, time.Second)
			w.Run(time.Minute)
			before := hq.Journal()
			tracks(w, ship, []uint16{1}, 5, 60, time.Second)
			w.Run(time.Minute)
			if len(hq.Site.Got) != 25 {
				t.Fatalf("%d of 25 messages before", len(hq.Site.Got))
			}
			hq.Site.Got = nil
			hq.SetJournal(before)
			w.Kill(hq, time.Duration(i)*400*time.Millisecond)
			tracks(w, ship, []uint16{1}, 10, 90, 300*time.Millisecond)
			w.At(time.Duration(i)*400*time.Millisecond+3*time.Second, func() { w.Kill(ship, 0) }) // it then takes acknowledgements for earlier starts
			w.Run(5 * time.Minute)
			count := map[string]int{}
			for _, g := range hq.Site.Got {
				count[string(g.Payload.Parts[0].Data[:4])]++
			}
			for k := range 10 {
				if c := count[fmt.Sprintf("2;%d;", k)]; c != 1 {
					t.Errorf("%s, back after %d ms: message %d came %d times\n%v", link, 400*i, k, c, tail(w.Notes))
				}
			}
		}
	}
}
