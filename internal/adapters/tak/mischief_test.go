package tak_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// TestMischiefOfDevices lets an attacker without a device of his own into the LAN of a ship for an hour: he uses the uids of
// others, sends their events again, cuts them, changes them, floods, and comes and goes. The far picture of the true units
// stays true, and the memory of the adapter is bounded (docs/limits.md, "TAK").
func TestMischiefOfDevices(t *testing.T) {
	for seed := range uint64(1) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			w := newWorld(t, 2, "iridium-certus-100", seed)
			hq := w.connect(w.Nodes[0])
			var units []*unit
			var devices []*device
			for i := range 3 {
				units, devices = append(units, newUnit(i+1)), append(devices, w.connect(w.Nodes[1]))
			}
			var heard []string
			thief := w.connect(w.Nodes[1])
			w.Run(time.Minute)
			for second := range 3600 {
				if second%10 == 0 {
					for i, u := range units {
						u.move(10 * time.Second)
						said := u.report(w.Now)
						devices[i].say(said)
						if heard = append(heard, said); len(heard) > 500 {
							heard = heard[250:]
						}
					}
				}
				old := heard[rng.IntN(len(heard))]
				switch rng.IntN(8) {
				case 0: // somewhere else, now
					wrong := *units[rng.IntN(len(units))]
					wrong.lat = -33
					thief.say(wrong.report(w.Now))
				case 1:
					thief.say(old)
				case 2:
					thief.say(old[:rng.IntN(len(old))])
				case 3:
					bad := []byte(old)
					bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(7)
					thief.say(string(bad))
				case 4:
					thief.leave()
					thief = w.connect(w.Nodes[1])
				case 5:
					for range 20 {
						thief.say(old)
					}
				case 6:
					thief.say(strings.Replace(old, "<detail>", "<detail>"+strings.Repeat("<a>", 200), 1))
				}
				w.Run(time.Second)
				if second > 60 && second%30 == 29 {
					for _, u := range units {
						e := hq.newest(u.uid)
						if e == nil {
							t.Fatalf("second %d: the far side shows nothing of %s", second, u.uid)
						}
						if lat, _ := e.Point.Lat.Float(); math.Abs(lat-u.lat) > 0.02 {
							t.Fatalf("second %d: the far side shows %s at %v, and it is at %v", second, u.uid, lat, u.lat)
						}
					}
				}
			}
			check.True(t, "others' uids were refused", w.adapters[2].Counts()["refused claimed"] > 100, w.adapters[2].Counts())
		})
	}
}
