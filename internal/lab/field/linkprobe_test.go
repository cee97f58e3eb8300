package field

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
)

// TestLinkProbe: the command, two gateways as processes and the emulator between them. The profile of both gateways describes another
// link than the emulated one: the link probe finds the latter, and its profile can be read.
func TestLinkProbe(t *testing.T) {
	p := load(t, "vhf-cnr-16k")
	p.Up.LossPct, p.Up.RateBps, p.Turnaround = 0, 9600, 400*time.Millisecond
	p.Down = p.Up
	g, _ := stand(t, "link_probe", p, 1)
	for _, s := range g.sites {
		if err := s.gateway.start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ship := g.sites[1].gateway
	if said, err := exec.Command("go", "build", "-o", filepath.Dir(ship.binary), "aldis/cmd/gateway-lab").CombinedOutput(); err != nil { // it makes the profile
		t.Fatalf("%v: %s", err, said)
	}
	out := filepath.Join(t.TempDir(), "ours.toml")
	var text []byte
	check.Until(t, 3*time.Minute, "a link probe", func() bool { // it is refused until the gateways know each other
		cmd := exec.CommandContext(t.Context(), "ip", "netns", "exec", ship.netns, ship.binary, "probe", "-c", ship.config, "--out", out, "--json", "1")
		var said bytes.Buffer
		cmd.Stderr = &said
		var err error
		if text, err = cmd.Output(); err != nil && !bytes.Contains(said.Bytes(), []byte("is not up")) {
			t.Fatalf("%v: %s", err, said.Bytes())
		}
		return err == nil
	})
	var got struct {
		LinkProbe struct {
			Sent     int `json:"sent_octets"`
			Received int `json:"received_octets"`
		} `json:"link_probe"`
	}
	if err := json.Unmarshal(text, &got); err != nil || got.LinkProbe.Sent+got.LinkProbe.Received > 5000 {
		t.Fatalf("%v: %d and %d octets", err, got.LinkProbe.Sent, got.LinkProbe.Received)
	}
	found, err := profile.Load(out, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	near := func(what string, got, want, most float64) {
		t.Helper()
		if got < want-most || got > want+most {
			t.Errorf("%s %.4g, want %.4g within %.2g", what, got, want, most)
		}
	}
	near("rate", float64(found.Up.RateBps), 9600, 960)
	near("delay", found.Up.Delay.Seconds(), 0.25, 0.025)
	near("turnaround", found.Turnaround.Seconds(), 0.4, 0.04)
}
