package daemon

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"aldis/internal/gateway/api"
)

// listening is a world whose engine records the events that it gets, and wants to be woken every second.
func listening(began time.Time) (*world, *[]string) {
	var log []string
	return newWorld(func(now time.Time, ev api.Event) (out api.Output) {
		switch ev := ev.(type) {
		case api.Datagram:
			log = append(log, fmt.Sprintf("%s more=%v waited=%v", ev.Data, ev.More, ev.Waited))
		case api.LAN:
			log = append(log, "lan")
		case nil:
			log = append(log, fmt.Sprintf("due at %v", now.Sub(began)))
		}
		out.Deadline = now.Truncate(time.Second).Add(time.Second)
		return out
	}), &log
}

// A loop that wakes up passes on the datagrams that have come before it runs timers, and says how long each has waited here.
func TestWhatHasComeIsHeardBeforeWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, log := listening(time.Now())
		came := map[int][]api.Datagram{1: {{Data: []byte("a"), Waited: 300 * time.Millisecond}, {Data: []byte("b")}}}
		asked := 0
		gather := func(most int) {
			if most != airInbox {
				t.Errorf("asked for %d datagrams", most)
			}
			asked++
			for _, d := range came[asked] {
				w.PostAir(d)
			}
		}
		w.PostAir(api.Datagram{Data: []byte("x")})
		w.post(opened(1))
		w.PostAir(api.Datagram{Data: []byte("y")})
		w.gather = gather
		w.start()
		pass(2500 * time.Millisecond)
		want := []string{"x more=true waited=0s", "y more=false waited=0s", "lan", "a more=true waited=300ms", "b more=false waited=0s", "due at 2s"}
		if !slices.Equal(*log, want) {
			t.Errorf("heard %q, want %q", *log, want)
		}
		w.end(t)
	})
}

// A sender that floods the link delays due work by at most a full inbox.
func TestFloodPutsOffLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var row, longest int
		w := newWorld(func(now time.Time, ev api.Event) (out api.Output) {
			if d, is := ev.(api.Datagram); is && d.More {
				row++
			} else {
				row = 0
			}
			longest = max(longest, row)
			return out
		})
		for range airInbox {
			w.PostAir(api.Datagram{})
		}
		w.start()
		flood := 20 * airInbox
		for flood > 0 {
			for flood > 0 && w.PostAir(api.Datagram{}) {
				flood--
			}
			synctest.Wait()
		}
		if longest < batchMax || longest > airInbox+batchMax {
			t.Errorf("%d datagrams heard before what is due was looked at", longest)
		}
		w.end(t)
	})
}
