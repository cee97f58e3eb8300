package linkemu

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"aldis/internal/link/profile"
)

// leg is a star's leg without loss, at a rate, with frames of up to 1,500 octets.
func leg(rate int) profile.Profile {
	d := profile.Direction{RateBps: rate, Delay: 100 * time.Millisecond, QueueOctets: 1 << 20}
	return profile.Profile{Name: "leg", Up: d, Down: profile.Direction{}, MTU: 1500}
}

// sendEvery offers frames of one size at even times, and returns the share that was lost.
func sendEvery(t *testing.T, p profile.Profile, every time.Duration, octets, n int) float64 {
	t.Helper()
	wire := profile.Profile{Name: "wire", MTU: 1500}
	l := newLab(t, 3, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: wire})
	for i := range n {
		l.do(time.Duration(i)*every, Frame{From: "a", To: "b", Octets: octets})
	}
	l.drain()
	return 1 - float64(len(l.to("b")))/float64(n)
}

// TestFadesLastATime: a fade hits a long frame and several short ones alike, and fades take the profile's share of the time.
func TestFadesLastATime(t *testing.T) {
	p := leg(8000) // an octet a millisecond
	p.Up.Fades = profile.Fades{Every: 97 * time.Second, Lasts: 3 * time.Second, LossPct: 100}
	for _, c := range []struct{ octets, n int }{{10, 100_000}, {1000, 20_000}} {
		got := sendEvery(t, p, 2*time.Second, c.octets, c.n)
		// A frame escapes when it begins in a good time that lasts as long as the frame.
		want := 1 - 0.97*math.Exp(-float64(c.octets)/97_000)
		if math.Abs(got-want) > 0.25*want {
			t.Errorf("of frames of %d octets %.2f %% are lost, want %.2f %%", c.octets, 100*got, 100*want)
		}
	}
	p.Up.Fades.LossPct = 50
	if got := sendEvery(t, p, 2*time.Second, 10, 100_000); math.Abs(got-0.015) > 0.004 {
		t.Errorf("fades that lose every other frame lose %.2f %%, want 1.5 %%", 100*got)
	}
}

// TestFadesLoseNeighbours: frames that follow each other closely are lost together, however many they are.
func TestFadesLoseNeighbours(t *testing.T) {
	p := leg(8000)
	p.Up.Fades = profile.Fades{Every: 97 * time.Second, Lasts: 3 * time.Second, LossPct: 100}
	wire := profile.Profile{Name: "wire", MTU: 1500}
	l := newLab(t, 5, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: wire})
	const n = 200_000
	for i := range n {
		l.do(time.Duration(i)*100*time.Millisecond, Frame{From: "a", To: "b", Octets: 10, Data: []byte{1}})
	}
	l.drain()
	runs, run := 0, false
	arrived := map[int64]bool{}
	for _, d := range l.to("b") {
		arrived[int64(d.At.Sub(at(0))/(100*time.Millisecond))] = true
	}
	lostFrames := 0
	for i := range int64(n) {
		gone := !arrived[i+1] // 10 ms of air, 100 ms of delay
		if gone {
			lostFrames++
		}
		if gone && !run {
			runs++
		}
		run = gone
	}
	if mean := float64(lostFrames) / float64(runs); mean < 25 || mean > 36 {
		t.Errorf("%d frames are lost in %d runs, %.1f in the mean, want 30", lostFrames, runs, mean)
	}
}

// TestHandovers: a frame on the air pauses, nothing is lost, and the rate is less by the share of the pauses.
func TestHandovers(t *testing.T) {
	p := leg(8000)
	p.Calls = profile.Calls{HandoverEvery: 50 * time.Second, Handover: 5 * time.Second}
	wire := profile.Profile{Name: "wire", MTU: 1500}
	l := newLab(t, 1, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: wire})
	for range 1000 {
		l.step(at(0), Frame{From: "a", To: "b", Octets: 1000})
	}
	l.drain()
	got := l.to("b")
	if len(got) != 1000 {
		t.Fatalf("%d of 1000 frames arrived", len(got))
	}
	if took := got[999].At.Sub(at(0)).Seconds(); took < 1105 || took > 1117 { // 1,000 s of air, 5 of every 50 s are pauses
		t.Errorf("1,000 frames of a second took %.1f s, want about 1,111", took)
	}
	pauses := 0
	for i, d := range got[1:] {
		switch gap := d.At.Sub(got[i].At); {
		case gap == time.Second:
		case gap == 6*time.Second:
			pauses++
		default:
			t.Fatalf("frame %d came %v after the one before", i+1, gap)
		}
	}
	if pauses < 21 || pauses > 23 {
		t.Errorf("%d pauses in 1,111 s, want 22", pauses)
	}
}

