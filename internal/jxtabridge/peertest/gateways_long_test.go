//go:build long

package peertest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
)

// cable carries the datagrams of two gateways with a delay, counts their IP octets, and can be cut.
type cable struct {
	ends  [2]*net.UDPConn // dialled by gateway 0 and 1
	to    [2]*net.UDPAddr // the gateways
	delay time.Duration

	mu     sync.Mutex
	cut    bool
	octets [2]int // from gateway 0 and 1
	count  [2]int
}

func newCable(t *testing.T, gateways [2]string, delay time.Duration) *cable {
	c := &cable{delay: delay}
	for i := range c.ends {
		var err error
		if c.to[i], err = net.ResolveUDPAddr("udp", gateways[i]); err != nil {
			t.Fatal(err)
		}
		if c.ends[i], err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.ends[i].Close() })
	}
	for i := range c.ends {
		queue := make(chan func(), 1<<14)
		go func() {
			defer close(queue)
			for {
				b := make([]byte, 2048)
				n, _, err := c.ends[i].ReadFromUDP(b)
				if err != nil {
					return
				}
				c.mu.Lock()
				cut := c.cut
				if !cut {
					c.octets[i] += 28 + n
					c.count[i]++
				}
				c.mu.Unlock()
				due := time.Now().Add(c.delay)
				if !cut {
					queue <- func() {
						if arrives(t.Context(), due) {
							c.ends[1-i].WriteToUDP(b[:n], c.to[1-i])
						}
					}
				}
			}
		}()
		go func() {
			for f := range queue {
				f()
			}
		}()
	}
	return c
}

func (c *cable) total() (octets, datagrams int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.octets[0] + c.octets[1], c.count[0] + c.count[1]
}

// quiet waits until nothing has crossed for a while.
func (c *cable) quiet(t *testing.T, d time.Duration) {
	t.Helper()
	check.Still(t, d, 5*time.Minute, "what has crossed", func() int { n, _ := c.total(); return n })
}

