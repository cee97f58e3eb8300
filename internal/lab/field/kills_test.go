package field

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/check"
)

const (
	killSeed = 7142
	// recovery is how long the peers may take to get a message accepted after a kill, and messages in custody to arrive.
	recovery = 2 * time.Minute
)

// TestKills kills gateways and their libnorm with kill -9, again and again, while JXTA peers talk through them: no message in custody is
// lost, and none arrives twice unless a gateway had handed it over and could not record that.
func TestKills(t *testing.T) {
	relax, err := squeeze()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(relax)
	p := newVoyage(t, killSeed, nil)
	rng := rand.New(rand.NewPCG(killSeed, 2))
	p.meet()
	hush := p.talk(func(i int) *rand.Rand { return rand.New(rand.NewPCG(killSeed, uint64(20+i))) })
	begun := time.Now()
	var longest time.Duration
	killed := map[string]int{}
	for n := range kills {
		if rng.IntN(8) > 0 { // otherwise it dies before it has come to itself
			p.progress(1 + rng.IntN(8))
		}
		pause(t.Context(), time.Duration(rng.IntN(100))*time.Millisecond)
		what, took := p.kill(rng)
		killed[what]++
		longest = max(longest, took)
		if t.Failed() {
			return
		}
		if (n+1)%100 == 0 {
			t.Logf("%d kills after %.0f s: %s", n+1, time.Since(begun).Seconds(), p.summary())
		}
	}
	p.progress(10)
	hush()
	p.settle()
	for _, s := range p.game.sites {
		check.Equal(t, "lines of "+s.name+" about what cannot be read, or was put back", falseAlarms(s.gateway.logFile), 0)
	}
	t.Logf("%d kills (%v) in %.0f s; %s; the longest start took %.2f s", kills, killed, time.Since(begun).Seconds(), p.summary(), longest.Seconds())
	p.judge()
}

// falseAlarms counts the lines of a log which say that a message could not be read, or that a peer was put back.
func falseAlarms(file string) (n int) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 1
	}
	for _, event := range []string{"message.unreadable", "peer.put_back", "self.put_back"} {
		n += bytes.Count(b, []byte(`"event":"`+event))
	}
	return n
}

// meet waits until the talkers' messages are heard: until then a message may be in no gateway's custody, because the far pipe is not
// known.
func (p *voyage) meet() {
	p.t.Helper()
	check.Until(p.t, recovery, "the gateways know each other's pipes", func() bool {
		for _, s := range p.game.sites {
			st, err := s.gateway.status(p.t.Context())
			// A peer with its two pipes is three items.
			if err != nil || !st.Peers[0].Knows || st.Peers[0].FarItems < 3 || st.Peers[0].ItemsHeld < 3 {
				return false
			}
		}
		return true
	})
}

// progress waits until both talkers know that n more of their messages are in custody.
func (p *voyage) progress(n int) {
	p.t.Helper()
	var at [2]int
	for i, c := range p.crews {
		at[i], _ = c.accepted()
	}
	check.Until(p.t, recovery, "both sites have messages accepted again", func() bool {
		for i, c := range p.crews {
			if now, _ := c.accepted(); now < at[i]+n {
				return false
			}
		}
		return true
	})
}

