//go:build long

package field

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
)

var takLength = flag.Duration("tak-length", 10*time.Minute, "how long the TAK devices move")

// every is how many seconds ATAK waits between two reports by itself.
func every(m *mover) int {
	switch {
	case m.speed > 4:
		return 2
	case m.speed > 0.3:
		return 20
	}
	return 30
}

// outcome is the results of reports and alerts in one direction.
type outcome struct {
	pass
	alerts []time.Duration
	lost   int // alerts
}

func (p *outcome) String() string {
	slices.Sort(p.alerts)
	text := fmt.Sprintf("compared %d: %d beyond 50 m, %d not shown at all; worst %.0f m; alerts: %d came, %d did not", p.compared, p.beyond, p.missing,
		slices.Max(append(p.offs, 0)), len(p.alerts), p.lost)
	if n := len(p.alerts); n > 0 {
		text += fmt.Sprintf(", median %.1f s, 95th percentile %.1f s, worst %.1f s", p.alerts[n/2].Seconds(), p.alerts[min(n-1, n*95/100)].Seconds(), p.alerts[n-1].Seconds())
	}
	return text
}

// TestTAKBesideTCP: headquarters with taky, a ship with devices that act as ATAK does, ten moving units on each, and alerts. Their
// gateways are processes with the emulator between them. In parallel, over a link of the same kind, the same reports go without gateways
// through one TCP connection, as between servers that federate.
func TestTAKBesideTCP(t *testing.T) {
	for _, link := range []string{"iridium-dialup", "hf-300"} {
		t.Run(link, func(t *testing.T) { takBesideTCP(t, link, *takLength) })
	}
}

