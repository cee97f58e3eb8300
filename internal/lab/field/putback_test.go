package field

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// TestPutBack puts HQ's disk back to a copy while peers talk through both gateways, after a clean stop and after a kill. No message comes
// twice unless a killed gateway had handed it over and not acknowledged it, which no gateway can know.
func TestPutBack(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		end     func(*gatewayProc) error
		unknown time.Duration // before the end: messages sent in it may come twice
	}{
		"stopped": {(*gatewayProc).stop, 0},
		"killed":  {func(g *gatewayProc) error { g.kill(); return nil }, 2 * putBackEvery},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			putBack(t, end.end, end.unknown)
		})
	}
}

// putBack has HQ forget the time putBackBy, with a message every putBackEvery each way.
func putBack(t *testing.T, end func(*gatewayProc) error, unknown time.Duration) {
	const seed = 91
	p := newVoyage(t, seed, nil)
	p.meet()
	for _, c := range p.crews {
		c.every = putBackEvery
	}
	hush := p.talk(func(i int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(20+i))) })
	p.progress(5)
	hq, ship := p.crews[0], p.crews[1]
	g, copied := hq.site.gateway, filepath.Join(t.TempDir(), "copy.db")
	ship.comes(t) // the listener at HQ has it, and has not acknowledged it yet
	p.ask("backup", copied, "-c", g.config)
	at := time.Now()
	pause(t.Context(), putBackBy)
	ship.comes(t)
	if err := end(g); err != nil {
		t.Fatal(err)
	}
	hq.died()
	died := time.Now()
	p.ask("restore", copied, "-c", g.config)
	if err := g.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.progress(5)
	hush()
	p.settle()
	for _, c := range p.crews {
		beyond, twice := 0, 0
		y := c.tally()
		for _, u := range c.said {
			if len(u.heard) > 1 && u.at.Before(died.Add(-unknown)) {
				twice++
			}
		}
		for _, n := range y.lost {
			if u := c.said[n]; c == hq && u.at.After(at) && u.at.Before(died) {
				beyond++ // accepted already when the copy was made, so that it is on no disk
			}
		}
		t.Logf("%s said %d in all, %d accepted for certain, %d arrived; twice %d, and %d that nobody can know; lost %d, and %d that no disk had",
			c.site.name, y.said, y.accepted, y.arrived, twice, y.twice[propagated]+y.twice[unicast]-twice, len(y.lost)-beyond, beyond)
		check.Equal(t, "messages of "+c.site.name+" that arrived twice", twice, 0)
		check.Equal(t, "messages of "+c.site.name+" lost though a disk had them", len(y.lost)-beyond, 0)
		check.True(t, c.site.name+" was heard", y.arrived > 10, y.arrived)
	}
}

// comes waits until a message of the talker has just come to the far listener's machine.
func (c *crew) comes(t *testing.T) {
	t.Helper()
	came := func() (n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, u := range c.said {
			if u.came {
				n++
			}
		}
		return n
	}
	before := came()
	check.Until(t, 30*time.Second, "another message comes", func() bool { return came() > before })
}

// ask runs a command of the gateway that must succeed.
func (p *voyage) ask(args ...string) {
	p.t.Helper()
	if out, err := exec.CommandContext(p.t.Context(), p.game.o.Gateway, args...).CombinedOutput(); err != nil {
		p.t.Fatalf("gateway %v: %v\n%s", args, err, out)
	}
}
