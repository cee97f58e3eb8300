package xmpp_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

// A ship that only listens on a radio net gets its room's lines and its messages; the lines of its own users go when the silence ends.
func TestSilentShip(t *testing.T) {
	w := newWorld(t, 3, "hf-300", 7, func(c *xmpp.Config) { c.Occupants = 20 })
	hq, ship := w.servers[1], w.servers[3]
	m := hq.room()
	m.enter("bert@hq.example/h", "bert")
	a := far{ship, "anna@ship3.example/g", "anna"}
	w.Run(5 * time.Minute)
	a.enter()
	w.Run(5 * time.Minute)
	check.Equal(t, "anna sees bert", a.heard("<presence from='"+room+"/bert'"), 1)
	w.Give(w.Nodes[2], api.Silence{On: true, Announce: true})
	w.Run(2 * time.Minute)
	for i := range 5 {
		m.say("bert@hq.example/h", fmt.Sprint("b", i), fmt.Sprintf("<body>weather report %d</body>", i))
		hq.line("ship3.example", bert, "anna@ship3.example", fmt.Sprint("p", i), fmt.Sprintf("for you alone %d", i), "")
		w.Run(10 * time.Minute)
	}
	for i := range 5 {
		check.Equal(t, fmt.Sprint("line ", i), a.heard(fmt.Sprintf("weather report %d", i)), 1)
		ship.has(1, fmt.Sprintf("for you alone %d", i))
	}
	up, _ := w.Octets(w.Nodes[2])
	a.say("s", "said in silence")
	w.Run(10 * time.Minute)
	now, _ := w.Octets(w.Nodes[2])
	check.Equal(t, "octets of the silent ship", now-up, 0)
	check.Equal(t, "bert hears nothing yet", m.heard("bert@hq.example/h", "said in silence"), 0)
	w.Give(w.Nodes[2], api.Silence{})
	w.Run(10 * time.Minute)
	check.Equal(t, "bert hears it", m.heard("bert@hq.example/h", "said in silence"), 1)
}

// The first message after the start of two gateways arrives soon.
func TestFirstWord(t *testing.T) {
	for name, most := range map[string]time.Duration{"iridium-dialup": 5 * time.Second, "iridium-directip": 10 * time.Second} {
		for seed := uint64(1); seed <= 3; seed++ {
			w := newWorld(t, 2, name, seed)
			begun := w.Now
			w.servers[2].line("hq.example", anna, "bert@hq.example", "1", sentences[0], "")
			for w.servers[1].count(sentences[0]) == 0 && w.Now.Sub(begun) < 10*most {
				w.Run(50 * time.Millisecond)
			}
			took := w.Now.Sub(begun)
			t.Logf("%s, seed %d: the first word after %v", name, seed, took)
			if took > most {
				t.Errorf("%s, seed %d: the first word after %v", name, seed, took)
			}
		}
	}
}
