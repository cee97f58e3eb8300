package linkemu

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
)

var epoch = time.Date(2004, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return epoch.Add(d) }

func prof(t testing.TB, name string) profile.Profile {
	t.Helper()
	p, err := profile.Load(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lab plays events in virtual time and notes arrivals.
type lab struct {
	t    testing.TB
	link *Link
	next time.Time // the link's deadline
	got  []Delivery
}

func newLab(t testing.TB, seed uint64, nodes ...Node) *lab {
	t.Helper()
	link, err := New(Config{Nodes: nodes, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return &lab{t: t, link: link}
}

func (l *lab) step(now time.Time, ev Event) {
	l.t.Helper()
	out, err := l.link.Step(now, ev)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, d := range out.Deliver {
		if d.At.After(now) {
			l.t.Fatalf("delivered at %v, now is %v", d.At, now)
		}
	}
	l.got = append(l.got, out.Deliver...)
	l.next = out.Deadline
}

// do steps through the deadlines up to d after the epoch, and then applies ev.
func (l *lab) do(d time.Duration, ev Event) {
	l.t.Helper()
	l.idle(at(d))
	l.step(at(d), ev)
}

func (l *lab) idle(until time.Time) {
	for !l.next.IsZero() && !l.next.After(until) {
		l.step(l.next, nil)
	}
}

// drain lets everything arrive.
func (l *lab) drain() {
	for !l.next.IsZero() {
		l.step(l.next, nil)
	}
}

func (l *lab) to(node string) (list []Delivery) {
	for _, d := range l.got {
		if d.Node == node {
			list = append(list, d)
		}
	}
	return list
}

func frame(from, to string, octets int) Frame { return Frame{From: from, To: to, Octets: octets} }

// TestPing: the first check (links 3): 84 octets of IP to a wire and back.
func TestPing(t *testing.T) {
	p := prof(t, "iridium-directip")
	l := newLab(t, 1, Node{Name: "hq", Profile: prof(t, "wire")}, Node{Name: "b", Profile: p})
	least, most, sum, n := time.Hour, time.Duration(0), time.Duration(0), 0
	for i := range 1000 {
		sent := time.Duration(i) * 10 * time.Second
		l.got = nil
		l.do(sent, frame("b", "hq", 84))
		l.drain()
		if len(l.got) == 0 {
			continue
		}
		l.step(l.got[0].At, frame("hq", "b", 84))
		l.drain()
		if len(l.got) == 2 {
			rtt := l.got[1].At.Sub(at(sent))
			least, most, sum, n = min(least, rtt), max(most, rtt), sum+rtt, n+1
		}
	}
	air := profile.Airtime(84, 4800) + profile.Airtime(84, 9300)
	check.True(t, "least >= 1800*time.Millisecond+air", least >= 1800*time.Millisecond+air, least, 1800*time.Millisecond+air)
	check.True(t, "most <= 4*time.Second+air", most <= 4*time.Second+air, most, 4*time.Second+air)
	check.True(t, "sum/time.Duration(n) >= 3*time.Second", sum/time.Duration(n) >= 3*time.Second, sum/time.Duration(n))
	check.True(t, "sum/time.Duration(n) <= 3300*time.Millisecond", sum/time.Duration(n) <= 3300*time.Millisecond, sum/time.Duration(n))
	if n < 960 || n > 995 {
		t.Errorf("%d of 1000 answered, want about 980", n)
	}
}

// TestRateAndQueue: checks 2 to 4: more is offered than the link carries.
func TestRateAndQueue(t *testing.T) {
	tests := []struct {
		profile string
		offered int // bit/s
		lossPct float64
		drops   bool
	}{
		{"iridium-directip", 12000, 1, true},
		{"iridium-certus-100", 120000, 1, true},
		{"geo-satcom-128k", 200000, 0.1, true},
		{"geo-satcom-128k", 100000, 0.1, false},
	}
	for _, tt := range tests {
		p := prof(t, tt.profile)
		l := newLab(t, 3, Node{Name: "hq", Profile: prof(t, "wire")}, Node{Name: "ship", Profile: p})
		const octets, frames = 1000, 5000
		gap := profile.Airtime(octets, tt.offered)
		for i := range frames {
			l.do(time.Duration(i)*gap, frame("hq", "ship", octets))
		}
		l.drain()
		st := l.link.Stats().Node("ship").Down
		rate := float64(st.OnAir.Octets*8) / st.Busy.Seconds()
		if math.Abs(rate-float64(p.Down.RateBps)) > 1 {
			t.Errorf("%s: %.0f bit/s on the air while busy, want %d", tt.profile, rate, p.Down.RateBps)
		}
		lost := 100 * float64(st.DroppedLoss.Frames) / float64(st.OnAir.Frames)
		if math.Abs(lost-tt.lossPct) > 0.6 {
			t.Errorf("%s: %.2f %% lost, want %v", tt.profile, lost, tt.lossPct)
		}
		if drops := st.DroppedQueue.Frames > 0; drops != tt.drops {
			t.Errorf("%s: %d frames dropped from the queue", tt.profile, st.DroppedQueue.Frames)
		}
		if st.QueueMax > p.Down.QueueOctets || tt.drops && st.QueueMax < p.Down.QueueOctets-octets {
			t.Errorf("%s: queue reached %d octets, holds %d", tt.profile, st.QueueMax, p.Down.QueueOctets)
		}
		if got := st.OnAir.Frames + st.DroppedQueue.Frames; got != frames || st.Delivered.Frames+st.DroppedLoss.Frames != st.OnAir.Frames {
			t.Errorf("%s: frames do not add up: %+v", tt.profile, st)
		}
	}
}

// TestLoss: check "loss model, fake clock".
func TestLoss(t *testing.T) {
	run := func(p profile.Profile, frames int) (pct, burst float64) {
		l := newLab(t, 7, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: p})
		runs, before := 0, false
		var n int64
		gap := profile.Airtime(100, p.Up.RateBps)
		for i := range frames {
			l.do(time.Duration(i)*gap, frame("a", "", 100))
			now := l.link.Stats().Node("b").Down.DroppedLoss.Frames
			if now > n && !before {
				runs++
			}
			before, n = now > n, now
		}
		l.drain()
		lost := l.link.Stats().Node("b").Down.DroppedLoss.Frames
		return 100 * float64(lost) / float64(frames), float64(lost) / float64(runs)
	}
	if pct, _ := run(prof(t, "vhf-cnr-16k"), 40000); math.Abs(pct-5) > 0.4 {
		t.Errorf("vhf: %.2f %% lost over 40 000 frames, want 5 within 0.4", pct)
	}
	pct, burst := run(prof(t, "hf-2400"), 200000)
	if math.Abs(pct-3) > 0.3 {
		t.Errorf("hf: %.2f %% lost over 200 000 frames, want 3 within 0.3", pct)
	}
	// About four bad frames, one in five of which survives and splits the run: about 2.3 lost in a row.
	if burst < 1.8 || burst > 3 {
		t.Errorf("hf: %.2f frames lost in a row in the mean, want about 2.3", burst)
	}
	p := prof(t, "vhf-cnr-16k")
	p.Up.LossRef, p.Down.LossRef = 50, 50 // 100 octets are two blocks
	if pct, _ := run(p, 40000); math.Abs(pct-9.75) > 0.6 {
		t.Errorf("per block: %.2f %% lost, want 9.75", pct)
	}
}

// TestMulticastOnSharedChannel: check 7.
func TestMulticastOnSharedChannel(t *testing.T) {
	p := prof(t, "hf-2400")
	p.Up.GEp, p.Down.GEp = 0, 0
	var nodes []Node
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		nodes = append(nodes, Node{Name: n, Profile: p})
	}
	l := newLab(t, 1, nodes...)
	l.do(0, frame("c", "", 128))
	l.drain()
	if len(l.got) != 4 || len(l.to("c")) != 0 {
		t.Fatalf("%d deliveries: %+v", len(l.got), l.got)
	}
	for _, d := range l.got {
		if got, want := d.At.Sub(epoch), profile.Airtime(128, 2400)+time.Second; got != want {
			t.Errorf("%s after %v, want %v", d.Node, got, want)
		}
	}
	l.got = nil
	l.do(time.Minute, frame("a", "b", 128))
	l.drain()
	if len(l.got) != 1 || l.got[0].Node != "b" {
		t.Errorf("a frame for b: %+v", l.got)
	}
}

// TestHalfDuplex: check 8: turnaround, hold limit, turns.
func TestHalfDuplex(t *testing.T) {
	p := prof(t, "hf-2400")
	p.Up.GEp, p.Down.GEp = 0, 0
	p.Up.QueueOctets = 1 << 20
	p.Down = p.Up
	nodes := []Node{{Name: "a", Profile: p}, {Name: "b", Profile: p}, {Name: "c", Profile: p}}
	sec := func(d Delivery) float64 { return d.At.Sub(epoch).Seconds() - 1 } // end of the frame

	l := newLab(t, 1, nodes...)
	l.do(0, frame("a", "c", 300))                    // one second each
	l.do(500*time.Millisecond, frame("b", "c", 300)) // waits for the end and the turnaround
	l.drain()
	if a, b := sec(l.got[0]), sec(l.got[1]); a != 1 || b != 4 {
		t.Errorf("ends at %v and %v s, want 1 and 4", a, b)
	}
	// An idle channel has turned around long ago; one that has just fallen silent has not.
	l.got = nil
	l.do(20*time.Second, frame("a", "c", 300))
	l.do(21500*time.Millisecond, frame("b", "c", 300))
	l.do(40*time.Second, frame("b", "c", 300))
	l.drain()
	if x, y, z := sec(l.got[0]), sec(l.got[1]), sec(l.got[2]); x != 21 || y != 24 || z != 41 {
		t.Errorf("ends at %v, %v, %v s, want 21, 24, 41", x, y, z)
	}
	if st := l.link.Stats().Channel; st.Busy != 5*time.Second || st.Turnaround != 3500*time.Millisecond || st.Turns != 3 {
		t.Errorf("channel %+v", st)
	}

	// All three always have frames to send: turns of 15 s, a turnaround between.
	l = newLab(t, 1, nodes...)
	for range 40 {
		for _, n := range []string{"a", "b", "c"} {
			l.do(0, frame(n, "", 300))
		}
	}
	l.drain()
	var turns []string
	begun := map[string]float64{}
	for _, d := range l.got {
		if len(turns) == 0 || turns[len(turns)-1] != d.Frame.From {
			turns = append(turns, d.Frame.From)
			begun[d.Frame.From] = sec(d) - 1
		} else if held := sec(d) - begun[d.Frame.From]; held > 15 {
			t.Errorf("%s held the channel for %v s", d.Frame.From, held)
		}
	}
	if want := []string{"a", "b", "c", "a", "b", "c", "a", "b", "c"}; !slices.Equal(turns, want) {
		t.Errorf("turns %v, want %v", turns, want)
	}
	if total := l.link.Stats().Channel; total.Busy != 120*time.Second || total.Turnaround != 16*time.Second {
		t.Errorf("channel %+v", total)
	}
	// Alone, a talker keeps the channel as long as it likes.
	l = newLab(t, 1, nodes...)
	for range 40 {
		l.do(0, frame("b", "", 300))
	}
	l.drain()
	if end := sec(l.got[len(l.got)-1]); end != 40 {
		t.Errorf("40 frames of one second ended after %v s", end)
	}
}

func TestKeyUp(t *testing.T) {
	p := prof(t, "hf-2400")
	p.Up.GEp, p.Down.GEp = 0, 0
	p.KeyUp = 500 * time.Millisecond
	l := newLab(t, 1, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: p})
	l.do(0, frame("a", "", 300))
	l.do(0, frame("a", "", 300)) // same turn
	l.do(10*time.Second, frame("a", "", 300))
	l.drain()
	for i, want := range []float64{2.5, 3.5, 12.5} {
		if got := l.got[i].At.Sub(epoch).Seconds(); got != want {
			t.Errorf("frame %d after %v s, want %v", i, got, want)
		}
	}
}

func TestReceiveOnly(t *testing.T) {
	for _, name := range []string{"hf-2400", "wire"} {
		p := prof(t, name)
		p.Down.GEp = 0
		l := newLab(t, 1, Node{Name: "hq", Profile: p}, Node{Name: "sub", Profile: p, ReceiveOnly: true})
		l.do(0, frame("sub", "hq", 100))
		l.do(time.Second, frame("hq", "sub", 100))
		l.drain()
		if len(l.to("hq")) != 0 || len(l.to("sub")) != 1 {
			t.Errorf("%s: %+v", name, l.got)
		}
		if st := l.link.Stats().Node("sub").Up; st.OnAir.Frames != 0 || st.DroppedSilent.Frames != 1 {
			t.Errorf("%s: up %+v", name, st)
		}
	}
}

// TestSeed: check 10: same seed, same verdict for every frame; also when other nodes join.
func TestSeed(t *testing.T) {
	run := func(seed uint64, more ...Node) (verdict []Delivery) {
		p := prof(t, "vhf-cnr-16k")
		p.Shared, p.Turnaround, p.MaxHold = false, 0, 0
		l := newLab(t, seed, append([]Node{{Name: "hq", Profile: prof(t, "wire")}, {Name: "b", Profile: p}, {Name: "c", Profile: p}}, more...)...)
		for i := range 1500 {
			l.do(time.Duration(i)*time.Second, frame("hq", "", 200+i%7))
		}
		l.drain()
		return append(l.to("b"), l.to("c")...)
	}
	same := func(a, b []Delivery) bool {
		return slices.EqualFunc(a, b, func(a, b Delivery) bool { return a.Node == b.Node && a.At.Equal(b.At) })
	}
	first := run(21)
	if !same(first, run(21)) {
		t.Error("seed 21 twice differs")
	}
	if !same(first, run(21, Node{Name: "z", Profile: prof(t, "wire")})) {
		t.Error("another node changes the fates of the first ones")
	}
	if same(first, run(22)) {
		t.Error("seed 22 is the same as 21")
	}
}

// TestOutage: check 12: a ping a second loses exactly the four of the window, each way of switching.
func TestOutage(t *testing.T) {
	for name, arrange := range map[string]func(*lab){
		"window": func(l *lab) { l.step(epoch, Window{"ship", at(9900 * time.Millisecond), at(13900 * time.Millisecond)}) },
		"switch": func(*lab) {},
	} {
		p := prof(t, "geo-satcom-128k")
		p.Up.LossPct, p.Down.LossPct = 0, 0
		l := newLab(t, 1, Node{Name: "hq", Profile: prof(t, "wire")}, Node{Name: "ship", Profile: p}, Node{Name: "c", Profile: p})
		arrange(l)
		var lost []int
		for i := range 30 {
			if name == "switch" && (i == 10 || i == 14) {
				l.do(time.Duration(i)*time.Second-100*time.Millisecond, Outage{"ship", i == 10})
				l.step(l.link.now, Outage{"ship", i == 10}) // the second time changes nothing
			}
			l.got = nil
			l.do(time.Duration(i)*time.Second, frame("hq", "", 84))
			l.idle(at(time.Duration(i)*time.Second + 800*time.Millisecond))
			if len(l.to("ship")) == 0 {
				lost = append(lost, i)
			}
			if len(l.to("c")) != 1 {
				t.Errorf("%s: c did not hear frame %d", name, i)
			}
		}
		if want := []int{10, 11, 12, 13}; !slices.Equal(lost, want) {
			t.Errorf("%s: lost %v, want %v", name, lost, want)
		}
		if st := l.link.Stats().Node("ship").Down; st.DroppedOutage.Frames != 4 || st.OnAir.Frames != 30 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// TestOutageCutsFrame: an outage that comes and goes while a frame is on the air destroys it.
func TestOutageCutsFrame(t *testing.T) {
	p := prof(t, "hf-2400")
	p.Up.GEp, p.Down.GEp = 0, 0
	for _, off := range []string{"a", "b"} { // the talker; the listener
		l := newLab(t, 1, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: p})
		l.do(0, frame("a", "b", 300))
		l.do(300*time.Millisecond, Outage{off, true})
		l.do(600*time.Millisecond, Outage{off, false})
		l.do(time.Second, frame("a", "b", 300))
		l.drain()
		if len(l.got) != 1 || l.got[0].At.Sub(epoch) != 3*time.Second {
			t.Errorf("%s off: %+v, want the second frame only", off, l.got)
		}
	}
}

// TestOrder: with jitter no frame overtakes another, unless the profile allows it.
func TestOrder(t *testing.T) {
	for _, reorder := range []bool{false, true} {
		p := prof(t, "iridium-certus-100")
		p.Reorder = reorder
		l := newLab(t, 5, Node{Name: "hq", Profile: prof(t, "wire")}, Node{Name: "ship", Profile: p})
		for i := range 500 {
			l.do(time.Duration(i)*20*time.Millisecond, Frame{From: "hq", To: "ship", Octets: 60, Data: []byte{byte(i >> 8), byte(i)}})
		}
		l.drain()
		swapped := 0
		for i := 1; i < len(l.got); i++ {
			if slices.Compare(l.got[i].Frame.Data, l.got[i-1].Frame.Data) < 0 {
				swapped++
			}
		}
		if reorder != (swapped > 0) {
			t.Errorf("reorder %v: %d frames overtaken", reorder, swapped)
		}
	}
}

// TestTwoTerminals: a frame between two terminals pays both legs.
func TestTwoTerminals(t *testing.T) {
	p := prof(t, "geo-satcom-128k")
	p.Up.LossPct, p.Down.LossPct = 0, 0
	l := newLab(t, 1, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: p})
	l.do(0, frame("a", "b", 1600-100))
	l.drain()
	if got, want := l.got[0].At.Sub(epoch), 2*(300*time.Millisecond+profile.Airtime(1500, 128000)); got != want {
		t.Errorf("after %v, want %v", got, want)
	}
	p.FrameOverhead = 20
	l = newLab(t, 1, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: p})
	l.do(0, frame("a", "b", 1500))
	l.do(0, frame("a", "b", 1501)) // over the MTU
	l.drain()
	if got, want := l.got[0].At.Sub(epoch), 2*(300*time.Millisecond+profile.Airtime(1520, 128000)); got != want {
		t.Errorf("with overhead after %v, want %v", got, want)
	}
	if st := l.link.Stats().Node("a").Up; len(l.got) != 1 || st.DroppedMTU.Frames != 1 || st.OnAir.Octets != 1500 {
		t.Errorf("%d arrived; up %+v", len(l.got), st)
	}
}

