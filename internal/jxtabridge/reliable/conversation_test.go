package reliable

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

var terms = Terms{Window: 2, Repeats: 1, Reorder: 2, AckKept: true, Soft: Room{100, 4}, Hard: Room{1000, 8}, Near: Room{200, 20},
	GiveUp: 10 * time.Minute, Closing: time.Minute, Patient: true, Last: []byte("last")}

func talk(blocks ...uint32) *Conversation[string] {
	c := New[string](&terms, State{}, true)
	for _, n := range blocks {
		c.Put(n, &Block{Token: uint64(100 + n), Data: make([]byte, 10)})
	}
	return &c
}

// take takes a block of one octet from the near peer, and returns how many numbers its acknowledgement has.
func take(c *Conversation[string], n uint32) int {
	out := c.Accept(n, "x", func(string) bool {
		c.Give(1)
		return true
	})
	if len(out.Send) == 0 {
		return 0
	}
	return len(out.Send[0].Data) / 4
}

func TestWhatIsTakenIsAcknowledged(t *testing.T) {
	c := talk()
	check.Equal(t, "beyond a gap", take(c, 3), 0)
	check.Equal(t, "it again", c.Classify(3), Kept)
	check.Equal(t, "a duplicate's acknowledgement", fmt.Sprint(c.Duplicate(Kept).Send), "[{0 [0 0 0 0] false}]")
	take(c, 4)
	check.Equal(t, "too many beyond the gap", c.Classify(5), Full)
	check.Equal(t, "the next", c.Classify(1), Next)
	take(c, 1)
	check.Equal(t, "the window closes at four that wait", take(c, 2), 1+closedWindow)
	taken, _ := c.Position()
	check.Equal(t, "taken", taken, 4)
	check.Equal(t, "room at a half", len(c.Stored(t0, 1).Send), 0)
	check.Equal(t, "the window opens", fmt.Sprint(c.Stored(t0, 1).Send), "[{0 [0 0 0 4] false}]")
	for i, want := range []int{0, 1, 1, 1, 1, 0, 0} { // after 5, 10, 20, 40 and 80 seconds; no longer than a minute apart
		at := c.Deadline()
		if i == 0 {
			at = t0.Add(firstReopen - 1)
		}
		check.Equal(t, fmt.Sprint("told again, ", i), len(c.Tick(at, true).Send), want)
	}
	for n := uint32(5); n < 11; n++ {
		take(c, n)
	}
	check.Equal(t, "eight wait", c.Classify(11), Full)
	check.Equal(t, "what was taken, still", c.Classify(10), Taken)
	c.End()
	check.Equal(t, "after the end", c.Classify(11), Over)
	check.Equal(t, "the acknowledgement then", len(c.Duplicate(Taken).Send[0].Data), 4)
}

func TestTheFarGatewayIsHeldBack(t *testing.T) {
	c := talk()
	for n := uint32(1); n <= 8; n++ {
		c.Put(n, &Block{Token: uint64(n), Data: []byte("x")})
		check.Equal(t, fmt.Sprint("with ", n), c.Pump(t0).Hold, n == 8)
	}
	check.Equal(t, "remembered", c.State(), State{Holding: true})
	for n, want := range []bool{1: false, 2: false, 3: false, 4: true, 5: false} {
		_, out := c.Ack(t0, uint32(n))
		check.Equal(t, fmt.Sprint("acknowledged ", n), out.Go, want)
	}
	c.Hold(t0, true)
	check.Equal(t, "held, the window is closed", take(c, 1), 1+closedWindow)
	check.Equal(t, "and opens", len(c.Hold(t0, false).Send), 1)
}

func TestPutIsBounded(t *testing.T) {
	c := talk(1, 2)
	c.Pump(t0)
	c.Ack(t0, 1)
	for _, tt := range []struct {
		what  string
		n     uint32
		token uint64
		size  int
		want  Place
	}{{"acknowledged", 1, 101, 10, Taken}, {"another with its number", 2, 7, 10, Taken}, {"handed in again", 2, 102, 10, Kept},
		{"too many octets", 3, 103, 191, Full}, {"too far ahead", 22, 122, 10, Full}, {"as far as there is room", 21, 121, 10, Next}} {
		if place := c.Put(tt.n, &Block{Token: tt.token, Data: make([]byte, tt.size)}); place != tt.want {
			t.Errorf("%s: %d, want %d", tt.what, place, tt.want)
		}
	}
	c.Close(t0, 2)
	check.Equal(t, "behind the last", c.Put(3, &Block{Token: 103}), Taken)
}

