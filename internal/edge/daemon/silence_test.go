package daemon

import (
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
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
