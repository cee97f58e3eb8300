package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"aldis/internal/edge/keyfile"
	"aldis/internal/gateway/api"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
)

// refused runs a site's gateway, which must not start, and returns its output.
func refused(t *testing.T, s *testSite) string {
	t.Helper()
	code, out, errs := run(t, "run", "-c", s.file)
	if code != 1 || out != "" {
		t.Errorf("exit %d, stdout %q; want 1 and nothing", code, out)
	}
	return errs
}

func wants(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

func TestTenMistakes(t *testing.T) {
	s := newSite(t, 2, "")
	text := fmt.Sprintf(`[node]
id = 0
name = ""
data_dir = %q
colour = "grey"
[lan]
tcp = "10.20.0.1"
max_connections = -1
[link]
profile = "iridium"
listen = "7142"
key_file = "no.key"
keepalive = "soon"
[[link.peer]]
id = 1
address = "hq.example:7142"
[[link.peer]]
id = 1
`, filepath.Join(s.dir, "data"))
	if err := os.WriteFile(s.file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"2: node.id: ", "3: node.name: ", "5: node.colour: ", "7: lan.tcp: ", "8: lan.max_connections: ", "10: link.profile: ",
		"11: link.listen: ", "12: link.key_file: ", "13: link.keepalive: ", "16: link.peer.address: ", "18: link.peer.id: ",
	}
	for _, command := range []string{"check", "run"} {
		code, out, errs := run(t, command, "-c", s.file)
		if code != 1 || out != "" {
			t.Errorf("%s: exit %d, stdout %q", command, code, out)
		}
		lines := strings.Split(strings.TrimSpace(errs), "\n")
		if len(lines) != len(want)+1 || lines[len(lines)-1] != "11 mistakes" {
			t.Fatalf("%s: %d lines, want %d:\n%s", command, len(lines), len(want)+1, errs)
		}
		for i, w := range want {
			if !strings.HasPrefix(lines[i], s.file+":"+w) {
				t.Errorf("%s: line %q, want %q", command, lines[i], w)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "data")); err == nil {
		t.Error("a refused run made the data directory")
	}
}

func TestKeyFile(t *testing.T) {
	s := newSite(t, 2, "")
	if err := os.Chmod(s.key(), 0o644); err != nil {
		t.Fatal(err)
	}
	wants(t, refused(t, s), s.file+":10: link.key_file: ", "mode 0644", "chmod 600 "+s.key())
	if err := os.Remove(s.key()); err != nil {
		t.Fatal(err)
	}
	wants(t, refused(t, s), s.file+":10: link.key_file: ", "does not exist", "gateway keys new -o "+s.key())
}

func TestPortInUse(t *testing.T) {
	s := newSite(t, 2, "")
	for key, take := range map[string]func() (io.Closer, error){
		"lan.tcp":     func() (io.Closer, error) { return net.Listen("tcp", s.lan) },
		"http.listen": func() (io.Closer, error) { return net.Listen("tcp", s.http) },
		"link.listen": func() (io.Closer, error) { return net.ListenPacket("udp", s.link) },
	} {
		c, err := take()
		if err != nil {
			t.Fatal(err)
		}
		wants(t, refused(t, s), key+": ", "is used by another program", "set another "+key)
		c.Close()
	}
	r := s.start(t) // the refused starts have left nothing
	if code := r.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestAddressOfAnotherMachine(t *testing.T) {
	s := newSite(t, 2, "")
	s.link = "192.0.2.1:7142"
	s.write(t, filepath.Join(s.dir, "data"))
	wants(t, refused(t, s), "link.listen: 192.0.2.1 is no address of this machine")
}

func TestDataDirectory(t *testing.T) {
	first := newSite(t, 2, "")
	r := first.start(t)

	second := newSite(t, 2, first.key())
	second.write(t, filepath.Join(first.dir, "data"))
	wants(t, refused(t, second), "another gateway uses it", "node.data_dir")
	if code := r.stop(t, syscall.SIGINT); code != 0 {
		t.Errorf("exit %d", code)
	}

	third := newSite(t, 3, first.key())
	third.write(t, filepath.Join(first.dir, "data"))
	wants(t, refused(t, third), "it belongs to another node", `node 2 \"node2\"`, "node.data_dir")

	db, err := bolt.Open(filepath.Join(first.dir, "data", "aldis.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("\x00journal")).Put([]byte("format"), []byte{0, 0, 0, 5})
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	wants(t, refused(t, first), "written by a newer gateway", "install the newer gateway")
}

// two starts a network of node 1 and node 2, and returns once they have met.
func two(t testing.TB) (a, b *running) {
	t.Helper()
	sa := newSite(t, 1, "")
	sb := newSite(t, 2, sa.key())
	sa.write(t, filepath.Join(sa.dir, "data"), "2 "+sb.link)
	sb.write(t, filepath.Join(sb.dir, "data"), "1 "+sa.link)
	a, b = sa.start(t), sb.start(t)
	a.until(t, "its peer is up", func() bool { return a.peer(t).Link == "up" })
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	return a, b
}

// peer is the status of the only peer.
func (r *running) peer(t testing.TB) api.PeerStatus {
	t.Helper()
	peers := r.status(t).Peers
	if len(peers) != 1 {
		t.Fatalf("node %d has %d peers", r.id, len(peers))
	}
	return peers[0]
}

func TestStatus(t *testing.T) {
	a, b := two(t)
	code, out, errs := run(t, "status", "-c", a.file)
	if code != 0 || errs != "" {
		t.Errorf("exit %d: %s", code, errs)
	}
	wants(t, out, `node 1 "node1"`, "2 node2  up", b.link, "PAYLOAD", "received")
	code, out, _ = run(t, "status", "-c", a.file, "--json")
	if code != 0 {
		t.Errorf("--json: exit %d", code)
	}
	wants(t, out, `"name": "node1"`, `"ledger": [`)
	_, metrics := a.get("/metrics")
	wants(t, metrics, `aldis_link_up{peer="node2"} 1`, `aldis_link_bytes_total{direction="sent",kind="key",peer="node2"}`, "aldis_lan_connections 0")
	if code := a.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
	if code, _, errs := run(t, "status", "-c", a.file); code != 1 || !strings.Contains(errs, "no gateway answers at "+a.http) {
		t.Errorf("without a gateway: exit %d: %s", code, errs)
	}
}

// kill -9 and start again: same store, same JXTA identity, a higher incarnation number, and the peer follows.
func TestKillAndRestart(t *testing.T) {
	a, b := two(t)
	before := a.status(t)
	a.stop(t, syscall.SIGKILL)
	again := a.testSite.start(t)
	if after := again.status(t); after.IncarnationNumber <= before.IncarnationNumber {
		t.Errorf("incarnation number %d after %d", after.IncarnationNumber, before.IncarnationNumber)
	}
	again.until(t, "its peer is up", func() bool { return again.peer(t).Link == "up" })
	b.until(t, "the restart was noticed", func() bool { return strings.Contains(b.logged(), "a peer has started") })
	if strings.Contains(b.logged(), "lost its store") {
		t.Error("the store was taken for a new one")
	}
}

// Two gateways have the id 2, the same key and peers, and a store of their own each: their peer reports it.
func TestTwoNodesWithOneID(t *testing.T) {
	t.Parallel()
	sa := newSite(t, 1, "")
	sa.write(t, filepath.Join(sa.dir, "data"), "2")
	a := sa.start(t)
	for range 2 {
		s := newSite(t, 2, sa.key())
		s.more = `keepalive = "1s"` // both go on sending
		s.write(t, filepath.Join(s.dir, "data"), "1 "+sa.link)
		s.start(t)
		a.until(t, "a node 2 was heard", func() bool { return a.peer(t).Link == "up" })
	}
	a.until(t, "it says that two nodes have one id", func() bool { return strings.Contains(a.logged(), "two nodes with one id") })
	wants(t, a.logged(), `"id":2`)
}

// Datagrams that are not authentic are counted, and nothing else happens.
func TestGarbageOnTheLink(t *testing.T) {
	a, b := two(t)
	conn, err := net.Dial("udp", a.link)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	random := rand.New(rand.NewPCG(7, 7))
	const each = 50
	for range each {
		garbage := make([]byte, random.IntN(600))
		for i := range garbage {
			garbage[i] = byte(random.Uint32())
		}
		conn.Write(garbage)
		if len(garbage) > 1 { // one that resembles node 2's
			garbage[0], garbage[1] = 0x10|byte(random.IntN(2)), 2
			conn.Write(garbage)
		}
	}
	a.until(t, "the garbage was counted", func() bool {
		var n uint64
		for _, d := range a.status(t).Dropped {
			n += d
		}
		return n >= 2*each-2
	})
	if p := a.peer(t); p.Link != "up" || p.Address != b.link {
		t.Errorf("garbage moved the peer: %+v", p)
	}
	if code, body := a.get("/healthz"); code != 200 {
		t.Errorf("healthz: %d %s", code, body)
	}
}

// Garbage, a frame that announces 4 GiB, and a host that opens 10,000 connections and keeps those that are accepted: other
// hosts are served all the same.
func TestHostileHostOnTheLAN(t *testing.T) {
	s := newSite(t, 1, "")
	r := s.start(t)
	welcome := "JXTAHELLO tcp://" + s.lan + " tcp://127.0.0.1:9 urn:jxta:uuid-59616261646162614A787461503250330000000000000000000000000000000103 0 1 3.0\r\n"
	for _, text := range []string{
		"GET / HTTP/1.1\r\n\r\n", strings.Repeat("x", 100_000), "JXTAHELLO\r\n",
		welcome + "\x0econtent-length\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00", // 2^32 octets
		welcome + "\x0econtent-length\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff\x00",
	} {
		conn, err := net.Dial("tcp", s.lan)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, text)
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) { // until it is disconnected
			t.Errorf("%.20q: %v", text, err)
		}
		conn.Close()
	}

	var mu sync.Mutex
	var kept []net.Conn
	defer func() {
		for _, c := range kept {
			c.Close()
		}
	}()
	var dialers sync.WaitGroup
	for range 20 {
		dialers.Go(func() {
			for range 500 {
				c, err := net.Dial("tcp", s.lan)
				if err != nil {
					continue
				}
				io.WriteString(c, welcome)
				mu.Lock()
				kept = append(kept, c)
				mu.Unlock()
			}
		})
	}
	dialers.Wait()
	if len(kept) < 9000 {
		t.Errorf("only %d connections were made", len(kept))
	}
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: patience}
	conn, err := other.Dial("tcp", s.lan)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(patience))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "JXTAHELLO ") {
		t.Errorf("another host gets %q, %v", line, err)
	}
	_, metrics := r.get("/metrics")
	wants(t, metrics, `aldis_lan_refused_total{reason="connections_per_address"}`)
	if code, body := r.get("/healthz"); code != 200 {
		t.Errorf("healthz: %d %s", code, body)
	}
	if code := r.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// The gateway of another network at a peer's address: none of its datagrams is accepted.
func TestAnotherNetworksKey(t *testing.T) {
	sa := newSite(t, 1, "")
	sb := newSite(t, 2, "") // draws a key of its own
	sa.write(t, filepath.Join(sa.dir, "data"), "2 "+sb.link)
	sb.write(t, filepath.Join(sb.dir, "data"), "1 "+sa.link)
	a, b := sa.start(t), sb.start(t)
	for _, r := range []*running{a, b} {
		r.until(t, "the other network was counted", func() bool { return r.status(t).Dropped["not_authentic"] > 0 })
		if p := r.peer(t); p.Link == "up" || p.DatagramsReceived != 0 {
			t.Errorf("node %d: %+v", r.id, p)
		}
	}
}

// A full disk is reported once in the log, at /healthz and by status. The LAN is still served; nothing is lost, and everything
// works again once there is room.
func TestFullDisk(t *testing.T) {
	s := newSite(t, 1, "")
	key, err := keyfile.LoadKey(s.key())
	if err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(s.dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("aldis-gateway", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("mounting a small tmpfs: %v (this test needs root)", err)
	}
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	const many = 200 // peers: the records of each make the store grow
	var peers []string
	for id := 2; id < 2+many; id++ {
		peers = append(peers, fmt.Sprint(id))
	}
	s.write(t, filepath.Join(disk, "data"), peers...)
	a := s.start(t)

	filler, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	filler.Close()
	link, err := net.Dial("udp", s.link)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	var datagrams [][]byte
	hello := frame.Append(nil, frame.Hello{Store: 9, Stream: 1, HeardIncarnation: a.status(t).IncarnationNumber, HeardStream: 1}, true) // strangers would not count
	for id := 2; id < 2+many; id++ {
		d, err := seal.NewSealer(key, uint16(id), seal.Incarnation{Number: 7, Salt: 7}).Seal(nil, 1, true, hello)
		if err != nil {
			t.Fatal(err)
		}
		datagrams = append(datagrams, d)
		link.Write(d)
	}
	a.until(t, "it says that the disk is full", func() bool {
		code, body := a.get("/healthz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "no space left on device")
	})
	code, out, _ := run(t, "status", "-c", a.file)
	if code != 1 {
		t.Errorf("status on a full disk: exit %d", code)
	}
	wants(t, out, "TROUBLE: ", "no space left on device")
	conn, err := net.Dial("tcp", a.lan)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Errorf("no welcome on a full disk: %v", err)
	}
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	a.until(t, "it is well again", func() bool { code, _ := a.get("/healthz"); return code == 200 })
	heard := func() (n uint64) {
		for _, p := range a.status(t).Peers {
			n += p.DatagramsReceived
		}
		return n
	}
	a.until(t, "every peer was heard", func() bool { return heard() == many })
	if n := strings.Count(a.logged(), "the journal cannot be written"); n != 1 {
		t.Errorf("told %d times", n)
	}
	wants(t, a.logged(), "the journal writes again")

	// Messages accepted on the full disk are durable: after kill -9 the same datagrams are replays.
	a.stop(t, syscall.SIGKILL)
	a = s.start(t)
	for _, d := range datagrams {
		link.Write(d)
	}
	a.until(t, "all are replays", func() bool { return a.status(t).Dropped["replay"] == many })
	if n := heard(); n != 0 {
		t.Errorf("%d datagrams were accepted twice", n)
	}
	if code := a.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
}