func TestTheLastBlockCloses(t *testing.T) {
	c := talk(1, 2)
	c.Pump(t0)
	check.True(t, "not told", !c.Told(), c.State())
	c.Close(t0, 2)
	check.True(t, "told", c.Told(), c.State())
	_, out := c.Ack(t0, 2)
	check.True(t, "all but the last", c.Finished() && !out.Closed, out)
	check.Equal(t, "sends the last", fmt.Sprint(out.Send), fmt.Sprintf("[{3 %v false}]", []byte("last")))
	_, out = c.Ack(t0, 3)
	check.True(t, "closed", out.Closed, out)
	check.Equal(t, "nothing waits", len(c.End()), 0)
}

func TestANearPeerThatTakesNothingIsGivenUp(t *testing.T) {
	for _, tt := range []struct {
		what    string
		blocks  []uint32
		closing bool
		here    bool
		after   time.Duration // 0: never
	}{{"blocks wait", []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, false, true, 10 * time.Minute},
		{"nothing waits", []uint32{1, 2}, false, true, 0}, {"at the end", []uint32{1, 2}, true, true, time.Minute},
		{"away", []uint32{1, 2}, true, false, 0}} {
		c := talk(tt.blocks...)
		if tt.closing {
			c.Close(t0, uint32(len(tt.blocks)))
		}
		c.Pump(t0)
		var gone time.Duration
		for range 100 {
			now := c.Deadline()
			if c.Tick(now, tt.here).GaveUp {
				gone = now.Sub(t0)
				break
			}
		}
		if (gone > 0) != (tt.after > 0) || gone < tt.after || gone > tt.after+LastRepeat {
			t.Errorf("%s: given up after %v", tt.what, gone)
		}
	}
}

func TestInterruption(t *testing.T) {
	c := talk(1, 2, 3)
	c.Pump(t0)
	c.Interrupt(t0)
	check.Equal(t, "nothing is sent", len(c.Pump(t0).Send), 0)
	out := c.Tick(c.Deadline(), true)
	check.True(t, "it has not heard", out.Interrupted && len(out.Send) == 0, out)
	place, out := c.Ack(t0, 1)
	check.Equal(t, "its acknowledgement frees nothing", place, Taken)
	check.Equal(t, "and all is sent again", fmt.Sprint(numbers(out)), "[1 2]")
	check.True(t, "soon again", c.Deadline().Equal(t0.Add(hurryEvery)), c.Deadline())
}

func TestPace(t *testing.T) {
	slow := terms
	slow.Pace = func(waiting int) time.Duration { return time.Duration(waiting) * time.Second }
	c := New[string](&slow, State{}, true)
	for n := uint32(1); n <= 4; n++ {
		c.Put(n, &Block{Token: uint64(n)})
	}
	check.Equal(t, "at once", fmt.Sprint(numbers(c.Pump(t0))), "[1 2]")
	_, out := c.Ack(t0, 2)
	check.Equal(t, "not yet", len(out.Send), 0)
	check.True(t, "two wait", c.Deadline().Equal(t0.Add(2*time.Second)), c.Deadline())
	check.Equal(t, "then", fmt.Sprint(numbers(c.Tick(c.Deadline(), true))), "[3 4]")
}

func TestStartAndReturn(t *testing.T) {
	c := New[string](&terms, State{}, false)
	c.Begin(7)
	c.Expect(3)
	c.Put(4, &Block{Token: 4})
	check.Equal(t, "closed", len(c.Pump(t0).Send)+len(c.Acknowledge().Send), 0)
	c.Open()
	c.Start(t0)
	check.Equal(t, "opened", fmt.Sprint(numbers(c.Pump(t0))), "[4]")
	c.Back(t0)
	check.Equal(t, "what it may have lost", fmt.Sprint(c.Tick(t0.Add(returnAfter), true).Send), "[{0 [0 0 0 7] false} {4 [] true}]")
}
