package operator

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/link/probe"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
)

// TestLinkProbePrice: an operator whose link is billed learns the price before anything is sent.
func TestLinkProbePrice(t *testing.T) {
	for name, want := range map[string]string{
		"iridium-directip": "at most 5000 octets, both ways together, 6 s of air; the bill grows with octets",
		"iridium-dialup":   "at most 5000 octets, both ways together, 17 s of air; the bill grows with minutes, and it takes some",
		"hf-2400":          "at most 5000 octets, both ways together, 17 s of air, which the bill does not count",
	} {
		p, err := profile.Load(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := gateway.LinkProbePlan(p, false, 5000)
		if err != nil {
			t.Fatal(err)
		}
		if text, dear := linkProbePrice(p, plan); text != want || dear != (p.Tariff != profile.TariffNone) {
			t.Errorf("%s: %s, %v; want %s", name, text, dear, want)
		}
	}
}

func TestLinkProbeUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"hq", "ship"}, {"hq", "--budget", "100"}, {"hq", "--budget", "1000000"}} {
		var out, said bytes.Buffer
		if code := linkProbeCommand(args, &out, &said); code != cli.ExitUsage || !strings.Contains(said.String(), "usage: gateway probe") && len(args) != 2 {
			t.Errorf("%v: %d, %s", args, code, said.String())
		}
	}
}

// TestLinkProbeWithoutLab: the figures that need no judgement are printed; a profile is refused before any request to a gateway.
func TestLinkProbeWithoutLab(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, said bytes.Buffer
	code := linkProbeCommand([]string{"hq", "--out", "ours.toml", "-c", "/none"}, &out, &said)
	check.Equal(t, "exit code", code, cli.ExitUsage)
	check.Equal(t, "what is said", said.String(), "gateway probe: --out: "+cli.ErrNoLab.Error()+"\n")

	ms, far := time.Millisecond, time.Hour // the far clock's
	got := control.LinkProbe{LinkProbeStatus: api.LinkProbeStatus{Peer: "hq", Sent: 104, Received: 52}, Packets: []probe.Packet{
		{Up: true, Octets: 52, Sent: 0, Arrived: far + 300*ms}, {Octets: 52, Sent: far + 310*ms, Arrived: 710 * ms},
		{Up: true, Octets: 52, Sent: 1000 * ms, Lost: true}}}
	if err := (probed{}).report(got, true, "", &out); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"hq: 104 octets from here, 52 from there", "datagrams                                         2                1",
		"lost                                              1                0", "there and back in 700 ms at least, in 700 at half of 1", "gateway-lab tells more"} {
		check.Contains(t, "the text", out.String(), part)
	}
	out.Reset()
	if err := (probed{json: true}).report(got, true, "", &out); err != nil {
		t.Fatal(err)
	}
	var told linkProbeReport
	check.NoError(t, json.Unmarshal(out.Bytes(), &told))
	check.True(t, "all of it", told.Terminal && len(told.Packets) == 3 && told.Link == nil && told.LinkProbe.Sent == 104, told)
}
