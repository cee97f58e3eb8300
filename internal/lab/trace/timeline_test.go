package trace

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"aldis/internal/lab/check"
)

func sumOf(s Series) (n int64) {
	for _, v := range s.Octets {
		n += v
	}
	return n
}

// Every octet of a capture is in its timeline once, under the kind that the tables have.
func TestTimelineSums(t *testing.T) {
	for _, name := range captures {
		for what, list := range map[string][]Packet{
			"whole": packets(t, load(t, name)), "96 octets of each": snap(packets(t, load(t, name)), 96),
			"half": packets(t, load(t, name))[100:],
		} {
			r := analyse(list, Options{})
			got, all := map[string]int64{}, int64(0)
			for _, s := range r.Timeline.Series {
				got[s.Name] = sumOf(s)
				all += got[s.Name]
				if len(s.Octets) != len(r.Timeline.Waiting) || len(s.Octets) > maxSlots || slices.Min(s.Octets) < 0 {
					t.Errorf("%s, %s: %q has %d slots of %d: %v", name, what, s.Name, len(s.Octets), len(r.Timeline.Waiting), s.Octets)
				}
			}
			if all != r.Figures.TotalBytes {
				t.Errorf("%s, %s: %d octets in the timeline, %d in the capture: %v", name, what, all, r.Figures.TotalBytes, got)
			}
			want := map[string]int64{spentHTTP: r.HTTPBytes, spentWelcome: r.WelcomeBytes, spentUnread: r.UnreadBytes}
			for _, k := range r.Kinds {
				want[k.Name] = k.Octets
			}
			for k, n := range want {
				if got[k] != n {
					t.Errorf("%s, %s: %q has %d octets in the timeline, want %d", name, what, k, got[k], n)
				}
			}
			if s := r.Timeline.SlotS * float64(len(r.Timeline.Waiting)); s < r.Seconds() || s > 2*r.Seconds()+2*r.Timeline.SlotS {
				t.Errorf("%s, %s: slots for %v s, the capture has %v s", name, what, s, r.Seconds())
			}
		}
	}
}

// Waiting octets agree with octets counted one by one, folded or not.
func TestTimelineWaiting(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		var line timeline
		type step struct{ at, n int64 }
		var steps []step
		for at := int64(0); len(steps) < 500; at += random.Int64N(int64(seed+1) * 1e9) {
			steps = append(steps, step{at, random.Int64N(1000)})
			line.wait(at, steps[len(steps)-1].n)
		}
		got := line.result()
		width := int64(got.SlotS * 1e9)
		for i, n := range got.Waiting {
			want, before := int64(0), int64(0)
			for _, s := range steps {
				if s.at < int64(i)*width {
					before = s.n
				} else if s.at < int64(i+1)*width {
					want = max(want, s.n)
				}
			}
			if want = max(want, before); n != want {
				t.Fatalf("seed %d: slot %d of %v s: %d, want %d", seed, i, got.SlotS, n, want)
			}
		}
	}
}

// A clock that jumps, either way, costs neither time nor memory.
func TestTimelineJumps(t *testing.T) {
	var line timeline
	line.spend(-5e9, "a", 1)
	line.spend(math.MaxInt64/2, "b", 2)
	line.spend(3, "a", 4)
	line.wait(math.MaxInt64, 7)
	r := line.result()
	check.True(check.Fatal(t), "len(r.Waiting) <= maxSlots", len(r.Waiting) <= maxSlots, len(r.Waiting), maxSlots)
	check.Equal(check.Fatal(t), "len(r.Series)", len(r.Series), 2)
	check.Equal(t, "r.Series[0].Name", r.Series[0].Name, "a")
	check.Equal(t, "r.Series[0].Octets[0]", r.Series[0].Octets[0], 5)
	check.Equal(t, "sumOf(r.Series[1])", sumOf(r.Series[1]), 2)
	for i := range 1000 {
		line.spend(0, string(rune('a'+i)), 1)
	}
	if n := len(line.result().Series); n > maxAccounts+1 {
		t.Errorf("%d series", n)
	}
}

func TestSamples(t *testing.T) {
	var s samples
	for i := range 100 {
		s.add(float64(99 - i))
	}
	{
		d := s.result()
		check.Equal(t, "d.N", d.N, 100)
		check.Equal(t, "d.MedianS", d.MedianS, 49)
		check.Equal(t, "d.P95S", d.P95S, 94)
		check.Equal(t, "d.MaxS", d.MaxS, 99)
		check.Equal(t, "len(d.Sorted)", len(d.Sorted), 100)
	}
	for i := range 1 << 20 {
		s.add(float64(i % 1000))
	}
	d := s.result()
	check.Equal(t, "d.N", d.N, 100+1<<20)
	check.True(t, "math.Abs(d.MedianS-500) <= 10", math.Abs(d.MedianS-500) <= 10, math.Abs(d.MedianS-500))
	check.True(t, "math.Abs(d.P95S-950) <= 10", math.Abs(d.P95S-950) <= 10, math.Abs(d.P95S-950))
	check.True(t, "len(d.Sorted) <= maxSamples", len(d.Sorted) <= maxSamples, len(d.Sorted), maxSamples)
}

// The published figures agree with a copy of their source (published 1).
func TestPublished(t *testing.T) {
	b, err := os.ReadFile("testdata/published-2004.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Captures    map[string]Figures            `json:"captures"`
		Discovery   map[string]map[string]float64 `json:"discovery_s"`
		PipeSetup   map[string]float64            `json:"pipe_setup_s"`
		Application map[string]json.RawMessage    `json:"application_bytes"`
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if len(Captures2004) != len(want.Captures) || len(want.Captures) != 10 {
		t.Fatalf("%d captures, want %d", len(Captures2004), len(want.Captures))
	}
	for _, c := range Captures2004 {
		if c.Figures != want.Captures[c.Name] {
			t.Errorf("%s: %+v, want %+v", c.Name, c.Figures, want.Captures[c.Name])
		}
	}
	for i, p := range BlueGame {
		run := string(rune('1' + i))
		var app ApplicationBytes
		{
			err := json.Unmarshal(want.Application[run], &app)
			in := check.In(t, "run", run)
			check.NoError(check.Fatal(in), err)
			check.Equal(in, "app", app, Payloads2004[i])
			check.Equal(in, "app.In", app.In, p.In)
			check.Equal(in, "app.Out", app.Out, p.Out)
		}
		d := Discoveries2004[i]
		if d.MPA != want.Discovery[run]["mpa"] || d.Bergen != want.Discovery[run]["bergen"] || d.MPA != p.DiscoverS {
			t.Errorf("run %s: discovery %+v, want %v", run, d, want.Discovery[run])
		}
		if PipeSetups2004[i] != want.PipeSetup[run] || PipeSetups2004[i] != p.PipeSetupS {
			t.Errorf("run %s: pipe set-up %v, want %v", run, PipeSetups2004[i], want.PipeSetup[run])
		}
		if b := Captures2004[2*i+1]; b.TotalS != p.TotalS || Payloads2004[i].Of != b.DataBytes {
			t.Errorf("run %s: %v s, %d octets of data", run, b.TotalS, b.DataBytes)
		}
	}
}
