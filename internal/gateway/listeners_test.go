package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

func (p *seafarer) listens(on bool) {
	if on {
		p.step(edgepeer.Listen{Pipe: pipeHQ, Kind: jxta.PipeTypePropagate})
	} else {
		p.step(edgepeer.Unlisten{Pipe: pipeHQ})
	}
}

// Peers that begin and end to listen to a propagate pipe beside one that stays take no octet of the link, and lose no message. When the
// last has stopped, no message crosses.
func TestListenersThatComeAndGo(t *testing.T) {
	var octets []int64
	for _, churn := range []bool{false, true} {
		w, peers := crowded(t, 2, "iridium-directip", func(uint16) []filter.Rule { return nil }, jxtabridge.Complete)
		ship, crowd := peers.at[2][2], []*seafarer{peers.at[1][1]}
		for i := range 6 {
			crowd = append(crowd, peers.come(w, w.Nodes[0], 3+i, fmt.Sprint("crowd ", i)))
		}
		w.Run(time.Minute)
		for _, p := range crowd {
			p.listens(true)
		}
		w.Run(2 * time.Minute)
		var said []string
		say := func() {
			said = append(said, fmt.Sprint("message ", len(said)))
			ship.step(edgepeer.Send{Pipe: pipeHQ, Kind: jxta.PipeTypePropagate, MsgID: said[len(said)-1],
				Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte(said[len(said)-1])}}})
		}
		up, down := w.Octets(w.Nodes[1])
		before := up + down
		for i := range 40 { // the first of all stops, too
			for k, p := range crowd {
				if churn && k != 3 && (i+k)%2 == 0 {
					p.listens(i%4 > 1)
				}
			}
			say()
			w.Run(15 * time.Second)
		}
		up, down = w.Octets(w.Nodes[1])
		octets = append(octets, up+down-before)
		for _, p := range crowd {
			p.listens(true)
		}
		w.Run(time.Minute)
		for _, p := range crowd {
			check.Same(t, "what a listener has heard", slices.Sorted(slices.Values(p.heard)), slices.Sorted(slices.Values(said)))
		}
		for _, p := range crowd {
			p.listens(false)
		}
		w.Run(2 * time.Minute)
		say()
		w.Run(2 * time.Minute)
		check.Equal(t, "messages that nobody far listened to", peers.bridges[2].Stats().Unheard, 1)
	}
	check.Equal(t, "octets with listeners that come and go, against without", octets[1], octets[0])
}

// Rules that keep a listener from far sites keep no other listener of the same pipe from them.
func TestRulesAboutOneListenerOfSeveral(t *testing.T) {
	w, peers := crowded(t, 3, "iridium-directip", func(id uint16) []filter.Rule {
		return map[uint16][]filter.Rule{
			1: {{Direction: site.Out, Site: 2, Type: filter.Listener, Peer: crewID(1), Action: filter.Deny}},
			3: {{Direction: site.In, Type: filter.Listener, Peer: crewID(3), Action: filter.Deny}}}[id]
	}, jxtabridge.Complete)
	denied, other := peers.at[1][1], peers.come(w, w.Nodes[0], 4, "other")
	peers.at[3][3].listens(true)
	known := func(when string, two, three int) {
		t.Helper()
		w.Run(2 * time.Minute)
		check.Equal(t, "pipes of HQ that site 2 knows, "+when, peers.bridges[2].Status().Far[1].Pipes, two)
		check.Equal(t, "pipes of HQ that site 3 knows, "+when, peers.bridges[3].Status().Far[1].Pipes, three)
	}
	denied.listens(true)
	known("of one whom a rule denies it", 0, 1)
	other.listens(true)
	known("of another, too", 1, 1)
	other.listens(false)
	known("when the other has stopped", 0, 1)
	denied.listens(false)
	known("when both have stopped", 0, 0)
}
