package pairlink

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"aldis/internal/edge/tlslink"
	"aldis/internal/gateway/pair"
	"aldis/internal/gateway/quorum"
	"aldis/internal/lab/check"
)

// besieged is a site that others try to enter through its ports.
type besieged struct {
	ports []netip.AddrPort // the leader's first
	logs  func() string
	loss  func()      // makes the leader disappear
	works func() bool // somebody leads and confirms commits
}

func besiegedTwo(t *testing.T) besieged {
	boxes := newPair(t, nil)
	votes, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(check.Fatal(t), err)
	w, err := NewWitness(siteKey(), t.TempDir(), slog.New(slog.DiscardHandler))
	check.NoError(check.Fatal(t), err)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go w.Serve(ctx, votes)
	for _, b := range boxes {
		b.cfg.Witness = votes.Addr().(*net.TCPAddr).AddrPort()
		b.start()
	}
	leader, other, _ := leads(t, boxes)
	whole(t, leader)
	return besieged{
		ports: []netip.AddrPort{leader.cfg.Listen, other.cfg.Listen},
		logs:  func() string { return leader.log.all() + other.log.all() },
		loss:  func() { leader.die() },
		works: func() bool {
			run, _, _ := other.link.Leadership()
			return run != 0 && other.link.Begin(run) == nil && other.link.MayTransmit(run) && other.link.Commit(run, put(0), nil) == nil
		},
	}
}

func besiegedThree(t *testing.T) besieged {
	list := newMembers(t, 3)
	for _, m := range list {
		m.start()
	}
	leader, _ := led(t, list)
	rest := slices.DeleteFunc(slices.Clone(list), func(m *member) bool { return m == leader })
	return besieged{
		ports: []netip.AddrPort{leader.cfg.Listen, rest[0].cfg.Listen, rest[1].cfg.Listen},
		logs:  func() string { return list[0].log.all() + list[1].log.all() + list[2].log.all() },
		loss:  func() { leader.die() },
		works: func() bool {
			for _, m := range rest {
				if run, _, _ := m.cluster.Leadership(); run != 0 && m.cluster.Begin(run) == nil && m.cluster.MayTransmit(run) && m.cluster.Commit(run, put(0), nil) == nil {
					return true
				}
			}
			return false
		},
	}
}

// Strangers, a ship of the network with its own key, and a machine whose key was revoked try again and again at the ports of a site of two
// and of one of three. None is accepted, and the log names each kind. Meanwhile the leader is lost, and another one leads within 10 s.
func TestStrangers(t *testing.T) {
	for name, of := range map[string]func(*testing.T) besieged{"two": besiegedTwo, "three": besiegedThree} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := of(t)
			anybody := func(uint16, ed25519.PublicKey) bool { return true }
			var keys []*tls.Config
			for _, id := range []tlslink.Identity{{Self: 3, Key: testKey(8), Member: anybody}, {Self: 4, Key: testKey(10), Member: anybody}, {Self: 2, Key: testKey(9), Twin: true, Member: anybody}} {
				c, err := id.Config(0)
				check.NoError(t, err)
				c.VerifyConnection = nil // it accepts whoever answers
				keys = append(keys, c)
			}
			var wait sync.WaitGroup
			taken, made := &tally{}, &tally{}
			half := sync.OnceFunc(func() {
				began := time.Now()
				s.loss()
				check.Until(t, 10*time.Second, "another one leads", s.works)
				t.Logf("another one leads %v after the loss", time.Since(began).Round(time.Millisecond))
			})
			const workers = 8
			for worker := range workers {
				wait.Go(func() {
					for i := worker; i < tries; i += workers {
						if i >= tries/2 && worker == 0 {
							half()
						}
						ports := s.ports
						if i >= tries/2 {
							ports = ports[1:]
						}
						kind, at := i%4, ports[i/4%len(ports)]
						if kind < 3 {
							if enters(at, keys[kind]) {
								taken.add(kind)
							}
						} else if raw, err := net.Dial("tcp", at.String()); err == nil {
							raw.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
							raw.Close()
						}
						made.add(kind)
					}
				})
			}
			wait.Wait()
			check.Equal(t, "taken", fmt.Sprint(taken.n), "[0 0 0 0]")
			check.True(t, "all were made", made.n[0] >= tries/4 && made.n[3] >= tries/4, made.n)
			for _, says := range []string{"node 3 answers in the place of node 2", "it has no key of this network", "does not look like a TLS handshake"} {
				check.Contains(t, "logs", s.logs(), says)
			}
			check.True(t, "the site works", s.works())
		})
	}
}

