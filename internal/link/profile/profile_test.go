package profile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

func noFile(string) ([]byte, error) { return nil, os.ErrNotExist }

func load(t *testing.T, name string) Profile {
	t.Helper()
	p, err := Load(name, noFile)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLinkValues compares the embedded files with their table (links 2).
func TestLinkValues(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name             string
		shared           bool
		up, down         int
		delay, most      time.Duration
		lossPct, gep     float64
		queueUp, queueDn int
		turn, hold       time.Duration
	}{
		{"wire", false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		{"iridium-dialup", false, 2400, 2400, 900 * ms, 2000 * ms, 1, 0, 8192, 8192, 0, 0},
		{"iridium-dialup-modem", false, 2400, 2400, 900 * ms, 2000 * ms, 0, 0, 8192, 8192, 0, 0},
		{"iridium-directip", false, 4800, 9300, 900 * ms, 2000 * ms, 1, 0, 16384, 16384, 0, 0},
		{"iridium-dialup-shore", false, 2400, 2400, 450 * ms, 1000 * ms, 1, 0, 8192, 8192, 0, 0},
		{"iridium-directip-shore", false, 4800, 9300, 450 * ms, 1000 * ms, 1, 0, 16384, 16384, 0, 0},
		{"iridium-certus-100", false, 22000, 88000, 400 * ms, 750 * ms, 1, 0, 32768, 65536, 0, 0},
		{"geo-satcom-128k", false, 128000, 128000, 300 * ms, 300 * ms, 0.1, 0, 65536, 65536, 0, 0},
		{"tls-443", false, 1_000_000, 1_000_000, 20 * ms, 420 * ms, 0, 0, 65536, 65536, 0, 0},
		{"hf-2400", true, 2400, 2400, 1000 * ms, 1000 * ms, 0, 0.00974, 8192, 8192, 2000 * ms, 15000 * ms},
		{"hf-2400-fading", true, 2400, 2400, 1000 * ms, 1000 * ms, 0, 0, 8192, 8192, 2000 * ms, 15000 * ms},
		{"hf-300", true, 300, 300, 2000 * ms, 2000 * ms, 0, 0.00974, 4096, 4096, 2000 * ms, 60000 * ms},
		{"vhf-cnr-16k", true, 16000, 16000, 250 * ms, 250 * ms, 5, 0, 16384, 16384, 250 * ms, 5000 * ms},
	}
	var names []string
	for _, tt := range tests {
		names = append(names, tt.name)
		t.Run(tt.name, func(t *testing.T) {
			p := load(t, tt.name)
			check.Equal(t, "p.Name", p.Name, tt.name)
			check.Equal(t, "p.Shared", p.Shared, tt.shared)
			check.Equal(t, "p.Turnaround", p.Turnaround, tt.turn)
			check.Equal(t, "p.MaxHold", p.MaxHold, tt.hold)
			for dir, d := range map[string]struct {
				Direction
				rate, queue int
			}{"up": {p.Up, tt.up, tt.queueUp}, "down": {p.Down, tt.down, tt.queueDn}} {
				in := check.In(t, dir)
				check.Equal(in, "d.RateBps", d.RateBps, d.rate)
				check.Equal(in, "d.Delay", d.Delay, tt.delay)
				check.Equal(in, "d.Delay+d.Jitter", d.Delay+d.Jitter, tt.most)
				check.Equal(in, "d.LossPct", d.LossPct, tt.lossPct)
				check.Equal(in, "d.QueueOctets", d.QueueOctets, d.queue)
				check.Equal(in, "d.GEp", d.GEp, tt.gep)
				if tt.gep > 0 {
					in := check.In(t, dir)
					check.Equal(in, "d.GEr", d.GEr, 0.25)
					check.Equal(in, "d.GEBadPct", d.GEBadPct, 80)
					check.Equal(in, "d.GEGoodPct", d.GEGoodPct, 0)
				}
			}
		})
	}
	slices.Sort(names)
	if got := Names(); !slices.Equal(got, names) {
		t.Errorf("Names() = %v, want %v", got, names)
	}
}

// TestEveryNumberHasSource: in the embedded files each value of a number says given, measured or choice.
func TestEveryNumberHasSource(t *testing.T) {
	for _, name := range Names() {
		src, err := Source(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(src), "\n") {
			value, comment, _ := strings.Cut(line, "#")
			_, v, ok := strings.Cut(value, "=")
			if !ok || strings.ContainsAny(v, `"`) || name == "wire" {
				continue
			}
			if !strings.Contains(comment, "given") && !strings.Contains(comment, "measured") && !strings.Contains(comment, "choice") {
				t.Errorf("%s:%d: no source: %s", name, i+1, line)
			}
		}
	}
}

func TestGatewayValuesFit(t *testing.T) {
	for _, name := range Names() {
		p := load(t, name)
		// An acknowledgement or a gap must not be judged before the far end could have answered.
		if rt := p.RoundTripMax(p.DatagramOctets + IPUDPOctets); p.GapAge < rt-time.Second {
			t.Errorf("%s: hole_age %v, round trip of a full datagram %v", name, p.GapAge, rt)
		}
		if p.Window < 8 {
			t.Errorf("%s: window %d", name, p.Window)
		}
	}
	p := load(t, "iridium-directip")
	check.Equal(t, "p.DatagramOctets", p.DatagramOctets, 508)
	check.Equal(t, "p.SegmentOctets", p.SegmentOctets, 448)
	check.Equal(t, "p.AckDelay", p.AckDelay, 6*time.Second)
	check.Equal(t, "p.ProbeInterval", p.ProbeInterval, 15*time.Second)
	check.Equal(t, "p.GRTT", p.GRTT, 4*time.Second)
	check.Equal(t, "p.Bundle", p.Bundle, 30*time.Millisecond)
}

func TestTimes(t *testing.T) {
	p := load(t, "iridium-directip")
	if got, want := Airtime(251, 4800), 418333333*time.Nanosecond; got != want {
		t.Errorf("Airtime(251, 4800) = %v, want %v", got, want)
	}
	if got := Airtime(1e9, 0); got != 0 {
		t.Errorf("an unlimited rate takes %v", got)
	}
	if got, want := p.OneWayMax(600), 3*time.Second; got != want {
		t.Errorf("OneWayMax(600) = %v, want %v", got, want)
	}
	if got, want := p.RoundTripMax(600), 5*time.Second+Airtime(100, 9300); got != want {
		t.Errorf("RoundTripMax(600) = %v, want %v", got, want)
	}
	hf := load(t, "hf-2400")
	if got, want := hf.OneWayMax(300), 4*time.Second; got != want { // 1 s airtime, 1 s delay, 2 s turnaround
		t.Errorf("hf-2400: OneWayMax(300) = %v, want %v", got, want)
	}
	if got := p.SlowerBps(); got != 4800 {
		t.Errorf("SlowerBps = %d", got)
	}
	if got := load(t, "wire").SlowerBps(); got != 0 {
		t.Errorf("wire: SlowerBps = %d", got)
	}
}

// The model saves air where air is dear. Lines gather where octets or messages are dear.
func TestScarce(t *testing.T) {
	for name, want := range map[string][2]bool{"wire": {false, false}, "tls-443": {false, false}, "geo-satcom-128k": {true, false}, "iridium-dialup": {true, false},
		"iridium-certus-100": {true, true}, "iridium-directip": {true, true}, "hf-2400": {true, true}, "vhf-cnr-16k": {true, true}} {
		p := load(t, name)
		if got := [2]bool{p.Scarce(), p.Gathers()}; got != want {
			t.Errorf("%s: Scarce and Gathers are %v, want %v", name, got, want)
		}
	}
}

func TestLoadPath(t *testing.T) {
	src, err := Source("hf-300")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "own.toml")
	own := strings.Replace(string(src), `"hf-300"`, `"own"`, 1)
	p, err := Load(file, func(name string) ([]byte, error) {
		if name != file {
			t.Errorf("reads %q", name)
		}
		return []byte(own), nil
	})
	if err != nil || p.Name != "own" || p.Up.RateBps != 300 {
		t.Errorf("Load = %+v, %v", p, err)
	}
	if _, err := Load(file, noFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	_, err = Load("iridum", noFile)
	if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "iridium-dialup") {
		t.Errorf("unknown name: %v", err)
	}
}

