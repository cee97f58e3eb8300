package pairlink

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aldis/internal/edge/journal"
	"aldis/internal/gateway/quorum"
	"aldis/internal/lab/check"
)

// member is a machine of a site of three, on loopback.
type member struct {
	t       testing.TB
	cfg     Config
	dir     string
	journal *journal.Journal
	cluster *Cluster
	link    *Link // if it believes to be one of two
	log     lines
	count   *atomic.Int64 // octets with others that have called it; nil: they are not counted
}

// newMembers makes machines that do not run yet.
func newMembers(t testing.TB, n int) (list []*member) {
	t.Helper()
	at, err := check.FreeAddresses("tcp", n)
	check.NoError(check.Fatal(t), err)
	slices.SortFunc(at, netip.AddrPort.Compare)
	for i := range n {
		m := &member{t: t, dir: filepath.Join(t.TempDir(), "data")}
		m.cfg = Config{Identity: siteKey(), Listen: at[i], Members: at, Wall: time.Now, Log: slog.New(slog.NewTextHandler(&m.log, nil)), Facts: []Fact{{"node.name", "hq"}, {"link.roster", "serial 1"}, {"compact.corpus", "none"}, {"the format of the journal", "1"}}}
		list = append(list, m)
		t.Cleanup(func() {
			m.stop()
			if t.Failed() {
				t.Logf("%v\n%s", m.cfg.Listen, m.log.text.String())
			}
		})
	}
	return list
}

func (m *member) open() {
	m.t.Helper()
	var err error
	m.journal, err = journal.Open(m.dir, journal.Identity{Node: 2, Name: "hq"})
	check.NoError(check.Fatal(m.t), err)
	m.cfg.Journal = m.journal
}

func (m *member) start() {
	m.t.Helper()
	if m.journal == nil {
		m.open()
	}
	ln, err := net.Listen("tcp", m.cfg.Listen.String())
	check.NoError(check.Fatal(m.t), err)
	if m.count != nil {
		ln = counted{ln, m.count}
	}
	m.cluster, err = OpenCluster(m.cfg, ln)
	check.NoError(check.Fatal(m.t), err)
}

// two starts a member as one machine of two, the other being another member.
func (m *member) two(other *member) {
	m.t.Helper()
	m.open()
	check.NoError(m.t, Settle(m.journal))
	ln, err := net.Listen("tcp", m.cfg.Listen.String())
	check.NoError(check.Fatal(m.t), err)
	cfg := m.cfg
	cfg.Other, cfg.Members = other.cfg.Listen, nil
	m.link, err = Open(cfg, ln)
	check.NoError(check.Fatal(m.t), err)
}

// stop stops a member in order; die stops it like a power cut, as far as a process can.
func (m *member) stop() {
	if m.link != nil {
		m.link.Close()
		m.journal.Close()
		m.link, m.journal = nil, nil
	}
	if m.cluster != nil {
		m.cluster.Close()
		m.journal.Close()
		m.cluster, m.journal = nil, nil
	}
}

func (m *member) die() {
	c := m.cluster
	c.end()
	c.mu.Lock()
	c.partAll()
	c.lease.Store(&lease{})
	c.mu.Unlock()
	c.listener.Close()
	c.wait.Wait()
	m.journal.Close()
	m.cluster, m.journal = nil, nil
}

// led waits until a member leads, and begins its gateway.
func led(t testing.TB, list []*member) (leader *member, run uint64) {
	t.Helper()
	check.Until(t, time.Minute, "one leads", func() bool {
		for _, m := range list {
			if m.cluster != nil {
				if r, _, _ := m.cluster.Leadership(); r != 0 && m.cluster.Begin(r) == nil { // its leadership may end meanwhile
					leader, run = m, r
					return true
				}
			}
		}
		return false
	})
	return leader, run
}

// committed makes the leader commit operations, until they are acknowledged.
func committed(t testing.TB, list []*member, ops []journal.Op) {
	t.Helper()
	check.Until(t, 20*time.Second, "it is acknowledged", func() bool {
		m, run := led(t, list)
		return m.cluster.Commit(run, ops, nil) == nil
	})
}

func (m *member) records() (list []string) {
	m.t.Helper()
	m.cluster.writes.Lock()
	check.NoError(m.t, m.cluster.flush())
	m.cluster.writes.Unlock()
	check.NoError(m.t, m.journal.Load(func(bucket string, key, value []byte) error {
		list = append(list, fmt.Sprintf("%s %q %q", bucket, key, value))
		return nil
	}))
	return list
}

// allSame waits until all members' journals have the same records.
func allSame(t testing.TB, list []*member, records int) {
	t.Helper()
	check.Until(t, time.Minute, "all have the same", func() bool {
		first := list[0].records()
		return len(first) == records && !slices.ContainsFunc(list[1:], func(m *member) bool { return !slices.Equal(m.records(), first) })
	})
}

