package xmpp_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// One user offers three times what iridium-dialup carries, for three minutes. The lines of another take little longer than alone, and each line of
// the first arrived, or the user was told that it did not.
func TestThreefoldLoad(t *testing.T) {
	alone, _, _ := beside(t, 0)
	loaded, offered, ended := beside(t, 3)
	t.Logf("a line takes %v alone, 95 of 100 %v; beside %d lines of another %v, 95 of 100 %v", alone[0], alone[1], offered, loaded[0], loaded[1])
	if loaded[0] > 3*alone[0] || loaded[1] > 6*alone[1] {
		t.Errorf("beside a threefold load a line takes %v, 95 of 100 %v; alone %v and %v", loaded[0], loaded[1], alone[0], alone[1])
	}
	check.Equal(t, "lines of the other that came, or that it was told of", ended, offered)
}

// beside makes one user send 20 lines in three minutes next to another who offers so many times what the link carries. took is
// the median and 95 of 100.
func beside(t *testing.T, times int) (took [2]time.Duration, offered, ended int) {
	t.Helper()
	w := newWorld(t, 2, "iridium-dialup", 1)
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	const lines, apart = 20, 10 * time.Second
	begun := map[string]time.Time{}
	var all []time.Duration
	seen := 0
	look := func() {
		for ; seen < len(hq.got); seen++ {
			e := parse(t, hq.got[seen])
			if at, ours := begun[e.Kid("jabber:component:accept", "body").Inside()]; ours {
				all = append(all, w.Now.Sub(at))
			}
		}
	}
	rate := 300 * times / 150 // the link carries 300 octets a second, and letters by chance get a quarter shorter
	for i := range lines {
		body := fmt.Sprintf("%s, %d", sentences[i%10], i)
		begun[body] = w.Now
		ship.line("hq.example", anna, "bert@hq.example", fmt.Sprint("a", i), body, "")
		for tick := time.Duration(0); tick < apart; tick += 100 * time.Millisecond {
			if tick%time.Second == 0 {
				for range rate {
					offered++
					ship.line("hq.example", "mallory@ship2.example/x", "bert@hq.example", fmt.Sprintf("f%06d.", offered), noise(offered), "")
				}
			}
			w.Run(100 * time.Millisecond)
			look()
		}
	}
	w.Run(30 * time.Minute)
	look()
	slices.Sort(all)
	check.Equal(t, "lines that came", len(all), lines)
	took = [2]time.Duration{all[len(all)/2], all[len(all)*95/100]}
	return took, offered, hq.count("<body>noise ") + ship.count("id='f", "type='error'")
}

// noise is 200 octets that no model makes much shorter.
func noise(n int) string {
	b := []byte("noise ")
	for x := uint64(n) * 0x9e3779b97f4a7c15; len(b) < 200; x = x*6364136223846793005 + 1442695040888963407 {
		b = append(b, "abcdefghijklmnopqrstuvwxyz0123456789"[x>>33%36])
	}
	return string(b)
}
