package pairlink

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aldis/internal/edge/atrest"
	"aldis/internal/edge/journal"
	"aldis/internal/edge/tlslink"
	"aldis/internal/gateway/pair"
	"aldis/internal/gateway/quorum"
	"aldis/internal/lab/check"

	"golang.org/x/sys/unix"
)

// box is a machine of a site of two on loopback.
type box struct {
	t       testing.TB
	cfg     Config
	dir     string
	secret  atrest.Secret
	journal *journal.Journal
	link    *Link
	log     lines
	count   *atomic.Int64 // as of member
}

type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func siteKey() tlslink.Identity {
	own := testKey(7)
	return tlslink.Identity{Self: 2, Key: own, Member: func(id uint16, key ed25519.PublicKey) bool {
		return key.Equal(own.Public()) || id == 3 && key.Equal(testKey(8).Public())
	}}
}

// testKey is a key by number: 7 is the site's, 8 that of a ship in its network, 9 the site's key before its machine was revoked.
func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, 32))
}

// newPair makes two machines that do not run yet.
func newPair(t testing.TB, secret atrest.Secret) (boxes [2]*box) {
	t.Helper()
	at := [2]netip.AddrPort{netip.MustParseAddrPort(check.FreeAddress(t, "tcp")), netip.MustParseAddrPort(check.FreeAddress(t, "tcp"))}
	for i := range boxes {
		b := &box{t: t, dir: filepath.Join(t.TempDir(), "data"), secret: slices.Clone(secret)}
		b.cfg = Config{Identity: siteKey(), Listen: at[i], Other: at[1-i], Wall: time.Now, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
			Facts: []Fact{{"node.name", "ship"}}}
		boxes[i] = b
	}
	return boxes
}

func (b *box) start() {
	b.t.Helper()
	var err error
	b.journal, err = journal.OpenSealed(b.dir, journal.Identity{Node: 2, Name: "ship"}, slices.Clone(b.secret), nil)
	check.NoError(check.Fatal(b.t), err)
	b.cfg.Journal = b.journal
	ln, err := net.Listen("tcp", b.cfg.Listen.String())
	check.NoError(check.Fatal(b.t), err)
	if b.count != nil {
		ln = counted{ln, b.count}
	}
	b.link, err = Open(b.cfg, ln)
	check.NoError(check.Fatal(b.t), err)
	b.t.Cleanup(func() {
		b.stop()
		if b.t.Failed() {
			b.t.Logf("%v\n%s", b.cfg.Listen, b.log.text.String())
		}
	})
}

// die stops it like a power cut, as far as a process can.
func (b *box) die() {
	l := b.link
	l.end()
	l.mu.Lock()
	if l.conn != nil {
		l.conn.close()
	}
	l.lease.Store(&lease{})
	l.mu.Unlock()
	l.listener.Close()
	l.wait.Wait()
	b.journal.Close()
	b.link = nil
}

func (b *box) stop() {
	if b.link != nil {
		b.link.Close()
		b.journal.Close()
		b.link = nil
	}
}

// leads waits until one of the two leads, and begins its gateway.
func leads(t testing.TB, boxes [2]*box) (leader, follower *box, run uint64) {
	t.Helper()
	check.Until(t, time.Minute, "one leads", func() bool {
		for i, b := range boxes {
			if r, _, _ := b.link.Leadership(); r != 0 {
				leader, follower, run = b, boxes[1-i], r
			}
		}
		return leader != nil
	})
	check.NoError(check.Fatal(t), leader.link.Begin(run))
	return leader, follower, run
}

func whole(t testing.TB, leader *box) {
	t.Helper()
	check.Until(t, time.Minute, "the other could lead", func() bool { return leader.link.Status().Ready })
}

func (b *box) records() (list []string) {
	b.t.Helper()
	check.NoError(b.t, b.journal.Load(func(bucket string, key, value []byte) error {
		list = append(list, fmt.Sprintf("%s %q %d %08x", bucket, key, len(value), crc32.ChecksumIEEE(value)))
		return nil
	}))
	return list
}