// tally counts by kind.
type tally struct {
	mu sync.Mutex
	n  [4]int
}

func (c *tally) add(kind int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[kind]++
}

// enters sends a hello as a member of the site would, and says whether there is an answer.
func enters(at netip.AddrPort, as *tls.Config) bool {
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", at.String(), as)
	if err != nil {
		return false
	}
	defer c.Close()
	text, _ := json.Marshal(greeting{Protocol: protocol, Hello: pair.Hello{Stored: pair.Stored{Machine: 5}}, Member: &quorum.Hello{Machine: 5, Whole: true}, Listen: at, Clock: time.Now().Unix()})
	c.Write(appendFrame(appendFrame(nil, kindHello, text), kindQuorum, appendQuorum(quorum.Message{Kind: quorum.KindForgot})))
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, _ := c.Read(make([]byte, 1)) // TLS 1.3: the caller learns of the refusal when it reads
	return n > 0
}

// A member that comes back with a different configuration is refused, and the reason is logged on both machines; the others go on. Once
// it is corrected, it gets everything that it missed.
func TestMemberThatDiffers(t *testing.T) {
	list := newMembers(t, 3)
	for _, m := range list {
		m.start()
	}
	type row struct {
		says   string
		change func(m, third *member)
	}
	rows := []row{
		{"clock", func(m, _ *member) { m.cfg.Wall = func() time.Time { return time.Now().AddDate(1, 0, 0) } }},
		{"clock", func(m, _ *member) { m.cfg.Wall = func() time.Time { return time.Now().AddDate(-1, 0, 0) } }},
		{"no key of this network", func(m, _ *member) {
			m.cfg.Identity = tlslink.Identity{Self: 2, Key: testKey(9), Member: siteKey().Member}
		}},
		{"it has a copy of the data directory of the member", func(m, third *member) {
			m.dir = filepath.Join(t.TempDir(), "copy")
			third.stop()
			copyDir(t, third.dir, m.dir)
			third.start()
		}},
		{"it is one of two", nil},
	}
	for i, f := range list[0].cfg.Facts {
		rows = append(rows, row{"differs in " + f.Name, func(m, _ *member) {
			m.cfg.Facts = slices.Clone(m.cfg.Facts)
			m.cfg.Facts[i].Value = "another"
		}})
	}
	n := 0
	commit := func() {
		for range 5 {
			committed(t, list, put(n))
			n++
		}
	}
	for i, r := range rows {
		commit()
		allSame(t, list, n)
		leader, _ := led(t, list)
		at := slices.Index(list, leader)
		m, third := list[(at+1)%3], list[(at+2)%3]
		before, dir := m.cfg, m.dir
		if r.change != nil {
			r.change(m, third)
			allSame(t, list, n)
		}
		m.stop()
		said, saidThere, saidHere := len(leader.log.all()), len(third.log.all()), len(m.log.all())
		if r.change == nil {
			m.two(leader)
		} else {
			m.start()
		}
		check.Until(t, 20*time.Second, fmt.Sprintf("row %d is refused: %s", i, r.says), func() bool {
			text := leader.log.all()[said:] + third.log.all()[saidThere:] // each text is logged once a minute
			text += m.log.all()[saidHere:]                                // whoever is called shows its certificate first
			for _, other := range []*member{leader, third} {
				text += other.cluster.Status().Members[slices.Index(list, m)].Refused
			}
			return strings.Contains(text, r.says)
		})
		for _, other := range []*member{leader, third} {
			check.True(t, "nobody is connected with it", !other.cluster.Status().Members[slices.Index(list, m)].Connected)
		}
		commit()
		m.stop()
		m.cfg, m.dir = before, dir
		m.start()
		allSame(t, list, n)
	}
}

