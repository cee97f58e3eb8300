package lan

import (
	"net"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// from dials in from an address of the machine's own.
func (w *world) from(host string) net.Conn {
	w.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	c, err := d.Dial("tcp", w.addr)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	return c
}

// Case D14 of the notes on reliability: strangers begin bodies that need room and send no more. An honest peer's long messages
// arrive, over its existing connection; before, 40 of 40 broke the connection.
func TestHalfSentBodiesCostOthersNothing(t *testing.T) {
	for _, tt := range []struct {
		name      string
		strangers []string
		honest    string
	}{
		{"from two addresses", []string{"127.0.0.2", "127.0.0.3"}, "127.0.0.9"},
		{"from more than fill the room", []string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"}, "127.0.0.9"},
		{"from the peer's own address", []string{"127.0.0.2"}, "127.0.0.2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, Config{MaxReading: 2 << 20})
			begun := 0
			for range 20 {
				for _, host := range tt.strangers {
					w.say(w.from(host), []byte(hello1), jxta.AppendPackageHeader(nil, 130_000), body(100_000))
					begun++
				}
			}
			w.await("welcomes", func(e []site.Event) bool { return count[jxtabridge.Welcomed](e) == begun })
			w.until("the strangers hold room", func() bool {
				w.lan.room.mu.Lock()
				defer w.lan.room.mu.Unlock()
				return w.lan.room.held >= w.lan.room.most/roomShare-firstChunk
			})
			c := w.from(tt.honest)
			w.say(c, []byte(hello1))
			for range 40 {
				w.say(c, jxta.AppendPackageHeader(nil, 200_000), body(200_000))
			}
			w.await("40 messages of the honest peer", func(e []site.Event) bool { return count[jxtabridge.Received](e) == 40 })
		})
	}
}

// The allowance holds, whoever waits: two long bodies of one address do not wait for each other for ever.
func TestRoomIsBoundedAndNobodyWaitsForEver(t *testing.T) {
	const most = 1 << 20
	r := newRoom(most)
	never := make(chan struct{})
	a, b := &bill{host: "a"}, &bill{host: "a"}
	f := check.Fatal(t)
	check.NoError(f, r.reserve(a, most/8, never))
	check.NoError(f, r.reserve(b, most/8, never))
	check.NoError(f, r.reserve(a, most/2, never)) // the first body may
	taken := make(chan error)
	go func() { taken <- r.reserve(b, most/8, never) }()
	check.Until(t, time.Minute, "the second waits", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return b.waits
	})
	select {
	case <-taken:
		t.Fatal("the second has more than the address's share")
	default:
	}
	r.free(a)
	check.NoError(f, <-taken)
	check.Equal(t, "r.held", r.held, most/4)
	// Nobody gets more than the allowance, and a peer that hangs up no longer waits.
	check.True(t, "a body longer than all", r.reserve(&bill{host: "b"}, most+1, never) != nil)
	left := make(chan struct{})
	close(left)
	check.True(t, "who has left", r.reserve(&bill{host: "a"}, most/8, left) != nil)
	r.free(b)
	check.Equal(t, "r.held", r.held, 0)
}

// A slow body is given up only if others wait, its peer has had time, and its address is the one in the way.
func TestWhoIsGivenUp(t *testing.T) {
	const most = 1 << 20
	r := newRoom(most)
	t0 := time.Unix(1000, 0)
	cut := make(chan string, 10)
	give := func(host string, came int, age time.Duration) *bill {
		b := &bill{host: host, cut: func() { cut <- host }}
		check.NoError(check.Fatal(t), r.reserve(b, most/16, nil))
		b.came, b.since = came, t0.Add(-age)
		return b
	}
	fast, young, slow := give("a", 1<<20, 10*time.Second), give("a", 0, time.Second), give("b", 1000, 10*time.Second)
	r.evict(r.hosts["a"], t0)
	check.True(t, "nobody of a is slow", !fast.over && !young.over && !slow.over)
	slower := give("a", 999, 9*time.Second)
	give("a", 1<<20, 10*time.Second)
	for range 2 {
		r.hosts["a"].looked = time.Time{}
		r.evict(r.hosts["a"], t0)
	}
	check.True(t, "slower.over", slower.over)
	check.True(t, "the others are left alone", !fast.over && !young.over && !slow.over)
	check.Equal(t, "who was cut", <-cut, "a")
}
