package daemon

import (
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// A silence of an hour lasts an hour of the clock that nobody can set, and no shorter by the wall clock, however the wall clock
// is set meanwhile. Frequent events change nothing.
func TestSilenceWhileTheClockIsSet(t *testing.T) {
	type setting struct{ at, by time.Duration }
	for _, tt := range []struct {
		name     string
		settings []setting
		lasts    time.Duration
	}{
		{"not set", nil, time.Hour},
		{"ahead by two hours", []setting{{10 * time.Minute, 2 * time.Hour}}, time.Hour},
		{"ahead by a year, and back", []setting{{10 * time.Minute, 8760 * time.Hour}, {20 * time.Minute, -8760 * time.Hour}}, time.Hour},
		{"back by two hours", []setting{{10 * time.Minute, -2 * time.Hour}}, 3 * time.Hour},
		{"before the order", []setting{{-30 * time.Minute, 2 * time.Hour}}, time.Hour},
		{"before the order, and back", []setting{{-30 * time.Minute, 2 * time.Hour}, {5 * time.Minute, -time.Hour}}, 2 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, err := profile.Load("geo-satcom-128k", nil)
			if err != nil {
				t.Fatal(err)
			}
			gw, err := gateway.New(gateway.Config{ID: 2, Name: "ship", Profile: p, Incarnation: seal.Incarnation{Number: 1},
				Peers: []gateway.PeerConfig{{ID: 1, Name: "hq", Addr: netip.MustParseAddrPort("10.0.0.1:7142")}}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var set time.Duration
			start := time.Now()
			wall := func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return time.Now().Round(0).Add(set)
			}
			w := newWorld(nil)
			w.readers = func() (time.Duration, time.Time) { return time.Since(start), wall() }
			w.engine.step = gw.Step
			w.start()
			pass(time.Hour)
			ordered := time.Now()
			change := func(from, to time.Duration) { // relative to the order
				for _, s := range tt.settings {
					if s.at >= from && s.at < to {
						mu.Lock()
						set += s.by
						mu.Unlock()
					}
				}
			}
			change(-time.Hour, 0)
			pass(time.Second)
			w.PostOrder(api.Silence{On: true, Until: wall().Add(time.Hour)})
			pass(time.Second)
			w.take()
			silent := func() bool {
				on := false
				if err := w.Do(t.Context(), func(now time.Time) { on = gw.Status(now).Silence.On }); err != nil {
					t.Fatal(err)
				}
				return on
			}
			for second := time.Duration(0); second < 4*time.Hour && silent(); second += time.Second {
				change(second, second+time.Second)
				pass(time.Second)
				w.PostAir(api.Datagram{Data: []byte("nothing that anybody sealed")})
			}
			if lasted := time.Since(ordered); lasted < tt.lasts || lasted > tt.lasts+4*time.Second {
				t.Errorf("%s: the silence lasted %v, want %v", tt.name, lasted, tt.lasts)
			}
			w.end(t)
		})
	}
}

// A silence that has begun holds: a slow commit that ends in it lets no earlier datagram go on a silent bearer, only the announcement.
func TestSilenceHoldsOverASlowCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(now time.Time, ev api.Event) api.Output {
			out := byConn(now, ev)
			switch ev := ev.(type) {
			case api.Silence:
				out.Records = []api.Record{{Bucket: "b", Key: []byte("silence"), Value: []byte{1}}}
				out.Datagrams, out.Silent = []api.Datagram{{Data: []byte("announced")}}, []int{0}
			case api.LAN:
				if n := ev.Event.(jxtabridge.Opened).Conn; n == 101 {
					out.Datagrams = append(out.Datagrams, api.Datagram{Bearer: 1, Data: []byte("elsewhere")})
				}
			}
			return out
		})
		w.slow = make(chan struct{})
		w.start()
		w.post(opened(100))
		synctest.Wait()
		w.post(opened(101))
		w.post(opened(1))
		synctest.Wait()
		w.PostOrder(api.Silence{On: true})
		pass(3 * time.Second)
		expect(t, w.take())
		close(w.slow)
		pass(time.Second)
		expect(t, w.take(), "commit 100", "send 100 body", "api.NormStart",
			"commit 101 silence", "send 101 body", "datagram elsewhere", "api.NormStart", "send 1 body", "datagram announced")
		check.Equal(t, "octets that wait", w.waits.octets, 0)
		w.end(t)
	})
}