func takBesideTCP(t *testing.T, link string, length time.Duration) {
	p := load(t, link)
	g, ctx := stand(t, "tak", p, 1)
	hq, ship := g.sites[0], g.sites[1]
	takyNS, err := g.w.add("taky")
	if err != nil {
		t.Fatal(err)
	}
	taky := fmt.Sprintf("%s:8087", lanAddr(0, 11).Addr())
	if err := plug(hq.ns, takyNS, "p1", lanAddr(0, 11)); err != nil {
		t.Fatal(err)
	}
	if err := startTaky(ctx, takProgram(t, "taky"), takyNS, lanAddr(0, 11).Addr().String(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	aboard := fmt.Sprintf("%s:8087", lanAddr(1, 1).Addr())
	for s, text := range map[*lanSite]string{hq: fmt.Sprintf("server = %q\n", taky), ship: fmt.Sprintf("listen = %q\n", aboard)} {
		if err := s.gateway.configure("[tak]\n" + text); err != nil {
			t.Fatal(err)
		}
	}
	dial := func(ns, at string) (c net.Conn) {
		t.Helper()
		check.Until(t, time.Minute, at+" answers", func() bool {
			c, err = DialIn(ctx, ns, at)
			return err == nil
		})
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial(takyNS, taky)
	for _, s := range g.sites {
		if err := s.gateway.start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	client := exec.CommandContext(ctx, "ip", "netns", "exec", ship.ns, takProgram(t, "python"), "../../../field-tests/tak/client.py", "tcp://"+aboard, "PYTAK-1", "PAPA")
	pytak, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := StartBound(client); err != nil {
		t.Fatal(err)
	}
	hears := make(chan string, 1)
	go func() {
		b := make([]byte, 64<<10)
		all := ""
		for {
			n, err := pytak.Read(b)
			if all += string(b[:n]); strings.Contains(all, "FALCON") {
				select {
				case hears <- all:
				default:
				}
				all = ""
			}
			if err != nil {
				return
			}
		}
	}()

	// The unaided link: two stations and one connection.
	bare, other, hub := bareLink(t, g, p)
	shown := [2]*plot{newPlot(), newPlot()} // by site, with gateways
	plain := [2]*plot{newPlot(), newPlot()} // unaided
	watch := [2]net.Conn{dial(takyNS, taky), dial(ship.ns, aboard)}
	for i := range 2 {
		go hearEvents(watch[i], shown[i].saw)
	}
	go hearEvents(other, plain[0].saw)
	go hearEvents(bare, plain[1].saw)
	pipes := [2]chan string{make(chan string, 100_000), make(chan string, 100_000)}
	for i, c := range [2]net.Conn{other, bare} {
		go func() {
			for text := range pipes[i] {
				if _, err := io.WriteString(c, text); err != nil {
					return
				}
			}
		}()
	}

	var mu sync.Mutex
	aided, unaided := outcome{pass: pass{bound: takBound}}, outcome{pass: pass{bound: takBound}}
	reports := 0
	before, beforeBare := octetsOf(g.hub), octetsOf(hub)
	over := time.Now().Add(length)
	var crew sync.WaitGroup
	for side := range 2 {
		for i := range 10 {
			m := newMover(side, i, 1)
			c := dial([2]string{takyNS, ship.ns}[side], [2]string{taky, aboard}[side])
			go io.Copy(io.Discard, c)
			crew.Go(func() {
				began, due := time.Now(), 0
				tick := time.NewTicker(time.Second)
				defer tick.Stop()
				for second := 0; time.Now().Before(over); second++ {
					<-tick.C
					m.step()
					if second < due {
						continue
					}
					due = second + every(m)
					mu.Lock()
					text := m.report(time.Duration(every(m)) * time.Second)
					mu.Unlock()
					io.WriteString(c, text)
					select {
					case pipes[side] <- text:
					default:
					}
					mu.Lock()
					reports++
					mu.Unlock()
					if len(m.said) > 0 && time.Since(began) > time.Minute {
						mine := len(m.said) - 1
						crew.Go(func() {
							if !pause(ctx, 5*time.Second) {
								return
							}
							mu.Lock()
							defer mu.Unlock()
							said := slices.Clone(m.said[mine:])
							aided.compare(shown[1-side], m.uid, said)
							unaided.compare(plain[1-side], m.uid, said)
						})
					}
				}
			})
		}
	}
	alarm := dial(ship.ns, aboard)
	go io.Copy(io.Discard, alarm)
	type raised struct {
		uid string
		at  time.Time
	}
	var alerts []raised
	for n := 0; time.Until(over) > 90*time.Second; n++ {
		pause(ctx, 20*time.Second)
		uid := fmt.Sprintf("alert-%d", n)
		text := takText(uid, "b-a-o-tbl", "h-e", 54.3, 10.1, time.Hour, `<emergency type="911 Alert">SHIP</emergency>`)
		io.WriteString(alarm, text)
		pipes[1] <- text
		alerts = append(alerts, raised{uid, time.Now()})
	}
	crew.Wait()
	pause(ctx, 20*time.Second) // time for reports on their way
	used, usedBare := octetsOf(g.hub)-before, octetsOf(hub)-beforeBare
	for _, a := range alerts {
		for _, x := range []struct {
			p *outcome
			l *plot
		}{{&aided, shown[0]}, {&unaided, plain[0]}} {
			x.l.mu.Lock()
			if at, came := x.l.first[a.uid]; came {
				x.p.alerts = append(x.p.alerts, at.Sub(a.at))
			} else {
				x.p.lost++
			}
			x.l.mu.Unlock()
		}
	}
	t.Logf("%s, %v, %d reports of 20 units", link, length, reports)
	t.Logf("with gateways: %.1f octets a report; %v", float64(used)/float64(reports), &aided)
	t.Logf("unaided TCP:   %.1f octets a report; %v; %d reports still wait to be sent", float64(usedBare)/float64(reports), &unaided, len(pipes[0])+len(pipes[1]))
	if each := float64(used) / float64(reports); each > 40 {
		t.Errorf("a report costs %.1f octets", each)
	}
	if aided.lost > 0 {
		t.Errorf("with gateways %d alerts did not come", aided.lost)
	}
	select {
	case <-hears:
	default:
		t.Error("pytak was not shown a unit of headquarters")
	}
	if link == "iridium-dialup" { // hf-300 takes minutes until it has shown twenty units for the first time
		if aided.missing > 0 {
			t.Errorf("%d times a unit was not shown", aided.missing)
		}
		if n := len(aided.alerts); n > 0 && aided.alerts[min(n-1, n*95/100)] > 5*time.Second {
			t.Errorf("the 95th percentile of alerts is %v", aided.alerts[min(n-1, n*95/100)])
		}
		if aided.beyond > aided.compared/1000 {
			t.Errorf("%d of %d positions are more than 50 m off", aided.beyond, aided.compared)
		}
	}
}

// octetsOf is the octets on the air of the ship's leg, both ways.
func octetsOf(h *Hub) int64 {
	n := h.Stats().Link.Nodes[1]
	return n.Up.OnAir.Octets + n.Down.OnAir.Octets
}

// bareLink is a link of the same kind with one TCP connection across it: its ends at headquarters and at the ship.
func bareLink(t *testing.T, g *game, p profile.Profile) (ship, hq net.Conn, hub *Hub) {
	t.Helper()
	cfg := HubConfig{Seed: g.o.Seed}
	var spaces [2]string
	for i := range 2 {
		ns, err := g.w.add(fmt.Sprintf("bare%d", i))
		if err != nil {
			t.Fatal(err)
		}
		spaces[i] = ns
		node := HubNode{Name: fmt.Sprintf("bare%d", i), Netns: ns, Addr: linkAddr(i), Profile: p}
		if i == 0 && !p.Shared {
			node.Profile = load(t, "wire")
		}
		cfg.Nodes = append(cfg.Nodes, node)
	}
	hub, err := StartHub(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hub.Close() })
	var ln net.Listener
	if err := InNetns(spaces[0], func() (err error) {
		ln, err = net.Listen("tcp4", fmt.Sprintf("%s:8087", linkAddr(0).Addr()))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	got := make(chan net.Conn, 1)
	go func() {
		if c, err := ln.Accept(); err == nil {
			got <- c
		}
	}()
	check.Until(t, 3*time.Minute, "the unaided connection", func() bool {
		ship, err = DialIn(t.Context(), spaces[1], ln.Addr().String())
		return err == nil
	})
	hq = <-got
	t.Cleanup(func() { ship.Close(); hq.Close() })
	return ship, hq, hub
}

// takProgram is the path of a program that make tak-peers has installed.
func takProgram(t *testing.T, name string) string {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("../../../field-tests/tak/.venv/bin", name))
	if err == nil {
		_, err = os.Stat(bin)
	}
	if err != nil {
		t.Fatalf("%v: make tak-peers installs it", err)
	}
	return bin
}
