package gateway_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"aldis/internal/jxtabridge"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/compact"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

const (
	pipeHQ   = air.Pipe
	pipeShip = "uuid-59616261646162614E504720503250337B1F8E4DA2F95C6D9E3F2A4B5C6D7E8F04"
)

func peerID(n uint16) string { return air.Peer(n) }

func track(from uint16, pipe string, i, octets int) site.Message {
	return strange.add(air.Track(from, pipe, i, octets), i)
}

// textTrack is a report as a ship would send it: readable, and like the one before.
func textTrack(from uint16, pipe string, i int) site.Message {
	return strange.add(air.Line(from, pipe, i), i)
}

func pipeItem(n uint16, pipe string) site.Item {
	return site.Item{Kind: site.Listener, Scope: "jxta-NetGroup", Owner: peerID(n), ID: pipe, Sub: jxtabridge.PipePropagate}
}

func load(t *testing.T, name string) profile.Profile {
	t.Helper()
	p, err := profile.Load(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// modelled has the results of the models of all worlds: many plays send the same texts.
var modelled = &compact.Known{Lock: new(sync.Mutex)}

func world(t *testing.T, nodes int, name string, seed uint64, change ...func(*sim.Config)) *sim.World {
	t.Helper()
	cfg := sim.Config{Nodes: nodes, Profile: load(t, name), Wire: load(t, "wire"), Seed: seed, Down: 3 * time.Second, Known: modelled}
	for _, f := range change {
		f(&cfg)
	}
	strange.link(&cfg)
	w, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

type offered = air.Offered

// tracks lets from send n tracks to to, one every interval, and returns what it will have sent.
func tracks(w *sim.World, from *sim.Node, to []uint16, n, octets int, every time.Duration) *[]offered {
	sent := &[]offered{}
	for i := range n {
		p := track(from.ID, pipeHQ, i, octets)
		w.At(time.Duration(i)*every+time.Second, func() {
			*sent = append(*sent, offered{At: w.Now, Message: p})
			from.Site.Send(w, p, to...)
		})
	}
	return sent
}

// once wants every message offered at the site exactly once, whole, and in order; it returns the latencies.
func once(t *testing.T, w *sim.World, at *sim.Site, from uint16, sent []offered) []time.Duration {
	t.Helper()
	took, err := air.Once(at.Got, from, sent)
	if err != nil {
		t.Fatalf("%v\n%v", err, tail(w.Notes))
	}
	return took
}

// loseEveryNinth loses every ninth datagram, whoever it is from and to.
func loseEveryNinth(w *sim.World) {
	n := 0
	w.Tap = func(_, _ *sim.Node, data []byte) [][]byte {
		if n++; n%9 == 0 {
			return nil
		}
		return [][]byte{data}
	}
}

// allRead holds that no node has got a message that it could not read.
func allRead(t check.T, w *sim.World) {
	t.Helper()
	for _, n := range w.Nodes {
		for _, p := range n.GW.Status(w.Now).Peers {
			if p.Unreadable != 0 {
				t.Errorf("%s could not read %d messages of %s\n%s", n.Name, p.Unreadable, p.Name, tail(w.Notes))
			}
		}
	}
}

// sentByAll is how many octets all nodes have sent.
func sentByAll(w *sim.World) (octets int64) {
	for _, n := range w.Nodes {
		up, _ := w.Octets(n)
		octets += up
	}
	return octets
}

func tail(notes []string) string {
	var b bytes.Buffer
	for _, n := range notes[max(0, len(notes)-12):] {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

// textTracks lets from send n text tracks to to.
func textTracks(w *sim.World, from *sim.Node, to []uint16, n int, every time.Duration) *[]offered {
	sent := &[]offered{}
	for i := range n {
		p := textTrack(from.ID, pipeHQ, i)
		w.At(time.Duration(i)*every+time.Second, func() {
			*sent = append(*sent, offered{At: w.Now, Message: p})
			from.Site.Send(w, p, to...)
		})
	}
	return sent
}