// The follower's journal becomes that of the leader: by a snapshot, then commit by commit, and again after it was away. This holds
// sealed or not, and each machine has its own secret.
func TestFollowerHasTheJournal(t *testing.T) {
	for _, secret := range []atrest.Secret{nil, atrest.Secret("a secret of more than sixteen octets")} {
		boxes := newPair(t, secret)
		boxes[0].start()
		boxes[1].start()
		check.NoError(t, boxes[0].journal.SetIncarnation(77))
		leader, follower, run := leads(t, boxes)
		check.NoError(t, leader.link.Commit(run, []journal.Op{{Bucket: "a", Key: []byte("first"), Value: bytes.Repeat([]byte{1}, 3<<20)}}, nil))
		whole(t, leader)
		for i := range 50 {
			ops := []journal.Op{{Bucket: "a", Key: []byte{byte(i)}, Value: []byte("text")}, {Bucket: "b", Key: []byte{byte(i)}, Value: []byte{}}}
			if i%3 == 0 {
				ops = append(ops, journal.Op{Bucket: "a", Key: []byte{byte(i)}})
			}
			check.NoError(t, leader.link.Commit(run, ops, nil))
			if leader.link.Status().Alone { // a machine that is too busy to answer counts as gone, and comes back
				whole(t, leader)
			}
			check.Equal(t, "records of both", fmt.Sprint(follower.records()), fmt.Sprint(leader.records()))
		}
		check.Equal(t, "store", follower.journal.StoreID(), leader.journal.StoreID())
		check.Equal(t, "start", follower.journal.Incarnation(), leader.journal.Incarnation())

		follower.stop()
		for i := range 20 {
			check.NoError(t, leader.link.Commit(run, []journal.Op{{Bucket: "c", Key: []byte{byte(i)}, Value: []byte("alone")}}, nil))
		}
		s := leader.link.Status()
		check.True(t, "it is alone, and says with how much", s.Alone && s.OneDiskCommits >= 19 && s.OneDiskOctets > 100, s)
		follower.start()
		whole(t, leader)
		check.Until(t, time.Minute, "both have the same records again", func() bool { return slices.Equal(follower.records(), leader.records()) })
		leader.stop()
		again, _, _ := leads(t, [2]*box{follower, follower})
		check.True(t, "a leader that ends in order hands over", again == follower)
		leader.start()
		whole(t, follower)
	}
}

// A machine that no longer leads commits nothing.
func TestDeposedCommitsNothing(t *testing.T) {
	boxes := newPair(t, nil)
	boxes[0].start()
	boxes[1].start()
	leader, follower, run := leads(t, boxes)
	whole(t, leader)
	check.True(t, "it may transmit", leader.link.MayTransmit(run))
	check.True(t, "it retires", leader.link.Retire(netip.AddrPort{}))
	check.True(t, "it may not any more", !leader.link.MayTransmit(run))
	check.Equal(t, "commit", leader.link.Commit(run, []journal.Op{{Bucket: "a", Key: []byte("k"), Value: []byte("v")}}, nil), ErrDeposed)
	other, _, _ := leads(t, [2]*box{follower, follower})
	check.Equal(t, "the other leads, without it", len(other.records()), 0)
}

// The facts that must be the same on both machines are compared, and each difference is named on both. Nothing is lost by it.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		differ     func(boxes [2]*box)
	}{
		{"clock", "clock", func(b [2]*box) {
			b[1].cfg.Wall = func() time.Time { return time.Now().Add(365 * 24 * time.Hour) }
		}},
		{"fact", "it differs in node.name", func(b [2]*box) { b[1].cfg.Facts = []Fact{{"node.name", "other"}} }},
		{"two journals", "both machines have a journal", func(b [2]*box) {
			for i := range b {
				j, err := journal.Open(b[i].dir, journal.Identity{Node: 2, Name: "ship"})
				check.NoError(t, err)
				check.NoError(t, j.SetIncarnation(5))
				check.NoError(t, j.Close())
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			boxes := newPair(t, nil)
			tt.differ(boxes)
			boxes[0].start()
			boxes[1].start()
			for i, b := range boxes {
				check.Until(t, time.Minute, "it is refused", func() bool { return strings.Contains(b.link.Status().Refused, tt.says) })
				run, _, _ := b.link.Leadership()
				check.Equal(t, fmt.Sprintf("leadership of %d", i), run, uint64(0))
			}
		})
	}
}

