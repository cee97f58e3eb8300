package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/xmpppeer"
)

// memory is the resident memory of a process, in KiB.
func (r *running) memory(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	check.NoError(check.Fatal(t), err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fmt.Sscan(rest, &n)
	return n
}

// processor is the processor time of a process.
func (r *running) processor(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	check.NoError(check.Fatal(t), err)
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	var user, system time.Duration
	fmt.Sscan(f[11]+" "+f[12], &user, &system)
	return (user + system) * 10 * time.Millisecond // USER_HZ is 100
}

// A thousand silent clients take less than 64 MiB. A client that sends ten thousand stanzas as fast as it can takes at most that much
// again, and the lines of others take at most three times as long as alone. A client that speaks in another's name is disconnected.
func TestXMPPCrowd(t *testing.T) {
	air := newRelay(t, 2, false, 7, func(int, []int, []byte) {})
	ship := newSite(t, 2, "")
	ship.link = air.links[1].String()
	var users []string
	for i := range 64 {
		users = append(users, fmt.Sprint("u", i))
	}
	p := ship.writeXMPPServer(t, "ship.example", users, "", "1 "+air.address(1, 0))
	r := ship.start(t)
	before := r.memory(t)
	const clients = 1000
	var wait sync.WaitGroup
	all, failed := make([]*xmpppeer.Peer, clients), make(chan error, clients)
	for worker := range 8 {
		wait.Go(func() {
			for i := worker; i < clients; i += 8 {
				c, err := xmpppeer.Login(p.c2s, fmt.Sprintf("127.0.0.%d", 2+i%8), p.host, users[i%len(users)], "secret")
				if err != nil {
					failed <- fmt.Errorf("client %d: %w", i, err)
					return
				}
				all[i] = c
			}
		})
	}
	wait.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	r.until(t, "all are there", func() bool {
		_, metrics := r.get("/metrics")
		return strings.Contains(metrics, fmt.Sprintf("aldis_xmpp_clients %d\n", clients))
	})
	taken := r.memory(t) - before
	t.Logf("%d clients take %d KiB", clients, taken)
	if taken > 64<<10 {
		t.Errorf("%d idle clients take %d KiB, more than 64 MiB", clients, taken)
	}

	// A thousand lines a second, from a hundred clients to a hundred others: all come, and soon.
	const pairs, each = 100, 30
	took := make([]time.Duration, pairs*each)
	cpu := r.processor(t)
	for i := range pairs {
		from, to := all[100+2*i], all[101+2*i]
		wait.Go(func() {
			ticks := time.NewTicker(100 * time.Millisecond) // the rate is tested
			defer ticks.Stop()
			for n := range each {
				<-ticks.C
				start := time.Now()
				fmt.Fprintf(from, "<message to='%s@ship.example' type='chat'><body>pair %d line %d.</body></message>", users[(101+2*i)%len(users)], i, n)
				to.SetReadDeadline(start.Add(patience))
				if _, err := to.Until(fmt.Sprintf("pair %d line %d.", i, n)); err != nil {
					failed <- err
					return
				}
				took[i*each+n] = time.Since(start)
			}
		})
	}
	wait.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	slices.Sort(took)
	t.Logf("of %d lines, a thousand a second, half take %v and 95 of 100 %v; a hundred, with 15 copies each, take %v of a core", len(took), took[len(took)/2], took[len(took)*95/100], (r.processor(t)-cpu)/time.Duration(len(took)/100))

	anna, alma := all[0], all[1]
	n := 0
	median := func() time.Duration {
		var took []time.Duration
		for range 31 {
			n++
			text := fmt.Sprintf("round %d.", n)
			start := time.Now()
			fmt.Fprintf(anna, "<message to='u1@ship.example' type='chat'><body>%s</body></message>", text)
			alma.SetReadDeadline(start.Add(patience))
			if _, err := alma.Until(text); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	alone := median()
	quiet := r.memory(t)
	flood := make(chan error, 1)
	go func() {
		_, err := all[2].Write([]byte(strings.Repeat("<message to='u3@ship.example' type='chat'><body>flood</body></message>", 10_000)))
		flood <- err
	}()
	beside := median()
	more := r.memory(t) - quiet
	t.Logf("a line takes %v alone, %v beside a flood, which takes %d KiB", alone, beside, more)
	if beside > 3*max(alone, 5*time.Millisecond) {
		t.Errorf("a line takes %v beside a flood, %v alone", beside, alone)
	}
	if more > 64<<10 {
		t.Errorf("a flood takes %d KiB", more)
	}
	fmt.Fprint(all[4], strings.Repeat("<message from='u0@ship.example' to='u1@ship.example'><body>forged</body></message>", 100))
	all[4].SetReadDeadline(time.Now().Add(patience))
	if _, err := all[4].Until("invalid-from"); err != nil {
		t.Error(err)
	}
	_, metrics := r.get("/metrics")
	if !strings.Contains(metrics, "aldis_xmpp_stanzas_total{what=\"refused forged\"} 1\n") {
		t.Error("more than one forged stanza was read")
	}
}
