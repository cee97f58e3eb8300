package tcp_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	mrand "math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/edge/lan"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
	"aldis/internal/site"
)

// gateway is the LAN side of a gateway: sockets and a bridge. It returns its address.
func gateway(t *testing.T) string {
	t.Helper()
	id, err := jxtabridge.NewIdentity(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := lan.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	inbox, stop, ended := make(chan site.Event, 1024), make(chan bool), make(chan bool)
	l := lan.New(lan.Config{}, func(ev site.Event) {
		select {
		case inbox <- ev:
		case <-ended:
		}
	}, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	b := jxtabridge.New(jxtabridge.Config{Name: "gw", Address: address, Identity: id}, nil)
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case ev := <-inbox:
				out := b.Step(time.Now(), ev)
				for _, o := range out.Orders {
					l.Do(o)
				}
				for _, n := range out.Notes {
					if n.Level != "info" && n.Level != "debug" {
						t.Errorf("%s %v", n.Text, n.Attrs)
					}
				}
			}
		}
	}()
	go l.Serve(ln)
	t.Cleanup(func() {
		close(stop)
		<-ended
		l.Shutdown()
	})
	return address
}

func dial(t *testing.T, address, name string, seed uint64, hear func(*tcp.Peer, edgepeer.Notice)) *tcp.Peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := tcp.Dial(ctx, tcp.Config{Address: address, Hear: hear,
		Edge: edgepeer.Config{Name: name, Rand: mrand.New(mrand.NewPCG(seed, 1))}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if err := p.WaitLease(ctx, ""); err != nil {
		t.Fatal(err)
	}
	return p
}

const pipe = "uuid-59616261646162614E50472050325033000000000000000000000000000000A204"

// One peer sends, from several goroutines, messages of all sizes and more than the sockets hold; the other echoes.
func TestEcho(t *testing.T) {
	address := gateway(t)
	dial(t, address, "echo", 1, nil) // another peer on the LAN
	echo := dial(t, address, "echo", 2, func(p *tcp.Peer, n edgepeer.Notice) {
		m, ok := n.(edgepeer.Message)
		if !ok {
			return
		}
		data := bytes.Clone(m.Elements[0].Data)
		go p.Do(edgepeer.Send{Pipe: pipe, To: m.Src, Elements: []jxta.Element{{Name: "body", Data: data}}})
	})
	const senders, each = 4, 60
	back := make(chan int, senders*each)
	a := dial(t, address, "a", 3, func(_ *tcp.Peer, n edgepeer.Notice) {
		if m, ok := n.(edgepeer.Message); ok {
			for _, c := range m.Elements[0].Data {
				if c != byte(len(m.Elements[0].Data)) {
					t.Errorf("a message of %d octets is damaged", len(m.Elements[0].Data))
					break
				}
			}
			back <- len(m.Elements[0].Data)
		}
	})
	for _, p := range []*tcp.Peer{echo, a} {
		if _, err := p.Do(edgepeer.Listen{Pipe: pipe, Kind: jxta.PipeTypeUnicast}); err != nil {
			t.Fatal(err)
		}
	}
	want := 0
	for s := range senders {
		go func() {
			for i := range each {
				size := 1 + (s+i*senders)*251
				if _, err := a.Do(edgepeer.Send{Pipe: pipe, To: echo.ID(), Elements: []jxta.Element{{Name: "body",
					Data: bytes.Repeat([]byte{byte(size)}, size)}}}); err != nil {
					t.Error(err)
				}
			}
		}()
		for i := range each {
			want += 1 + (s+i*senders)*251
		}
	}
	deadline := time.After(time.Minute)
	for got, n := 0, 0; n < senders*each; n++ {
		select {
		case size := <-back:
			if got += size; n == senders*each-1 && got != want {
				t.Errorf("%d octets came back of %d", got, want)
			}
		case <-deadline:
			t.Fatalf("%d of %d came back", n, senders*each)
		}
	}
}

func TestPeerThatIsCutOff(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	hang := make(chan net.Conn, 2)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			hang <- c
			if len(hang) == 1 {
				io.WriteString(c, "JXTAHELLO tcp://1.2.3.4:5 tcp://1.2.3.4:5 urn:jxta:uuid-59616261646162614A78746150325033000000000000000000000000000000A103 0 1.1\r\n")
			}
		}
	}()
	edge := edgepeer.Config{Rand: mrand.New(mrand.NewPCG(1, 1))}
	p, err := tcp.Dial(context.Background(), tcp.Config{Address: ln.Addr().String(), Edge: edge})
	if err != nil {
		t.Fatal(err)
	}
	first := <-hang
	failed := make(chan error)
	go func() { // fills the sockets and then waits
		for {
			if _, err := p.Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Data: make([]byte, 1<<20)}}}); err != nil {
				failed <- err
				return
			}
		}
	}()
	first.Read(make([]byte, 1))
	first.Close()
	if err := <-failed; err == nil {
		t.Error("sending into a closed connection succeeds")
	}
	if err := p.WaitLease(context.Background(), ""); err == nil {
		t.Error("a lease from nobody")
	}
	hang <- first // so that the next one gets no welcome
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := tcp.Dial(ctx, tcp.Config{Address: ln.Addr().String(), Edge: edge}); !errors.Is(err, context.DeadlineExceeded) && err == nil {
		t.Error("connected to somebody who says nothing")
	}
}