// A third machine that believes to be one of the two is refused, and the two go on.
func TestThirdMachine(t *testing.T) {
	boxes := newPair(t, nil)
	boxes[0].start()
	boxes[1].start()
	leader, follower, run := leads(t, boxes)
	whole(t, leader)
	third := newPair(t, nil)[0]
	for third.cfg.Listen.Compare(leader.cfg.Listen) > 0 || third.cfg.Listen == follower.cfg.Listen { // it calls
		third.cfg.Listen = netip.AddrPortFrom(third.cfg.Listen.Addr(), third.cfg.Listen.Port()/2+512)
	}
	third.cfg.Other = leader.cfg.Listen
	third.start()
	check.Until(t, time.Minute, "it is refused", func() bool { return strings.Contains(third.link.Status().Refused, "a third machine") })
	run3, _, _ := third.link.Leadership()
	check.Equal(t, "its leadership", run3, uint64(0))
	check.True(t, "the two go on", leader.link.MayTransmit(run) && leader.link.Status().Ready)
}

// A witness votes once in an epoch, also after a restart, and only for members of its network.
func TestWitness(t *testing.T) {
	dir := t.TempDir()
	for i, tt := range []struct {
		node    uint16
		claim   pair.Claim
		granted bool
	}{
		{2, pair.Claim{Machine: 1, Epoch: 1}, true},
		{2, pair.Claim{Machine: 1, Epoch: 1}, true},
		{2, pair.Claim{Machine: 2, Epoch: 1}, false},
		{2, pair.Claim{Machine: 2, Epoch: 2}, false}, // it lacks commits that the other has confirmed since
		{2, pair.Claim{Machine: 2, Epoch: 2, From: 1}, true},
		{2, pair.Claim{Machine: 1, Epoch: 3, From: 1}, false},
		{2, pair.Claim{Machine: 1, Epoch: 1 << 20, Forced: true}, true},
		{3, pair.Claim{Machine: 9, Epoch: 1}, true},
		{2, pair.Claim{Machine: 2}, false},
	} {
		w, err := NewWitness(siteKey(), dir, slog.New(slog.DiscardHandler))
		check.NoError(check.Fatal(t), err)
		v, err := w.judge(tt.node, tt.claim)
		check.NoError(t, err)
		check.Equal(t, fmt.Sprintf("claim %d", i), v.Granted, tt.granted)
	}
}