func TestRefusals(t *testing.T) {
	wire, hf, vhf := prof(t, "wire"), prof(t, "hf-2400"), prof(t, "vhf-cnr-16k")
	for name, nodes := range map[string][]Node{
		"one node":     {{Name: "a", Profile: wire}},
		"no name":      {{Name: "a", Profile: wire}, {Profile: wire}},
		"same name":    {{Name: "a", Profile: wire}, {Name: "a", Profile: wire}},
		"mixed media":  {{Name: "a", Profile: wire}, {Name: "b", Profile: hf}},
		"two channels": {{Name: "a", Profile: vhf}, {Name: "b", Profile: hf}},
	} {
		if _, err := New(Config{Nodes: nodes}); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := newLab(t, 1, Node{Name: "a", Profile: wire}, Node{Name: "b", Profile: wire})
	for _, ev := range []Event{frame("x", "a", 1), frame("a", "x", 1), Outage{Node: "x"}, Window{Node: "x"}} {
		if _, err := l.link.Step(epoch, ev); !errors.Is(err, ErrUnknown) {
			t.Errorf("%+v: %v", ev, err)
		}
	}
	l.do(0, frame("a", "b", 100))
	if len(l.got) != 1 || !l.got[0].At.Equal(epoch) {
		t.Errorf("a wire takes time: %+v", l.got)
	}
}

// FuzzStep: whatever frames are offered, only those sent arrive, none twice, and the counters add up.
func FuzzStep(f *testing.F) {
	f.Add(uint64(1), []byte("\x00\x10\x20\x30\x40\x81\x02\xff"), true)
	f.Add(uint64(2), []byte("\x05\x85\x05\x85\xc0\x01\xc1\x02\x03"), false)
	f.Fuzz(func(t *testing.T, seed uint64, script []byte, shared bool) {
		p := prof(t, "iridium-directip")
		if shared {
			p = prof(t, "vhf-cnr-16k")
		}
		names := []string{"a", "b", "c"}
		l := newLab(t, seed, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: p}, Node{Name: "c", Profile: p})
		now := time.Duration(0)
		for i, b := range script[:min(len(script), 200)] {
			n := names[int(b)%3]
			switch b >> 6 {
			case 0, 1:
				l.do(now, Frame{From: n, To: names[(int(b)+1)%3], Octets: 20 + int(b)*7, Data: []byte{byte(i)}})
			case 2:
				now += time.Duration(b) * 10 * time.Millisecond
			default:
				l.do(now, Outage{n, b&1 == 0})
			}
		}
		l.drain()
		seen := map[byte]bool{}
		for _, d := range l.got {
			if seen[d.Frame.Data[0]] || d.Node != d.Frame.To {
				t.Fatalf("delivered twice or astray: %+v", d)
			}
			seen[d.Frame.Data[0]] = true
		}
		for _, n := range l.link.Stats().Nodes {
			d := n.Down
			if d.Offered.Frames != d.OnAir.Frames+d.DroppedQueue.Frames || d.OnAir.Frames != d.Delivered.Frames+d.DroppedLoss.Frames+d.DroppedOutage.Frames {
				t.Fatalf("%s: %+v", n.Name, d)
			}
		}
	})
}
