package gametest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

// shortTrace is half a minute of two peers: tracks each way, one message too long for a datagram.
func shortTrace(t *testing.T) *trace.File {
	t.Helper()
	var b bytes.Buffer
	w := trace.NewFileWriter(&b, trace.Header{Source: "gametest", Content: "data", Duration: 30})
	ship, shore := w.Peer(0, "ship", "", "ship", true), w.Peer(0, "hq", "", "hq", false)
	pipe := w.Pipe(0, "pipe", "propagate")
	w.Write(trace.Line{Do: replay.Publish, Peer: shore, Pipe: pipe, Name: "tracks", Octets: 900})
	w.Write(trace.Line{T: 0.1, Do: replay.Query, Peer: ship, Attr: "Name", Name: "tracks"})
	for _, p := range []string{ship, shore} {
		w.Write(trace.Line{T: 0.5, Do: replay.Open, Peer: p, Pipe: pipe, Listen: true})
	}
	send := func(at float64, peer string, body []byte) {
		w.Write(trace.Line{T: at, Do: replay.Send, Peer: peer, Pipe: pipe, Octets: len(body), Parts: []trace.PartOf{trace.PartWith("trk:body", "", body)}})
	}
	long := make([]byte, 1500)
	for i := range long {
		long[i] = byte(i * i * 31 >> 3)
	}
	for i := range 5 {
		send(6+4*float64(i), ship, fmt.Appendf(nil, "TRK;ship;%06d;N59.%04d;E005.%04d;course=%03d", i, 1234+7*i, 4321+11*i, 45+i))
		if i == 2 {
			send(6.5+4*float64(i), ship, long)
		}
		send(8+4*float64(i), shore, fmt.Appendf(nil, "TRK;hq;%06d;N60.%04d;E004.%04d;course=%03d", i, 2234+7*i, 1321+11*i, 145+i))
	}
	if _, err := w.End(30, false); err != nil {
		t.Fatal(err)
	}
	f, err := trace.ReadFile(&b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestReplayLive: gateways as processes carry a trace as the forecast predicts, and their ledgers agree with the capture.
func TestReplayLive(t *testing.T) {
	t.Parallel()
	p, err := profile.Load("iridium-directip-shore", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := replay.NewScript(shortTrace(t), "", 3)
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	live, err := field.Replay(ctx, s, field.ReplayOptions{Profile: p.Name, Terminal: p, Seed: 3, Gateway: gateway, Progress: log})
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	forecast, err := replay.RunScript(ctx, s, replay.Options{Profile: p, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*replay.Result{live, forecast} {
		m := r.Messages
		in := check.In(t, r.Mode, log)
		check.Equal(in, "m.Expected", m.Expected, 11)
		check.Equal(in, "m.Delivered", m.Delivered, 11)
		check.Equal(in, "m.Duplicates+m.Corrupted+m.OutOfOrder", m.Duplicates+m.Corrupted+m.OutOfOrder, 0)
		check.True(in, "not r.Partial", !r.Partial, r.Problems)
		if at, ok := r.DiscoveryS.Replay["tracks"]; !ok || at > 12 {
			t.Errorf("%s: the ship found the service after %v s", r.Mode, at)
		}
	}
	if t.Failed() {
		return
	}
	octets := [2]int64{live.LinkBytes.Up + live.LinkBytes.Down, forecast.LinkBytes.Up + forecast.LinkBytes.Down}
	t.Logf("octets live %d, forecast %d; median latency %.2f s, %.2f s", octets[0], octets[1], *live.Latency.Median, *forecast.Latency.Median)
	// Eleven messages on a busy machine need more tolerance than the 5 % to which the figures of docs/replay.md agree.
	if d := math.Abs(float64(octets[1])/float64(octets[0]) - 1); d > 0.1 {
		t.Errorf("the forecast is %.0f %% off in octets", 100*d)
	}
	if c := live.Capture; c == nil || c.Difference > 0.5 || c.Other != 0 {
		t.Errorf("the ledgers and the capture of the link: %+v", c)
	}
}
