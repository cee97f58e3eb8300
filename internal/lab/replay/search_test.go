package replay

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

// run answers a search with figures of a made-up link.
func run(t *testing.T, cfg SearchConfig, link func(Trial) Figures, stopAfter int) Tuning {
	t.Helper()
	s := NewSearch(cfg)
	for batches := 0; ; batches++ {
		trials := s.Next()
		if len(trials) == 0 {
			return s.Result()
		}
		if batches > 100 {
			t.Fatal("no end")
		}
		var figures []Figures
		for _, trial := range trials {
			if err := trial.Profile.Validate("", nil); err != nil {
				t.Fatalf("wants a profile that is refused: %v", err)
			}
			figures = append(figures, link(trial))
		}
		if stopAfter > 0 && batches+1 >= stopAfter {
			s.Stop()
		}
		s.Tell(figures)
	}
}

// spread are the latencies of a hundred messages with a 95 % quantile, the slowest four of another.
func spread(p95, slowest float64) (times []float64) {
	for i := range 100 {
		switch {
		case i >= 96:
			times = append(times, slowest)
		default:
			times = append(times, p95*(0.5+0.5*float64(i)/95))
		}
	}
	return times
}

// plain is a link on which a longer delay of acknowledgements saves octets and larger datagrams save time, with noise of 1 %.
func plain(trial Trial) Figures {
	p := trial.Profile
	random := rand.New(rand.NewPCG(trial.Seed, uint64(trial.Trace)))
	noise := 1 + 0.01*random.Float64()
	octets := 10000 + 3000*6/p.AckDelay.Seconds()
	p95 := 1 + 500/float64(p.DatagramOctets)
	return Figures{Octets: int64(octets * noise), Times: spread(p95*noise, 2*p95*noise), Expected: 50, Delivered: 50}
}

func TestSearchFindsAndRepeats(t *testing.T) {
	cfg := SearchConfig{Profile: load(t, "iridium-directip-shore"), Traces: 2, Seed: 7}
	r := run(t, cfg, plain, 0)
	if r.Profile.DatagramOctets <= cfg.Profile.DatagramOctets || r.Profile.AckDelay < 2*cfg.Profile.AckDelay || r.Cut {
		t.Errorf("datagrams of %d octets, ack delay %v, cut %v", r.Profile.DatagramOctets, r.Profile.AckDelay, r.Cut)
	}
	check.True(t, "r.Unseen.OctetsPct <= -10", r.Unseen.OctetsPct <= -10, r.Unseen.OctetsPct)
	check.True(t, "r.Unseen.P95Pct <= -10", r.Unseen.P95Pct <= -10, r.Unseen.P95Pct)
	check.Equal(t, "r.Unseen.Plays", r.Unseen.Plays, 2*unseen)
	check.Equal(t, "r.Unseen.Lost", r.Unseen.Lost, 0)
	for _, idle := range []string{"window", "grtt_ms", "gap_age_ms"} {
		if !slices.Contains(r.Idle, idle) {
			t.Errorf("%s is not among %v", idle, r.Idle)
		}
	}
	if again := run(t, cfg, plain, 0); !reflect.DeepEqual(again, r) {
		t.Errorf("the same search gives another result:\n%+v\n%+v", again, r)
	}
	p := cfg.Profile
	for _, s := range r.Steps { // the steps lead to the result
		for _, c := range s.Changes {
			k := NewSearch(cfg).knob(c.Key)
			if k.get(&p) != c.Was {
				t.Errorf("%s was %d, step says %d", c.Key, k.get(&p), c.Was)
			}
			k.set(&p, c.Now)
		}
	}
	if p != r.Profile {
		t.Errorf("the steps lead to %+v, not to %+v", p, r.Profile)
	}
}

// A search accepts no gain at the cost of a lost delivery, of the slowest messages, or of octets, nor one from a single variant.
func TestSearchRefuses(t *testing.T) {
	cfg := SearchConfig{Profile: load(t, "iridium-directip-shore"), Traces: 1, Seed: 1}
	changed := func(trial Trial) bool { return trial.Profile != cfg.Profile }
	tests := map[string]func(*Figures, Trial){
		"a lost delivery": func(f *Figures, trial Trial) { f.Delivered-- },
		"a message twice": func(f *Figures, trial Trial) { f.Wrong++ },
		"the slowest":     func(f *Figures, trial Trial) { f.Times = spread(0.9, 3) },
		"octets":          func(f *Figures, trial Trial) { f.Octets, f.Times = 11000, spread(0.5, 1) },
		"latency":         func(f *Figures, trial Trial) { f.Octets, f.Times = 5000, spread(1.1, 2) },
		"one variant": func(f *Figures, trial Trial) {
			f.Octets, f.Times = 10000, spread(map[bool]float64{true: 0.5, false: 1.05}[trial.Variant == 0], 1)
		},
		"a play that fails": func(f *Figures, trial Trial) { *f = Figures{Err: "no"} },
		"nothing is different": func(f *Figures, trial Trial) {
			*f = Figures{Octets: 10000, Times: spread(1, 1), Expected: 9, Delivered: 9}
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			r := run(t, cfg, func(trial Trial) Figures {
				f := Figures{Octets: 10000, Times: spread(1, 1), Expected: 9, Delivered: 9}
				if changed(trial) {
					f.Octets, f.Times = 9000, spread(0.9, 1)
					spoil(&f, trial)
				}
				return f
			}, 0)
			if len(r.Steps) != 0 || r.Profile != cfg.Profile {
				t.Errorf("took %+v", r.Steps)
			}
		})
	}
}

