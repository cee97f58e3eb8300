package field

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
)

// testWorld makes a world that is removed with the test, failed or not.
func testWorld(t *testing.T) *world {
	t.Helper()
	w, err := newWorld()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		spaces := w.spaces
		if err := w.close(); err != nil {
			t.Error(err)
		}
		for _, ns := range spaces {
			if _, err := os.Stat("/run/netns/" + ns); err == nil {
				t.Errorf("%s is left over", ns)
			}
		}
	})
	return w
}

func load(t *testing.T, name string) profile.Profile {
	t.Helper()
	p, err := profile.Load(name, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func testHub(t *testing.T, pcap string, names []string, p ...profile.Profile) (*world, *Hub) {
	t.Helper()
	w := testWorld(t)
	var nodes []HubNode
	for i, name := range names {
		ns, err := w.add(name)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, HubNode{Name: name, Netns: ns, Addr: linkAddr(i), Profile: p[i]})
	}
	h, err := StartHub(HubConfig{Nodes: nodes, Seed: 1, PcapDir: pcap})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, h
}

// TestPing: an iridium-directip leg with its delays divided by ten, real ping, real kernel.
func TestPing(t *testing.T) {
	p := load(t, "iridium-directip")
	for _, d := range []*profile.Direction{&p.Up, &p.Down} {
		d.Delay, d.Jitter, d.LossPct = d.Delay/10, 0, 0
		d.RateBps *= 10
	}
	dir := t.TempDir()
	w, h := testHub(t, dir, []string{"hq", "ship"}, load(t, "wire"), p)
	out, err := exec.Command("ip", "netns", "exec", w.spaces[1], "ping", "-c", "3", "-i", "0.2", "-s", "56", "-W", "2", "10.77.0.1").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "3 received") {
		t.Fatalf("ping: %v\n%s", err, out)
	}
	st := h.Stats()
	up, down := st.Link.Node("ship").Up, st.Link.Node("ship").Down
	check.Equal(t, "up.OnAir.Frames", up.OnAir.Frames, 3)
	check.Equal(t, "up.OnAir.Octets", up.OnAir.Octets, 252)
	check.Equal(t, "down.OnAir.Octets", down.OnAir.Octets, 252)
	check.Equal(t, "len(st.TCP)", len(st.TCP), 0)
	// 2 x 90 ms, 84 octets at 48 and at 93 kbit/s.
	_, text, _ := strings.Cut(string(out), "= ")
	text, _, _ = strings.Cut(text, "/")
	least, err := time.ParseDuration(text + "ms")
	if want := 201 * time.Millisecond; err != nil || least < want || least > want+100*time.Millisecond {
		t.Errorf("round trip %v, %v; want %v and a little", least, err, want)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "hq.pcap"))
	if want := 24 + 6*(16+84); err != nil || len(b) != want {
		t.Errorf("hq.pcap has %d octets, %v; want %d", len(b), err, want)
	}
}