// process is a real gateway.
type process struct {
	binary, file, lan string
	cmd               *exec.Cmd
	log               bytes.Buffer
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(p.binary, "run", "-c", p.file)
	p.cmd.Stderr = &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// BiDi pipes and sockets through two real gateways: the cost of a block on the link, and that no octet is lost when
// the link is down for longer than 2.7 waits for an acknowledgement and a gateway is killed meanwhile.
func TestStreamsThroughRealGateways(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "gateway")
	if out, err := exec.Command("go", "build", "-o", binary, "aldis/cmd/gateway").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command(binary, "keys", "new", "-o", filepath.Join(dir, "net.key")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	links := [2]string{check.FreeAddress(t, "udp"), check.FreeAddress(t, "udp")}
	c := newCable(t, links, 1200*time.Millisecond)
	var gw [2]*process
	for i := range gw {
		gw[i] = &process{binary: binary, file: filepath.Join(dir, fmt.Sprintf("gw%d.toml", i)), lan: check.FreeAddress(t, "tcp")}
		text := fmt.Sprintf("[node]\nid = %d\nname = \"node%d\"\ndata_dir = %q\n[lan]\ntcp = %q\n[link]\nprofile = \"iridium-directip\"\nlisten = %q\nkey_file = \"net.key\"\n[http]\nlisten = %q\n[[link.peer]]\nid = %d\nname = \"node%d\"\naddress = %q\n",
			i+1, i+1, filepath.Join(dir, fmt.Sprint("data", i)), gw[i].lan, links[i], check.FreeAddress(t, "tcp"), 2-i, 2-i, c.ends[i].LocalAddr())
		if err := os.WriteFile(gw[i].file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		gw[i].start(t)
		t.Cleanup(func() {
			gw[i].kill()
			if t.Failed() {
				t.Logf("gateway %d:\n%s", i, gw[i].log.String())
			}
		})
	}
	w := newWorld(t, 12*time.Minute)
	var peers [2]*field.Peer
	for i, name := range []string{"A", "B"} {
		peers[i] = w.start(&side{host: "127.0.0.1"}, field.PeerConfig{Kind: field.KindJXSE27, Name: name, Port: 21700 + i + 10*(os.Getpid()%500), Seed: "tcp://" + gw[i].lan})
	}
	a, b := peers[0], peers[1]
	w.tell(a, "bidi-listen chat", "sock-listen file", "publish tracks unicast")
	w.tell(b, "find chat 1000", "find file 1000", "find tracks 1000")
	w.await(b, "discovered", "chat")
	w.await(b, "discovered", "file")
	w.await(b, "discovered", "tracks")
	c.quiet(t, 20*time.Second)
	measure := func(what string, p *field.Peer, lines ...string) {
		t.Helper()
		before, n := c.total()
		w.tell(p, lines...)
		check.Until(t, time.Minute, what+" crosses", func() bool { _, m := c.total(); return m > n })
		c.quiet(t, 8*time.Second) // acknowledgements wait 6 s
		after, m := c.total()
		t.Logf("%s: %d octets in %d datagrams", what, after-before, m-n)
	}
	measure("BiDi opening", b, "bidi-connect chat")
	w.await(a, "opened", "chat")
	measure("first BiDi block of 200", b, "bidi-send chat 200")
	measure("BiDi block of 200", b, "bidi-send chat 200")
	measure("16 BiDi blocks of 64", b, "bidi-send chat 64 16")
	measure("16 BiDi blocks of 200", b, "bidi-send chat 200 16")
	measure("BiDi block of 20,000", b, "bidi-send chat 20000")
	measure("first BiDi block of 200 back", a, "bidi-send chat 200")
	measure("BiDi block of 200 back", a, "bidi-send chat 200")
	measure("socket opening", b, "sock-connect file")
	w.await(a, "opened", "file")
	measure("first socket block of 200", b, "sock-send file 200")
	measure("socket block of 200", b, "sock-send file 200")
	measure("socket block of 20,000", b, "sock-send file 20000")
	measure("unicast message of 200", b, "send tracks 200")
	measure("unicast message of 200 again", b, "send tracks 200")

	c.mu.Lock()
	c.cut = true
	c.mu.Unlock()
	// The gateway dies when its peer's writers wait: 2.7 closes the messenger of a stream that sends while its relay is away.
	for _, p := range peers {
		w.tell(p, "bidi-send chat 300 110 0.02", "sock-send file 300 110 0.02")
	}
	check.Still(t, 10*time.Second, time.Minute, "what the peers' writers have sent", func() (n int) {
		for _, p := range peers {
			for _, e := range p.Events() {
				if e.Ev == "sent" {
					n++
				}
			}
		}
		return n
	})
	closed := func(e field.Event) bool { return e.Ev == "closed" }
	gw[0].kill()
	w.never(3*time.Second, "a stream ends", closed, peers[:]...)
	gw[0].start(t)
	w.never(60*time.Second, "a stream ends", closed, peers[:]...)
	c.mu.Lock()
	c.cut = false
	c.mu.Unlock()
	begun := time.Now()
	for _, x := range []struct {
		to         *field.Peer
		name, from string
		last       int64
	}{{a, "chat", "B", 35 + 110}, {a, "file", "B", 3 + 110}, {b, "chat", "A", 2 + 110}, {b, "file", "A", 110}} {
		if _, err := x.to.Wait(w.ctx, func(e field.Event) bool {
			return e.Ev == "received" && e.Name == x.name && e.From == x.from && e.Seq == x.last
		}); err != nil {
			t.Errorf("%s %s: %v", x.to.Name(), x.name, err)
		}
		next := int64(1)
		for _, e := range inTime(x.to) {
			if e.Ev == "received" && e.Name == x.name && e.From == x.from {
				if e.Seq != next || !e.OK {
					t.Errorf("%s received %+v; want number %d", x.to.Name(), e, next)
				}
				next++
			}
		}
	}
	t.Logf("all there %.1f s after the outage", time.Since(begun).Seconds())
	measure("BiDi closing", b, "bidi-close chat")
	w.await(a, "closed", "chat")
	measure("socket closing", b, "sock-close file")
	w.await(a, "closed", "file")
}
