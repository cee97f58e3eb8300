package field

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/air"
)

// fastLive is a burst from the ship over a fast link, and for an outage messages both ways before, during and after it.
func fastLive(t *testing.T, outage time.Duration) air.Live {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fast.toml")
	if err := os.WriteFile(file, []byte(fastLink), 0o600); err != nil {
		t.Fatal(err)
	}
	l := air.Live{Link: file, Profile: load(t, file), Ships: 1}
	for i := range 40 {
		p := air.Post{From: 1, Data: text(i, propagated)}
		if outage > 0 {
			l.OutageAt, l.OutageFor = time.Second, outage
			p.At, p.From = time.Duration(i)*100*time.Millisecond, i%2
		}
		l.Posts = append(l.Posts, p)
	}
	l.Judge = func(s air.Seen) (air.Samples, error) {
		last, err := l.Last(s, nil)
		if err == nil && outage > 0 && (s.Back.IsZero() || last.Before(s.Back)) {
			err = errors.New("the outage held up nothing")
		}
		return air.Samples{{last.Sub(s.Sent[0]).Seconds()}}, err
	}
	return l
}

// TestAir: real gateways play a burst and an outage at the same time, each message arrives once and in order, and the results are in the
// order of the plays.
func TestAir(t *testing.T) {
	plays := []AirPlay{{What: "outage", Live: fastLive(t, 2*time.Second), Seed: 1}, {What: "burst", Live: fastLive(t, 0), Seed: 2}}
	keep := t.TempDir()
	var said strings.Builder
	got, late, err := Air(t.Context(), plays, AirOptions{Gateway: builtGateway(t), AtOnce: 2, Keep: keep, Progress: &said})
	if err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	if len(got) != 2 || got[0][0][0] < 3 || got[1][0][0] <= 0 || got[1][0][0] >= got[0][0][0] {
		t.Errorf("the outage and the burst took %v", got)
	}
	if late <= 0 {
		t.Error("the emulator was never late at all")
	}
	for _, want := range []string{"1/2", "2/2", "outage, seed 1", "burst, seed 2", "the emulator was late"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("progress lacks %q:\n%s", want, &said)
		}
	}
	for _, name := range []string{"play-1/ship-gateway.log", "play-2/hq.pcap"} {
		if _, err := os.Stat(filepath.Join(keep, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestAirInterrupted: an interrupted play leaves no namespace and no file, and returns the reason.
func TestAirInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	said := &heardLine{at: "get to know each other", do: stop}
	_, _, err := Air(ctx, []AirPlay{{What: "burst", Live: fastLive(t, 0), Seed: 1}}, AirOptions{Gateway: builtGateway(t), Progress: said})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if said.run == "" {
		t.Fatal("no run was named")
	}
	for _, path := range []string{filepath.Join(lockDir, said.run), filepath.Join(os.TempDir(), "aldis-lab-"+said.run)} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	left, err := filepath.Glob("/run/netns/aldis-" + said.run + "-*")
	if err != nil || len(left) > 0 {
		t.Errorf("namespaces %v, %v", left, err)
	}
}

// heardLine calls a function at a line of progress, and keeps the id of the run.
type heardLine struct {
	at  string
	do  func()
	run string
}

func (h *heardLine) Write(b []byte) (int, error) {
	line := string(b)
	if _, after, ok := strings.Cut(line, " run "); ok && h.run == "" {
		h.run, _, _ = strings.Cut(after, ":")
	}
	if strings.Contains(line, h.at) {
		h.do()
	}
	return len(b), nil
}
