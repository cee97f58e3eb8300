package tlslink

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

const patience = 20 * time.Second

// end is a bearer and the datagrams and lines that it has reported.
type end struct {
	*Link
	reg *prometheus.Registry
	log lines

	mu    sync.Mutex
	got   []api.Datagram
	lines []api.Line
}

// lines is a log that several goroutines write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func keyOf(id uint16) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(id)}, 32))
}

// open makes the bearer of a node; nodes 1 to 9 are members.
func open(t *testing.T, self uint16, ln net.Listener, change func(*Config)) *end {
	t.Helper()
	e := &end{reg: prometheus.NewRegistry()}
	cfg := Config{
		Identity: Identity{Self: self, Key: keyOf(self), Member: func(id uint16, key ed25519.PublicKey) bool {
			return id < 10 && key.Equal(keyOf(id).Public())
		}},
		Largest: 1472, Stall: 5 * time.Second, Metrics: NewMetrics(e.reg), Log: slog.New(slog.NewTextHandler(&e.log, nil)),
		Post: func(d api.Datagram) bool {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.got = append(e.got, d)
			return len(e.got) < 100_000
		},
		Tell: func(l api.Line) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.lines = append(e.lines, l)
		},
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	e.Link, err = Open(cfg, ln)
	check.NoError(check.Fatal(t), err)
	t.Cleanup(func() { e.Close() })
	e.Hush(false)
	return e
}

// line is the last reported line; the zero value: none.
func (e *end) line() (last api.Line, times int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.lines) == 0 {
		return last, 0
	}
	return e.lines[len(e.lines)-1], len(e.lines)
}

func (e *end) up() bool { l, _ := e.line(); return l.Addr.IsValid() }

func (e *end) texts() (list []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range e.got {
		list = append(list, string(d.Data))
	}
	return list
}