// kill kills something and starts it again. It returns what it killed, and how long the longest start took.
func (p *voyage) kill(rng *rand.Rand) (what string, longest time.Duration) {
	p.t.Helper()
	who := [][]*crew{{p.crews[0]}, {p.crews[1]}, p.crews[:]}[rng.IntN(3)]
	if rng.IntN(5) == 0 {
		if err := killChild(who[0].site.gateway.cmd.Process.Pid); err != nil {
			p.t.Error(err)
		}
		return "libnorm of " + who[0].site.name, 0
	}
	for _, c := range who {
		c.site.gateway.kill()
		c.died()
		what += c.site.name + " "
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, c := range who {
		down := time.Duration(rng.IntN(100)) * time.Millisecond
		all.Add(1)
		go func() {
			defer all.Done()
			pause(p.t.Context(), down)
			begun := time.Now()
			if err := c.site.gateway.start(p.t.Context()); err != nil {
				p.t.Error(err)
			}
			mu.Lock()
			longest = max(longest, time.Since(begun))
			mu.Unlock()
		}()
	}
	all.Wait()
	return strings.TrimSpace(what), longest
}

// killChild kills the process that a gateway has made for libnorm. There is none for a moment after each of its ends.
func killChild(pid int) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	tasks, err2 := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	for _, task := range tasks {
		more, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err == nil { // otherwise the thread has ended
			b = append(b, more...)
		}
	}
	for _, f := range strings.Fields(string(b)) {
		child, err := strconv.Atoi(f)
		if err != nil {
			return err
		}
		if err := unix.Kill(child, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// settle waits until all messages in custody have arrived, and until nothing arrives any more.
func (p *voyage) settle() {
	p.t.Helper()
	end := time.Now().Add(recovery)
	check.Until(p.t, 2*recovery, "all has arrived", func() bool {
		missing := 0
		for _, c := range p.crews {
			_, m := c.accepted()
			missing += m
		}
		return missing == 0 || time.Now().After(end) // losses are judged afterwards
	})
	check.Still(p.t, 3*time.Second, recovery, "what has arrived", func() int { return p.crews[0].hearings() + p.crews[1].hearings() })
}

func (p *voyage) summary() string {
	var y tally
	unexplained := 0
	for _, c := range p.crews {
		z := c.tally()
		y.said, y.accepted, y.arrived = y.said+z.said, y.accepted+z.accepted, y.arrived+z.arrived
		y.unproven, y.unheard, y.lost = append(y.unproven, z.unproven...), append(y.unheard, z.unheard...), append(y.lost, z.lost...)
		unexplained += len(z.unexplained)
		for k := range z.twice {
			y.twice[k] += z.twice[k]
		}
	}
	return fmt.Sprintf("%d messages, %d accepted for certain, %d arrived; not heard: %d in the socket of their own gateway, which died %v, "+
		"%d between the listener's machine and the listener, %d by custody; twice: %d propagate, %d unicast, %d of 20 kB (%d of them unexplained)",
		y.said, y.accepted, y.arrived, len(y.unproven), y.unproven[:min(10, len(y.unproven))], len(y.unheard), len(y.lost),
		y.twice[propagated], y.twice[unicast], y.twice[long], unexplained)
}

// judge compares the results with the promise.
func (p *voyage) judge() {
	p.t.Helper()
	for _, c := range p.crews {
		y := c.tally()
		if len(y.lost) > 0 {
			p.t.Errorf("%d messages of %s were accepted and are lost: %v", len(y.lost), c.site.name, y.lost[:min(20, len(y.lost))])
		}
		if len(y.unheard) > 0 {
			p.t.Errorf("%d messages of %s came to their listener's machine and not to it: %v", len(y.unheard), c.site.name, y.unheard[:min(20, len(y.unheard))])
		}
		if len(y.unexplained) > 0 {
			p.t.Errorf("%d messages of %s came twice without a death that explains it: %s", len(y.unexplained), c.site.name, strings.Join(y.unexplained[:min(5, len(y.unexplained))], "; "))
		}
		if len(c.strange) > 0 {
			p.t.Errorf("nobody at %s has said %v", c.site.name, c.strange[:min(5, len(c.strange))])
		}
		if len(c.disorder) > 0 {
			p.t.Errorf("%d messages of %s came out of order: %v", len(c.disorder), c.site.name, c.disorder[:min(5, len(c.disorder))])
		}
		if y.accepted == 0 || y.arrived == 0 {
			p.t.Errorf("%s: %d accepted, %d arrived: the test shows nothing", c.site.name, y.accepted, y.arrived)
		}
		found := errorsIn(c.site.gateway.logFile)
		for _, e := range p.expected {
			delete(found, e)
		}
		if len(found) > 0 {
			p.t.Errorf("the log of %s has errors: %v", c.site.name, found)
		}
	}
}