func put(i int) []journal.Op {
	return []journal.Op{{Bucket: "a", Key: fmt.Appendf(nil, "%05d", i), Value: fmt.Appendf(nil, "value %d", i)}}
}

// The journal that a gateway has written becomes the journal of all members. Each commit reaches all of them, a leader that dies is
// followed by a member that has everything, and a member with a lost disk gets a copy.
func TestMembersHaveTheJournal(t *testing.T) {
	list := newMembers(t, 3)
	list[1].open()
	check.NoError(t, list[1].journal.SetIncarnation(77))
	check.NoError(t, list[1].journal.Commit(put(0)))
	store := list[1].journal.StoreID()
	for _, m := range list {
		m.start()
	}
	n := 1
	commit := func(m *member, run uint64, most int) {
		for range most {
			check.NoError(check.Fatal(t), m.cluster.Commit(run, put(n), nil))
			n++
		}
	}
	leader, run := led(t, list)
	commit(leader, run, 50)
	allSame(t, list, n)
	for _, m := range list {
		check.Equal(t, "store", m.journal.StoreID(), store)
		check.Equal(t, "start", m.journal.Incarnation(), 77)
	}
	for range 3 {
		leader.die()
		next, run := led(t, list)
		commit(next, run, 30)
		leader.start()
		leader = next
		allSame(t, list, n)
	}
	lost := list[(slices.Index(list, leader)+1)%3]
	lost.die()
	lost.dir = filepath.Join(t.TempDir(), "new")
	commit(leader, mustLead(t, leader), 10)
	lost.start()
	allSame(t, list, n)
	check.Until(t, time.Minute, "it counts again", func() bool { return lost.cluster.Status().Whole })
}

func mustLead(t testing.TB, m *member) uint64 {
	run, _, err := m.cluster.Leadership()
	check.NoError(t, err)
	check.True(t, "it leads", run != 0)
	return run
}

// A member with an old disk notices it, and gets a copy before it counts.
func TestMemberWithAnOldDisk(t *testing.T) {
	list := newMembers(t, 3)
	for _, m := range list {
		m.start()
	}
	leader, run := led(t, list)
	old := list[(slices.Index(list, leader)+1)%3]
	check.NoError(t, leader.cluster.Commit(run, put(0), nil))
	old.stop()
	kept := filepath.Join(t.TempDir(), "kept")
	copyDir(t, old.dir, kept)
	old.start()
	for i := 1; i < 20; i++ {
		check.NoError(t, leader.cluster.Commit(run, put(i), nil))
	}
	allSame(t, list, 20)
	old.die()
	old.dir = kept
	old.start()
	check.Until(t, time.Minute, "it is told", func() bool { return old.log.has("its disk is an old one") })
	allSame(t, list, 20)
}

func copyDir(t testing.TB, from, to string) {
	t.Helper()
	check.NoError(check.Fatal(t), os.CopyFS(to, os.DirFS(from)))
}

// Without a majority nothing is confirmed and nothing transmitted; a waiting commit ends with the leadership.
func TestMembersWithoutMajority(t *testing.T) {
	list := newMembers(t, 3)
	for _, m := range list {
		m.start()
	}
	leader, run := led(t, list)
	for _, m := range list {
		if m != leader {
			m.die()
		}
	}
	err := leader.cluster.Commit(run, put(0), nil)
	check.ErrorIs(t, err, ErrDeposed)
	check.True(t, "it does not transmit", !leader.cluster.MayTransmit(run))
	for _, m := range list {
		if m != leader {
			m.start()
		}
	}
	led(t, list)
}

// A machine that cannot form a site with the others is refused, and the refusal names the reason.
func TestMembersRefused(t *testing.T) {
	for _, row := range []struct {
		name, says string
		change     func(list []*member)
	}{
		{"the same data directory", "copy of this machine's data directory", func(list []*member) {
			list[0].start()
			list[0].stop()
			copyDir(t, list[0].dir, list[2].dir)
		}},
		{"two journals", "from before they were members", func(list []*member) {
			for _, m := range []*member{list[0], list[2]} {
				m.open()
				check.NoError(t, m.journal.SetIncarnation(7))
			}
		}},
		{"another list", "differs in cluster.members", func(list []*member) {
			list[2].cfg.Listen = netip.MustParseAddrPort(check.FreeAddress(t, "tcp"))
			list[2].cfg.Members = []netip.AddrPort{list[0].cfg.Listen, list[1].cfg.Listen, list[2].cfg.Listen}
			list[1].cfg.Members = list[2].cfg.Members
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			list := newMembers(t, 3)
			row.change(list)
			for _, m := range list {
				m.start()
			}
			check.Until(t, time.Minute, "it is refused", func() bool {
				return list[0].log.has("refused or not made") && (row.says == "" || strings.Contains(list[0].log.all()+list[2].log.all(), row.says))
			})
			check.True(t, "nobody is connected with it", !list[0].cluster.Status().Members[2].Connected)
		})
	}
}