// TestEveryMistake: one file with many mistakes, all reported with their lines.
func TestEveryMistake(t *testing.T) {
	const src = `name = "Bad Name"
summary = "x"
colour = "red"
[link]
medium = "ring"
mtu_octets = 100
turnaround_ms = 10
[both]
rate_bps = "fast"
delay_ms = -1
queue_octets = 50
loss_percent = 101
[up]
speed = 9
rate_bps = 5
[gateway]
datagram_octets = 508
segment_octets = 500
window = 0
ack_delay_ms = 1.5
probe_interval_ms = 0
gap_age_ms = 1
grtt_ms = 100000000000
[p_mul]
repeat_count = 101
incoming = 3
octets = 1.5
ships = 4
`
	_, err := Decode("bad.toml", []byte(src))
	want := []string{
		"bad.toml:1: name: ",
		"bad.toml:3: colour: is not a key",
		"bad.toml:5: link.medium: ",
		"bad.toml:6: link.mtu_octets: ",
		"bad.toml:7: link.turnaround_ms: ",
		"bad.toml:9: both.rate_bps: ",
		"bad.toml:10: both.delay_ms: ",
		"bad.toml:11: both.queue_octets: ",
		"bad.toml:12: both.loss_percent: ",
		"bad.toml:14: up.speed: ",
		"bad.toml:15: up.rate_bps: ",
		"bad.toml:17: gateway.datagram_octets: ",
		"bad.toml:18: gateway.segment_octets: ",
		"bad.toml:19: gateway.window: ",
		"bad.toml:20: gateway.ack_delay_ms: ",
		"bad.toml:21: gateway.probe_interval_ms: ",
		"bad.toml:23: gateway.grtt_ms: ",
		"bad.toml: gateway.bundle_ms: is missing",
		"bad.toml:25: p_mul.repeat_count: ",
		"bad.toml:26: p_mul.incoming: ",
		"bad.toml:27: p_mul.octets: ",
		"bad.toml:28: p_mul.ships: is not a key",
	}
	lines := strings.Split(fmt.Sprint(err), "\n")
	for _, w := range want {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, w) }) {
			t.Errorf("no line starts with %q in:\n%v", w, err)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines, want %d:\n%v", len(lines), len(want), err)
	}
	var fe *FieldError
	if !errors.As(err, &fe) || fe.File != "bad.toml" {
		t.Errorf("no FieldError in %v", err)
	}
}

