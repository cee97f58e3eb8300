package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// BenchmarkAnswersBesideLookers measures how long a local peer waits for the answer to a query, while 1,000 messages wait in a
// gateway with 64 sites: without viewers, and with ten pages or terminals watching while another message comes ten times a second.
// It also reports the share of a core that the gateway's process takes.
func BenchmarkAnswersBesideLookers(b *testing.B) {
	for _, lookers := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("lookers=%d", lookers), func(b *testing.B) { besideLookers(b, lookers) })
	}
}

func besideLookers(b *testing.B, lookers int) {
	sa := newSite(b, 1, "")
	sb := newSite(b, 2, sa.key())
	sa.write(b, filepath.Join(sa.dir, "data"), "2 "+sb.link)
	peers := []string{"1 " + sa.link}
	for id := 3; id < 66; id++ {
		peers = append(peers, fmt.Sprint(id))
	}
	sb.write(b, filepath.Join(sb.dir, "data"), peers...)
	hq, ship := sa.start(b), sb.start(b)
	ship.until(b, "its peer is up", func() bool { return ship.status(b).Peers[0].Link == "up" })
	pipe := edgepeer.NamedPipe("flow")
	if _, err := dialPeer(b, hq, "hq-ops", 1, nil).Do(edgepeer.Listen{Pipe: pipe, Kind: jxta.PipeTypePropagate}); err != nil {
		b.Fatal(err)
	}
	sender := dialPeer(b, ship, "ops", 2, nil)
	say := func(n int) {
		if _, err := sender.Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Name: "text", Data: []byte(fmt.Sprint(n, strings.Repeat(" x", 100)))}}}); err != nil {
			b.Fatal(err)
		}
	}
	say(0)
	ship.until(b, "a message has gone", func() bool { return ship.status(b).Peers[0].Delivered > 0 })
	if code, _, errs := run(b, "silence", "on", "-c", ship.file); code != 0 {
		b.Fatal(errs)
	}
	for n := range 1000 {
		say(n)
	}
	ship.until(b, "1,000 wait", func() bool { return ship.status(b).Peers[0].Waiting >= 1000 })

	answered := make(chan int, 16)
	asker := dialPeer(b, ship, "asker", 3, func(_ *tcp.Peer, n edgepeer.Notice) {
		if a, ok := n.(edgepeer.Answer); ok && a.QueryID != 0 {
			answered <- a.QueryID
		}
	})
	if _, err := sender.Do(edgepeer.Publish{Doc: edgepeer.Specification("beacon", pipe, jxta.PipeTypePropagate), Life: time.Hour}); err != nil {
		b.Fatal(err)
	}
	for range lookers {
		resp, err := http.Get("http://" + ship.http + "/events")
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		go func() {
			for r := bufio.NewReader(resp.Body); ; {
				if _, err := r.ReadString('\n'); err == io.EOF || err != nil {
					return
				}
			}
		}()
	}
	pace := time.NewTicker(5 * time.Millisecond) // at most two hundred queries a second
	defer pace.Stop()
	var took []time.Duration
	ticks, began, said, n := processTime(b, ship.cmd.Process.Pid), time.Now(), time.Now(), 0
	for b.Loop() {
		if now := time.Now(); now.Sub(said) > 100*time.Millisecond {
			said = now
			n++
			say(1000 + n)
		}
		asked := time.Now()
		id, err := asker.Do(edgepeer.Query{Type: jxta.TypeAdv, Attr: "Name", Value: "beacon"})
		if err != nil {
			b.Fatal(err)
		}
		late := time.After(patience)
		for got := 0; got != id; {
			select {
			case got = <-answered:
			case <-late:
				b.Fatal("no answer")
			}
		}
		took = append(took, time.Since(asked))
		<-pace.C
	}
	used, lasted := processTime(b, ship.cmd.Process.Pid)-ticks, time.Since(began)
	slices.Sort(took)
	ms := func(at int) float64 { return float64(took[at].Microseconds()) / 1000 }
	b.ReportMetric(ms(len(took)/2), "median-ms")
	b.ReportMetric(ms(len(took)*99/100), "p99-ms")
	b.ReportMetric(100*used.Seconds()/lasted.Seconds(), "core-%")
}

// processTime is the processor time that a process has used.
func processTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	var user, system int
	w := strings.Fields(rest)
	if _, err := fmt.Sscan(w[11]+" "+w[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // clock ticks of 100 a second
}
