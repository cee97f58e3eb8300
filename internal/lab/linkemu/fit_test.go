package linkemu_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/linkemu"
	"aldis/internal/link/profile"
)

var ship, hq = netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1")

func load(t *testing.T, name string) profile.Profile {
	t.Helper()
	p, err := profile.Load(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// captures lets two ends talk over a link, alone and in bursts, and returns the capture of each end. The second end's clock is ahead, and
// runs faster.
func captures(t *testing.T, p profile.Profile, seed uint64, minutes int, ahead time.Duration, ppm float64) (a, b []linkemu.Passage) {
	t.Helper()
	far := load(t, "wire")
	if p.Shared {
		far = p
	}
	link, err := linkemu.New(linkemu.Config{Nodes: []linkemu.Node{{Name: "ship", Profile: p}, {Name: "hq", Profile: far}}, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Unix(1_800_000_000, 0)
	clock := func(at time.Time, of string) int64 {
		if of == "hq" {
			return at.Add(ahead + time.Duration(float64(at.Sub(begin))*ppm/1e6)).UnixNano()
		}
		return at.UnixNano()
	}
	var next time.Time
	step := func(at time.Time, ev linkemu.Event) {
		out, err := link.Step(at, ev)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range out.Deliver {
			one := passage(d.Frame)
			if one.At = clock(d.At, d.Node); d.Node == "ship" {
				a = append(a, one)
			} else {
				b = append(b, one)
			}
		}
		next = out.Deadline
	}
	rng := rand.New(rand.NewPCG(seed, 16))
	n := uint32(0)
	for now := begin; now.Before(begin.Add(time.Duration(minutes) * time.Minute)); now = now.Add(time.Duration(1+rng.IntN(12_000)) * time.Millisecond) {
		for !next.IsZero() && !next.After(now) {
			step(next, nil)
		}
		burst, toShip := 1, rng.IntN(2) == 0
		if rng.IntN(8) == 0 {
			burst = 2 + rng.IntN(10)
		}
		for range burst {
			f := linkemu.Frame{From: "ship", To: "hq", Octets: 50 + rng.IntN(450), Data: binary.BigEndian.AppendUint32(nil, n)}
			if n++; toShip {
				f.From, f.To = f.To, f.From
			}
			one := passage(f)
			if one.At = clock(now, f.From); f.From == "ship" {
				a = append(a, one)
			} else {
				b = append(b, one)
			}
			step(now, f)
		}
	}
	for !next.IsZero() {
		step(next, nil)
	}
	byTime := func(x, y linkemu.Passage) int { return int(x.At - y.At) }
	slices.SortStableFunc(a, byTime)
	slices.SortStableFunc(b, byTime)
	return a, b
}

func passage(f linkemu.Frame) linkemu.Passage {
	p := linkemu.Passage{From: ship, To: hq, Octets: f.Octets}
	if f.From == "hq" {
		p.From, p.To = hq, ship
	}
	copy(p.Sum[:], f.Data)
	return p
}

// TestFitFindsTheLink: Fit finds the emulator's settings in the captures, whatever the clocks are.
func TestFitFindsTheLink(t *testing.T) {
	near := func(t *testing.T, what string, got, want, most float64) {
		t.Helper()
		if math.Abs(got-want) > most {
			t.Errorf("%s: %.4g, want %.4g within %.3g", what, got, want, most)
		}
	}
	for _, name := range []string{"iridium-dialup", "iridium-directip", "iridium-certus-100", "geo-satcom-128k", "hf-2400", "vhf-cnr-16k"} {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			a, b := captures(t, p, 7, 180, 90*time.Minute, 40)
			j, err := linkemu.Join(a, b)
			if err != nil {
				t.Fatal(err)
			}
			r, err := linkemu.Fit(j, p)
			if err != nil {
				t.Fatal(err)
			}
			got := r.Profile(p, "found")
			for _, d := range []struct {
				what      string
				got, want profile.Direction
				e         linkemu.Estimate
			}{{"up", got.Up, p.Up, r.Up}, {"down", got.Down, p.Down, r.Down}} {
				t.Logf("%s: %+v", d.what, d.e)
				near(t, d.what+" rate", float64(d.got.RateBps), float64(d.want.RateBps), 0.1*float64(d.want.RateBps))
				near(t, d.what+" delay and half the jitter", (d.got.Delay + d.got.Jitter/2).Seconds(), (d.want.Delay + d.want.Jitter/2).Seconds(), 0.1*(d.want.Delay+d.want.Jitter/2).Seconds())
				near(t, d.what+" jitter", d.got.Jitter.Seconds(), d.want.Jitter.Seconds(), 0.1*d.want.Jitter.Seconds()+0.015)
				loss := d.want.LossPct
				if d.want.GEp > 0 {
					loss = 100 * d.want.GEp / (d.want.GEp + d.want.GEr) * d.want.GEBadPct / 100
				}
				if loss < d.e.LossFrom-0.4*loss || loss > d.e.LossTo+0.4*loss {
					t.Errorf("%s: %.2f %% loss is not within %.2f to %.2f", d.what, loss, d.e.LossFrom, d.e.LossTo)
				}
			}
			near(t, "turnaround", r.Turnaround.Seconds(), p.Turnaround.Seconds(), 0.1*p.Turnaround.Seconds())
			near(t, "clock", r.Offset.Seconds(), (90 * time.Minute).Seconds(), 0.2)
			near(t, "drift", r.DriftPPM, 40, 25)
		})
	}
}

// TestFitWritesAProfile: the file can be read again, and gives the origin of each number.
func TestFitWritesAProfile(t *testing.T) {
	for _, name := range []string{"iridium-directip", "hf-2400", "iridium-dialup-modem"} {
		p := load(t, name)
		source, err := profile.Source(name)
		if err != nil {
			t.Fatal(err)
		}
		j, err := linkemu.Join(captures(t, p, 3, 60, 0, 0))
		if err != nil {
			t.Fatal(err)
		}
		r, err := linkemu.Fit(j, p)
		if err != nil {
			t.Fatal(err)
		}
		text, err := r.Write(source, p, "ours", []string{"Fitted."})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		section := ""
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "[") {
				section = line
			}
			if said := strings.Contains(line, "# fitted: ") || strings.Contains(line, " packets, ") && strings.Contains(line, ", do not tell"); strings.Contains(line, "rate_bps") && !said {
				t.Errorf("%s, %s: %s", name, section, line)
			}
		}
		if !strings.HasPrefix(string(text), "# Fitted.\n") || !strings.Contains(string(text), "name = \"ours\"\n") {
			t.Errorf("%s begins with %.80s", name, text)
		}
	}
}

// TestFitRefuses: captures without information are refused, with the reason.
func TestFitRefuses(t *testing.T) {
	p := load(t, "iridium-directip")
	a, b := captures(t, p, 1, 30, 0, 0)
	_, other := captures(t, p, 2, 30, 0, 0)
	for i := range other {
		other[i].Sum[15] = 1
	}
	for what, pair := range map[string][2][]linkemu.Passage{"empty": {}, "of another link": {a, other}, "of five packets": {a[:5], b[:5]}} {
		if _, err := linkemu.Join(pair[0], pair[1]); err == nil {
			t.Errorf("captures %s are joined", what)
		}
	}
}
