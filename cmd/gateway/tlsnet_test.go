package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
	"aldis/internal/lab/field"
)

// firewall is network namespaces: a shore, a site, and between them an address translation that lets only TCP to port 443 out.
type firewall struct {
	t           *testing.T
	name        string
	ln          net.Listener
	shore, site string // addresses towards the machine of the test
	mu          sync.Mutex
	cut         bool
	open        []net.Conn
	passed      int // octets from the site
	conns       int
}

func ip(t *testing.T, line string) {
	t.Helper()
	out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
	check.True(check.Fatal(t), "ip "+line, err == nil, string(out), err)
}

func newFirewall(t *testing.T) *firewall {
	t.Helper()
	n := os.Getpid() % 10_000
	w := &firewall{t: t, name: fmt.Sprintf("t443-%d", n)}
	net3 := fmt.Sprintf("10.%d.%d", 100+n/200, n%200)
	w.shore, w.site = net3+".2", net3+".6"
	shore, wall, site := w.name+"-shore", w.name+"-wall", w.name+"-site"
	for _, space := range []string{shore, wall, site} {
		ip(t, "netns add "+space)
		t.Cleanup(func() { exec.Command("ip", "netns", "del", space).Run() })
		ip(t, "-n "+space+" link set lo up")
	}
	join := func(a, aSpace, aAddr, b, bSpace, bAddr string) {
		ip(t, fmt.Sprintf("link add %s type veth peer name %s", a, b))
		for _, end := range [][3]string{{a, aSpace, aAddr}, {b, bSpace, bAddr}} {
			in := ""
			if end[1] != "" {
				ip(t, fmt.Sprintf("link set %s netns %s", end[0], end[1]))
				in = "-n " + end[1] + " "
			} else {
				t.Cleanup(func() { exec.Command("ip", "link", "del", end[0]).Run() })
			}
			ip(t, in+"addr add "+end[2]+" dev "+end[0])
			ip(t, in+"link set "+end[0]+" up")
		}
	}
	tag := fmt.Sprint(n)
	join("th"+tag, "", net3+".1/30", "lan0", shore, w.shore+"/30")
	join("ts"+tag, "", net3+".5/30", "lan0", site, w.site+"/30")
	join("wan0", shore, "198.51.100.7/24", "out0", wall, "198.51.100.8/24")
	join("wan0", site, "192.168.7.2/24", "in0", wall, "192.168.7.1/24")
	check.NoError(check.Fatal(t), field.InNetns(wall, func() (err error) { w.ln, err = net.Listen("tcp", "192.168.7.1:443"); return err }))
	t.Cleanup(func() { w.ln.Close(); w.set(true) })
	go w.serve(wall)
	return w
}

// serve passes connections on to the shore.
func (w *firewall) serve(wall string) {
	for {
		in, err := w.ln.Accept()
		if err != nil {
			return
		}
		out, err := field.DialIn(context.Background(), wall, "198.51.100.7:443")
		w.mu.Lock()
		if err != nil || w.cut {
			in.Close()
			if out != nil {
				out.Close()
			}
		} else {
			w.open = append(w.open, in, out)
			w.conns++
			go func() { io.Copy(in, out); in.Close(); out.Close() }()
			go func() { io.Copy(counts{out, w}, in); in.Close(); out.Close() }()
		}
		w.mu.Unlock()
	}
}

type counts struct {
	net.Conn
	w *firewall
}

func (c counts) Write(b []byte) (int, error) {
	c.w.mu.Lock()
	c.w.passed += len(b)
	c.w.mu.Unlock()
	return c.Conn.Write(b)
}

// set cuts all connections and prevents new ones, or allows them again.
func (w *firewall) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		for _, c := range w.open {
			c.Close()
		}
		w.open = nil
	}
}

func (w *firewall) octets() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passed
}

// start runs a gateway in a namespace.
func (w *firewall) start(s *testSite, space string) *running {
	cmd := gatewayCommand("run", "-c", s.file)
	ipPath, err := exec.LookPath("ip")
	check.NoError(check.Fatal(w.t), err)
	self, err := os.Executable()
	check.NoError(check.Fatal(w.t), err)
	cmd.Args = append([]string{"ip", "netns", "exec", w.name + "-" + space, self}, cmd.Args[1:]...)
	cmd.Path = ipPath
	return s.startCommand(w.t, cmd)
}