// refused is the number of connections that were refused or closed for a reason.
func (e *end) refused(reason string) (n int) {
	families, _ := e.reg.Gather()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if len(m.GetLabel()) > 0 && m.GetLabel()[0].GetValue() == reason {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

func listen(t *testing.T) (net.Listener, netip.AddrPort) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(check.Fatal(t), err)
	return ln, ln.Addr().(*net.TCPAddr).AddrPort()
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	check.Until(check.Fatal(t), patience, what, ok)
}

// pair is two bearers; node 2 calls node 1.
func pair(t *testing.T, change func(*Config)) (a, b *end, at netip.AddrPort) {
	t.Helper()
	ln, at := listen(t)
	a = open(t, 1, ln, nil)
	b = open(t, 2, nil, func(c *Config) {
		c.Dial = map[uint16]netip.AddrPort{1: at}
		if change != nil {
			change(c)
		}
	})
	until(t, "both have a connection", func() bool { return a.up() && b.up() })
	return a, b, at
}

// say sends a datagram to the node with which an end has a connection.
func (e *end) say(data []byte) {
	l, _ := e.line()
	e.Send([]api.Datagram{{Addr: l.Addr, Data: data}})
}

// Datagrams go both ways, whole and in order; each end knows the other by its address. A lost connection is reported at once, and soon
// replaced.
func TestBothWays(t *testing.T) {
	a, b, at := pair(t, nil)
	la, _ := a.line()
	lb, _ := b.line()
	check.True(t, "who is there", la.Peer == 2 && lb.Peer == 1 && lb.Addr == at, la, lb)
	for i := range 150 { // fewer than may wait for a connection
		b.say([]byte(fmt.Sprint("up ", i)))
		a.say(bytes.Repeat([]byte{byte('a' + i%26)}, 1472))
	}
	until(t, "all are there", func() bool { return len(a.texts()) == 150 && len(b.texts()) == 150 })
	for i, text := range a.texts() {
		check.Equal(t, "text", text, fmt.Sprint("up ", i))
	}
	b.mu.Lock()
	check.True(t, "from where it came", b.got[0].Addr == at, b.got[0].Addr)
	b.mu.Unlock()
	_, told := a.line()
	b.Link.mu.Lock()
	b.byPeer[1].raw.Close()
	b.Link.mu.Unlock()
	until(t, "there is another connection", func() bool { l, n := a.line(); return n >= told+2 && l.Addr.IsValid() && l.Addr != la.Addr })
	until(t, "the other end knows", b.up)
	a.Send([]api.Datagram{{Addr: la.Addr, Data: []byte("late")}, {Addr: at, Data: nil}})
	check.Equal(t, "datagrams without a connection", int(a.Stats().UnsentDatagrams), 2)
}

// A silent bearer has no connection and accepts none.
func TestHush(t *testing.T) {
	a, b, _ := pair(t, nil)
	b.say([]byte("last words"))
	b.Hush(true)
	until(t, "the last words are there", func() bool { return len(a.texts()) == 1 })
	until(t, "the connection is gone at both ends", func() bool { return !a.up() && !b.up() })
	b.Hush(false)
	until(t, "it is back", func() bool { return a.up() && b.up() })
	a.Hush(true)
	until(t, "the called end is silent", func() bool { return !a.up() && !b.up() })
	until(t, "calls are refused", func() bool { return a.refused("silent") > 0 })
}

// A node that leaves the roster loses its connection and gets no other.
func TestAMemberThatLeaves(t *testing.T) {
	ln, at := listen(t)
	var gone sync.Map
	a := open(t, 1, ln, func(c *Config) {
		was := c.Member
		c.Member = func(id uint16, key ed25519.PublicKey) bool { _, out := gone.Load(id); return !out && was(id, key) }
	})
	open(t, 2, nil, func(c *Config) { c.Dial = map[uint16]netip.AddrPort{1: at} })
	until(t, "it is up", a.up)
	gone.Store(uint16(2), true)
	a.Recheck()
	until(t, "its connection is gone", func() bool { return !a.up() })
	until(t, "it is refused", func() bool { return a.refused("handshake") > 0 })
	check.True(t, "and stays so", !a.up())
}

// Two nodes that call each other get one connection.
func TestCallsThatCross(t *testing.T) {
	lnA, atA := listen(t)
	lnB, atB := listen(t)
	a := open(t, 1, lnA, func(c *Config) { c.Dial = map[uint16]netip.AddrPort{2: atB} })
	b := open(t, 2, lnB, func(c *Config) { c.Dial = map[uint16]netip.AddrPort{1: atA} })
	until(t, "each hears the other", func() bool {
		if a.up() && b.up() {
			a.say([]byte("x"))
			b.say([]byte("y"))
		}
		return len(a.texts()) > 5 && len(b.texts()) > 5
	})
}

// Through a proxy, the peer is called at its own address.
func TestThroughAProxy(t *testing.T) {
	ln, at := listen(t)
	a := open(t, 1, ln, nil)
	proxy, proxyAt := listen(t)
	t.Cleanup(func() { proxy.Close() })
	go http.Serve(proxy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != at.String() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		there, err := net.Dial("tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusOK)
		here, _, _ := http.NewResponseController(w).Hijack()
		go func() { io.Copy(there, here); there.Close() }()
		io.Copy(here, there)
		here.Close()
	}))
	b := open(t, 2, nil, func(c *Config) { c.Dial, c.Proxy = map[uint16]netip.AddrPort{1: at}, proxyAt })
	until(t, "it is up", func() bool { return a.up() && b.up() })
	l, _ := b.line()
	check.Equal(t, "where the peer is", l.Addr, at)
	c := open(t, 3, nil, func(c *Config) { c.Dial, c.Proxy = map[uint16]netip.AddrPort{1: proxyAt}, proxyAt })
	until(t, "a refusal of the proxy is told", func() bool { return c.refused("call") > 0 })
}

// stranger shows a certificate with this key and number, and returns the other end's answer.
func stranger(at netip.AddrPort, id uint16, key ed25519.PrivateKey) error {
	i := Identity{Self: id, Key: key, Member: func(uint16, ed25519.PublicKey) bool { return true }}
	own, err := i.certificate()
	if err != nil {
		return err
	}
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", at.String(), i.config(own, 0))
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	_, err = io.ReadFull(c, make([]byte, 2))
	return err
}

