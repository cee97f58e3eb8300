package gateway_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

const (
	pipeHQ   = "uuid-59616261646162614E504720503250336A0F7D3C91E84B5C8D2E1F3A4B5C6D7E04"
	pipeShip = "uuid-59616261646162614E504720503250337B1F8E4DA2F95C6D9E3F2A4B5C6D7E8F04"
)

func peerID(n uint16) string {
	return fmt.Sprintf("cbid-59616261646162614A78746150325033%02X569155EBF440C2B9C89E114D3E269303", n)
}

func track(from uint16, pipe string, i, octets int) site.Message {
	body := bytes.Repeat([]byte{'x'}, octets)
	rng := uint32(i)*2654435761 + uint32(from)
	for k := range body { // incompressible, so that the figures are those of any text
		rng = rng*1664525 + 1013904223
		body[k] = byte(rng >> 24)
	}
	copy(body, fmt.Sprintf("%d;%d;", from, i))
	return site.Message{Published: true, Scope: "jxta-NetGroup", Topic: pipe, From: peerID(from), ID: fmt.Sprint(from, i),
		Parts: []jxta.Element{{Namespace: "trk", Name: "body", Data: body}}}
}

// textTrack is a report as a ship would send it: readable, and like the one before.
func textTrack(from uint16, pipe string, i int) site.Message {
	p := track(from, pipe, i, 1)
	p.Parts[0].Data = fmt.Appendf(nil, "TRK;ship%d;%06d;2026-11-20T12:%02d:%02dZ;N59.%04d;E005.%04d;course=%03d;speed=%02d.%d;depth=%d;status=under way using engine;source=own sensor;remark=none to report",
		from, i, i/12%60, i*5%60, 1234+7*i, 4321+11*i, (45+i)%360, 12+i%3, i%10, 80+i%17)
	return p
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

func world(t *testing.T, nodes int, name string, seed uint64, change ...func(*sim.Config)) *sim.World {
	t.Helper()
	cfg := sim.Config{Nodes: nodes, Profile: load(t, name), Wire: load(t, "wire"), Seed: seed, Down: 3 * time.Second}
	for _, f := range change {
		f(&cfg)
	}
	w, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

type offered struct {
	at      time.Time
	payload site.Message
}

// tracks lets from send n tracks to to, one every interval, and returns what it will have sent.
func tracks(w *sim.World, from *sim.Node, to []uint16, n, octets int, every time.Duration) *[]offered {
	sent := &[]offered{}
	for i := range n {
		p := track(from.ID, pipeHQ, i, octets)
		w.At(time.Duration(i)*every+time.Second, func() {
			*sent = append(*sent, offered{w.Now, p})
			from.Site.Send(w, p, to...)
		})
	}
	return sent
}

// once wants every message offered at the site exactly once, whole, and in order; it returns the latencies.
func once(t *testing.T, w *sim.World, at *sim.Site, from uint16, sent []offered) []time.Duration {
	t.Helper()
	var got []sim.Got
	for _, g := range at.Got {
		if g.From == from {
			got = append(got, g)
		}
	}
	if len(got) != len(sent) {
		t.Fatalf("%d of %d messages of node %d\n%v", len(got), len(sent), from, tail(w.Notes))
	}
	var latency []time.Duration
	for i, g := range got {
		want := sent[i].payload
		want.ID = g.Payload.ID
		if !reflect.DeepEqual(g.Payload, want) {
			t.Fatalf("message %d of node %d arrived as %+v", i, from, g.Payload)
		}
		latency = append(latency, g.At.Sub(sent[i].at))
	}
	slices.Sort(latency)
	return latency
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
			*sent = append(*sent, offered{w.Now, p})
			from.Site.Send(w, p, to...)
		})
	}
	return sent
}
