package taklan

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/adapters/tak"
	"aldis/internal/edge/lan"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// room is a LAN whose events are recorded.
type room struct {
	*LAN
	reg *prometheus.Registry
	at  string
	mu  sync.Mutex
	got []site.Event
}

func newRoom(t *testing.T, cfg Config) *room {
	t.Helper()
	r := &room{reg: prometheus.NewRegistry()}
	r.LAN = New(cfg, func(ev site.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, ev)
	}, r.reg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	ln, err := lan.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.at = ln.Addr().String()
	done := make(chan error, 1)
	go func() { done <- r.Serve(ln) }()
	t.Cleanup(func() {
		r.Shutdown()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// events are the recorded events of a type.
func events[E site.Event](r *room) (list []E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ev := range r.got {
		if e, ok := ev.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

func dial(t *testing.T, r *room) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const limit = 20 * time.Second

// refused is the number of refusals for a reason.
func (r *room) refused(reason string) (n float64) {
	families, err := r.reg.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "aldis_tak_lan_refused_total" && m.GetLabel()[0].GetValue() == reason {
				n = m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// A device's messages come as whole events; events for it are in the version that it asked for.
func TestStream(t *testing.T) {
	r := newRoom(t, Config{})
	c := dial(t, r)
	fmt.Fprint(c, "<?xml version='1.0'?>\n<event uid='1'></event>\n<event uid='2'></ev")
	check.Until(t, limit, "the first event is there", func() bool { return len(events[tak.Heard](r)) == 1 })
	fmt.Fprint(c, "ent>")
	check.Until(t, limit, "the second event is there", func() bool { return len(events[tak.Heard](r)) == 2 })
	if got := string(events[tak.Heard](r)[1].Frame); got != "<event uid='2'></event>" {
		t.Errorf("it came as %q", got)
	}
	id := events[tak.Opened](r)[0].Conn
	r.Do(tak.Send{Conn: id, XML: []byte("xml,"), Proto: []byte("proto,")})
	r.Do(tak.Speak{Conn: id})
	r.Do(tak.Spread{XML: []byte("xml,"), Proto: []byte("proto,")})
	r.Do(tak.Spread{Except: []site.ConnID{id}, XML: []byte("other,"), Proto: []byte("other,")})
	r.Do(tak.Send{Conn: id, XML: []byte("last"), Proto: []byte("last")})
	got := make([]byte, len("xml,proto,last"))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "xml,proto,last" {
		t.Errorf("the device was given %q, %v", got, err)
	}
	c.Close()
	check.Until(t, limit, "its end is told", func() bool { return len(events[tak.Closed](r)) == 1 })
}

// Devices that break a bound are disconnected, each for its own reason; others are not.
func TestBadStreams(t *testing.T) {
	r := newRoom(t, Config{ReadStall: 200 * time.Millisecond, MaxQueue: 1 << 20, MaxConnsPerAddress: 4})
	good := dial(t, r)
	check.Until(t, limit, "the good stream is open", func() bool { return len(events[tak.Opened](r)) == 1 })
	half := dial(t, r)
	fmt.Fprint(half, "<event uid='half'>")
	nonsense := dial(t, r)
	fmt.Fprint(nonsense, "GET / HTTP/1.0\r\n")
	deaf := dial(t, r)
	check.Until(t, limit, "four streams are open", func() bool { return len(events[tak.Opened](r)) == 4 })
	check.Until(t, limit, "half an event ends its stream", func() bool { return r.refused("never_ends") == 1 })
	check.Until(t, limit, "nonsense ends its stream", func() bool { return r.refused("broken") == 1 && len(events[tak.Broken](r)) == 1 })
	check.Until(t, limit, "both are told", func() bool { return len(events[tak.Closed](r)) == 2 })
	go io.Copy(io.Discard, good)
	big := bytes.Repeat([]byte("x"), 1<<19)
	check.Until(t, limit, "who never reads is cut off", func() bool {
		r.Do(tak.Spread{Except: []site.ConnID{events[tak.Opened](r)[0].Conn}, XML: big})
		return r.refused("never_reads") >= 1
	})
	deaf.Close()
	fmt.Fprint(good, "<event></event>")
	check.Until(t, limit, "the good device is heard", func() bool { return len(events[tak.Heard](r)) == 1 })
	var many []net.Conn
	for range 4 {
		many = append(many, dial(t, r))
	}
	check.Until(t, limit, "one address has no more than its share", func() bool { return r.refused("connections_per_address") >= 1 })
	for _, c := range many {
		c.Close()
	}
}

// A flood on the mesh is read up to its bound, and counted; our own datagrams are not posted.
func TestMesh(t *testing.T) {
	r := newRoom(t, Config{})
	const name, address = "atk-mesh", "10.199.78.1"
	at := netip.MustParseAddr(address)
	exec.Command("ip", "link", "del", name).Run()
	for _, line := range []string{"link add " + name + " type veth peer name " + name + "2", "link set " + name + "2 up", "addr add " + address + "/24 dev " + name, "link set " + name + " up"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
	t.Cleanup(func() { exec.Command("ip", "link", "del", name).Run() })
	m := Mesh{At: at, Events: netip.MustParseAddrPort("239.77.3.1:16969"), Chats: netip.MustParseAddrPort("239.77.3.2:17012")}
	if err := r.OpenMesh(m); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.ServeMesh() }()
	device, err := lan.ListenMulticast(netip.MustParseAddrPort("239.77.3.3:17013"), at) // has a port of its own
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	hears, err := lan.ListenMulticast(m.Chats, at)
	if err != nil {
		t.Fatal(err)
	}
	defer hears.Close()
	check.Until(t, limit, "the room hears the mesh", func() bool {
		device.WriteToUDPAddrPort([]byte("<event/>"), m.Events)
		return len(events[tak.Overheard](r)) > 0
	})
	r.Do(tak.Shout{Chat: true, Data: []byte("words")})
	buf := make([]byte, 100)
	hears.SetReadDeadline(time.Now().Add(limit))
	if n, err := hears.Read(buf); err != nil || string(buf[:n]) != "words" {
		t.Errorf("a member of the mesh heard %q, %v", buf[:n], err)
	}
	check.Until(t, limit, "a storm is held back", func() bool {
		for range 500 {
			device.WriteToUDPAddrPort([]byte("<storm/>"), m.Events)
		}
		return r.refused("mesh_rate") > 0
	})
	for _, o := range events[tak.Overheard](r) {
		if strings.Contains(string(o.Data), "words") {
			t.Error("the room hears itself")
		}
	}
	r.Shutdown()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Taken is posted when the machine of the device has the event, also behind another machine, and not while it is only in our kernel.
func TestTaken(t *testing.T) {
	var has atomic.Uint64
	var passed atomic.Bool
	r := newRoom(t, Config{Passed: func(netip.AddrPort) (uint64, bool) { return has.Load(), passed.Load() }})
	c := dial(t, r)
	check.Until(t, limit, "the stream is open", func() bool { return len(events[tak.Opened](r)) == 1 })
	id := events[tak.Opened](r)[0].Conn
	r.Do(tak.Send{Conn: id, XML: []byte("not asked")})
	r.Do(tak.Spread{XML: []byte("first"), Token: 1})
	check.Until(t, limit, "the device's machine has the first", func() bool { return len(events[tak.Taken](r)) == 1 })
	r.Do(tak.Spread{Except: []site.ConnID{id}, XML: []byte("for others"), Token: 2})
	long := bytes.Repeat([]byte("x"), 3<<20) // more than the kernels of both ends keep for a device that does not read
	r.Do(tak.Send{Conn: id, XML: long})
	r.Do(tak.Send{Conn: id, XML: []byte("last"), Token: 3})
	for range 50 { // no time makes it taken: its machine has no room
		if r.Do(tak.Speak{Conn: id}); len(events[tak.Taken](r)) != 1 {
			t.Fatalf("taken before the device has read: %v", events[tak.Taken](r))
		}
	}
	passed.Store(true)
	if _, err := io.CopyN(io.Discard, c, int64(len("not askedfirst")+len(long)+len("last"))); err != nil {
		t.Fatal(err)
	}
	if list := events[tak.Taken](r); len(list) != 1 {
		t.Fatalf("the machine between has all, and the device not: %v", list)
	}
	has.Store(uint64(len("not askedfirst") + len(long) + len("last")))
	check.Until(t, limit, "the device behind another machine has all", func() bool { return len(events[tak.Taken](r)) == 2 })
	if list := events[tak.Taken](r); list[0] != (tak.Taken{Conn: id, Token: 1}) || list[1] != (tak.Taken{Conn: id, Token: 3}) {
		t.Errorf("taken %v", list)
	}
}