// A machine that has the keys and speaks the members' protocol, but does not behave like a member, is refused, and the refusal
// names the reason. The others go on.
func TestMemberThatSaysWhatNoneSays(t *testing.T) {
	list, leader, m, is := oneAway(t)
	from := slices.Index(list, m)
	raft := func(kind raftpb.MessageType, term uint64) []byte {
		to := uint64(slices.Index(list, leader) + 1)
		text, err := proto.Marshal(&raftpb.Message{Type: &kind, Term: &term, From: new(uint64(from + 1)), To: &to, Index: new(uint64(math.MaxUint64))})
		check.NoError(t, err)
		return appendFrame(nil, kindQuorum, appendQuorum(quorum.Message{Kind: quorum.KindRaft, Raft: text}))
	}
	packed := func(frames []byte) []byte {
		var b bytes.Buffer
		p := packs(&b)
		p.Write(frames)
		check.NoError(t, p.Flush())
		return b.Bytes()
	}
	for _, row := range []struct {
		says     string
		protocol int
		frames   []byte
		packs    bool
	}{
		{"version 99 of the protocol", 99, nil, false},
		{"it says what no member says: MsgVote of term 18446744073709551615", protocol, raft(raftpb.MsgVote, math.MaxUint64), false},
		{"it says what no member says: MsgSnap", protocol, raft(raftpb.MsgSnap, is.Term), false},
		{"it says what no member says: MsgAppResp of entry", protocol, raft(raftpb.MsgAppResp, is.Term), false},
		{"the frame is broken: kind 77", protocol, appendFrame(nil, kind(77)), false},
		{"the frame is broken: 4294967294 octets", protocol, []byte{255, 255, 255, 255, byte(kindQuorum)}, false},
		{"the frame is broken", protocol, appendFrame(nil, kindPart, []byte("no copy was begun")), false},
		{"the frame is broken", protocol, appendFrame(nil, kindQuorum, []byte("short")), false},
		{"the frame is broken: kind 77", protocol, packed(appendFrame(nil, kind(77))), true},
		{"the frame is broken: 100663297 octets", protocol, packed(append(binary.BigEndian.AppendUint32(nil, mostFrame+2), make([]byte, 8<<20)...)), true},
		{"flate: corrupt input", protocol, bytes.Repeat([]byte{255}, 100), true},
		{"EOF", protocol, []byte{3, 0}, true}, // the stream says that it ends
	} {
		said := len(leader.log.all())
		m.speak(leader.cfg.Listen, greeting{Protocol: row.protocol, Member: &is, Listen: m.cfg.Listen, Clock: time.Now().Unix(), Facts: leader.cluster.cfg.Facts, Packs: row.packs}, row.frames)
		check.Until(t, 10*time.Second, "it is named: "+row.says, func() bool { return strings.Contains(leader.log.all()[said:], row.says) })
		committed(t, list, put(1))
	}
	m.start()
	allSame(t, list, 2)
}

// oneAway makes three members that have the same commit. m is the member after the leader in the list, and has died; is is its last greeting.
func oneAway(t *testing.T) (list []*member, leader, m *member, is quorum.Hello) {
	t.Helper()
	list = newMembers(t, 3)
	for _, m := range list {
		m.start()
	}
	leader, _ = led(t, list)
	committed(t, list, put(0))
	allSame(t, list, 1)
	m = list[(slices.Index(list, leader)+1)%3]
	is = m.cluster.m.Hello()
	m.die()
	return list, leader, m, is
}

// speak sends frames in the place of a member.
func (m *member) speak(to netip.AddrPort, g greeting, frames []byte) *tls.Conn {
	m.t.Helper()
	id := siteKey()
	id.Twin = true
	as, err := id.Config(0)
	check.NoError(check.Fatal(m.t), err)
	c, err := tls.Dial("tcp", to.String(), as)
	check.NoError(check.Fatal(m.t), err)
	text, err := json.Marshal(g)
	check.NoError(m.t, err)
	if _, err = c.Write(append(appendFrame(nil, kindHello, text), frames...)); !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		check.NoError(m.t, err) // the machine may close after the first record of several
	}
	m.t.Cleanup(func() { c.Close() })
	return c
}
