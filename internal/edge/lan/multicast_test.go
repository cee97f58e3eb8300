package lan

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/site"
)

var etherGroup = netip.MustParseAddrPort("239.77.13.7:12340")

// etherLAN is a room that receives the group on an interface of its own.
func etherLAN(t *testing.T) (*LAN, *world, chan site.Event, *net.UDPConn) {
	t.Helper()
	w := &world{T: t, reg: prometheus.NewRegistry()}
	const name, at = "ajl-ether", "10.199.77.1"
	exec.Command("ip", "link", "del", name).Run()
	for _, line := range []string{"link add " + name + " type veth peer name " + name + "2", "link set " + name + "2 up", "addr add " + at + "/24 dev " + name, "link set " + name + " up"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
	t.Cleanup(func() { exec.Command("ip", "link", "del", name).Run() })
	events := make(chan site.Event, 4*hostBurst)
	l := New(Config{Peer: "uuid-1"}, func(ev site.Event) { events <- ev }, w.reg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	conn, err := ListenMulticast(etherGroup, netip.MustParseAddr(at))
	if err != nil {
		t.Fatal(err)
	}
	peer, err := ListenMulticast(etherGroup, netip.MustParseAddr(at)) // a JXTA peer on the same machine uses the same port
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.ServeMulticast(conn, etherGroup) }()
	t.Cleanup(func() {
		peer.Close()
		l.Shutdown()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l, w, events, peer
}

func next(t *testing.T, events chan site.Event) jxtabridge.Heard {
	t.Helper()
	select {
	case ev := <-events:
		h, ok := ev.(jxtabridge.Heard)
		if !ok {
			t.Fatalf("%+v", ev)
		}
		return h
	case <-time.After(time.Minute):
		t.Fatal("nothing is heard")
	}
	panic("not reached")
}

func TestMulticastBothWays(t *testing.T) {
	l, w, events, peer := etherLAN(t)
	message, err := jxta.AppendMessage(nil, jxta.Message{Elements: []jxta.Element{{Name: "a", Data: []byte("hej")}}})
	if err != nil {
		t.Fatal(err)
	}
	// Until the room has its socket, its datagrams go nowhere; the first one that arrives shows that it is served.
	for {
		l.Shout(jxtabridge.Shout{Body: append(message, "trailer"...), Message: len(message)})
		peer.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		buf := make([]byte, 1<<16)
		n, _, err := peer.ReadFromUDPAddrPort(buf)
		if err != nil {
			continue
		}
		body, err := jxta.ParseDatagram(buf[:n])
		if err != nil || string(body) != string(message)+"trailer" {
			t.Fatalf("%q, %v", body, err)
		}
		if h, _, err := jxta.ParsePackageHeader(buf[4:n]); err != nil || h.Length != uint64(len(message)) {
			t.Errorf("content-length %+v, %v: a 2.2 peer would read the trailer", h, err)
		}
		break
	}
	if h := next(t, events); string(h.Body) != string(message)+"trailer" || h.Remote == "" {
		t.Errorf("own datagram comes back as %+v: the bridge knows it by its id", h)
	}
	good, err := jxta.AppendDatagram(nil, message, len(message))
	if err != nil {
		t.Fatal(err)
	}
	short := append([]byte(nil), good[:len(good)-1]...)
	for _, bad := range [][]byte{nil, []byte("JXT"), []byte("HTTP/1.1"), short, append(good, make([]byte, jxta.MaxDatagram)...), []byte("JXTA\xff")} {
		peer.WriteToUDPAddrPort(bad, etherGroup)
	}
	peer.WriteToUDPAddrPort(good, etherGroup)
	if h := next(t, events); string(h.Body) != string(message) {
		t.Errorf("after garbage: %q", h.Body)
	}
	if n := w.refused("multicast_datagram"); n != 6 {
		t.Errorf("%v datagrams refused, want 6", n)
	}
}

// One host that floods causes a bounded number of events a second, and forged source addresses take no memory.
func TestMulticastFlood(t *testing.T) {
	events := 0
	w := &world{T: t, reg: prometheus.NewRegistry()}
	l := New(Config{}, func(site.Event) { events++ }, w.reg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	good, err := jxta.AppendDatagram(nil, []byte("jxmg"), 4)
	if err != nil {
		t.Fatal(err)
	}
	from := netip.MustParseAddrPort("10.0.0.9:1234")
	start := time.Now()
	for range 10 * hostBurst {
		l.datagram(good, from)
	}
	most := hostBurst + int(time.Since(start).Seconds()*hostRate) + 1
	if events < hostBurst || events > most {
		t.Errorf("%d events of one host, want %d to %d", events, hostBurst, most)
	}
	for i := range 20000 {
		l.datagram(good, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 1234))
	}
	if l.multicast.hosts.Len() > maxHosts+1 {
		t.Errorf("%d hosts are kept", l.multicast.hosts.Len())
	}
	if most := allBurst + int(time.Since(start).Seconds()*allRate) + 1; events > most {
		t.Errorf("%d events of all, want at most %d", events, most)
	}
	if w.refused("multicast_rate") == 0 {
		t.Error("what was not read is not counted")
	}
}