// A change that helps only on the variants for decisions is taken back.
func TestSearchTakesBack(t *testing.T) {
	cfg := SearchConfig{Profile: load(t, "vhf-cnr-16k"), Traces: 1, Seed: 1}
	r := run(t, cfg, func(trial Trial) Figures {
		f := plain(trial)
		if trial.Variant >= firstOfEnd && trial.Profile.AckDelay != cfg.Profile.AckDelay {
			f.Octets *= 2
		}
		return f
	}, 0)
	if r.Profile.AckDelay != cfg.Profile.AckDelay || len(r.Taken) == 0 || r.Unseen.OctetsPct > 2 {
		t.Errorf("ack delay %v, taken back %+v, unseen %+v", r.Profile.AckDelay, r.Taken, r.Unseen)
	}
}

// A search that is stopped ends its round, judges its changes so far and says so.
func TestSearchStopped(t *testing.T) {
	cfg := SearchConfig{Profile: load(t, "iridium-directip-shore"), Traces: 1, Seed: 1}
	if r := run(t, cfg, plain, 1); !r.Cut || len(r.Steps) != 0 || r.Profile != cfg.Profile {
		t.Errorf("%+v", r)
	}
	r := run(t, cfg, plain, 2)
	check.True(t, "r.Cut", r.Cut)
	check.Equal(t, "len(r.Steps)", len(r.Steps), 1)
	check.Equal(t, "r.Rounds", r.Rounds, 1)
	check.Equal(t, "r.Unseen.Plays", r.Unseen.Plays, unseen)
}

// Plays that the time limit cuts decide nothing: changes that no whole play has judged are taken back, and earlier changes stay.
func TestSearchCut(t *testing.T) {
	cfg := SearchConfig{Profile: load(t, "iridium-directip-shore"), Traces: 1, Seed: 1}
	whole := run(t, cfg, plain, 2)
	check.Equal(t, "steps of a search that is not cut", len(whole.Steps), 1)
	for _, tt := range []struct {
		name         string
		cut          func(played int, trial Trial) bool
		steps, taken int
	}{
		{"from the start", func(int, Trial) bool { return true }, 0, 0},
		{"behind the baseline", func(played int, _ Trial) bool { return played > decisions }, 0, 0},
		{"in the judgement", func(_ int, trial Trial) bool { return trial.Variant >= firstOfEnd }, 0, 1},
		{"of one in two plays of other profiles", func(played int, trial Trial) bool {
			return trial.Profile != cfg.Profile && trial.Variant == 0 && trial.Profile != whole.Profile && played%2 == 0
		}, 1, 0},
	} {
		played := 0
		r := run(t, cfg, func(trial Trial) Figures {
			played++
			if tt.cut(played, trial) {
				return Figures{Cut: true}
			}
			return plain(trial)
		}, 2)
		check.True(t, tt.name+": it says so", r.Cut)
		check.Equal(t, tt.name+": steps", len(r.Steps), tt.steps)
		check.Equal(t, tt.name+": taken back", len(r.Taken), tt.taken)
		check.Equal(t, tt.name+": the profile is that of the steps", r.Profile == cfg.Profile, tt.steps == 0)
	}
}

func TestSearchCannotPlay(t *testing.T) {
	r := run(t, SearchConfig{Profile: load(t, "iridium-directip-shore"), Traces: 1}, func(Trial) Figures { return Figures{Err: "no such thing"} }, 0)
	if r.Problem != "no such thing" || len(r.Steps) != 0 {
		t.Errorf("%+v", r)
	}
}

