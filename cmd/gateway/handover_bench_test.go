package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// BenchmarkHandOver measures how many messages of 200 octets a second one local listener receives from another site's peer,
// over real gateways on a link without limit: while they are sent, and after all have waited for a listener that was away.
func BenchmarkHandOver(b *testing.B) {
	for _, waited := range []bool{false, true} {
		b.Run(map[bool]string{false: "said", true: "waited"}[waited], func(b *testing.B) { handOver(b, waited) })
	}
}

func handOver(b *testing.B, waited bool) {
	hq, ship := wired(b)
	pipe := edgepeer.NamedPipe("flow")
	heard := make(chan int, 1<<16)
	listen := func() *tcp.Peer {
		return dialWith(b, tcp.Config{Address: hq.lan, Edge: edgepeer.Config{Name: "ear", Rand: rand.New(rand.NewPCG(7, 7))},
			Pipes: []edgepeer.Listen{{Pipe: pipe, Kind: jxta.PipeTypePropagate}},
			Hear: func(_ *tcp.Peer, n edgepeer.Notice) {
				if m, is := n.(edgepeer.Message); is {
					var number int
					fmt.Sscan(string(m.Elements[0].Data), &number)
					heard <- number
				}
			}})
	}
	ear := listen()
	sender := dialPeer(b, ship, "mouth", 2, nil)
	random := rand.New(rand.NewPCG(1, 2))
	say := func(n int) {
		text := fmt.Appendf(nil, "%d ", n)
		for len(text) < 200 {
			text = append(text, byte(random.Uint32()))
		}
		if _, err := sender.Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Name: "text", Data: text}}}); err != nil {
			b.Fatal(err)
		}
	}
	ship.until(b, "the pipe is known", func() bool { return ship.peer(b).FarItems >= 2 })
	say(-1)
	<-heard
	if waited {
		ear.Close()
		for n := range b.N {
			say(n)
		}
		ship.until(b, "all are at the other site", func() bool { p := ship.peer(b); return p.Delivered > uint64(b.N) && p.Waiting+p.UnderWay == 0 })
	}
	b.ResetTimer()
	began := time.Now()
	if waited {
		listen()
	} else {
		go func() {
			for n := range b.N {
				say(n)
			}
		}()
	}
	late := time.After(10 * patience)
	for n := range b.N {
		select {
		case got := <-heard:
			if got != n {
				b.Fatalf("message %d after %d", got, n-1)
			}
		case <-late:
			b.Fatalf("%d of %d came", n, b.N)
		}
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "messages/s")
}

// wired are two gateways on a link without limit that have met.
func wired(b *testing.B) (hq, ship *running) {
	b.Helper()
	sa := newSite(b, 1, "")
	sb := newSite(b, 2, sa.key())
	sa.profile, sb.profile = "wire", "wire"
	sa.write(b, filepath.Join(sa.dir, "data"), "2 "+sb.link)
	sb.write(b, filepath.Join(sb.dir, "data"), "1 "+sa.link)
	hq, ship = sa.start(b), sb.start(b)
	ship.until(b, "its peer is up", func() bool { return ship.peer(b).Link == "up" })
	return hq, ship
}
