package interop_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/adapters/interop"
)

// Three sites with both kinds of clients and the same rules: wherever a line is sent, everybody else has it once, and
// every map and every peer has each unit once, at its last reported position.
func TestEverybodyOnce(t *testing.T) {
	for _, link := range []string{"iridium-dialup", "hf-2400"} {
		for seed := uint64(1); seed <= 3; seed++ {
			t.Run(fmt.Sprint(link, seed), func(t *testing.T) { everybodyOnce(t, link, seed) })
		}
	}
}

func everybodyOnce(t *testing.T, link string, seed uint64) {
	rules := []interop.Rule{trackRule(t), chatRule(t)}
	w := worldOver(t, link, seed, 3, map[uint16][]interop.Rule{1: rules, 2: rules, 3: rules})
	rng := rand.New(rand.NewPCG(seed, 15))
	for _, n := range w.Nodes {
		for i := range 2 {
			w.join(n, fmt.Sprintf("peer %d of %s", i, n.Name), tracks, words)
			w.connect(n)
		}
	}
	w.Run(5 * time.Minute)
	const lines = 30
	speaker := make([]int, lines) // 0 to 5: a peer; 6 to 11: a device
	last := map[string]float64{}
	for i := range lines {
		text := fmt.Sprintf("line %d.", i)
		speaker[i] = rng.IntN(12)
		if k := speaker[i]; k < 6 {
			w.peers[k].say(words, "<say>"+text+"</say>")
		} else {
			w.devices[k-6].say(w.chat(fmt.Sprint("ANDROID-", k), fmt.Sprint("FALCON ", k), "All Chat Rooms", fmt.Sprint("m-", i), text))
		}
		k, lat := rng.IntN(12), 54+float64(rng.IntN(1000))/1000
		id := fmt.Sprint("U-", k)
		if last[id] = lat; k < 6 {
			w.peers[k].say(tracks, fmt.Sprintf(`<track id="%s" lat="%v" lon="10.2" time="%s"><name>x</name></track>`, id, lat, stamp(w.Now)))
		} else {
			w.devices[k-6].say(w.report(id, id, lat))
		}
		w.Run(time.Duration(rng.IntN(20)) * time.Second)
	}
	w.Run(4 * time.Minute)
	for i, k := range speaker {
		text := fmt.Sprintf("line %d.", i)
		for j, p := range w.peers {
			if n := len(p.heard(text)); n != 1 && j != k || n != 0 && j == k {
				t.Errorf("%q of speaker %d came %d times to peer %d", text, k, n, j)
			}
		}
		for j, d := range w.devices {
			if n := len(d.lines(text)); n != 1 && j+6 != k || n != 0 && j+6 == k {
				t.Errorf("%q of speaker %d came %d times to device %d", text, k, n, j)
			}
		}
	}
	for id, lat := range last {
		for j, d := range w.devices {
			if fmt.Sprint("U-", j+6) == id {
				continue
			}
			list := d.of(id)
			if len(list) == 0 {
				t.Errorf("device %d was not shown %s", j, id)
			} else if got, _ := list[len(list)-1].Point.Lat.Float(); got-lat > 1e-5 || lat-got > 1e-5 {
				t.Errorf("device %d shows %s at %v, told at %v", j, id, got, lat)
			}
		}
		for j, p := range w.peers {
			if fmt.Sprint("U-", j) == id {
				continue
			}
			if list := p.heard(`"` + id + `"`); len(list) == 0 || between(list[len(list)-1], `lat="`, `"`) != fmt.Sprint(lat) {
				t.Errorf("peer %d heard %q of %s, told at %v", j, list, id, lat)
			}
		}
	}
	w.noTrouble()
}
