package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aldis/internal/gateway/pair"
	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// built builds the gateway as another version, which reports that commit. of is a source file in which old is replaced by new; "": none.
func built(t *testing.T, commit, of, old, new string) func(args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	binary, overlay := filepath.Join(dir, "gateway"), filepath.Join(dir, "overlay.json")
	replaced := map[string]string{}
	if of != "" {
		path, err := filepath.Abs(of)
		check.NoError(check.Fatal(t), err)
		text, err := os.ReadFile(path)
		check.NoError(check.Fatal(t), err)
		check.Contains(check.Fatal(t), of, string(text), old)
		replaced[path] = filepath.Join(dir, "changed.go")
		check.NoError(check.Fatal(t), os.WriteFile(replaced[path], []byte(strings.Replace(string(text), old, new, 1)), 0o600))
	}
	list, _ := json.Marshal(map[string]any{"Replace": replaced})
	check.NoError(check.Fatal(t), os.WriteFile(overlay, list, 0o600))
	out, err := bounded(t, "go", "build", "-overlay", overlay, "-ldflags", "-X aldis/internal/operator/cli.commit="+commit, "-o", binary, ".").CombinedOutput()
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "what the build says", string(out), "")
	return func(args ...string) *exec.Cmd {
		cmd := exec.Command(binary, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return cmd
	}
}

// The members of a site of three are upgraded one after the other, while peers of all of them and of a far site send messages. Members of
// two versions work together, the leader hands over to the named member, no peer gets a new lease more than once because of that, and
// nothing is lost. A version with another protocol or another format of the journal is refused, and the refusal names the reason; the
// others go on.
func TestSiteOfThreeUpgrade(t *testing.T) {
	t.Parallel()
	newer := built(t, "newer", "", "", "")
	w := newSiteOf(t, 3, false)
	for i := range w.machines {
		w.start(t, i)
	}
	first := w.settledAll(t)
	g := startGossip(t, []string{w.hq.lan, w.sites[0].lan, w.sites[1].lan, w.sites[2].lan}, 284)
	g.mu.Lock()
	g.local = map[int]int{1: 1, 2: 1, 3: 1}
	g.mu.Unlock()
	g.meet(t, patience)
	drain := func(i int, args ...string) (int, string) {
		code, out, errs := run(t, append([]string{"drain", "-c", w.sites[i].file, "--to"}, args...)...)
		return code, out + errs
	}
	stopped := func(i int, args ...string) {
		for k := range w.machines {
			g.died(1 + k) // the last metre, as at each takeover
		}
		code, out := drain(i, append(args, "--stop")...)
		check.True(t, "drain", code == cli.ExitGood && strings.Contains(out, "this machine does not lead") && strings.Contains(out, "stopped"), code, out)
		w.machines[i].end(t, "drain --stop")
		w.machines[i] = nil
	}
	all := func() map[string]int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return maps.Clone(g.leases)
	}
	versions := func() (list []string) {
		s, _ := w.of(w.settledAll(t))
		for _, m := range s.Members {
			if !m.Self {
				list = append(list, m.Version)
			}
		}
		return list
	}
	next, last := (first+1)%3, (first+2)%3
	for _, i := range []int{last, next} {
		stopped(i, w.listens[first])
		w.startAs(t, i, newer)
		w.settledAll(t)
	}
	check.Equal(t, "leader", w.leader(), first)
	check.True(t, "the others are newer", strings.Contains(versions()[0], "newer") && strings.Contains(versions()[1], "newer"), versions())

	for to, says := range map[string]string{"127.0.0.1:9": "is no other machine of this site", w.listens[first]: "is no other machine of this site", "nowhere": "--to takes an address"} {
		code, out := drain(first, to)
		check.True(t, "drain --to "+to, code != cli.ExitGood && strings.Contains(out, says), out)
	}
	g.until(t, patience, "all peers have a lease", func() bool { return len(g.leases) == 8 })
	before := all()
	for k := range w.machines {
		g.died(1 + k)
	}
	began := time.Now()
	code, out := drain(first, w.listens[next])
	check.True(t, "drain --to a member", code == cli.ExitGood && strings.Contains(out, w.listens[next]+" does"), out)
	check.Equal(t, "leader", w.settledAll(t), next)
	g.until(t, patience, "the peers of the three machines have a lease again", func() bool {
		for name, n := range g.leases {
			if !strings.HasSuffix(name, "0") && n == before[name] {
				return false
			}
		}
		return true
	})
	t.Logf("all six local peers have a lease again %v after the order", time.Since(began).Round(time.Millisecond))
	more := 0
	g.until(t, patience, "some messages more", func() bool {
		if more == 0 {
			more = g.arrivals() + 60
		}
		return g.arrivals() >= more
	})
	for name, n := range all() {
		check.True(t, "peer "+name+" has moved once, or not at all", n <= before[name]+1, n, before[name])
	}
	stopped(first, w.listens[next])
	w.startAs(t, first, newer)
	check.Equal(t, "leader", w.settledAll(t), next)
	check.True(t, "all are newer", strings.Contains(versions()[0], "newer") && strings.Contains(versions()[1], "newer"), versions())

	g.settle(t, 2*time.Minute)
	_, _, _, _, faults := g.tally()
	check.Equal(t, "faults", fmt.Sprint(faults), "[]")
	t.Log(g.summary())

	for _, other := range []struct{ says, of, old, new string }{
		{"version 99 of the protocol", "../../internal/edge/pairlink/facts.go", "const protocol = 2", "const protocol = 99"},
		{"it differs in the format of the journal", "../../internal/operator/node/site.go", "fmt.Sprint(journal.Format)", `"99"`},
	} {
		another := built(t, "another", other.of, other.old, other.new)
		w.stop(t, last, syscall.SIGTERM)
		w.startAs(t, last, another)
		within(t, patience, "it is refused: "+other.says, func() bool {
			s, _ := w.of(next)
			return strings.Contains(refusedOf(s, w.listens[last]), other.says)
		})
		check.Equal(t, "leader", w.leader(), next)
	}
	w.stop(t, last, syscall.SIGTERM)
	w.startAs(t, last, newer)
	w.settledAll(t)
}

// refusedOf says why a member is refused.
func refusedOf(s pair.Status, at string) string {
	for _, m := range s.Members {
		if m.At == at {
			return m.Refused
		}
	}
	return ""
}
