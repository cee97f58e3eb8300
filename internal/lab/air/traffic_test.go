package air

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

func hfProfile(t *testing.T) profile.Profile {
	t.Helper()
	p, err := profile.Load(hf, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func nearly(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.001*math.Abs(want) {
		t.Errorf("%s: %.4f, want %.4f", what, got, want)
	}
}

// The bounds of a shared channel, by hand. A datagram of hf-2400 has 508 octets above UDP, 488 of them for messages, and takes
// 536 octets of air; a message of 200 octets needs 208.
func TestChannelBounds(t *testing.T) {
	p := hfProfile(t)
	const share = 488.0 / 536 * 200 / 208
	k := int(10 * time.Minute / (1786666666 * time.Nanosecond))
	bad := 0.00974 / 0.25974
	nearly(t, "one datagram for one receiver", spoken{p, 200, 1, 1}.sent(1), (1-bad)*(1+0.00974*0.8*2.5)+bad*2.5)

	p.Up.GEp, p.Up.GEr = 0, 0
	nearly(t, "nothing is lost, one talks", spoken{p, 200, 1, 1}.wired(10*time.Minute), share)
	nearly(t, "nothing is lost", spoken{p, 200, 3, 1}.sent(k), float64(k))
	nearly(t, "four in turns of 30 s", spoken{p, 200, 3, 4}.goodput(1, 10*time.Minute), 100*share*(30-14*8/2400.0)/32)
	nearly(t, "half is offered", spoken{p, 200, 3, 4}.goodput(0.5, 10*time.Minute), 50)
	nearly(t, "40 of 900 at once", spoken{p, 900, 3, 1}.burst(40), (75*536-(75*488-40*908))*8/2400.0+1)
	single := (28+19+1+208)*8/2400.0 + 1
	nearly(t, "one alone", spoken{p, 200, 15, 1}.alone(0.95), single+8/2400.0) // 15 receivers are two octets of names
	urgent := spoken{p, 200, 3, 1}
	nearly(t, "urgent, behind half a datagram of its own site", urgent.urgent(0.5), single+0.495*536*8/2400)
	urgent.talkers = math.MaxInt32
	nearly(t, "urgent, behind half a datagram of another", urgent.urgent(0.5), single+0.495*536*8/2400+2)

	p.Up.LossPct = 50
	nearly(t, "half is lost, one receiver", spoken{p, 200, 1, 1}.sent(3), 6)
	nearly(t, "half is lost, two receivers", spoken{p, 200, 2, 1}.sent(1), 8.0/3)
	nearly(t, "half is lost, one alone to two, in three of four cases", spoken{p, 200, 2, 1}.alone(0.75), single+2*(single-1)) // 1/4, 9/16, 49/64
}

// Figures of posts whose ways are known: two at the same time on a channel, the second an hour late.
func TestFigures(t *testing.T) {
	o := &outcome{link: hfProfile(t), lasting: time.Minute, octets: 1200, back: 10 * time.Second,
		posts: []Post{{Data: make([]byte, 300), To: []int{1, 2}}, {Data: make([]byte, 300), To: []int{1, 2}, Class: "late"}, {At: 20 * time.Second, Data: make([]byte, 150), To: []int{1, 2}}},
		took:  [][]time.Duration{{2 * time.Second, 4 * time.Second}, {3 * time.Second, time.Hour}, {3 * time.Second, 3 * time.Second}}}
	nearly(t, "goodput", goodputOf(0, time.Minute)(o), 100*(300+150+150)*8/60.0/2400)
	nearly(t, "goodput from 20 s on", goodputOf(20*time.Second, time.Minute)(o), 100*150*8/40.0/2400)
	nearly(t, "the limits of all", o.limits(all, true)[5], 3)
	nearly(t, "the limit of the second behind the first", o.limits("late", false)[0], 3)
	nearly(t, "the limit of the second alone", timesOf("late", 0.5, true)(o), 3/2.0)
	nearly(t, "median", secondsOf(all, 0.5)(o), 3)
	nearly(t, "median of the last receivers", lastOf(all, 0.5)(o), 4)
	nearly(t, "after an outage", afterOutage(o), 3590)
	nearly(t, "octets for an octet", octetsForOne(o), 1200/750.0)
	star := *o
	var err error
	if star.link, err = profile.Load("iridium-directip", nil); err != nil {
		t.Fatal(err)
	}
	star.posts = []Post{{Data: make([]byte, 600), To: []int{1}}, {From: 1, Data: make([]byte, 600), To: []int{0}}, {Data: make([]byte, 600), To: []int{2}}}
	if got := star.limits(all, true); math.Abs(got[0]-(600*8/9300.0+1.45)) > 1e-6 || got[1] != got[0] || math.Abs(got[2]-2.45) > 1e-6 {
		t.Errorf("the legs of a star do not wait for each other: %v", got)
	}
}

// A play ends when its time is over. Missing deliveries count as if they came then; messages to a silent site come when it speaks again.
func TestTrafficEnds(t *testing.T) {
	lost := traffic{link: hf, sites: 3, lasting: time.Minute, rest: time.Minute, posts: apart(1, 2, 40, 30*time.Second),
		outages: []outage{{10 * time.Second, time.Hour}}, figures: []figure{{Row: measured("the last", "s", 1), of: secondsOf(all, 1)}}}
	s := lost.scenario()
	samples, err := s.Play(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if row := s.Judge([]Samples{samples})[0]; row.Value != 90 || row.Missing != 2 || row.Wrong != 0 {
		t.Errorf("two of four deliveries are lost: %+v", row)
	}
	quiet := traffic{link: hf, sites: 3, lasting: time.Minute, rest: 10 * time.Minute, posts: apart(1, 2, 40, 0), silent: true,
		change: func(c *sim.Config) { c.Profile.Up.GEp, c.Profile.Down.GEp = 0, 0 }}
	o, err := quiet.play(context.Background(), 1)
	if err != nil || o.missing != 0 || o.wrong != 0 || o.octets == 0 {
		t.Errorf("to a silent ship: %d of 4 missing, %d wrong, %d octets: %v", o.missing, o.wrong, o.octets, err)
	}
}

// Deliveries that come again, or at other sites, are counted.
func TestEars(t *testing.T) {
	at := time.Unix(100, 0)
	e := newEars([]Post{{Data: []byte("a"), To: []int{1, 2}}, {At: time.Second, From: 1, Data: []byte("b"), To: []int{0}}})
	for _, a := range []struct {
		site int
		data string
	}{{1, "a"}, {1, "a"}, {0, "a"}, {0, "c"}, {0, "b"}} {
		e.arrived(a.site, []byte(a.data), at)
	}
	if e.wrong != 3 || e.left != 1 {
		t.Errorf("%d wrong, %d due", e.wrong, e.left)
	}
	if took := e.took(at.Add(-2*time.Second), at.Add(time.Second)); took[0][0] != 2*time.Second || took[0][1] != 3*time.Second || took[1][0] != time.Second {
		t.Errorf("took %v", took)
	}
}

// The same seed offers the same posts, another seed other octets; in the order of time, to all others.
func TestLoads(t *testing.T) {
	random := traffic{link: hf, sites: 3, posts: both(poisson(upTo(3), 900, 0.5, time.Hour).as("x", 1, 1), steady([]int{1, 2}, 100, 0.1, time.Hour))}
	posts, p, err := random.offered(1)
	if err != nil {
		t.Fatal(err)
	}
	again, _, _ := random.offered(1)
	other, _, _ := random.offered(2)
	said, octets := map[string]bool{}, map[string]int{}
	for i, post := range posts {
		said[string(post.Data)] = true
		octets[post.Class] += len(post.Data)
		if string(post.Data) != string(again[i].Data) || len(post.To) != 2 || slices.Contains(post.To, post.From) || i > 0 && post.At < posts[i-1].At {
			t.Fatalf("message %d: %+v", i, post)
		}
	}
	if len(said) != len(posts) || string(posts[0].Data) == string(other[0].Data) {
		t.Errorf("%d of %d messages are different", len(said), len(posts))
	}
	hour := float64(p.Up.RateBps) / 8 * 3600
	if x, rest := float64(octets["x"])/hour, float64(octets[all])/hour; x < 0.4 || x > 0.6 || rest < 0.099 || rest > 0.101 {
		t.Errorf("offered %.2f by chance, %.3f in turn", x, rest)
	}
}

func TestHaving(t *testing.T) {
	list, err := Scenarios("channel")
	if err != nil {
		t.Fatal(err)
	}
	some, err := Having(list, "HF-300: 128 of 200")
	if err != nil || len(some) != 1 || !strings.Contains(some[0].Rows[0].What, "to 2") {
		t.Errorf("%d scenarios: %v", len(some), err)
	}
	if _, err := Having(list, "beauty"); err == nil {
		t.Error("a row that there is not was found")
	}
}