// Strangers with TLS or HTTP, and members under another's number, get nothing; they are counted, and logged in one line. A flood of
// them takes no memory, and a member still gets through.
func TestStrangers(t *testing.T) {
	ln, at := listen(t)
	a := open(t, 1, ln, nil)
	for name, err := range map[string]error{
		"a key of nobody":          stranger(at, 2, keyOf(77)),
		"a member under another's": stranger(at, 3, keyOf(2)),
		"the number of the node":   stranger(at, 1, keyOf(1)),
		"a number that nobody has": stranger(at, 12, keyOf(12)),
		"no number":                stranger(at, 0, keyOf(2)),
	} {
		check.True(t, name+" is refused", err != nil)
	}
	web, err := net.Dial("tcp", at.String())
	check.NoError(check.Fatal(t), err)
	fmt.Fprint(web, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	web.SetDeadline(time.Now().Add(patience))
	answer, _ := io.ReadAll(bufio.NewReader(web))
	check.True(t, "HTTP gets an alert at the most", len(answer) <= 7, answer)
	until(t, "all are counted", func() bool { return a.refused("handshake") == 6 })
	before := runtime.NumGoroutine()
	for range tries {
		c, err := net.Dial("tcp", at.String())
		if err != nil {
			continue
		}
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	until(t, "the flood is refused", func() bool { return a.refused("rate") > tries*9/10 })
	until(t, "nothing is left of it", func() bool { return runtime.NumGoroutine() < before+5 })
	check.True(t, "one line for each reason", strings.Count(a.log.text(), "\n") <= 3, a.log.text())
	check.True(t, "nothing was taken", !a.up() && len(a.texts()) == 0)
	open(t, 2, nil, func(c *Config) { c.Dial = map[uint16]netip.AddrPort{1: at} })
	until(t, "a member gets through", a.up)
}

// A member may be hostile too: half a datagram, one that is too long, one of no octets. Each closes only its own connection.
func TestBrokenDatagrams(t *testing.T) {
	ln, at := listen(t)
	a := open(t, 1, ln, func(c *Config) { c.Half = 50 * time.Millisecond })
	for reason, octets := range map[string][]byte{"half": {0, 10, 1, 2, 3}, "length": {0xff, 0xff}} {
		i := Identity{Self: 2, Key: keyOf(2), Member: func(uint16, ed25519.PublicKey) bool { return true }}
		own, err := i.certificate()
		check.NoError(check.Fatal(t), err)
		c, err := tls.Dial("tcp", at.String(), i.config(own, 1))
		check.NoError(check.Fatal(t), err)
		c.SetDeadline(time.Now().Add(patience))
		_, err = io.ReadFull(c, make([]byte, 2))
		check.NoError(check.Fatal(t), err)
		until(t, "it is up", a.up)
		c.Write(append([]byte{0, 1, 'x'}, octets...))
		until(t, reason+" is counted", func() bool { return a.refused(reason) == 1 })
		until(t, "its connection is gone", func() bool { return !a.up() })
		c.Close()
	}
	check.Equal(t, "datagrams that were whole", len(a.texts()), 2)
}

// A peer that does not read keeps no more octets waiting than the bound, and loses its connection.
func TestAPeerThatDoesNotRead(t *testing.T) {
	ln, at := listen(t)
	a := open(t, 1, ln, func(c *Config) { c.Stall = 200 * time.Millisecond })
	i := Identity{Self: 2, Key: keyOf(2), Member: func(uint16, ed25519.PublicKey) bool { return true }}
	own, err := i.certificate()
	check.NoError(check.Fatal(t), err)
	c, err := tls.Dial("tcp", at.String(), i.config(own, 1))
	check.NoError(check.Fatal(t), err)
	defer c.Close()
	until(t, "it is up", a.up)
	until(t, "it is cut off", func() bool {
		for range 100 {
			a.say(make([]byte, 1472))
		}
		return !a.up()
	})
	check.True(t, "what had no room is counted", a.Stats().UnsentDatagrams > 0)
}

// A call that is under way when the silence begins ends at once.
func TestHushEndsACall(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(check.Fatal(t), err)
	defer ln.Close()
	called := make(chan net.Conn, 1)
	go func() {
		c, err := ln.Accept()
		if err == nil {
			called <- c
		}
	}()
	a := open(t, 1, nil, func(c *Config) { c.Dial = map[uint16]netip.AddrPort{2: ln.Addr().(*net.TCPAddr).AddrPort()} })
	c := <-called
	defer c.Close()
	b := make([]byte, 4096)
	c.Read(b) // its ClientHello
	a.Hush(true)
	c.SetReadDeadline(time.Now().Add(time.Minute))
	_, err = c.Read(b)
	check.Equal(t, "the end of the call", err, io.EOF)
}
