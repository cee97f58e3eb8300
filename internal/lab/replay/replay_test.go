package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"

	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

func blueGame(t testing.TB, run int, content string) *trace.File {
	t.Helper()
	var b bytes.Buffer
	if _, err := trace.Synth(&b, run, 1, content); err != nil {
		t.Fatal(err)
	}
	f, err := trace.ReadFile(&b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func load(t testing.TB, name string) profile.Profile {
	t.Helper()
	p, err := profile.Load(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSameSeedSameResult: results are equal octet for octet; another seed draws other losses.
func TestSameSeedSameResult(t *testing.T) {
	f := blueGame(t, 3, trace.ContentXML)
	run := func(seed uint64) string {
		res, err := Run(context.Background(), f, Options{Profile: load(t, "iridium-directip-shore"), Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if m := res.Messages; m.Expected == 0 || m.Delivered != m.Expected || m.Duplicates+m.Corrupted > 0 {
			t.Errorf("seed %d: %+v", seed, m)
		}
		if a := res.Application; a.Replay.In != a.Trace.In || a.Replay.Out != a.Trace.Out {
			t.Errorf("seed %d: application octets %+v", seed, a)
		}
		var ledger int64
		for _, row := range res.Ledger {
			ledger += row.Octets
		}
		if sum := res.LinkBytes.Up + res.LinkBytes.Down; ledger != sum {
			t.Errorf("seed %d: the ledgers have %d octets, the link %d", seed, ledger, sum)
		}
		b, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := run(1)
	if second := run(1); first != second {
		t.Errorf("the same seed, another result:\n%s\n%s", first, second)
	}
	if run(2) == first {
		t.Error("another seed, the same result")
	}
}

// TestManyAtOnce: runs of one script share nothing that they change.
func TestManyAtOnce(t *testing.T) {
	s, err := NewScript(talk(t, trace.Header{Content: "data"}, 8), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Profile: load(t, "iridium-dialup"), Seed: 2}
	results := make([]string, 4)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			res, err := RunScript(context.Background(), s, o)
			if err != nil {
				t.Error(err)
				return
			}
			b, err := json.Marshal(res)
			if err != nil {
				t.Error(err)
			}
			results[i] = string(b)
		})
	}
	all.Wait()
	for _, r := range results[1:] {
		if r != results[0] {
			t.Fatalf("side by side, another result:\n%s\n%s", results[0], r)
		}
	}
}

// BenchmarkHalfAnHour: the issue wants 30 minutes in 10 s, better 2 s.
func BenchmarkHalfAnHour(b *testing.B) {
	f, p := blueGame(b, 5, trace.ContentXML), load(b, "iridium-directip-shore")
	for b.Loop() {
		if _, err := Run(context.Background(), f, Options{Profile: p, Seed: 1}); err != nil {
			b.Fatal(err)
		}
	}
}