// Two real gateways, one behind an address translation that lets only port 443 out, have one TLS connection. It is cut in the middle of 20
// kB, and each gateway is killed in the middle of 20 kB: each message arrives once, in order.
func TestOverTLSBehindAFirewall(t *testing.T) {
	t.Parallel()
	w := newFirewall(t)
	shore := newSite(t, 1, "")
	site := newSite(t, 2, shore.key())
	shore.lan, shore.http, site.lan, site.http = w.shore+":9701", w.shore+":9142", w.site+":9701", w.site+":9142"
	for i, s := range []*testSite{shore, site} {
		more := []string{"listen = \"198.51.100.7:443\"\n[[link.peer]]\nid = 2\n", "[[link.peer]]\nid = 1\naddress = \"192.168.7.1:443\"\n"}[i]
		text := fmt.Sprintf("[node]\nid = %d\nname = \"node%d\"\ndata_dir = %q\n[lan]\ntcp = %q\n[http]\nlisten = %q\n[link]\nover = \"tls\"\nprofile = \"iridium-certus-100\"\nkey_file = \"net.key\"\n%s",
			i+1, i+1, s.dir+"/data", s.lan, s.http, more)
		check.NoError(check.Fatal(t), os.WriteFile(s.file, []byte(text), 0o644))
	}
	a, b := w.start(shore, "shore"), w.start(site, "site")
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	k := newTalk(t, a, b)
	b.until(t, "the listener is known", func() bool { return b.peer(t).FarItems > 0 })
	rng := rand.New(rand.NewPCG(443, 1))
	var said []string
	all := func() bool { return k.there.all() == strings.Join(said, " ") }
	amid := func(what string) {
		t.Helper()
		text := make([]byte, 20_000)
		for i := range text {
			text[i] = byte('!' + rng.IntN(90))
		}
		said = append(said, string(text))
		before := w.octets()
		check.NoError(check.Fatal(t), k.say(string(text)))
		b.until(t, "some of 20 kB is over before "+what, func() bool { return w.octets() > before+5000 })
		check.True(t, "not all of it", !all())
	}
	durable := func(r *running) {
		t.Helper()
		r.until(t, "all is durable", func() bool { _, m := r.get("/metrics"); return strings.Contains(m, "\naldis_journal_held_bytes 0\n") })
	}
	amid("the cut")
	w.set(true)
	b.until(t, "the bearer is down", func() bool { return b.peer(t).Link == "silent" })
	w.set(false)
	a.until(t, "all arrive after the cut", all)

	amid("the death of the site's gateway")
	durable(b)
	check.Equal(t, "exit", b.stop(t, syscall.SIGKILL), -1)
	b = w.start(site, "site")
	a.until(t, "all arrive after the death of the site's gateway", all)
	k.sender = dialWith(t, tcp.Config{Address: b.lan, Edge: edgepeer.Config{ID: k.sender.ID(), Name: "ops", Rand: rand.New(rand.NewPCG(3, 1))}})
	b.until(t, "the listener is known again", func() bool { return b.peer(t).FarItems > 0 })

	amid("the death of the shore's gateway")
	durable(a)
	check.Equal(t, "exit", a.stop(t, syscall.SIGKILL), -1)
	a = w.start(shore, "shore")
	dialWith(t, tcp.Config{Address: a.lan, Hear: k.there.hear, Pipes: []edgepeer.Listen{{Pipe: k.pipe, Kind: jxta.PipeTypePropagate}},
		Edge: edgepeer.Config{Name: "hq-ops", Rand: rand.New(rand.NewPCG(1, 1))}})
	a.until(t, "all arrive after the death of the shore's gateway", all)
	w.mu.Lock()
	t.Logf("%d connections, %d octets from the site for %d messages of 20,000", w.conns, w.passed, len(said))
	w.mu.Unlock()
}