// TestMulticastAndOutage: UDP from one to two others, then to one that is off the air.
func TestMulticastAndOutage(t *testing.T) {
	wire := load(t, "wire")
	w, h := testHub(t, "", []string{"hq", "a", "b"}, wire, wire, wire)
	group := &net.UDPAddr{IP: net.IPv4(239, 1, 1, 1), Port: 7000}
	listen := func(ns string) net.PacketConn {
		var c net.PacketConn
		err := InNetns(ns, func() error {
			ifi, err := net.InterfaceByName("link0")
			if err != nil {
				return err
			}
			c, err = net.ListenMulticastUDP("udp4", ifi, group)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	a, b := listen(w.spaces[1]), listen(w.spaces[2])
	if err := ip("-n", w.spaces[0], "route", "add", "239.0.0.0/8", "dev", "link0"); err != nil {
		t.Fatal(err)
	}
	var from net.Conn
	if err := InNetns(w.spaces[0], func() (err error) {
		from, err = net.DialUDP("udp4", nil, group)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	buf := make([]byte, 100)
	heard := func(c net.PacketConn, wait time.Duration) bool {
		if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
			t.Fatal(err)
		}
		_, _, err := c.ReadFrom(buf)
		return err == nil
	}
	if _, err := from.Write([]byte("hej")); err != nil {
		t.Fatal(err)
	}
	if !heard(a, time.Minute) || !heard(b, time.Minute) {
		t.Error("multicast did not reach both")
	}
	if err := h.Outage("a", true); err != nil {
		t.Fatal(err)
	}
	if _, err := from.Write([]byte("hej")); err != nil {
		t.Fatal(err)
	}
	if !heard(b, time.Minute) || heard(a, 50*time.Millisecond) {
		t.Error("a hears during its outage, or b does not")
	}
	if got := h.Stats().Link.Node("a").Down.DroppedOutage.Frames; got == 0 {
		t.Error("no frame was lost to the outage")
	}
	if err := h.Outage("nobody", true); err == nil {
		t.Error("an outage of nobody")
	}
}

// TestTCPCount: a connection is counted once, for the side that opened it.
func TestTCPCount(t *testing.T) {
	wire := load(t, "wire")
	w, h := testHub(t, "", []string{"hq", "ship"}, wire, wire)
	var l net.Listener
	if err := InNetns(w.spaces[0], func() (err error) {
		l, err = net.Listen("tcp4", "10.77.0.1:9701")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 {
		c, err := DialIn(t.Context(), w.spaces[1], "10.77.0.1:9701")
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if got := h.Stats().TCP; len(got) != 1 || got["ship"] != 2 {
		t.Errorf("TCP connections %v, want 2 from ship", got)
	}
}

// TestRedial: afterwards the node is reached at its new address and no longer at its old one.
func TestRedial(t *testing.T) {
	wire := load(t, "wire")
	w, h := testHub(t, "", []string{"hq", "ship"}, wire, wire)
	if err := h.Redial("ship", redialAddr(0, 1)); err != nil {
		t.Fatal(err)
	}
	ping := func(addr netip.Addr) bool {
		return exec.Command("ip", "netns", "exec", w.spaces[0], "ping", "-c", "1", "-W", "1", addr.String()).Run() == nil
	}
	if !ping(redialAddr(0, 1).Addr()) || ping(linkAddr(1).Addr()) {
		t.Error("the new address does not answer, or the old one does")
	}
	if err := h.Redial("nobody", redialAddr(0, 1)); err == nil {
		t.Error("nobody has redialled")
	}
}

// TestPeerSeesOnlyItsLAN: from a peer's namespace the gateway's LAN address answers, the link does not.
func TestPeerSeesOnlyItsLAN(t *testing.T) {
	wire := load(t, "wire")
	w, _ := testHub(t, "", []string{"hq", "ship"}, wire, wire)
	peer, err := w.add("peer")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lan(w.spaces[1], lanAddr(1, 1)), plug(w.spaces[1], peer, "p1", lanAddr(1, 2))); err != nil {
		t.Fatal(err)
	}
	ping := func(addr netip.Addr) bool {
		return exec.Command("ip", "netns", "exec", peer, "ping", "-c", "1", "-W", "1", addr.String()).Run() == nil
	}
	if !ping(lanAddr(1, 1).Addr()) {
		t.Error("the peer does not reach its gateway")
	}
	if ping(linkAddr(1).Addr()) || ping(linkAddr(0).Addr()) {
		t.Error("the peer reaches the link")
	}
}

// TestStaleRunIsCleaned: the namespaces of a killed run are removed; those of a living one stay.
func TestStaleRunIsCleaned(t *testing.T) {
	alive := testWorld(t)
	if _, err := alive.add("a"); err != nil {
		t.Fatal(err)
	}
	dead := testWorld(t)
	ns, err := dead.add("a")
	if err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("ip", "netns", "exec", ns, "sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleeper.Process.Kill() }) // in case the cleanup does not
	inside, err := os.Stat("/run/netns/" + ns)
	if err != nil {
		t.Fatal(err)
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for range poll.C { // ip needs a moment to move in
		now, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", sleeper.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if os.SameFile(now, inside) {
			break
		}
	}
	if err := unix.Flock(int(dead.lock.Fd()), unix.LOCK_UN); err != nil { // as the kernel does for a killed run
		t.Fatal(err)
	}
	testWorld(t) // a new run
	if err := sleeper.Wait(); err == nil {
		t.Error("the dead run's process ended by itself")
	}
	if _, err := os.Stat("/run/netns/" + ns); err == nil {
		t.Errorf("%s of the dead run is still there", ns)
	}
	dead.spaces = nil
	if _, err := os.Stat("/run/netns/" + alive.spaces[0]); err != nil {
		t.Errorf("the living run's namespace: %v", err)
	}
	if _, err := os.Create(filepath.Join(lockDir, dead.id)); err != nil { // for the cleanup of this test
		t.Fatal(err)
	}
}