// Whatever a frame holds, writing the parsed frame again gives the same octets.
func FuzzFrames(f *testing.F) {
	f.Add(byte(kindMessage), appendMessage(pair.Message{Kind: pair.KindBeat, Epoch: 3, N: 4}))
	f.Add(byte(kindRecords), appendOps(nil, []journal.Op{{Bucket: "a", Key: []byte("k"), Value: []byte("v")}, {Bucket: "b", Key: []byte("k")}}))
	f.Add(byte(kindClaim), appendClaim(pair.Claim{Machine: 1, Epoch: 2, From: 1}))
	f.Add(byte(kindVerdict), appendVerdict(pair.Verdict{Epoch: 2, Granted: true, Newest: 2}))
	f.Add(byte(kindQuorum), appendQuorum(quorum.Message{Kind: quorum.KindBeat, Term: 3, N: 4, Acked: []quorum.At{{Index: 1, Term: 2}}, Raft: []byte("text")}))
	f.Add(byte(kindHello), []byte(`{"protocol":1,"hello":{"Machine":1}}`))
	var packed bytes.Buffer
	p := packs(&packed)
	p.Write(append(appendFrame(nil, kindPing), appendFrame(nil, kindPart, make([]byte, 300))...))
	p.Flush()
	f.Add(byte(kindPart), packed.Bytes())
	f.Add(byte(kindTaken), []byte("text"))
	f.Fuzz(func(t *testing.T, k byte, b []byte) {
		var again []byte
		var err error
		switch kind(k) {
		case kindMessage:
			var m pair.Message
			m, err = parseMessage(b)
			again = appendMessage(m)
		case kindRecords:
			var ops []journal.Op
			ops, err = parseOps(b)
			again = appendOps(nil, ops)
		case kindClaim:
			var c pair.Claim
			c, err = parseClaim(b)
			again = appendClaim(c)
		case kindVerdict:
			var v pair.Verdict
			v, err = parseVerdict(b)
			again = appendVerdict(v)
		case kindQuorum:
			var m quorum.Message
			m, err = parseQuorum(b)
			again = appendQuorum(m)
		case kindHello:
			if g, err := parseGreeting(b); err == nil && g.Hello.Machine == 0 && (g.Member == nil || g.Member.Machine == 0) {
				t.Error("a greeting of no machine")
			}
			return
		case kindPart: // packed octets of a hostile machine
			in := unpacks(bufio.NewReader(bytes.NewReader(b)))
			for err == nil {
				var content []byte
				if _, content, err = readFrame(in, mostGreeting); len(content) > mostGreeting {
					t.Errorf("a frame of %d octets", len(content))
				}
			}
			return
		default:
			var packed bytes.Buffer
			p := packs(&packed)
			p.Write(appendFrame(nil, kind(k), b))
			p.Flush()
			for _, in := range []io.Reader{bytes.NewReader(appendFrame(nil, kind(k), b)), unpacks(bufio.NewReader(&packed))} {
				got, content, err := readFrame(in, len(b))
				if err != nil || got != kind(k) || !bytes.Equal(content, b) {
					t.Errorf("%v %d %x", err, got, content)
				}
			}
			return
		}
		if err == nil && !bytes.Equal(again, b) {
			t.Errorf("%x is read as %x", b, again)
		}
	})
}

// A host that connects to the follower again and again has it pass on many connections. They end unheard, and the machines stay connected.
func TestManyPassedEndNotTheConnection(t *testing.T) {
	k := &conn{wake: make(chan struct{}, 1)}
	k.room.L = &k.mu
	s := taking{list: map[netip.AddrPort]taken{}}
	for i := range 5 * mostPassing {
		at := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), uint16(1024+i))
		check.NoError(check.Fatal(t), s.hear(k, appendPassed(nil, at, 0)))
		check.NoError(check.Fatal(t), s.hear(k, appendPassed(nil, at, ended)))
	}
	check.True(t, "they are bounded", len(s.list) <= 4*mostPassing)
}

// passed starts two machines. At the door, the follower passes connections on to a server at the leader, which echoes.
func passed(t testing.TB) (follower *box, echo, door net.Listener) {
	t.Helper()
	_, follower, echo, door = passedTo(t, func(c net.Conn) { io.Copy(c, c) })
	return follower, echo, door
}

// passedTo is passed with another server.
func passedTo(t testing.TB, serve func(net.Conn)) (leader, follower *box, echo, door net.Listener) {
	t.Helper()
	listen := func() net.Listener {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		check.NoError(check.Fatal(t), err)
		t.Cleanup(func() { ln.Close() })
		return ln
	}
	echo, door = listen(), listen()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { serve(c); c.Close() }()
		}
	}()
	boxes := newPair(t, nil)
	for i := range boxes {
		boxes[i].cfg.Ways = []Way{{Key: "lan.tcp", At: echo.Addr().(*net.TCPAddr).AddrPort()}}
		boxes[i].start()
	}
	leader, follower, _ = leads(t, boxes)
	whole(t, leader)
	go follower.link.Pass("lan.tcp", door)
	return leader, follower, echo, door
}