// A key under an old name is one mistake, which has its present name: the key is not reported as missing too.
func TestOldNames(t *testing.T) {
	defer func(names map[string]string) { oldNames = names }(oldNames)
	oldNames = map[string]string{"rate": "rate_bps", "most_under_way": "window"}
	source, err := Source("iridium-directip")
	check.NoError(t, err)
	text := strings.NewReplacer("window =", "most_under_way =", "rate_bps", "rate").Replace(string(source))
	_, err = Decode("own.toml", []byte(text))
	lines := strings.Split(fmt.Sprint(err), "\n")
	check.Equal(t, "mistakes of three keys", len(lines), 3)
	check.Contains(t, "the mistake", fmt.Sprint(err), "gateway.most_under_way: is not a key of a profile since version 0.2: it is gateway.window now")
	check.Contains(t, "the mistake", fmt.Sprint(err), "down.rate: is not a key of a profile since version 0.2: it is down.rate_bps now")
}

func TestBroken(t *testing.T) {
	for name, src := range map[string]string{
		"syntax":         "name = \"x\"\nsummary = = 1\n",
		"twice":          "name = \"x\"\nname = \"y\"\n",
		"not a section":  "link = 3\n",
		"too long":       strings.Repeat("#", maxFile+1),
		"array of links": "[[link]]\nmedium = \"star\"\n",
		"empty":          "",
	} {
		if _, err := Decode("f.toml", []byte(src)); err == nil {
			t.Errorf("%s: accepted", name)
		} else if name == "syntax" && !strings.HasPrefix(err.Error(), "f.toml:2: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSharedRules(t *testing.T) {
	p := load(t, "hf-2400")
	p.Down.RateBps = 1200
	p.AckDelay = time.Second
	err := p.Validate("x", nil)
	if s := fmt.Sprint(err); !strings.Contains(s, "one rate") || !strings.Contains(s, "shorter than turnaround 2s") {
		t.Errorf("Validate = %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range Names() {
		src, err := Source(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte("[a]\nb.c = 1\n[[d]]\n\"\" = {x = 1}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode("f", data)
		if err == nil && p.Validate("f", nil) != nil {
			t.Error("Decode accepts what Validate refuses")
		}
	})
}

// TestPMulSection: the profile may set P_Mul's limits and repetitions.
func TestPMulSection(t *testing.T) {
	src, err := Source("hf-2400")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Decode("own.toml", append(src, "[p_mul]\nrepeat_count = 6\nrepeat_every_ms = 1_800_000\nmessages = 100\noctets = 1_000_000\nincoming = 16\nincoming_octets = 500_000\n"...))
	if want := (PMulUse{6, 30 * time.Minute, 100, 1_000_000, 16, 500_000}); err != nil || p.PMulUse != want {
		t.Errorf("%+v, %v; want %+v", p.PMulUse, err, want)
	}
	if p := load(t, "hf-2400"); p.PMulUse != (PMulUse{}) {
		t.Errorf("hf-2400 sets %+v", p.PMulUse)
	}
}