// BenchmarkMembers measures how many commits a second three members on this machine acknowledge, how fast, and how many octets they say to
// each other for a message of 200 octets, which does not repeat itself.
func BenchmarkMembers(b *testing.B) {
	for _, messages := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(messages, " messages"), func(b *testing.B) {
			list := newMembers(b, 3)
			var octets atomic.Int64
			for _, m := range list {
				m.count = &octets
				m.start()
			}
			leader, run := led(b, list)
			var took []time.Duration
			from := rand.NewChaCha8([32]byte{4})
			i, before := 0, octets.Load()
			for b.Loop() {
				var ops []journal.Op
				for range messages {
					i++
					ops = append(ops, journal.Op{Bucket: "a", Key: fmt.Appendf(nil, "%08d", i%10_000), Value: make([]byte, 200)})
					from.Read(ops[len(ops)-1].Value)
				}
				began := time.Now()
				check.NoError(check.Fatal(b), leader.cluster.Commit(run, ops, nil))
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-99%")
			b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "messages/s")
			b.ReportMetric(float64(octets.Load()-before)/float64(i), "octets/message")
		})
	}
}

// A member whose [cluster] is removed becomes a gateway of its own, with everything that it has acknowledged.
func TestMemberAlone(t *testing.T) {
	m := newMembers(t, 3)[0]
	m.open()
	j := m.journal
	t.Cleanup(func() { j.Close() })
	entry := append(append(numbers(2, 7, 1), entryOps), appendOps(nil, put(1))...)
	start := append(append(numbers(2, 7, 2), entryStart), 0, 0, 0, 9)
	check.NoError(t, j.CommitLogged(put(0), journal.Logged{Vote: appendVoted(quorum.Stored{Machine: 1, Term: 2, Commit: 2, Whole: true}), Position: numbers(1, 1),
		Add: map[uint64][]byte{2: numbers(2), 3: entry, 4: start}}))
	for range 2 {
		check.NoError(t, Settle(j))
		var have []string
		check.NoError(t, j.Load(func(_ string, key, _ []byte) error {
			have = append(have, string(key))
			return nil
		}))
		check.Equal(t, "records", fmt.Sprint(have), "[00000 00001]")
		check.Equal(t, "start", j.Incarnation(), 9)
		vote, position := j.Pair()
		check.True(t, "it is no member any more", vote == nil && position == nil)
		left, err := readLog(j)
		check.True(t, "the log is empty", len(left) == 0 && err == nil, left, err)
	}
}

// A copy of the journal is restored on one member: it learns how much it lacks, gets it, and nothing is lost. If it is restored on one
// while the others have nothing, the site goes on from it. On two members it is refused, and the refusal names the reason.
func TestMembersPutBack(t *testing.T) {
	list := newMembers(t, 3)
	list[0].open()
	check.NoError(t, list[0].journal.SetIncarnation(77))
	for _, m := range list {
		m.start()
	}
	leader, run := led(t, list)
	for i := range 10 {
		check.NoError(t, leader.cluster.Commit(run, put(i), nil))
	}
	copied, err := leader.journal.Backup()
	check.NoError(check.Fatal(t), err)
	backup := filepath.Join(t.TempDir(), "backup.db")
	text, err := io.ReadAll(io.NewSectionReader(copied, 0, 1<<30))
	check.NoError(t, err)
	copied.Close()
	check.NoError(t, os.WriteFile(backup, text, 0o600))
	for i := 10; i < 30; i++ {
		check.NoError(t, leader.cluster.Commit(run, put(i), nil))
	}
	putBack := func(m *member) {
		m.stop()
		_, err := journal.Restore(backup, m.dir, journal.Identity{Node: 2, Name: "hq"}, time.Now())
		check.NoError(check.Fatal(t), err)
	}
	one := list[(slices.Index(list, leader)+1)%3]
	putBack(one)
	one.start()
	allSame(t, list, 30)
	check.True(t, "it is told what it lacked", one.log.has("lacked_commits=20") && one.log.has("was put aside"))
	for i, m := range list {
		m.stop()
		m.dir = filepath.Join(t.TempDir(), fmt.Sprint("again", i))
	}
	putBack(list[2])
	for _, m := range list {
		m.start()
	}
	allSame(t, list, 10)
	leader, run = led(t, list)
	check.NoError(t, leader.cluster.Commit(run, put(50), nil))
	allSame(t, list, 11)
	for i, m := range list {
		m.stop()
		m.dir = filepath.Join(t.TempDir(), fmt.Sprint("both", i))
	}
	putBack(list[0])
	putBack(list[1])
	for _, m := range list {
		m.start()
	}
	check.Until(t, 10*time.Second, "two are refused", func() bool { return list[0].log.has("from before they were members") })
	check.Equal(t, "records of the third", len(list[2].records()), 0)
}