// The leader learns that octets are on the peer's machine once they are there, and not when only the machine between has them.
func TestPassedIsOnThePeersMachine(t *testing.T) {
	const size = 1 << 20
	ends := make(chan netip.AddrPort, 1)
	leader, _, _, door := passedTo(t, func(c net.Conn) {
		from, err := netip.ParseAddrPort(c.RemoteAddr().String())
		check.NoError(t, err)
		if _, err := c.Write(make([]byte, size)); err == nil {
			ends <- from
			io.Copy(io.Discard, c)
		}
	})
	c, err := (&net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 16<<10) })
	}}).Dial("tcp", door.Addr().String())
	check.NoError(check.Fatal(t), err)
	defer c.Close()
	from := <-ends // the kernels of the two machines have accepted everything
	check.Until(t, time.Minute, "the leader knows that it is passed on", func() bool { _, passed := leader.link.Passed(from); return passed })
	has := func() uint64 {
		has, _ := leader.link.Passed(from)
		return has
	}
	check.Still(t, 200*time.Millisecond, time.Minute, "what the peer has", func() int { return int(has()) })
	check.True(t, "what a peer has that reads nothing", has() > 0 && has() <= 64<<10, has())
	_, err = io.CopyN(io.Discard, c, size)
	check.NoError(t, err)
	check.Until(t, time.Minute, "the peer has all", func() bool { return has() == size })
	_, passed := leader.link.Passed(netip.MustParseAddrPort("127.0.0.1:9"))
	check.Equal(t, "a connection of nobody is passed on", passed, false)
}

// A machine that becomes the leader closes the connections that it passed on: the other machine may hang, which a peer would
// not notice.
func TestPassedUntilItLeads(t *testing.T) {
	follower, _, door := passed(t)
	c, err := net.Dial("tcp", door.Addr().String())
	check.NoError(check.Fatal(t), err)
	defer c.Close()
	data := make([]byte, 4)
	_, err = c.Write(data)
	check.NoError(t, err)
	_, err = io.ReadFull(c, data)
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "passing", follower.link.Status().Passing, 1)
	follower.link.Lead()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, err = c.Read(data)
	var late net.Error
	check.True(t, "its end", err != nil && !(errors.As(err, &late) && late.Timeout()), err)
	check.Until(t, time.Minute, "nothing is passed on", func() bool { return follower.link.Status().Passing == 0 })
}

// BenchmarkPass measures a local peer's round trip of 200 octets, on a connection to the leader and on one that the follower passes on.
func BenchmarkPass(b *testing.B) {
	_, echo, door := passed(b)
	for _, tt := range []struct {
		name string
		at   net.Addr
	}{{"leader", echo.Addr()}, {"follower", door.Addr()}} {
		b.Run(tt.name, func(b *testing.B) {
			c, err := net.Dial("tcp", tt.at.String())
			check.NoError(check.Fatal(b), err)
			defer c.Close()
			data := make([]byte, 200)
			for b.Loop() {
				_, err := c.Write(data)
				check.NoError(b, err)
				_, err = io.ReadFull(c, data)
				check.NoError(check.Fatal(b), err)
			}
		})
	}
}

// BenchmarkAcceptance measures commits of messages of 200 octets: on one disk, and on two. messages is the number in one
// commit.
func BenchmarkAcceptance(b *testing.B) {
	for _, disks := range []int{1, 2} {
		for _, messages := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("disks=%d/messages=%d", disks, messages), func(b *testing.B) {
				boxes := newPair(b, nil)
				boxes[0].start()
				boxes[1].start()
				leader, follower, run := leads(b, boxes)
				whole(b, leader)
				if disks == 1 {
					follower.stop()
				}
				var took []time.Duration
				from := rand.NewChaCha8([32]byte{4})
				n := 0
				for b.Loop() {
					ops := make([]journal.Op, messages)
					for i := range ops {
						n++
						ops[i] = journal.Op{Bucket: "mail", Key: fmt.Appendf(nil, "%09d", n%20_000), Value: make([]byte, 200)}
						from.Read(ops[i].Value)
					}
					began := time.Now()
					check.NoError(b, leader.link.Commit(run, ops, nil))
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-99%")
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