func script(t *testing.T) *Script {
	t.Helper()
	var b bytes.Buffer
	if _, err := trace.Synth(&b, 1, 1, trace.ContentText); err != nil {
		t.Fatal(err)
	}
	f, err := trace.ReadFile(&b)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewScript(f, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVariant(t *testing.T) {
	s := script(t)
	if Variant(s, 0, 1) != s {
		t.Error("variant 0 is not the trace itself")
	}
	if reflect.DeepEqual(Variant(s, 1, 1), Variant(s, 2, 1)) || !reflect.DeepEqual(Variant(s, 1, 1), Variant(s, 1, 1)) {
		t.Error("variants are not what their number and seed say")
	}
	for n := range Number(50) {
		v := Variant(s, n, 9)
		if !slices.IsSortedFunc(v.Actions, func(a, b Action) int { return int(a.At - b.At) }) || len(v.Actions) != len(s.Actions) {
			t.Fatalf("variant %d: out of order", n)
		}
		last := map[int]int{}
		for _, a := range v.Actions {
			if a.Do != Send {
				continue
			}
			m := v.Messages[a.Message]
			d := m.At - s.Messages[a.Message].At
			must := check.Fatal(check.In(t, "variant", n))
			check.True(must, "d >= -maxPhase-maxJitter", d >= -maxPhase-maxJitter, d, -maxPhase-maxJitter)
			check.True(must, "d <= maxPhase+maxJitter", d <= maxPhase+maxJitter, d, maxPhase+maxJitter)
			check.Equal(must, "m.At", m.At, a.At)
			check.True(must, "m.At <= s.Duration", m.At <= s.Duration, m.At, s.Duration)
			if a.Message < last[a.Peer] {
				t.Fatalf("variant %d: messages of a peer changed places", n)
			}
			last[a.Peer] = a.Message
		}
	}
}

// Every shipped profile can be written with every value changed, and reads as the changed profile.
func TestWrite(t *testing.T) {
	for _, name := range profile.Names() {
		source, err := profile.Source(name)
		if err != nil {
			t.Fatal(err)
		}
		from := load(t, name)
		to := from
		for _, k := range knobs() {
			if c := k.candidates(to, true); len(c) > 0 {
				k.set(&to, c[0])
			}
		}
		text, err := WriteTuned(source, from, to, name+"-tuned", []string{"Tuned: by a test", "a\nb"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := profile.Decode("x.toml", text)
		to.Name = name + "-tuned"
		if err != nil || got != to {
			t.Errorf("%s: %v\n%+v\nwant %+v", name, err, got, to)
		}
		if !strings.HasPrefix(string(text), "# Tuned: by a test\n# a?b\n") || strings.Count(string(text), "# tuned, was ") < 6 {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	odd := []byte(strings.ReplaceAll(string(mustSource(t, "hf-300")), "window = ", `"window" = `))
	from := load(t, "hf-300")
	to := from
	to.Window *= 2
	if _, err := WriteTuned(odd, from, to, "x", nil); err == nil || !strings.Contains(err.Error(), "lines of their own") {
		t.Errorf("a file in another form: %v", err)
	}
	if _, err := WriteTuned(mustSource(t, "hf-300"), from, to, "No Name", nil); err == nil {
		t.Error("a bad name was taken")
	}
}

func mustSource(t *testing.T, name string) []byte {
	t.Helper()
	b, err := profile.Source(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFiguresOf(t *testing.T) {
	res := &Result{Messages: Messages{Expected: 101, Delivered: 100, Duplicates: 2, Corrupted: 1}, LinkBytes: UpDown[int64]{Up: 3, Down: 4}}
	for i := range 100 {
		at := float64(i + 1)
		res.Samples = append(res.Samples, Sample{ArrivedS: &at})
	}
	res.Samples = append(res.Samples, Sample{})
	f := FiguresOf(res)
	check.Equal(t, "f.Octets", f.Octets, 7)
	check.Equal(t, "f.Expected", f.Expected, 101)
	check.Equal(t, "f.Delivered", f.Delivered, 100)
	check.Equal(t, "f.Wrong", f.Wrong, 3)
	check.Equal(t, "quantile(f.Times, 0.95)", linkemu.Quantile(f.Times, 0.95), 95)
	check.Equal(t, "tail(f.Times)", tail(f.Times), 98)
	check.Equal(t, "quantile(f.Times, 0.5)", linkemu.Quantile(f.Times, 0.5), 50)
}

func TestNice(t *testing.T) {
	for v, want := range map[float64]int{0.2: 1, 7.4: 7, 99: 99, 448: 450, 12345: 12000, 24000: 24000} {
		if got := nice(v); got != want {
			t.Errorf("nice(%v) = %d, want %d", v, got, want)
		}
	}
	if d := time.Duration(nice(8100)) * time.Millisecond; d != 8100*time.Millisecond {
		t.Error(d)
	}
}

// Traces for the proof are played after all decisions, and change none.
func TestSearchProof(t *testing.T) {
	cfg := SearchConfig{Profile: load(t, "iridium-directip-shore"), Traces: 1, Seed: 7}
	want := run(t, cfg, plain, 0)
	cfg.Proof = 2
	var others []Trial
	r := run(t, cfg, func(trial Trial) Figures {
		f := plain(trial)
		if trial.Trace >= cfg.Traces {
			others = append(others, trial)
			if trial.Profile != cfg.Profile {
				f.Octets *= 3 // it would be taken back if this counted
			}
		} else if len(others) > 0 {
			t.Errorf("%+v is wanted after the proof has begun", trial)
		}
		return f
	}, 0)
	check.Equal(check.Fatal(t), "len(others)", len(others), 2*2*proofs)
	check.Equal(t, "r.Profile", r.Profile, want.Profile)
	check.Equal(check.Fatal(t), "len(r.Proof)", len(r.Proof), 2)
	check.Equal(t, "r.Proof[1].Plays", r.Proof[1].Plays, proofs)
	check.Equal(t, "r.Proven.Plays", r.Proven.Plays, 2*proofs)
	check.True(t, "r.Proof[0].OctetsPct >= 50", r.Proof[0].OctetsPct >= 50, r.Proof[0].OctetsPct)
}
