package air

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// Every table has scenarios, and an unknown name is refused.
func TestScenarios(t *testing.T) {
	names, about := Names()
	all, err := Scenarios()
	if err != nil || len(names) != len(about) {
		t.Fatal(err)
	}
	for _, name := range names {
		of, err := Scenarios(name)
		if err != nil || len(of) == 0 {
			t.Errorf("%s: %d scenarios, %v", name, len(of), err)
		}
		for _, s := range of {
			for _, link := range strings.Split(strings.ReplaceAll(strings.TrimPrefix(strings.ReplaceAll(s.Link, " twice", ""), "two of "), " and ", ", "), ", ") { // a fleet has several
				if _, err := profile.Load(link, nil); err != nil || s.Name != name || len(s.Rows) == 0 {
					t.Errorf("%s on %q with %d rows: %v", s.Name, s.Link, len(s.Rows), err)
				}
			}
			for _, r := range s.Rows {
				if r.What == "" || r.Share <= 0 || r.Share > 1 || r.Asked && (r.More && r.Aim < r.Must || !r.More && r.Aim > r.Must && r.Must > 0) {
					t.Errorf("%s on %s: %+v", s.Name, s.Link, r)
				}
			}
		}
	}
	some, err := Scenarios(names[0], names[1])
	if err != nil || len(some) == 0 || len(some) >= len(all) {
		t.Errorf("%d of %d scenarios in two tables: %v", len(some), len(all), err)
	}
	if _, err := Scenarios("load", "beauty"); err == nil {
		t.Error("a table that there is not was played")
	}
}

// The same seed gives the same samples, whatever plays came before.
func TestPlayAgain(t *testing.T) {
	list, err := Scenarios("burst")
	if err != nil {
		t.Fatal(err)
	}
	first, err := list[0].Play(context.Background(), 3)
	if err != nil {
		t.Fatal(err)
	}
	other, err := list[0].Play(context.Background(), 4)
	if err != nil {
		t.Fatal(err)
	}
	again, err := list[0].Play(context.Background(), 3)
	if err != nil || !reflect.DeepEqual(first, again) || reflect.DeepEqual(first, other) {
		t.Errorf("seed 3 %v, again %v, seed 4 %v, %v", first, again, other, err)
	}
	rows := list[0].Judge([]Samples{first, other})
	if len(rows) != 1 || rows[0].N != 2 || rows[0].Value < 1 || rows[0].Bound < 1 || rows[0].Most < rows[0].Least {
		t.Errorf("judged %+v", rows)
	}
}

// A play whose context is cancelled ends at once.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	list, err := Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if _, err := s.Play(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("%s on %s, %s: %v", s.Name, s.Link, s.Rows[0].What, err)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		value, bound, must, aim float64
		want                    string
	}{
		{1.1, 0, 1.3, 1.2, "aim"}, {1.25, 0, 1.3, 1.2, "must"}, {1.4, 0, 1.3, 1.2, "missed"}, {1.4, 1.35, 1.3, 1.2, "bound"}, {1.4, 1.2, 1.3, 1.2, "missed"},
		{90, 0, 75, 80, "aim"}, {76, 0, 75, 80, "must"}, {74, 0, 75, 80, "missed"}, {74, 75, 75, 80, "bound"}, {0, 0, 0, 0, "aim"}, {1, 0, 0, 0, "missed"},
	} {
		r := asked("", "", "", 0.5, tt.must, tt.aim)
		r.Value, r.Bound = tt.value, tt.bound
		if got := r.Verdict(); got != tt.want {
			t.Errorf("%v of at most %v, better %v, possible %v: %q, want %q", tt.value, tt.must, tt.aim, tt.bound, got, tt.want)
		}
	}
	if got := measured("", "", 0.5).Verdict(); got != "" {
		t.Errorf("nothing was asked: %q", got)
	}
}

// The bounds, by hand. iridium-directip upwards: 1,472 octets above UDP hold 1,451 of fragments, each 200 octets of a message take 204, and
// 1 % is lost.
func TestBounds(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if got < want*0.999 || got > want*1.001 {
			t.Errorf("%s: %.4f, want %.4f", what, got, want)
		}
	}
	near("fragments of 200 fill a datagram", packed("iridium-directip", 200), 200.0/204*1451/1500*0.99)
	near("1,000 octets in fragments", packed("iridium-directip", 1000), 1000.0/1004*1451/1500*0.99)
	limit := 128 * 200 * 8 / 4800.0
	near("128 at once", burstBound("iridium-directip", 128, 200, false), (limit*204/200*1500/1451/0.99+1.45)/(limit+1.45))
	p, err := profile.Load("iridium-directip", nil)
	if err != nil {
		t.Fatal(err)
	}
	near("the limit", Limit(p, 200).Seconds(), 200*8/4800.0+1.45)
	p.Up.LossPct, p.Up.Jitter = 0, 0
	alone := (200+28+19+6)*8/4800.0 + 0.9
	near("single messages without loss and jitter", singleBound(p, 200, 0.99), alone/Limit(p, 200).Seconds())
	p.Up.LossPct = 50
	near("half is lost, 40 of 100", singleBound(p, 200, 0.4), alone/Limit(p, 200).Seconds())
	near("half is lost, 70 of 100", singleBound(p, 200, 0.7), (alone+alone+2)/Limit(p, 200).Seconds())
	p.Up.LossPct, p.Up.Jitter = 20, time.Second
	near("jitter, half of those that arrive", singleBound(p, 200, 0.4), (alone+0.5)/Limit(p, 200).Seconds())
}

// Every offered message is checked: it is an error if one is missing, comes twice, changed or out of order.
func TestOnce(t *testing.T) {
	s, err := newStage(context.Background(), "iridium-directip", 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.offer(3, time.Second, tracks(50))
	took, err := s.settle(time.Minute)
	if err != nil || len(took) != 3 || !slices.IsSorted(took) {
		t.Fatalf("%v, %v", took, err)
	}
	got := s.shore.Site.Got
	changed := slices.Clone(got)
	changed[1].Payload.Topic = "another"
	for name, list := range map[string][]sim.Got{"missing": got[:2], "twice": append(slices.Clone(got), got[2]), "changed": changed, "out of order": append(slices.Clone(got[1:]), got[0])} {
		if _, err := Once(list, 2, s.sent); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