// TestDroppedCalls: a call that drops takes both directions off the air until it is dialled anew.
func TestDroppedCalls(t *testing.T) {
	p := leg(8000)
	p.Down = p.Up
	p.Calls = profile.Calls{DropEvery: 1000 * time.Second, Redial: 40 * time.Second}
	l := newLab(t, 7, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: profile.Profile{Name: "wire", MTU: 1500}})
	const n = 100_000
	for i := range n {
		l.do(time.Duration(i)*time.Second, Frame{From: "a", To: "b", Octets: 10})
		l.do(time.Duration(i)*time.Second, Frame{From: "b", To: "a", Octets: 10})
	}
	l.drain()
	st := l.link.Stats().Node("a")
	for what, c := range map[string]Counters{"up": st.Up, "down": st.Down} {
		if share := float64(c.DroppedOutage.Frames) / n; math.Abs(share-40.0/1040) > 0.01 {
			t.Errorf("%s: %.2f %% of the frames fall into a dropped call, want 3.8 %%", what, 100*share)
		}
	}
	if up, down := st.Up.DroppedOutage.Frames, st.Down.DroppedOutage.Frames; math.Abs(float64(up-down)) > 120 { // a frame at each edge
		t.Errorf("%d frames up and %d down fall into dropped calls", up, down)
	}
}

// TestModemsCompress: compressible frames take less air, sealed ones take their full time.
func TestModemsCompress(t *testing.T) {
	p := leg(2400)
	p.Up.Compresses = true
	rng := rand.New(rand.NewPCG(1, 2))
	octets := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	document := bytes.Repeat([]byte(`<Element name="position" mime="text/plain">54.1 N 10.2 E</Element>`), 7)
	busy := func(data func() []byte) time.Duration {
		l := newLab(t, 1, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: profile.Profile{Name: "wire", MTU: 1500}})
		for range 20 {
			b := data()
			l.step(at(0), Frame{From: "a", To: "b", Octets: len(b) + 28, Data: b})
		}
		l.drain()
		return l.link.Stats().Node("a").Up.Busy
	}
	sealed := busy(func() []byte { return octets(len(document)) })
	full := 20 * profile.Airtime(len(document)+28, 2400)
	if sealed > full || sealed < full*90/100 {
		t.Errorf("sealed octets take %v of %v", sealed, full)
	}
	if plain := busy(func() []byte { return document }); plain > full/4 {
		t.Errorf("documents that repeat take %v of %v", plain, full)
	}
}

// TestQueueBounds: a queue holds so many frames, and drops those that are too old.
func TestQueueBounds(t *testing.T) {
	wire := profile.Profile{Name: "wire", MTU: 1500}
	p := leg(8000)
	p.Up.QueueFrames = 3
	l := newLab(t, 1, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: wire})
	for range 10 {
		l.step(at(0), Frame{From: "a", To: "b", Octets: 100})
	}
	l.drain()
	if n := len(l.to("b")); n != 4 { // one on the air and three behind it
		t.Errorf("%d of 10 frames pass a queue of 3", n)
	}
	p.Up.QueueFrames, p.Up.QueueAge = 0, 2500*time.Millisecond
	l = newLab(t, 1, Node{Name: "a", Profile: p}, Node{Name: "b", Profile: wire})
	for range 10 {
		l.step(at(0), Frame{From: "a", To: "b", Octets: 1000})
	}
	l.drain()
	if n := len(l.to("b")); n != 3 { // begun at 0, 1 and 2 s
		t.Errorf("%d of 10 frames of a second pass a queue that keeps them for 2.5 s", n)
	}
	if got := l.link.Stats().Node("a").Up.DroppedQueue.Frames; got != 7 {
		t.Errorf("%d frames are counted as dropped by the queue, want 7", got)
	}
}

// TestMeasured: frames get the fates of the packets of a measurement, again and again.
func TestMeasured(t *testing.T) {
	m, err := ReadMeasured(strings.NewReader("at_ms,delay_ms\n0,500\n1000,lost\n# a pass of another satellite\n2000 900.5\n"))
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t, 1, Node{Name: "a", Profile: leg(80_000), Up: m}, Node{Name: "b", Profile: profile.Profile{Name: "wire", MTU: 1500}})
	for i := range 9 {
		l.do(time.Duration(i)*time.Second, Frame{From: "a", To: "b", Octets: 10})
	}
	l.drain()
	var got []time.Duration
	for _, d := range l.to("b") {
		got = append(got, d.At.Sub(at(0)))
	}
	const air = time.Millisecond
	want := []time.Duration{500*time.Millisecond + air, 2900*time.Millisecond + 500*time.Microsecond + air,
		3500*time.Millisecond + air, 5900*time.Millisecond + 500*time.Microsecond + air,
		6500*time.Millisecond + air, 8900*time.Millisecond + 500*time.Microsecond + air}
	if len(got) != len(want) {
		t.Fatalf("arrivals %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("arrival %d after %v, want %v", i, got[i], want[i])
		}
	}
}

func TestMeasuredIsRefused(t *testing.T) {
	for text, why := range map[string]string{
		"":                           "it needs two packets",
		"0,1\n":                      "it needs two packets",
		"0,1\n5,2,3\n":               "line 2 has 3 fields",
		"0,1\n5,x\n":                 `"x" is not milliseconds`,
		"5,1\n4,1\n":                 "line 2 goes back in time",
		"0,1\n1,-1\n":                `"-1" is not milliseconds`,
		"0,1\n1,NaN\n":               `"NaN" is not milliseconds`,
		strings.Repeat("x", 1<<17):   "token too long",
		"at,delay\nat,delay\n0 lost": "it needs two packets",
	} {
		if _, err := ReadMeasured(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.20q: %v, want %s", text, err, why)
		}
	}
}
